"""Replicate's API: a request -> a prediction, started, polled, cancelled or found again."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import msgspec

from limner.catalogue.images import picture_hosts
from limner.errors import BadProviderImage, ProviderError, ProviderRefused, ProviderUnavailable
from limner.json_shapes import as_list, as_object
from limner.net.failures import MAX_MESSAGE_CHARS
from limner.net.json_pictures import PICTURE, Marker
from limner.net.service import Service
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, RemoteJob
from limner.providers.base import Connection
from limner.providers.jobs import JobProvider, JobStatus
from limner.providers.model_inputs import ModelInputs, as_data_url
from limner.providers.specs import BUILT_IN

ENDED = frozenset({"succeeded", "failed", "canceled", "aborted"})
# The model and the platform report a refusal only in the error text.
REFUSALS = ("NSFW content", "(E005)")

# The service can hold the first response until the picture is ready. One second is enough for a
# fast model, and short enough to journal the id of a slow one soon.
HOLD_S = 1
CREATE_TIMEOUT_S = 60.0
POLL_TIMEOUT_S = 10.0
# A prediction is nearly always created within these minutes of its request, so these are searched
# first: in a large batch, thousands of predictions are newer than the one that is wanted.
NEAR_MS = (-60_000, 120_000)
MAX_NEAR_PAGES = 100
MAX_PAGES = 10
MAX_PAGE_BYTES = 8 * 1024 * 1024
# The `Date` of a response tells how far the clocks differ now. The local clock may have been set
# since the request was sent.
CLOCK_STEP_MS = 60 * 60 * 1000
DATE_PRECISION_MS = 2_000
LAST_S = datetime(9999, 12, 31, tzinfo=UTC).timestamp()

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a model, as the service describes it."""

    id: str
    status: str
    output: Any = None
    error: Any = None
    model: Any = None
    input: Any = None
    urls: Any = None
    created_at: Any = None


class Runnable(msgspec.Struct, frozen=True, kw_only=True):
    """A model that can be run: where its predictions are started, and what they take.

    ``path`` follows the base URL. ``body`` holds the fields beside the input.
    """

    path: str
    inputs: ModelInputs
    body: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])


