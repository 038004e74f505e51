"""The tool `image_job`: the id of a slow call -> its progress or its result."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from limner.frontends.mcp.running_calls import ELSEWHERE, MAX_ID_CHARS, RunningCall, RunningCalls
from limner.tools.base import Outcome, Tool, ToolContext, ToolHints
from limner.tools.declaration import ToolDeclaration
from limner.tools.generation_tool import DrawingAnswer

JobId = Annotated[str, Meta(description="The call is still running; image_job returns its result.")]


class JobArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `image_job`."""

    job: Annotated[
        str, Meta(description="The job id that the call returned.", max_length=MAX_ID_CHARS)
    ]
    action: Literal["status", "wait", "cancel"] = "wait"


class JobAnswer(DrawingAnswer, frozen=True, kw_only=True):
    """The value of `image_job`: the state of the call, and the picture once it is there."""

    job: JobId
    status: str
    tool: str
    elapsed_s: float
    message: str


IMAGE_JOB = ToolDeclaration(
    name="image_job",
    title="Result of a slow call",
    description="The result of a call that returned a job instead of a picture. `status` returns "
    "at once, `wait` returns when the call is done or after a while, `cancel` stops the call; a "
    "request that was sent may still be charged. Works after a restart too, and never pays again. "
    "Once the call is done, it returns the picture.",
    arguments=JobArguments,
    answer=JobAnswer,
    hints=ToolHints(read_only=False, destructive=True, idempotent=True, open_world=True),
    max_result_chars=45_000,
)

Resume = Callable[[str], RunningCall]
"""Starts to fetch the result of a call of an earlier process."""


def image_job(running_calls: RunningCalls, *, resume: Resume, answer_within_s: float) -> Tool:
    """Build the tool for the calls of this process and, with ``resume``, of earlier processes."""

    async def run(arguments: JobArguments, context: ToolContext) -> Outcome:
        call_id, action = arguments.job.strip(), arguments.action
        call = running_calls.get(call_id)
        if call is None or _may_have_more(call):
            call = resume(call_id)
        if action == "cancel":
            call.cancel.set()
        # A call that ends at once, like a failed lookup, is reported in the first response.
        limit_s = answer_within_s if action != "status" else min(answer_within_s, 1.0)
        await asyncio.wait({call.task}, timeout=limit_s)
        asked_by = running_calls.get(context.call_id or "")
        return _outcome(call, answering=asked_by)

    # `wait` has its own timeout.
    return IMAGE_JOB.tool(run, timeout_s=answer_within_s + 60)


def running(call: RunningCall) -> dict[str, Any]:
    """Return the value for a call that is still running."""
    return {
        "job": call.id,
        "status": "running",
        "tool": call.tool,
        "elapsed_s": round(call.elapsed_s, 1),
        "message": call.message,
        "hint": f'The call is still running: call {IMAGE_JOB.name} with {{"job": "{call.id}"}} for '
        "the picture. If you repeat the same call, you join this one and pay nothing more.",
    }


def _may_have_more(call: RunningCall) -> bool:
    """Whether it ended without a picture that may be available by now."""
    result = call.result
    if result is None or result.ok or not call.answers_for:
        return False
    is_elsewhere = result.domain_code == ELSEWHERE
    return is_elsewhere or (result.billed and result.cost_source == "unknown")


def _outcome(call: RunningCall, *, answering: RunningCall | None) -> Outcome:
    result = call.result
    if result is None:
        return Outcome(value=running(call))
    if answering is not None:
        answering.answers_for |= {call.id, *call.answers_for}
    summary = {"job": call.id, "status": "done" if result.ok else "failed", "tool": call.tool}
    if result.value:
        return Outcome(
            value=summary | json.loads(result.value),
            content=result.content,
            success=result.ok,
            untrusted=result.untrusted,
        )
    if result.domain_code == "CANCELLED":
        summary["status"] = "cancelled"
    error = {"error": result.error_json}
    return Outcome(value=summary | error, success=False, untrusted=result.untrusted)
