"""A request -> a job at the service, written down, waited for, collected or called off.

A job has an id, so nothing that was started is lost: the id is written down as soon as it is
known, a time-out leaves the job running to be resumed, and giving up cancels it where the service
can. A service says how it does each step in a `JobApi`; the order of the steps is here.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Coroutine
from typing import Any, Protocol

import msgspec

from limner.errors import (
    BadProviderImage,
    LimnerError,
    ProviderError,
    ProviderRateLimited,
    ProviderUnavailable,
)
from limner.net.json_pictures import PICTURE, Marker
from limner.net.service import Service, patiently
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, Progress, ProviderCallbacks, Receipt, RemoteJob

DEADLINE_S = 120.0
FIRST_POLL_S = 0.5
MAX_POLL_S = 3.0
CALL_OFF_S = 5.0
FETCH_PAUSES_S = (0.5, 1.0, 2.0)


class JobStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a job stands.

    Attributes:
        job: how to find it again.
        ended: whether there is nothing more to wait for.
        failure: how it ended, where that is not with a picture.
        picture: the address of the picture, or ``PICTURE`` where it is in the sink already.
        cost_nano: what the service says it costs, where it does.
        fraction: how much of it is done, where the service says so.
        note: a word of the service for the person who waits.
    """

    job: RemoteJob
    ended: bool
    failure: ProviderError | None = None
    picture: str | Marker | None = None
    cost_nano: int | None = None
    fraction: float | None = None
    note: str | None = None


class JobApi(Protocol):
    """One service that draws by jobs.

    Attributes:
        service: its HTTP API.
        artist: who draws, as the person who waits is told.
    """

    service: Service
    artist: str

    async def prepare(self, request: ImageRequest) -> ImageRequest:
        """The request as it will be made, with a seed where the model takes one.

        Raises:
            ProviderError: the model cannot do it; nothing was bought.
        """
        ...

    async def create(self, request: ImageRequest, sink: Sink) -> JobStatus:
        """Start a job, once. A picture that comes with the answer goes into the sink."""
        ...

    async def look(self, job: RemoteJob, sink: Sink, *, timeout_s: float) -> JobStatus:
        """See how a job stands. A picture that comes with the answer goes into the sink."""
        ...

    async def cancel(self, job: RemoteJob) -> bool:
        """Cancel a job; whether the service confirms that it will not be charged."""
        ...

    async def find(self, request: ImageRequest, *, since_ms: int) -> RemoteJob | None:
        """The job of a request whose id never arrived, or None where that cannot be known."""
        ...


