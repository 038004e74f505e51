"""The tool `image_job`: the id of a slow call in, how far it is or what came of it out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from limner.frontends.mcp.results import error_json
from limner.frontends.mcp.running_calls import ELSEWHERE, MAX_ID_CHARS, RunningCall, RunningCalls
from limner.tools.base import Outcome, Tool, ToolContext

TOOL = "image_job"
MAX_RESULT_CHARS = 45_000

DESCRIPTION = (
    "What became of a call that answered with a job instead of a picture. `status` answers at "
    "once, `wait` when it is done or after a while, `cancel` stops it; what was sent may still be "
    "charged. Works after a restart too, and never pays again. Once done, it returns the picture."
)

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "id": {
            "type": "string",
            "maxLength": MAX_ID_CHARS,
            "description": "The job that the call answered with.",
        },
        "action": {
            "type": "string",
            "enum": ["status", "wait", "cancel"],
            "default": "wait",
        },
    },
    "required": ["id"],
}

Resume = Callable[[str], RunningCall]
"""Begins to bring in what a call of an earlier process paid for."""


def image_job(works: RunningCalls, *, resume: Resume, answer_within_s: float) -> Tool:
    """The tool, for the calls of this process and, through ``resume``, of those before it."""

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        call_id, action = arguments["id"].strip(), arguments.get("action", "wait")
        work = works.get(call_id)
        if work is None or _may_have_more(work):
            work = resume(call_id)
        if action == "cancel":
            work.cancel.set()
        # What ends at once, a lookup that finds nothing say, need not be asked about twice.
        limit_s = answer_within_s if action != "status" else min(answer_within_s, 1.0)
        await asyncio.wait({work.task}, timeout=limit_s)
        asked_by = works.get(context.call_id or "")
        return _outcome(work, answering=asked_by)

    return Tool(
        name=TOOL,
        description=DESCRIPTION,
        schema=SCHEMA,
        run=run,
        toolset="image",
        max_result_chars=MAX_RESULT_CHARS,
        # Waiting has an end of its own.
        timeout_s=answer_within_s + 60,
    )


def running(work: RunningCall) -> dict[str, Any]:
    """What is told of a call that goes on."""
    return {
        "job": work.id,
        "status": "running",
        "tool": work.tool,
        "elapsed_s": round(work.elapsed_s, 1),
        "message": work.message,
        "hint": f'It goes on and is not lost: call {TOOL} with {{"id": "{work.id}"}} for the '
        "picture. Making the same call again joins it and pays nothing more.",
    }


def _may_have_more(work: RunningCall) -> bool:
    """Whether it ended without a picture that is perhaps to be had by now."""
    result = work.result
    if result is None or result.ok or not work.answers_for:
        return False
    is_elsewhere = result.domain_code == ELSEWHERE
    return is_elsewhere or (result.billed and result.cost_source == "unknown")


def _outcome(work: RunningCall, *, answering: RunningCall | None) -> Outcome:
    result = work.result
    if result is None:
        return Outcome(value=running(work))
    if answering is not None:
        answering.answers_for |= {work.id, *work.answers_for}
    about = {"job": work.id, "status": "done" if result.ok else "failed", "tool": work.tool}
    if result.value:
        return Outcome(
            value=about | json.loads(result.value), content=result.content, success=result.ok
        )
    if result.domain_code == "CANCELLED":
        about["status"] = "cancelled"
    return Outcome(value=about | {"error": error_json(result)}, success=False)
