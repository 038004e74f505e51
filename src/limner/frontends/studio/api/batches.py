"""Requests about batches -> how far each is, and runs that go on with one."""

from __future__ import annotations

import time
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from limner.batches.records import BatchStatus
from limner.dollars import format_usd, usd_to_nano
from limner.errors import NANO_PER_USD, ApprovalDenied
from limner.frontends.studio.endpoints import Endpoint, NoArguments, StudioParts
from limner.frontends.studio.runs import Report, RunResult, StudioRun
from limner.pictures.request import Progress

SHOWN_BATCHES = 20
SHOWN_FAILURES = 10
_TITLE_CHARS = 200

BatchId = Annotated[str, Meta(pattern=r"^batch_[0-9a-z]{1,64}$", description="The id of a batch.")]


class FailedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row that failed, and why."""

    key: str
    message: str


class BatchSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A batch: its rows by state, its money, and the first rows that failed.

    ``state`` is loading, open, done or cancelled. ``left_usd`` is the most that it can still cost.
    """

    id: str
    name: str
    state: str
    lane: str
    created_ms: int
    rows: int
    waiting: int
    running: int
    done: int
    failed: int
    budget_usd: float
    spent_usd: float
    unknown_usd: float
    left_usd: float
    failures: list[FailedRow]


class BatchList(msgspec.Struct, frozen=True, kw_only=True):
    """The newest batches."""

    batches: list[BatchSummary]


class BatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One batch."""

    id: BatchId


class BatchOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A batch to go on with, for at most the price that the page showed."""

    id: BatchId
    agreed_usd: Annotated[float, Meta(ge=0, le=1e6)]


async def list_batches(studio: StudioParts, _: NoArguments) -> BatchList:
    """The newest batches, and how far each is."""
    batches = studio.lim.batches
    recent = await batches.queue.recent(SHOWN_BATCHES)
    return BatchList(
        batches=[await _summary(studio, await batches.status(batch.id)) for batch in recent]
    )


async def resume_batch(studio: StudioParts, request: BatchOrder) -> StudioRun:
    """Go on with a batch. Failed rows are tried again if they cost nothing."""
    batches = studio.lim.batches
    before = await batches.status(request.id)
    agreed_nano, left_nano = usd_to_nano(request.agreed_usd), _left_nano(before)
    if left_nano > agreed_nano:
        raise ApprovalDenied(
            f"It may cost {format_usd(left_nano)} now, and you agreed to "
            f"{format_usd(agreed_nano)}.",
            code="PRICE_CHANGED",
            hint="Look at the new price and order again.",
        )

    async def work(report: Report) -> RunResult:
        started_s = time.monotonic()

        def follow(status: BatchStatus) -> None:
            counts = status.counts
            report(
                Progress(
                    message=_words(status),
                    elapsed_s=time.monotonic() - started_s,
                    fraction=counts.ended / counts.rows if counts.rows else None,
                )
            )

        status = await batches.run(await batches.reopen(request.id), on_status=follow)
        spent_nano = max(0, status.spent_nano - before.spent_nano)
        text = " ".join(filter(None, [_words(status), status.stopped]))
        return RunResult(text=text, cost_usd=spent_nano / NANO_PER_USD)

    return studio.runs.start("batch", before.batch.name[-_TITLE_CHARS:], work)


async def cancel_batch(studio: StudioParts, request: BatchRequest) -> BatchList:
    """Start no more rows of a batch; rows that run come to their end."""
    await studio.lim.batches.cancel(request.id)
    return await list_batches(studio, NoArguments())


async def _summary(studio: StudioParts, status: BatchStatus) -> BatchSummary:
    batch, counts = status.batch, status.counts
    results = studio.lim.batches.queue.results(batch, state="failed", limit=SHOWN_FAILURES)
    failed: list[dict[str, Any]] = [row.as_json() async for row in results] if counts.failed else []
    return BatchSummary(
        id=batch.id,
        name=batch.name,
        state=status.state,
        lane=batch.lane,
        created_ms=batch.created_ms,
        rows=counts.rows,
        waiting=counts.waiting,
        running=counts.running,
        done=counts.done,
        failed=counts.failed,
        budget_usd=batch.budget_usd,
        spent_usd=status.spent_nano / NANO_PER_USD,
        unknown_usd=status.unknown_nano / NANO_PER_USD,
        left_usd=_left_nano(status) / NANO_PER_USD,
        failures=[FailedRow(key=one["key"], message=one["error"]["message"]) for one in failed],
    )


def _left_nano(status: BatchStatus) -> int:
    return max(0, status.batch.budget_nano - status.spent_nano)


def _words(status: BatchStatus) -> str:
    counts = status.counts
    failed = f", {counts.failed:,} failed" if counts.failed else ""
    return f"{counts.done:,} of {counts.rows:,} rows done{failed}"


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/batches",
        summary="List the newest batches, how far each is, and the first rows that failed.",
        request=NoArguments,
        answer=BatchList,
        handler=list_batches,
    ),
    Endpoint(
        method="POST",
        path="/api/batches/{id}/resume",
        summary="Go on with a batch for at most the agreed price. No row is paid twice.",
        request=BatchOrder,
        answer=StudioRun,
        handler=resume_batch,
    ),
    Endpoint(
        method="POST",
        path="/api/batches/{id}/cancel",
        summary="Start no more rows of a batch.",
        request=BatchRequest,
        answer=BatchList,
        handler=cancel_batch,
    ),
)
