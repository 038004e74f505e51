"""A request -> a job at the service: journaled, waited for, then fetched or cancelled.

A job has an id, so no started work is lost. The id is journaled as soon as it is known, and a
timeout leaves the job running so that a later process can resume it. If the caller cancels, the
job is cancelled too, if the service can do that. A service implements each step; this module has
the order of the steps.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec

from limner.errors import (
    BadProviderImage,
    JobTaken,
    LimnerError,
    ProviderError,
    ProviderRateLimited,
    ProviderUnavailable,
)
from limner.net.json_pictures import PICTURE, Marker
from limner.net.service import Service, send_with_retries
from limner.net.sink import Sink
from limner.pictures.request import (
    ImageRequest,
    Progress,
    ProviderCallbacks,
    Receipt,
    RemoteJob,
)

DEADLINE_S = 120.0
FIRST_POLL_S = 0.5
MAX_POLL_S = 3.0
CANCEL_TIMEOUT_S = 5.0
FIND_TIMEOUT_S = 30.0
FETCH_PAUSES_S = (0.5, 1.0, 2.0)

# asyncio keeps only weak references to tasks.
_shielded: set[asyncio.Task[None]] = set()


class JobStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a job.

    Attributes:
        job: how to find it again.
        ended: whether the job has finished, with or without a picture.
        failure: why it ended without a picture.
        picture: the URL of the picture, or ``PICTURE`` if it is already in the sink.
        cost_nano: what the service says it costs; None if it does not say.
        fraction: how much is done; None if the service does not say.
        note: a message of the service for the user.
    """

    job: RemoteJob
    ended: bool
    failure: ProviderError | None = None
    picture: str | Marker | None = None
    cost_nano: int | None = None
    fraction: float | None = None
    note: str | None = None


