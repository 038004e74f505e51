"""The tasks extension: a slow call as a task that the client polls, asks to stop, and collects."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import mcp_types as types
import msgspec
from mcp.shared.exceptions import MCPError

from limner.errors import Cancelled
from limner.frontends.mcp.running_calls import MAX_ID_CHARS, RunningCall
from limner.frontends.mcp.service import McpService

POLL_EVERY_MS = 2000


def created(work: RunningCall) -> dict[str, Any]:
    """The answer to a call that goes on as a task."""
    return {"resultType": "task", **_task(work, "working")}


class Tasks(msgspec.Struct, frozen=True, kw_only=True):
    """The slow calls of one house, as tasks; each method raises where there is no such task."""

    house: McpService

    async def get(self, task_id: str) -> dict[str, Any]:
        """How a task stands, with its result once it is done."""
        work = self._find(task_id)
        result = work.result
        if result is None:
            return _task(work, "working")
        if result.domain_code == Cancelled.code:
            return _task(work, "cancelled")
        written = await self.house.results.write(result)
        await self.house.deliver(work)
        dumped = written.model_dump(by_alias=True, mode="json", exclude_none=True)
        return {**_task(work, "completed"), "result": dumped}

    def cancel(self, task_id: str) -> dict[str, Any]:
        """Ask a task to stop; what was sent may still be charged."""
        self._find(task_id).cancel.set()
        return {}

    def update(self, task_id: str) -> dict[str, Any]:
        """Take answers to questions: a task has none, since all are asked before it begins."""
        self._find(task_id)
        return {}

    def _find(self, task_id: str) -> RunningCall:
        work = self.house.works.get(task_id)
        if work is not None:
            return work
        if not task_id.startswith("call_") or len(task_id) > MAX_ID_CHARS:
            raise MCPError(code=types.INVALID_PARAMS, message="There is no such task here.")
        return self.house.resume(task_id)


def _task(work: RunningCall, status: str) -> dict[str, Any]:
    return {
        "taskId": work.id,
        "status": status,
        "statusMessage": work.message or f"{work.tool} is at work",
        "createdAt": _iso(work.began_at_s),
        "lastUpdatedAt": _iso(work.changed_at_s),
        "ttlMs": None,
        "pollIntervalMs": POLL_EVERY_MS,
    }


def _iso(moment_s: float) -> str:
    return datetime.fromtimestamp(moment_s, UTC).isoformat(timespec="milliseconds")
