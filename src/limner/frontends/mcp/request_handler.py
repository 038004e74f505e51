"""A request that needs a `Limner` -> its result, in the form that the client understands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from limner.errors import LimnerError
from limner.frontends.mcp import offers, resources
from limner.frontends.mcp.caller import Caller
from limner.frontends.mcp.image_job import running
from limner.frontends.mcp.results import as_result, failure
from limner.frontends.mcp.running_calls import RunningCall
from limner.frontends.mcp.server import McpRequest
from limner.frontends.mcp.service import McpService
from limner.frontends.mcp.tasks import Tasks, created
from limner.frontends.mcp.tool_list import declared_names
from limner.net.jsonrpc import INVALID_PARAMS, RpcError
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
        self._tasks = Tasks(service=self.service)

    async def call(
        self, request: McpRequest, name: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Call a tool; a failed call is a result too.

        Raises:
            RpcError: there is no such tool.
        """
        if name not in offers.offered():
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {name[:80]!r}")
        caller = Caller(request)
        try:
            call = await self.service.begin(name, declared_names(name, arguments), caller)
            result = await self.service.attend(call, caller)
            if result is None:
                return await self._still_running(call, caller)
            return await self._ended(call, result, caller)
        except LimnerError as error:
            return failure(error)

    async def read(self, request: McpRequest, uri: str) -> dict[str, Any]:
        """Read a picture by its URI.

        Raises:
            RpcError: there is no such picture.
        """
        pictures = self.service.lim.pictures
        if not await pictures.drawn_here([resources.handle_of(uri)]):
            self.service.note_untrusted(request.session.id)
        return await resources.read(uri, pictures)

    async def task(self, request: McpRequest, task_id: str) -> dict[str, Any]:
        """Get, cancel or update a task.

        Raises:
            RpcError: there is no such task.
        """
        if request.method == "tasks/get":
            return await self._tasks.get(task_id, request.client)
        if request.method == "tasks/cancel":
            return self._tasks.cancel(task_id)
        return self._tasks.update(task_id)

    async def aclose(self) -> None:
        """Wait for calls that may be paid for, and close."""
        await self.service.aclose()

    async def _still_running(self, call: RunningCall, caller: Caller) -> dict[str, Any]:
        await self.service.promise(call)
        return created(call) if caller.client.takes_tasks else as_result(running(call))

    async def _ended(self, call: RunningCall, result: ToolResult, caller: Caller) -> dict[str, Any]:
        if call.questions and not result.ok:
            return caller.to_decide(call.questions)
        if result.untrusted:
            self.service.note_untrusted(caller.session)
        encoded = await self.service.results.write(result, caller.client)
        await caller.connected()
        await self.service.deliver(call)
        return encoded
