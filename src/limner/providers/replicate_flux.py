"""FLUX.1 [schnell] on Replicate: a request -> a prediction, waited for -> a picture.

A prediction has an id, so nothing that was started is lost: the id is written down as soon as it
is known, a time-out leaves the prediction running to be resumed, and giving up cancels it.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
import time
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any

from limner.catalogue.images import image_models
from limner.errors import (
    BadProviderImage,
    LimnerError,
    ProviderError,
    ProviderRateLimited,
    ProviderRefused,
    ProviderUnavailable,
)
from limner.net.json_pictures import PICTURE
from limner.pictures.order import Desk, ImageRequest, Job, Progress, Receipt, Sink
from limner.providers.base import Connection, ProviderSpec
from limner.providers.failures import MAX_MESSAGE_CHARS
from limner.providers.replicate_api import (
    BASE_URL,
    BASE_URL_ENV,
    ENDED,
    KEY_ENV,
    Prediction,
    Predictions,
)
from limner.providers.service import patiently
from limner.providers.untrusted import as_list, as_object

NAME = "replicate-flux"
ASPECT_RATIOS = ("1:1", "16:9", "21:9", "2:3", "3:2", "4:5", "5:4", "9:16", "9:21")
DEADLINE_S = 120.0
FIRST_POLL_S = 0.5
MAX_POLL_S = 3.0
CALL_OFF_S = 5.0
FETCH_PAUSES_S = (0.5, 1.0, 2.0)
# The model and the platform say so in the error's text and nowhere else.
REFUSALS = ("NSFW content", "(E005)")


class ReplicateFlux:
    """Draws with Flux.

    Args:
        call_off_s: how long a caller who gives up waits for the prediction to be cancelled.
    """

    def __init__(self, connection: Connection, *, call_off_s: float = CALL_OFF_S) -> None:
        self._predictions = Predictions(connection, provider=NAME)
        self._clock = connection.clock
        self._call_off_s = call_off_s
        self._calling_off: set[asyncio.Task[None]] = set()

    async def generate(self, request: ImageRequest, sink: Sink, desk: Desk) -> Receipt:
        """Draw, pouring the bytes into the sink; raises as `Provider.generate`."""
        if request.seed is None:
            # A prediction whose id never arrives is found again by its seed.
            request = replace(request, seed=secrets.randbelow(2**31))
        poured, began = _Poured(sink), self._clock.now()
        prediction = await patiently(lambda: self._create(request, poured, desk), self._clock)
        job = self._predictions.job(prediction)
        try:
            await desk.journal(job)
            return await self._finish(job, prediction, request, poured, desk, began=began)
        except asyncio.CancelledError:
            await self._undisturbed(self._cancel(job, desk))
            raise

    async def find(self, request: ImageRequest, *, since_ms: int) -> Job | None:
        """The prediction of a request that was sent but whose id never arrived, or None."""
        if request.seed is None:
            return None
        asked = {"seed": request.seed, "prompt": request.prompt}
        async with contextlib.aclosing(self._predictions.search(since_ms=since_ms)) as found:
            async for prediction in found:
                inputs = as_object(prediction.input)
                same = {name: inputs.get(name) for name in asked} == asked
                if same and prediction.model == request.model:
                    return self._predictions.job(prediction)
        return None

    async def resume(self, job: Job, request: ImageRequest, sink: Sink, desk: Desk) -> Receipt:
        """Wait for a prediction that was started earlier; giving up leaves it as it is."""
        began = self._clock.now()
        return await self._finish(job, None, request, _Poured(sink), desk, began=began)

    async def _create(self, request: ImageRequest, sink: _Poured, desk: Desk) -> Prediction:
        since_ms = int(time.time() * 1000)
        posting = asyncio.ensure_future(
            self._predictions.create(request.model, _inputs(request), sink)
        )
        try:
            return await asyncio.shield(posting)
        except asyncio.CancelledError:
            await self._undisturbed(self._call_off(posting, request, desk, since_ms=since_ms))
            raise

    async def _finish(
        self,
        job: Job,
        prediction: Prediction | None,
        request: ImageRequest,
        sink: _Poured,
        desk: Desk,
        *,
        began: float,
    ) -> Receipt:
        try:
            ended = await self._wait(job, prediction, sink, desk, began=began)
            await self._collect(ended, sink)
        except LimnerError as error:
            error.extras.setdefault("provider", NAME)
            error.extras.setdefault("remote_id", job.remote_id)
            raise
        extras = {} if request.seed is None else {"seed": request.seed}
        return Receipt(prompt_used=request.prompt, extras=extras)

    async def _wait(
        self, job: Job, prediction: Prediction | None, sink: _Poured, desk: Desk, *, began: float
    ) -> Prediction:
        """Look at a prediction until it has ended."""
        pause_s = 0.0 if prediction is None else FIRST_POLL_S
        while prediction is None or prediction.status not in ENDED:
            elapsed_s = self._clock.now() - began
            if sink.count:
                raise BadProviderImage("Replicate sent a picture before it was done")
            if elapsed_s >= DEADLINE_S:
                raise _late(job)
            desk.progress(Progress(message="Flux is drawing", elapsed_s=elapsed_s))
            pause_s = min(pause_s, DEADLINE_S - elapsed_s)
            await self._clock.sleep(pause_s)
            left_s = max(DEADLINE_S - elapsed_s - pause_s, FIRST_POLL_S)
            prediction, told_s = await self._look(job, sink, timeout_s=left_s)
            pause_s = max(told_s or FIRST_POLL_S, min(pause_s * 1.5, MAX_POLL_S))
        return prediction

    async def _look(
        self, job: Job, sink: _Poured, *, timeout_s: float
    ) -> tuple[Prediction | None, float | None]:
        """The prediction; or None where the look failed, with the pause the service asks for."""
        try:
            return await self._predictions.look(job, sink, timeout_s=timeout_s), None
        except (ProviderUnavailable, ProviderRateLimited) as error:
            if not sink.count:
                return None, error.extras.get("retry_after_s")
            raise _paid(error) from error
        except ProviderError as error:
            raise _paid(error) from error

    async def _collect(self, prediction: Prediction, sink: _Poured) -> None:
        """See that the picture of a prediction that has ended is in the sink."""
        if prediction.status != "succeeded":
            raise self._failure(prediction)
        pieces = as_list(prediction.output) or [prediction.output]
        if PICTURE in pieces:
            return
        url = next((piece for piece in pieces if isinstance(piece, str) and piece), None)
        if url is None:
            raise BadProviderImage("Replicate answered without a picture")
        await self._fetch(url, sink)

    async def _fetch(self, url: str, sink: _Poured) -> None:
        for pause_s in (*FETCH_PAUSES_S, None):
            try:
                await self._predictions.service.fetch(url, sink)
                return
            except ProviderUnavailable:
                # What has been poured cannot be taken back.
                if pause_s is None or sink.count:
                    raise
            await self._clock.sleep(pause_s)

    def _failure(self, prediction: Prediction) -> ProviderError:
        said = prediction.error if isinstance(prediction.error, str) else "no reason given"
        words = self._predictions.service.for_reader(said)[:MAX_MESSAGE_CHARS]
        text = f"Replicate says the prediction is {prediction.status}: {words}"
        extras = {"provider_code": prediction.status}
        if any(refusal in said for refusal in REFUSALS):
            hint = "Describe the picture in other words."
            return ProviderRefused(text, hint=hint, extras=extras)
        return ProviderUnavailable(text, extras=extras)

    async def _call_off(
        self,
        posting: asyncio.Future[Prediction],
        request: ImageRequest,
        desk: Desk,
        *,
        since_ms: int,
    ) -> None:
        """Cancel a prediction whose creation may still be on its way."""
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
        self, posting: asyncio.Future[Prediction], request: ImageRequest, *, since_ms: int
    ) -> Job | None:
        if posting.done() and posting.exception() is None:
            return self._predictions.job(posting.result())
        posting.cancel()
        return await self.find(request, since_ms=since_ms)

    async def _cancel(self, job: Job, desk: Desk) -> None:
        with contextlib.suppress(LimnerError, TimeoutError):
            async with asyncio.timeout(self._call_off_s):
                cancelled = await self._predictions.cancel(job)
                if cancelled.status != "succeeded":
                    desk.withdraw()

    async def _undisturbed(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for work that goes on even when the waiting is cancelled once more."""
        task = asyncio.ensure_future(work)
        self._calling_off.add(task)
        task.add_done_callback(self._calling_off.discard)
        await asyncio.shield(task)


