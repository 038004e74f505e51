"""Requests about money -> what was spent, the caps, and the jobs that are open."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from limner.errors import NANO_PER_USD, LimnerError, UserError
from limner.frontends.studio.endpoints import Endpoint, NoArguments, StudioParts, master_handle
from limner.frontends.studio.runs import Report, RunResult, StudioRun
from limner.money.records import JobRow

JobId = Annotated[str, Meta(pattern=r"^job_[0-9a-z]{1,64}$", description="The id of an open job.")]
MAX_LINES = 366


class SpendQuery(msgspec.Struct, frozen=True, kw_only=True):
    """How many days and sessions to list."""

    limit: Annotated[int, Meta(ge=1, le=MAX_LINES)] = 60


class SpendPart(msgspec.Struct, frozen=True, kw_only=True):
    """What was spent on one day, with one model or in one session."""

    name: str
    cost_usd: float
    calls: int


class SpendCaps(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings allow; None is no cap."""

    call_usd: float | None
    session_usd: float | None
    day_usd: float | None


class SpendReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the whole ledger says, and the newest calls.

    ``unknown_usd`` is the part of the total that may not have been charged. ``in_flight_usd`` is
    reserved for calls that have not ended, and no part of the total.
    """

    total_usd: float
    unknown_usd: float
    in_flight_usd: float
    today: str
    today_usd: float
    caps: SpendCaps
    by_day: list[SpendPart]
    by_model: list[SpendPart]
    by_session: list[SpendPart]
    recent: list[dict[str, Any]]


class OpenJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that was sent and not finished."""

    id: str
    provider: str
    model: str
    tool: str
    created_ms: int
    state: str
    quoted_usd: float


class OpenJobs(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs that were sent and not finished."""

    jobs: list[OpenJob]


class JobRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One open job."""

    id: JobId


class SettleRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A job to close, and what the provider charged for it."""

    id: JobId
    cost_usd: Annotated[str, Meta(max_length=30, description="In dollars, as 0.04.")]


async def report_spending(studio: StudioParts, request: SpendQuery) -> SpendReport:
    """What was spent."""
    lim = studio.lim
    spend = await lim.spend(limit=request.limit)
    budget, today = lim.settings.budget, lim.clock().date()
    found = spend.as_json()
    caps = {name: getattr(budget, name) for name in SpendCaps.__struct_fields__}
    return SpendReport(
        total_usd=spend.total_usd,
        unknown_usd=spend.unknown_usd,
        in_flight_usd=spend.in_flight_usd,
        today=today.isoformat(),
        today_usd=await lim.money.spent(day=today) / NANO_PER_USD,
        caps=SpendCaps(**{name: None if cap is None else float(cap) for name, cap in caps.items()}),
        **{
            name: msgspec.convert(found[name], list[SpendPart])
            for name in ("by_day", "by_model", "by_session")
        },
        recent=[row.as_json() for row in spend.recent],
    )


async def list_jobs(studio: StudioParts, _: NoArguments) -> OpenJobs:
    """The open jobs."""
    lim = studio.lim
    return OpenJobs(
        jobs=[
            OpenJob(
                id=row.id,
                provider=row.provider,
                model=row.model,
                tool=row.tool,
                created_ms=row.created_ms,
                state=lim.job_state(row),
                quoted_usd=row.quoted_nano / NANO_PER_USD,
            )
            for row in await lim.money.unfinished_jobs()
        ]
    )


async def recover_job(studio: StudioParts, request: JobRequest) -> StudioRun:
    """Fetch the picture of a job, without paying again."""
    lim = studio.lim
    row = await _find(studio, request.id)
    if row.in_flight:
        raise LimnerError(
            "A process waits for this job.", code="JOB_RUNNING_ELSEWHERE", retryable=True
        )

    async def work(report: Report) -> RunResult:
        drawn = await lim.recover(row, progress=report)
        if drawn is None:
            return RunResult(text="The provider cannot say what became of it. It stays counted.")
        handle = await master_handle(lim, drawn.image.handle)
        return RunResult(pictures=(handle,), cost_usd=drawn.cost_usd)

    return studio.runs.start("recover", f"Recover {row.id}", work)


async def settle_job(studio: StudioParts, request: SettleRequest) -> OpenJobs:
    """Close a job at the price that the provider charged, and list what is left."""
    row = await _find(studio, request.id)
    await studio.lim.close_job(row, cost_usd=request.cost_usd)
    return await list_jobs(studio, NoArguments())


async def forget_job(studio: StudioParts, request: JobRequest) -> OpenJobs:
    """Close a job at its quoted price, and list what is left."""
    await studio.lim.close_job(await _find(studio, request.id))
    return await list_jobs(studio, NoArguments())


async def _find(studio: StudioParts, job_id: str) -> JobRow:
    for row in await studio.lim.money.unfinished_jobs():
        if row.id == job_id:
            return row
    raise UserError("there is no such open job", code="NO_SUCH_JOB")


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/money",
        summary="Say what was spent, by day, model and session, and what the caps are.",
        request=SpendQuery,
        answer=SpendReport,
        handler=report_spending,
    ),
    Endpoint(
        method="GET",
        path="/api/jobs",
        summary="List the jobs that were sent and not finished.",
        request=NoArguments,
        answer=OpenJobs,
        handler=list_jobs,
    ),
    Endpoint(
        method="POST",
        path="/api/jobs/{id}/recover",
        summary="Fetch the picture of an open job, without paying again.",
        request=JobRequest,
        answer=StudioRun,
        handler=recover_job,
    ),
    Endpoint(
        method="POST",
        path="/api/jobs/{id}/settle",
        summary="Close an open job at the price that the provider charged.",
        request=SettleRequest,
        answer=OpenJobs,
        handler=settle_job,
    ),
    Endpoint(
        method="POST",
        path="/api/jobs/{id}/forget",
        summary="Close an open job at its quoted price; bytes that are here are deleted.",
        request=JobRequest,
        answer=OpenJobs,
        handler=forget_job,
    ),
)
