"""A call of a process that ended -> its pictures, fetched without a new payment, or an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from limner.client import Limner
from limner.errors import LimnerError, UserError
from limner.frontends.mcp.calls import CallRow, CallStore
from limner.frontends.mcp.running_calls import ELSEWHERE
from limner.money.ledger import OWNER_DIED
from limner.money.paid_call import ALREADY_RECEIVED
from limner.money.records import JobRow
from limner.pictures.request import Progress
from limner.tools.base import Outcome
from limner.tools.generation_tool import as_value, source_of
from limner.tools.output_file import GeneratedImage
from limner.tools.picture_set import PictureSet
from limner.tools.recovery import fetch_result

NO_SUCH_JOB = "NO_SUCH_JOB"
JOB_ENDED = "JOB_ENDED"
JOB_LOST = "JOB_LOST"


class CallResumer(msgspec.Struct, frozen=True, kw_only=True):
    """Completes calls of earlier processes."""

    lim: Limner
    calls: CallStore

    async def earlier(self, digest: str, *, but: str) -> str | None:
        """Return the paid call of a dead process that has this digest, if there is one."""
        await self.lim.money.conclude_dead_calls()
        call_id = await self.calls.undelivered(digest, but=but)
        if call_id is None:
            return None
        for row in await self.calls.rows(call_id):
            job = None if row.job_id is None else await self.lim.money.job(row.job_id)
            if job is not None and job.in_flight:
                return None  # its process is alive and will deliver it
        return call_id

    async def finish(self, call_id: str, *, progress: Callable[[Progress], None]) -> Outcome:
        """Return the result that the call would have had.

        Raises:
            UserError: there was no such call (NO_SUCH_JOB).
            LimnerError: there is no picture; the error contains the cost.
        """
        # The process of the call may have died since this process started.
        await self.lim.money.conclude_dead_calls()
        if call_id.startswith("job_"):
            rows = await self._row_of_job(call_id)
        else:
            rows = await self.calls.rows(call_id)
        if not rows:
            raise UserError(
                f"there is no job {call_id[:80]!r}",
                code=NO_SUCH_JOB,
                hint="Use the job id that the call returned.",
            )
        spent = [row for row in rows if row.state not in (None, "released")]
        if not spent:
            raise LimnerError(
                "the call ended before it sent a paid request",
                code=JOB_ENDED,
                retryable=True,
                hint="It cost nothing: repeat the same call.",
            )
        return _outcome([await self._fetch(row, progress) for row in spent])

    async def _row_of_job(self, job_id: str) -> list[CallRow]:
        """Return the row of a job by the id in the ledger."""
        job = await self.lim.money.job(job_id)
        if job is None:
            return []
        bought = await self.lim.money.purchases(job.picture) if job.picture else ()
        path = next((row.path for row in bought if row.id == job.ledger_id), None)
        return [
            CallRow(
                tool=job.tool,
                created_ms=job.created_ms,
                ledger_id=job.ledger_id,
                state=job.state,
                provider=job.provider,
                model=job.model,
                quoted_nano=job.quoted_nano,
                cost_nano=job.cost_nano,
                cost_source=job.cost_source,
                error_code=None,
                picture=job.picture,
                path=path,
                job_id=job.id,
            )
        ]

    async def _fetch(
        self, row: CallRow, progress: Callable[[Progress], None]
    ) -> GeneratedImage | LimnerError:
        job = None if row.job_id is None else await self.lim.money.job(row.job_id)
        if job is None:
            # Rows of dead processes are no longer in these states.
            return _elsewhere() if row.state in ("reserved", "sent") else _lost(row)
        try:
            return await self._of_job(job, row, progress)
        except LimnerError as error:
            now = await self.lim.money.job(job.id)
            if now is not None and now.state == "unknown":
                # It could not even be asked for, as without a key: it may still be charged.
                error.charge(now.cost_nano, "unknown")
            return error

    async def _of_job(
        self, job: JobRow, row: CallRow, progress: Callable[[Progress], None]
    ) -> GeneratedImage:
        if job.in_flight and (job.picture is None or row.path is None):
            raise _elsewhere()
        try:
            drawn = await fetch_result(job, self.lim.generator, path=row.path, progress=progress)
        except UserError as error:
            if error.code != ALREADY_RECEIVED:
                raise
            raise _elsewhere() from error
        if drawn is None:
            raise _lost(row)
        return drawn


def _outcome(fetched: Sequence[GeneratedImage | LimnerError]) -> Outcome:
    images = tuple(one for one in fetched if isinstance(one, GeneratedImage))
    failures = tuple(one for one in fetched if isinstance(one, LimnerError))
    if not images:
        first = failures[0]
        first.charge(sum(error.cost_nano for error in failures), first.cost_source)
        raise first
    drawn = PictureSet(images=images, failures=failures)
    return Outcome(
        value=as_value(drawn),
        content=tuple(image.image for image in images),
        cost_nano=drawn.cost_nano,
        cost_source=source_of(drawn),
        untrusted=drawn.untrusted,
    )


def _elsewhere() -> LimnerError:
    return LimnerError(
        "another process is still running this call",
        code=ELSEWHERE,
        retryable=True,
        hint="Try again later.",
    )


def _lost(row: CallRow) -> LimnerError:
    """Return the error for a request whose result is unknown or was not stored."""
    settled = row.state == "settled"
    why = row.error_code
    ended = "the server stopped" if why in (None, OWNER_DIED) else f"the call ended with {why}"
    error = LimnerError(
        f"{ended} during a request to {row.provider}, and the result cannot be fetched later; "
        "the call " + ("was billed." if settled else "may have been billed."),
        code=JOB_LOST,
        hint="If you repeat the same call, you pay again.",
    )
    cost = row.cost_nano if settled else row.quoted_nano
    error.charge(cost or 0, "table" if settled else "unknown")
    return error
