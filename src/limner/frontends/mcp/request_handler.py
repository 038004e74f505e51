"""A request that needs a `Limner` -> its response, in the form that the client understands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError

from limner.errors import LimnerError
from limner.frontends.mcp import resources, tool_list
from limner.frontends.mcp.caller import Caller, session_of
from limner.frontends.mcp.image_job import running
from limner.frontends.mcp.results import as_result, failure
from limner.frontends.mcp.running_calls import RunningCall
from limner.frontends.mcp.service import McpService
from limner.frontends.mcp.tasks import Tasks, created
from limner.tools.base import ToolResult


class RequestHandler:
    """Handles the requests of one server.

    Raises:
        SettingsError: the settings are wrong.
    """

    def __init__(
        self, *, env: Mapping[str, str], cwd: Path, folders: tuple[Path, ...] | None
    ) -> None:
        self.service = McpService(env=env, cwd=cwd, folders=folders)
        self.tasks = Tasks(service=self.service)

    async def call(
        self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> HandlerResult:
        """Call a tool; a failed call is a result too.

        Raises:
            MCPError: there is no such tool.
        """
        if params.name not in tool_list.offered():
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name[:80]!r}")
        caller = Caller(context, params)
        try:
            call = await self.service.begin(params.name, params.arguments or {}, caller)
            result = await self.service.attend(call, caller)
            if result is None:
                return await self._still_running(call, caller)
            return await self._ended(call, result, caller)
        except LimnerError as error:
            return failure(error)

    async def read(
        self, context: ServerRequestContext[Any, Any], uri: str
    ) -> types.ReadResourceResult:
        """Read a picture by its URI.

        Raises:
            MCPError: there is no such picture.
        """
        pictures = self.service.lim.pictures
        if not await pictures.drawn_here([resources.handle_of(uri)]):
            self.service.note_untrusted(session_of(context))
        return await resources.read(uri, pictures)

    async def aclose(self) -> None:
        """Wait for calls that may be paid for, and close."""
        await self.service.aclose()

    async def _still_running(self, call: RunningCall, caller: Caller) -> HandlerResult:
        await self.service.promise(call)
        return created(call) if caller.takes_tasks else as_result(running(call))

    async def _ended(self, call: RunningCall, result: ToolResult, caller: Caller) -> HandlerResult:
        if call.questions and not result.ok:
            return caller.to_decide(call.questions)
        if result.untrusted:
            self.service.note_untrusted(caller.session)
        encoded = await self.service.results.write(result)
        await self.service.deliver(call)
        return encoded