class JobProvider(ABC):
    """Draws with the jobs of one service.

    Args:
        service: its HTTP API.
        artist: the name of what draws, for progress messages.

    Attributes:
        cancel_timeout_s: how long a caller that cancels waits for the job to be cancelled.
    """

    cancel_timeout_s = CANCEL_TIMEOUT_S

    def __init__(self, service: Service, *, artist: str) -> None:
        self.service = service
        self._artist = artist
        self._clock = service.clock

    async def prepare(self, request: ImageRequest) -> ImageRequest:
        """Complete the request, for example with a seed if the model takes one.

        Raises:
            ProviderError: the model cannot do it; nothing was bought.
        """
        return request

    @abstractmethod
    async def create(self, request: ImageRequest, sink: Sink) -> JobStatus:
        """Start a job, once. A picture in the response goes into the sink."""

    @abstractmethod
    async def poll(self, job: RemoteJob, sink: Sink, *, timeout_s: float) -> JobStatus:
        """Get the status of a job. A picture in the response goes into the sink."""

    async def cancel(self, job: RemoteJob) -> bool:
        """Cancel a job; True if the service confirms that it will not charge for it."""
        return False

    async def find(self, request: ImageRequest, *, since_ms: int) -> Sequence[RemoteJob] | None:
        """The jobs that may be that of a request whose id did not arrive, the likeliest first.

        None if the service has no list of its jobs.
        """
        return None

    async def generate(
        self, request: ImageRequest, sink: Sink, callbacks: ProviderCallbacks
    ) -> Receipt:
        """Draw one picture and write its bytes to the sink; raises as `Provider.generate`."""
        try:
            request = await send_with_retries(lambda: self.prepare(request), self._clock)
        except asyncio.CancelledError:
            callbacks.withdraw()
            raise
        counted, started = _CountingSink(sink), self._clock.now()
        status = await send_with_retries(
            lambda: self._create(request, counted, callbacks), self._clock
        )
        try:
            await callbacks.journal(status.job)
            return await self._finish(
                status.job, status, request, counted, callbacks, started=started
            )
        except asyncio.CancelledError:
            await run_shielded(self._cancel(status.job, callbacks))
            raise
        except JobTaken as error:
            raise self.confused(f"{self._title} named another request's job") from error

    async def resume(
        self, job: RemoteJob, request: ImageRequest, sink: Sink, callbacks: ProviderCallbacks
    ) -> Receipt:
        """Wait for a job that was started earlier. If the caller cancels, the job continues."""
        started = self._clock.now()
        return await self._finish(
            job, None, request, _CountingSink(sink), callbacks, started=started
        )

    async def _create(
        self, request: ImageRequest, sink: _CountingSink, callbacks: ProviderCallbacks
    ) -> JobStatus:
        """Start a job. If its id did not arrive, ask the service for it."""
        since_ms = int(time.time() * 1000)
        creation = asyncio.ensure_future(self.create(request, sink))
        try:
            return await asyncio.shield(creation)
        except asyncio.CancelledError:
            await run_shielded(
                self._cancel_creation(creation, request, callbacks, since_ms=since_ms)
            )
            raise
        except ProviderError as error:
            if not error.may_be_billed or sink.count:
                raise
            return await self._find_lost(error, request, callbacks, since_ms=since_ms)

    async def _find_lost(
        self,
        failure: ProviderError,
        request: ImageRequest,
        callbacks: ProviderCallbacks,
        *,
        since_ms: int,
    ) -> JobStatus:
        """The job of a request whose outcome is unknown, if the service has it in its list.

        Raises:
            ProviderError: the failure. It is free of charge if the service responded to the request
                with an error and has no job for it.
        """
        try:
            async with asyncio.timeout(FIND_TIMEOUT_S):
                found = await self.find(request, since_ms=since_ms)
                job = await callbacks.claim(found or ())
        except (LimnerError, TimeoutError):
            raise failure from None
        if job is not None:
            return JobStatus(job=job, ended=False)
        if found is None or "status" not in failure.extras:
            raise failure
        text = failure.message.removesuffix(f"; {self.service.vendor.unknown_outcome}")
        raise ProviderUnavailable(f"{text}; it has no job for this request", extras=failure.extras)

    async def _finish(
        self,
        job: RemoteJob,
        status: JobStatus | None,
        request: ImageRequest,
        sink: _CountingSink,
        callbacks: ProviderCallbacks,
        *,
        started: float,
    ) -> Receipt:
        first_cost_nano = None if status is None else status.cost_nano
        try:
            ended = await self._wait(job, status, sink, callbacks, started=started)
            await self._collect(ended, sink)
        except LimnerError as error:
            error.extras.setdefault("provider", self.service.vendor.provider)
            error.extras.setdefault("remote_id", job.remote_id)
            raise
        cost_nano = first_cost_nano if ended.cost_nano is None else ended.cost_nano
        return Receipt(
            prompt_used=request.prompt,
            cost_nano=cost_nano,
            cost_source="table" if cost_nano is None else "provider",
            extras={} if request.seed is None else {"seed": request.seed},
        )

    async def _wait(
        self,
        job: RemoteJob,
        status: JobStatus | None,
        sink: _CountingSink,
        callbacks: ProviderCallbacks,
        *,
        started: float,
    ) -> JobStatus:
        """Poll a job until it has ended."""
        pause_s = 0.0 if status is None else FIRST_POLL_S
        while status is None or not status.ended:
            elapsed_s = self._clock.now() - started
            if sink.count:
                raise BadProviderImage(f"{self._title} sent a picture before it was done")
            if elapsed_s >= DEADLINE_S:
                raise self._timeout(job)
            callbacks.progress(self._progress(status, elapsed_s))
            pause_s = min(pause_s, DEADLINE_S - elapsed_s)
            await self._clock.sleep(pause_s)
            left_s = max(DEADLINE_S - elapsed_s - pause_s, FIRST_POLL_S)
            status, requested_s = await self._poll(job, sink, timeout_s=left_s)
            pause_s = max(requested_s or FIRST_POLL_S, min(pause_s * 1.5, MAX_POLL_S))
        return status

    async def _poll(
        self, job: RemoteJob, sink: _CountingSink, *, timeout_s: float
    ) -> tuple[JobStatus | None, float | None]:
        """The job's status; or None if the poll failed, with the pause the service asks for."""
        try:
            status = await self.poll(job, sink, timeout_s=timeout_s)
            if status.job.remote_id != job.remote_id:
                raise self.confused(f"{self._title} answered about another job")
            return status, None
        except (ProviderUnavailable, ProviderRateLimited) as error:
            if not sink.count:
                return None, error.extras.get("retry_after_s")
            raise _as_billed(error) from error
        except ProviderError as error:
            raise _as_billed(error) from error

    async def _collect(self, status: JobStatus, sink: _CountingSink) -> None:
        """Bring the picture of an ended job into the sink."""
        if status.failure is not None:
            raise status.failure
        if status.picture is PICTURE:
            return
        if not isinstance(status.picture, str) or not status.picture:
            raise BadProviderImage(f"{self._title} answered without a picture")
        await self._fetch(status.picture, sink)

    async def _fetch(self, url: str, sink: _CountingSink) -> None:
        for pause_s in (*FETCH_PAUSES_S, None):
            try:
                await self.service.fetch(url, sink)
                return
            except ProviderUnavailable:
                # Bytes that are in the sink cannot be taken back.
                if pause_s is None or sink.count:
                    raise
            await self._clock.sleep(pause_s)

    async def _cancel_creation(
        self,
        creation: asyncio.Future[JobStatus],
        request: ImageRequest,
        callbacks: ProviderCallbacks,
        *,
        since_ms: int,
    ) -> None:
        """Cancel a job whose creation may still be in flight."""
        with contextlib.suppress(LimnerError, TimeoutError):
            async with asyncio.timeout(self.cancel_timeout_s):
                await asyncio.wait([creation], timeout=self.cancel_timeout_s / 2)
                if creation.done() and _was_rejected(creation):
                    callbacks.withdraw()
                    return
                found = await self._created_jobs(creation, request, since_ms=since_ms)
                job = await callbacks.claim(found)
                if job is not None:
                    await self._cancel(job, callbacks)

    async def _created_jobs(
        self, creation: asyncio.Future[JobStatus], request: ImageRequest, *, since_ms: int
    ) -> Sequence[RemoteJob]:
        if creation.done() and creation.exception() is None:
            return [creation.result().job]
        creation.cancel()
        return await self.find(request, since_ms=since_ms) or ()

    async def _cancel(self, job: RemoteJob, callbacks: ProviderCallbacks) -> None:
        with contextlib.suppress(LimnerError, TimeoutError):
            async with asyncio.timeout(self.cancel_timeout_s):
                if await self.cancel(job):
                    callbacks.withdraw()

    @property
    def _title(self) -> str:
        return self.service.vendor.title

    def _progress(self, status: JobStatus | None, elapsed_s: float) -> Progress:
        message, fraction = f"{self._artist} is drawing", None
        if status is not None:
            message, fraction = status.note or message, status.fraction
        return Progress(message=message, elapsed_s=elapsed_s, fraction=fraction)

    def confused(self, text: str) -> ProviderUnavailable:
        """The error for a response that belongs to another request."""
        return ProviderUnavailable(
            f"{text}; {self.service.vendor.unknown_outcome}",
            may_be_billed=True,
            retryable=False,
            hint=f"Look at {self.service.vendor.account_url} before asking again.",
        )

    def _timeout(self, job: RemoteJob) -> ProviderUnavailable:
        return ProviderUnavailable(
            f"{self._artist} has not finished after {DEADLINE_S:.0f} s; "
            f"{self.service.vendor.unknown_outcome}. "
            f"Job {job.remote_id} at {self._title} goes on",
            may_be_billed=True,
            retryable=False,
            hint="Run `limner jobs recover` to fetch the picture once it is there.",
        )


class _CountingSink:
    """A sink that counts its bytes."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.count = 0

    def write(self, data: bytes | memoryview) -> None:
        self._sink.write(data)
        self.count += len(data)


async def run_shielded(work: Coroutine[Any, Any, None]) -> None:
    """Wait for work that continues even if the caller is cancelled once more."""
    task = asyncio.ensure_future(work)
    _shielded.add(task)
    task.add_done_callback(_shielded.discard)
    await asyncio.shield(task)


def _was_rejected(creation: asyncio.Future[JobStatus]) -> bool:
    error = creation.exception()
    return isinstance(error, ProviderError) and not error.may_be_billed


def _as_billed(error: ProviderError) -> ProviderError:
    """The same failure, for a job that was started: its outcome is unknown."""
    error.may_be_billed = True
    error.retryable = False
    return error
