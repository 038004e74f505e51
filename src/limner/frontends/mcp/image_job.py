"""The tool `image_job`: the id of a slow call in, how far it is or what came of it out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from limner.frontends.mcp.results import error_json
from limner.frontends.mcp.running_calls import ELSEWHERE, MAX_ID_CHARS, RunningCall, RunningCalls
from limner.tools.base import Outcome, Tool, ToolContext, ToolHints
from limner.tools.declaration import ToolDeclaration
from limner.tools.generation_tool import DrawingAnswer

JobId = Annotated[str, Meta(description="The call goes on; image_job has its result.")]


class RunningAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool answers with if its call takes long: the job that goes on."""

    job: JobId
    status: str


class JobArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `image_job`."""

    id: Annotated[
        str, Meta(description="The job that the call answered with.", max_length=MAX_ID_CHARS)
    ]
    action: Literal["status", "wait", "cancel"] = "wait"


class JobAnswer(DrawingAnswer, frozen=True, kw_only=True):
    """The value of `image_job`: the state of the call, and the picture if it is there."""

    job: JobId
    status: str
    tool: str
    elapsed_s: float
    message: str


IMAGE_JOB = ToolDeclaration(
    name="image_job",
    title="What became of a slow call",
    description="What became of a call that answered with a job instead of a picture. `status` "
    "answers at once, `wait` when it is done or after a while, `cancel` stops it; what was sent "
    "may still be charged. Works after a restart too, and never pays again. Once done, it returns "
    "the picture.",
    arguments=JobArguments,
    answer=JobAnswer,
    hints=ToolHints(read_only=False, destructive=True, idempotent=True, open_world=True),
    max_result_chars=45_000,
)

Resume = Callable[[str], RunningCall]
"""Begins to bring in what a call of an earlier process paid for."""


def image_job(works: RunningCalls, *, resume: Resume, answer_within_s: float) -> Tool:
    """The tool, for the calls of this process and, through ``resume``, of those before it."""

    async def run(arguments: JobArguments, context: ToolContext) -> Outcome:
        call_id, action = arguments.id.strip(), arguments.action
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

    # Waiting has an end of its own.
    return IMAGE_JOB.tool(run, timeout_s=answer_within_s + 60)


def running(work: RunningCall) -> dict[str, Any]:
    """What is told of a call that goes on."""
    return {
        "job": work.id,
        "status": "running",
        "tool": work.tool,
        "elapsed_s": round(work.elapsed_s, 1),
        "message": work.message,
        "hint": f'It goes on and is not lost: call {IMAGE_JOB.name} with {{"id": "{work.id}"}} for '
        "the picture. Making the same call again joins it and pays nothing more.",
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