class JobProvider:
    """Draws by the jobs of one service.

    Args:
        call_off_s: how long a caller who gives up waits for the job to be cancelled.
    """

    def __init__(self, api: JobApi, *, call_off_s: float = CALL_OFF_S) -> None:
        self._api = api
        self._clock = api.service.clock
        self._call_off_s = call_off_s
        self._calling_off: set[asyncio.Task[None]] = set()

    async def generate(self, request: ImageRequest, sink: Sink, desk: ProviderCallbacks) -> Receipt:
        """Draw, pouring the bytes into the sink; raises as `Provider.generate`."""
        try:
            request = await patiently(lambda: self._api.prepare(request), self._clock)
        except asyncio.CancelledError:
            desk.withdraw()
            raise
        poured, began = _Poured(sink), self._clock.now()
        standing = await patiently(lambda: self._create(request, poured, desk), self._clock)
        try:
            await desk.journal(standing.job)
            return await self._finish(standing.job, standing, request, poured, desk, began=began)
        except asyncio.CancelledError:
            await self._undisturbed(self._cancel(standing.job, desk))
            raise

    async def find(self, request: ImageRequest, *, since_ms: int) -> RemoteJob | None:
        """The job of a request that was sent but whose id never arrived, or None."""
        return await self._api.find(request, since_ms=since_ms)

    async def resume(
        self, job: RemoteJob, request: ImageRequest, sink: Sink, desk: ProviderCallbacks
    ) -> Receipt:
        """Wait for a job that was started earlier; giving up leaves it as it is."""
        began = self._clock.now()
        return await self._finish(job, None, request, _Poured(sink), desk, began=began)

    async def _create(
        self, request: ImageRequest, sink: _Poured, desk: ProviderCallbacks
    ) -> JobStatus:
        since_ms = int(time.time() * 1000)
        posting = asyncio.ensure_future(self._api.create(request, sink))
        try:
            return await asyncio.shield(posting)
        except asyncio.CancelledError:
            await self._undisturbed(self._call_off(posting, request, desk, since_ms=since_ms))
            raise

    async def _finish(
        self,
        job: RemoteJob,
        standing: JobStatus | None,
        request: ImageRequest,
        sink: _Poured,
        desk: ProviderCallbacks,
        *,
        began: float,
    ) -> Receipt:
        told_nano = None if standing is None else standing.cost_nano
        try:
            ended = await self._wait(job, standing, sink, desk, began=began)
            await self._collect(ended, sink)
        except LimnerError as error:
            error.extras.setdefault("provider", self._api.service.vendor.provider)
            error.extras.setdefault("remote_id", job.remote_id)
            raise
        cost_nano = told_nano if ended.cost_nano is None else ended.cost_nano
        return Receipt(
            prompt_used=request.prompt,
            cost_nano=cost_nano,
            cost_source="table" if cost_nano is None else "provider",
            extras={} if request.seed is None else {"seed": request.seed},
        )

    async def _wait(
        self,
        job: RemoteJob,
        standing: JobStatus | None,
        sink: _Poured,
        desk: ProviderCallbacks,
        *,
        began: float,
    ) -> JobStatus:
        """Look at a job until it has ended."""
        pause_s = 0.0 if standing is None else FIRST_POLL_S
        while standing is None or not standing.ended:
            elapsed_s = self._clock.now() - began
            if sink.count:
                raise BadProviderImage(f"{self._title} sent a picture before it was done")
            if elapsed_s >= DEADLINE_S:
                raise self._late(job)
            desk.progress(self._progress(standing, elapsed_s))
            pause_s = min(pause_s, DEADLINE_S - elapsed_s)
            await self._clock.sleep(pause_s)
            left_s = max(DEADLINE_S - elapsed_s - pause_s, FIRST_POLL_S)
            standing, told_s = await self._look(job, sink, timeout_s=left_s)
            pause_s = max(told_s or FIRST_POLL_S, min(pause_s * 1.5, MAX_POLL_S))
        return standing

    async def _look(
        self, job: RemoteJob, sink: _Poured, *, timeout_s: float
    ) -> tuple[JobStatus | None, float | None]:
        """How the job stands; or None where the look failed, with the pause it asks for."""
        try:
            return await self._api.look(job, sink, timeout_s=timeout_s), None
        except (ProviderUnavailable, ProviderRateLimited) as error:
            if not sink.count:
                return None, error.extras.get("retry_after_s")
            raise _paid(error) from error
        except ProviderError as error:
            raise _paid(error) from error

    async def _collect(self, standing: JobStatus, sink: _Poured) -> None:
        """See that the picture of a job that has ended is in the sink."""
        if standing.failure is not None:
            raise standing.failure
        if standing.picture is PICTURE:
            return
        if not isinstance(standing.picture, str) or not standing.picture:
            raise BadProviderImage(f"{self._title} answered without a picture")
        await self._fetch(standing.picture, sink)

    async def _fetch(self, url: str, sink: _Poured) -> None:
        for pause_s in (*FETCH_PAUSES_S, None):
            try:
                await self._api.service.fetch(url, sink)
                return
            except ProviderUnavailable:
                # What has been poured cannot be taken back.
                if pause_s is None or sink.count:
                    raise
            await self._clock.sleep(pause_s)

    async def _call_off(
        self,
        posting: asyncio.Future[JobStatus],
        request: ImageRequest,
        desk: ProviderCallbacks,
        *,
        since_ms: int,
    ) -> None:
        """Cancel a job whose creation may still be on its way."""
        with contextlib.suppress(LimnerError, TimeoutError):
            async with asyncio.timeout(self._call_off_s):
                await asyncio.wait([posting], timeout=self._call_off_s / 2)
                if posting.done() and _was_never_begun(posting):
                    desk.withdraw()
                    return
                job = await self._job_of(posting, request, since_ms=since_ms)
                if job is not None:
                    await desk.journal(job)
                    await self._cancel(job, desk)

    async def _job_of(
        self, posting: asyncio.Future[JobStatus], request: ImageRequest, *, since_ms: int
    ) -> RemoteJob | None:
        if posting.done() and posting.exception() is None:
            return posting.result().job
        posting.cancel()
        return await self.find(request, since_ms=since_ms)

    async def _cancel(self, job: RemoteJob, desk: ProviderCallbacks) -> None:
        with contextlib.suppress(LimnerError, TimeoutError):
            async with asyncio.timeout(self._call_off_s):
                if await self._api.cancel(job):
                    desk.withdraw()

    async def _undisturbed(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for work that goes on even when the waiting is cancelled once more."""
        task = asyncio.ensure_future(work)
        self._calling_off.add(task)
        task.add_done_callback(self._calling_off.discard)
        await asyncio.shield(task)

    @property
    def _title(self) -> str:
        return self._api.service.vendor.title

    def _progress(self, standing: JobStatus | None, elapsed_s: float) -> Progress:
        message, fraction = f"{self._api.artist} is drawing", None
        if standing is not None:
            message, fraction = standing.note or message, standing.fraction
        return Progress(message=message, elapsed_s=elapsed_s, fraction=fraction)

    def _late(self, job: RemoteJob) -> ProviderUnavailable:
        fate = self._api.service.vendor.unknown_fate
        return ProviderUnavailable(
            f"{self._api.artist} has not finished after {DEADLINE_S:.0f} s; {fate}. "
            f"Job {job.remote_id} at {self._title} goes on",
            may_be_billed=True,
            retryable=False,
            hint="Run `limner jobs recover` to fetch the picture once it is there.",
        )


class _Poured:
    """A sink that knows whether it is still empty."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.count = 0

    def write(self, data: bytes | memoryview) -> None:
        self._sink.write(data)
        self.count += len(data)


def _was_never_begun(posting: asyncio.Future[JobStatus]) -> bool:
    error = posting.exception()
    return isinstance(error, ProviderError) and not error.may_be_billed


def _paid(error: ProviderError) -> ProviderError:
    """The same failure, of a job that was begun: what became of it is not known."""
    error.may_be_billed = True
    error.retryable = False
    return error