class Predictions(JobProvider):
    """Draws with the predictions of one account.

    Args:
        name: the provider's name.
        known: the inputs of each model, by its name.
        artist: the name of what draws, for progress messages.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        name: str,
        known: Mapping[str, ModelInputs],
        artist: str,
    ) -> None:
        vendor = BUILT_IN[name].vendor(connection)
        service = Service(connection, vendor, picture_hosts=picture_hosts("replicate"))
        super().__init__(service, artist=artist)
        self._known = known

    async def runnable(self, model: str) -> Runnable:
        """How to run a model."""
        return Runnable(path=f"models/{model}/predictions", inputs=self._known[model])

    async def prepare(self, request: ImageRequest) -> ImageRequest:
        """Add a seed if the model takes one."""
        runnable = await self.runnable(request.model)
        return runnable.inputs.prepare(request)

    async def create(self, request: ImageRequest, sink: Sink) -> JobStatus:
        """Start a prediction. A picture in the response goes into the sink."""
        runnable = await self.runnable(request.model)
        inputs = runnable.inputs.fill(request, encode=as_data_url)
        answer = await self.service.call(
            "POST",
            f"{self.service.base_url}/{runnable.path}",
            body={**runnable.body, "input": inputs},
            headers={"Prefer": f"wait={HOLD_S}"},
            read_timeout_s=CREATE_TIMEOUT_S,
            paid=True,
            wanted={"output"},
            sink=sink,
        )
        prediction = self._parse(answer)
        if not _agrees(prediction, inputs):
            raise self.confused("Replicate answered about another prediction")
        return self._status(prediction)

    async def poll(self, job: RemoteJob, sink: Sink, *, timeout_s: float) -> JobStatus:
        """Get the status of a prediction. A picture in the response goes into the sink."""
        answer = await self.service.call(
            "GET",
            job.url if self.service.is_own(job.url) else self._url(job.remote_id),
            read_timeout_s=min(timeout_s, POLL_TIMEOUT_S),
            wanted={"output"},
            sink=sink,
        )
        return self._status(self._parse(answer))

    async def cancel(self, job: RemoteJob) -> bool:
        """Cancel a prediction. The service charges for one that has already succeeded."""
        answer = await self.service.call(
            "POST",
            f"{self._url(job.remote_id)}/cancel",
            read_timeout_s=POLL_TIMEOUT_S,
            wanted={"output"},
        )
        prediction = self._parse(answer)
        return prediction.id == job.remote_id and prediction.status != "succeeded"

    async def find(self, request: ImageRequest, *, since_ms: int) -> list[RemoteJob] | None:
        """The predictions with the inputs of a request; one created soon after it comes first."""
        inputs = (await self.runnable(request.model)).inputs.fill(request, encode=as_data_url)
        if "seed" not in inputs:
            return None
        model = request.model.partition(":")[0]

        async def search(after_ms: int, before_ms: int | None, max_pages: int) -> list[Prediction]:
            listing = self._list(after_ms=after_ms, before_ms=before_ms, max_pages=max_pages)
            async with contextlib.aclosing(listing) as listed:
                return [
                    prediction
                    async for prediction in listed
                    if prediction.model == model
                    and {"prompt", "seed"} <= as_object(prediction.input).keys()
                    and _agrees(prediction, inputs)
                ]

        near = (since_ms + NEAR_MS[0], since_ms + NEAR_MS[1], MAX_NEAR_PAGES)
        found = await search(*near) or await search(since_ms - CLOCK_STEP_MS, None, MAX_PAGES)
        sent_ms = self._service_ms(since_ms) - DATE_PRECISION_MS

        def distance(prediction: Prediction) -> tuple[bool, float]:
            created_ms = _created_ms(prediction)
            return created_ms < sent_ms, abs(created_ms - sent_ms)

        return [self._job(prediction) for prediction in sorted(found, key=distance)]

    def _service_ms(self, local_ms: int) -> float:
        """A time of the local clock on the service's clock, by its last response."""
        return local_ms + (self.service.clock_lead_s or 0.0) * 1000

    async def _list(
        self, *, after_ms: int, before_ms: int | None, max_pages: int
    ) -> AsyncGenerator[Prediction]:
        """The account's predictions between two local times, the newest first."""
        bounds = {"created_after": after_ms, "created_before": before_ms}
        query = urlencode(
            {
                name: _iso_time(self._service_ms(local_ms))
                for name, local_ms in bounds.items()
                if local_ms is not None
            }
        )
        url: object = f"{self.service.base_url}/predictions?{query}"
        for _ in range(max_pages):
            if not isinstance(url, str) or not self.service.is_own(url):
                return
            page = await self.service.call(
                "GET",
                url,
                read_timeout_s=POLL_TIMEOUT_S,
                wanted={"results.output"},
                max_json_bytes=MAX_PAGE_BYTES,
            )
            url = as_object(page).get("next")
            for result in as_list(as_object(page).get("results")):
                prediction = self._parse(result)
                if _created_ms(prediction) < self._service_ms(after_ms):
                    return
                yield prediction

    def _status(self, prediction: Prediction) -> JobStatus:
        ended = prediction.status in ENDED
        failed = ended and prediction.status != "succeeded"
        return JobStatus(
            job=self._job(prediction),
            ended=ended,
            failure=self._failure(prediction) if failed else None,
            picture=_picture(prediction.output),
        )

    def _job(self, prediction: Prediction) -> RemoteJob:
        """How to find a prediction again. The key is sent only to the API's own origin."""
        url = as_object(prediction.urls).get("get")
        if not isinstance(url, str) or not self.service.is_own(url):
            url = self._url(prediction.id)
        return RemoteJob(remote_id=prediction.id, url=url)

    def _url(self, prediction_id: str) -> str:
        return f"{self.service.base_url}/predictions/{prediction_id}"

    def _parse(self, answer: object) -> Prediction:
        try:
            prediction = msgspec.convert(answer, Prediction)
        except msgspec.ValidationError:
            prediction = None
        # The id becomes part of a URL.
        if prediction is None or not _ID.fullmatch(prediction.id):
            raise BadProviderImage(
                "Replicate's response is not a prediction",
                extras={"provider": self.service.vendor.provider},
            )
        return prediction

    def _failure(self, prediction: Prediction) -> ProviderError:
        reason = prediction.error if isinstance(prediction.error, str) else "no reason given"
        shown = self.service.safe_text(reason)[:MAX_MESSAGE_CHARS]
        text = f"Replicate says the prediction is {prediction.status}: {shown}"
        extras = {"provider_code": prediction.status}
        if any(refusal in reason for refusal in REFUSALS):
            return ProviderRefused(text, hint=self.service.vendor.rephrase, extras=extras)
        return ProviderUnavailable(text, extras=extras)


def _picture(output: object) -> str | Marker | None:
    """The first picture of an output. Some models return a list, others a single value."""
    pieces = as_list(output) or [output]
    if PICTURE in pieces:
        return PICTURE
    return next((piece for piece in pieces if isinstance(piece, str) and piece), None)


def _agrees(prediction: Prediction, inputs: Mapping[str, Any]) -> bool:
    """Whether no input of a prediction differs. Pictures are left out: the journal has none."""
    given = as_object(prediction.input)
    return all(
        given.get(name, value) == value
        for name, value in inputs.items()
        if isinstance(value, int | float | str) and not str(value).startswith("data:")
    )


def _iso_time(ms: float) -> str:
    """A time as the API takes it; one that the service's clock puts out of range is cut."""
    seconds = min(max(ms / 1000, 0), LAST_S)
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _created_ms(prediction: Prediction) -> float:
    """When it was created; infinity if that cannot be parsed, so that the caller checks it."""
    try:
        created = datetime.fromisoformat(prediction.created_at)
    except (TypeError, ValueError):
        return float("inf")
    aware = created if created.tzinfo else created.replace(tzinfo=UTC)
    return aware.timestamp() * 1000
