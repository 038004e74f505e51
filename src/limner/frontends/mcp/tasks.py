"""The tasks extension: a slow call -> a task that the client polls and can cancel."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from limner.errors import Cancelled
from limner.frontends.mcp.protocol import ConnectedClient
from limner.frontends.mcp.running_calls import MAX_ID_CHARS, RunningCall
from limner.frontends.mcp.service import McpService
from limner.net.jsonrpc import INVALID_PARAMS, RpcError

POLL_EVERY_MS = 2000


def created(call: RunningCall) -> dict[str, Any]:
    """Return the response to a call that continues as a task."""
    return {"resultType": "task", **_task(call, "working")}


class Tasks(msgspec.Struct, frozen=True, kw_only=True):
    """The slow calls of one server as tasks; each method raises if there is no such task."""

    service: McpService

    async def get(self, task_id: str, client: ConnectedClient) -> dict[str, Any]:
        """Return the state of a task, with its result once it is done."""
        call = self._find(task_id)
        result = call.result
        if result is None:
            return _task(call, "working")
        if result.domain_code == Cancelled.code:
            return _task(call, "cancelled")
        if result.untrusted:
            self.service.note_untrusted("")  # only clients without a session use tasks
        encoded = await self.service.results.write(result, client)
        await self.service.deliver(call)
        return {**_task(call, "completed"), "result": encoded}

    def cancel(self, task_id: str) -> dict[str, Any]:
        """Cancel a task; a request that was sent may still be charged."""
        self._find(task_id).cancel.set()
        return {}

    def update(self, task_id: str) -> dict[str, Any]:
        """Accept answers and ignore them: all questions are asked before a task starts."""
        self._find(task_id)
        return {}

    def _find(self, task_id: str) -> RunningCall:
        call = self.service.running.get(task_id)
        if call is not None:
            return call
        if not task_id.startswith("call_") or len(task_id) > MAX_ID_CHARS:
            raise RpcError(INVALID_PARAMS, "There is no such task.")
        return self.service.resume(task_id)


def _task(call: RunningCall, status: str) -> dict[str, Any]:
    return {
        "taskId": call.id,
        "status": status,
        "statusMessage": call.message or f"{call.tool} is running",
        "createdAt": _iso(call.began_at_s),
        "lastUpdatedAt": _iso(call.changed_at_s),
        "ttlMs": None,
        "pollIntervalMs": POLL_EVERY_MS,
    }


def _iso(moment_s: float) -> str:
    return datetime.fromtimestamp(moment_s, UTC).isoformat(timespec="milliseconds")
