"""A client that needs another form of a result -> the result without the parts it misreads."""

from __future__ import annotations

import mcp_types as types
from mcp.server.session import ServerSession

# If a result has structured content, Codex shows its model only that and drops the pictures.
SHOWS_STRUCTURE_ONLY = frozenset({"codex-mcp-client"})


def takes_structure(session: ServerSession) -> bool:
    """Whether a client shows its model the pictures of a result with structured content."""
    params = session.client_params
    return params is None or params.client_info.name not in SHOWS_STRUCTURE_ONLY


def without_structure(result: types.CallToolResult) -> types.CallToolResult:
    """Return the result without structured content; its text has the same value."""
    return types.CallToolResult(content=result.content, is_error=result.is_error)


def without_output_schema(tool: types.Tool) -> types.Tool:
    """Return the tool without an output schema."""
    return tool.model_copy(update={"output_schema": None})