class _Poured:
    """A sink that knows whether it is still empty."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.count = 0

    def write(self, data: bytes | memoryview) -> None:
        self._sink.write(data)
        self.count += len(data)


def _inputs(request: ImageRequest) -> Mapping[str, Any]:
    return {
        "prompt": request.prompt,
        "aspect_ratio": nearest_aspect_ratio(request.width, request.height),
        "output_format": "png",
        "num_outputs": 1,
        "seed": request.seed,
    }


def nearest_aspect_ratio(width: int, height: int) -> str:
    """The ratio Flux can draw that is nearest to a size, equally near in both directions."""

    def distance(ratio: str) -> float:
        across, down = map(int, ratio.split(":"))
        return abs(math.log(width * down / (height * across)))

    return min(ASPECT_RATIOS, key=distance)


def _was_never_begun(posting: asyncio.Future[Prediction]) -> bool:
    error = posting.exception()
    return isinstance(error, ProviderError) and not error.may_be_billed


def _paid(error: ProviderError) -> ProviderError:
    """The same failure, of a prediction that was begun: what became of it is not known."""
    error.may_be_billed = True
    error.retryable = False
    return error


def _late(job: Job) -> ProviderUnavailable:
    return ProviderUnavailable(
        f"Flux has not finished after {DEADLINE_S:.0f} s; the picture may be billed. "
        f"Prediction {job.remote_id} goes on",
        may_be_billed=True,
        retryable=False,
        hint="Run `limner jobs recover` to fetch the picture once it is there.",
    )


SPEC = ProviderSpec(
    name=NAME,
    key_env=KEY_ENV,
    base_url_env=BASE_URL_ENV,
    base_url=BASE_URL,
    models=image_models(NAME),
    build=ReplicateFlux,
)
