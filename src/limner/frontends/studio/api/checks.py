"""A picture, a reference and criteria in words -> a run with a verdict for each, and boxes."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from limner.dollars import usd_to_nano
from limner.errors import NANO_PER_USD
from limner.frontends.studio.api.drawings import ASKS
from limner.frontends.studio.endpoints import Endpoint, PictureHandle, StudioParts
from limner.frontends.studio.runs import Report, RunResult, StudioRun
from limner.tools.base import Question
from limner.tools.built_in.image_check import CheckAnswer, as_value
from limner.tools.picture_check import MAX_CRITERIA, CheckArguments

_TITLE_CHARS = 200

Criterion = Annotated[str, Meta(min_length=1, max_length=1000)]


class CheckOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A picture to check. A model is asked only if it costs at most ``agreed_usd``."""

    handle: PictureHandle
    against: PictureHandle | None = None
    expect: Annotated[tuple[Criterion, ...], Meta(max_length=MAX_CRITERIA)] = ()
    agreed_usd: Annotated[float, Meta(ge=0, le=1e6)] = 0.0


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """The verdicts: the ``details`` of the run.

    ``asks_usd`` is the most that a model would cost that decides the rest; None if none is left, or
    if there is no model to ask.
    """

    verdicts: CheckAnswer
    asks_usd: float | None


async def start_check(studio: StudioParts, request: CheckOrder) -> StudioRun:
    """Measure what can be measured for free, and ask a model if the user agreed to its price."""
    lim = studio.lim
    agreed_nano = usd_to_nano(request.agreed_usd)
    arguments = CheckArguments(image=request.handle, against=request.against, expect=request.expect)
    over: list[int] = []

    async def ask(question: Question) -> bool:
        amount_nano = question.amount_nano
        if amount_nano is not None and amount_nano > agreed_nano:
            over.append(amount_nano)
        return amount_nano is not None and amount_nano <= agreed_nano

    async def work(report: Report) -> RunResult:
        context = replace(lim.person(progress=report, ask=ask), approval=ASKS)
        found = await lim.checker.check(arguments, context)
        verdicts = msgspec.convert(as_value(found), CheckAnswer)
        details = CheckReport(verdicts=verdicts, asks_usd=over[-1] / NANO_PER_USD if over else None)
        return RunResult(
            text=found.report, cost_usd=found.cost_usd, details=msgspec.to_builtins(details)
        )

    title = "; ".join(request.expect) or "Compare with the reference"
    return studio.runs.start("image_check", title[:_TITLE_CHARS], work)


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/api/checks",
        summary="Check a picture against criteria in words and a reference. The `details` of the "
        "run are the verdicts, and what a model would cost that decides the rest.",
        request=CheckOrder,
        answer=StudioRun,
        handler=start_check,
    ),
)
