"""Clients that need the same answer in another shape -> what to leave out for them."""

from __future__ import annotations

import mcp_types as types
from mcp.server.session import ServerSession

# Where a result has a structure, Codex shows its model that and drops the pictures beside it.
SHOWS_STRUCTURE_ONLY = frozenset({"codex-mcp-client"})


def takes_structure(session: ServerSession) -> bool:
    """Whether a client shows its model the pictures of a result that has a structure too."""
    about = session.client_params
    return about is None or about.client_info.name not in SHOWS_STRUCTURE_ONLY


def without_structure(result: types.CallToolResult) -> types.CallToolResult:
    """A result whose text says what its structure did."""
    return types.CallToolResult(content=result.content, is_error=result.is_error)


def without_output_schema(tool: types.Tool) -> types.Tool:
    """A tool that promises no structure."""
    return tool.model_copy(update={"output_schema": None})
