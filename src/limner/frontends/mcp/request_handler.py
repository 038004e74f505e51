"""A request that needs the program -> its answer, in the shape that the client understands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError

from limner.errors import LimnerError
from limner.frontends.mcp import resources, tool_list
from limner.frontends.mcp.caller import Caller, to_decide
from limner.frontends.mcp.image_job import running
from limner.frontends.mcp.results import as_result, failure
from limner.frontends.mcp.running_calls import RunningCall
from limner.frontends.mcp.service import McpService
from limner.frontends.mcp.tasks import Tasks, created
from limner.tools.base import ToolResult


class RequestHandler:
    """Answers for one house.

    Raises:
        SettingsError: the settings are wrong.
    """

    def __init__(self, *, env: Mapping[str, str], cwd: Path) -> None:
        self.house = McpService(env=env, cwd=cwd)
        self.tasks = Tasks(house=self.house)

    async def call(
        self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> HandlerResult:
        """What a tool answers; a failure is an answer too.

        Raises:
            MCPError: there is no such tool.
        """
        if params.name not in tool_list.offered():
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name[:80]!r}")
        caller = Caller(context, params)
        try:
            work = await self.house.begin(params.name, params.arguments or {}, caller)
            result = await self.house.attend(work, caller)
            if result is None:
                return await self._goes_on(work, caller)
            return await self._ended(work, result)
        except LimnerError as error:
            return failure(error)

    async def read(self, uri: str) -> types.ReadResourceResult:
        """A picture by its address.

        Raises:
            MCPError: there is none.
        """
        return await resources.read(uri, self.house.lim.pictures)

    async def aclose(self) -> None:
        """Wait for what may be paid for, and close."""
        await self.house.aclose()

    async def _goes_on(self, work: RunningCall, caller: Caller) -> HandlerResult:
        await self.house.promise(work)
        return created(work) if caller.takes_tasks else as_result(running(work))

    async def _ended(self, work: RunningCall, result: ToolResult) -> HandlerResult:
        if work.questions and not result.ok:
            return to_decide(work.questions)
        written = await self.house.results.write(result)
        await self.house.deliver(work)
        return written
