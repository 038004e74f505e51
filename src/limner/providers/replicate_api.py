"""Replicate's predictions: start one, look at it, cancel it, find it again."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from limner.errors import BadProviderImage, ProviderError, ProviderRefused, ProviderUnavailable
from limner.json_shapes import as_list, as_object
from limner.net.failures import MAX_MESSAGE_CHARS, Vendor
from limner.net.json_pictures import PICTURE, Marker
from limner.net.service import Service
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, RemoteJob
from limner.providers.base import Connection
from limner.providers.jobs import JobStatus
from limner.providers.model_inputs import ModelInputs, as_data_url

BASE_URL = "https://api.replicate.com/v1"
BASE_URL_ENV = "REPLICATE_BASE_URL"
KEY_ENV = "REPLICATE_API_TOKEN"
PICTURE_HOSTS = ("*.replicate.delivery",)
ENDED = frozenset({"succeeded", "failed", "canceled", "aborted"})
# The model and the platform say so in the error's text and nowhere else.
REFUSALS = ("NSFW content", "(E005)")

# The service may hold the first answer until the picture is there. A second is enough for a fast
# model, and short enough for the id of a slow one to be written down soon.
HOLD_S = 1
CREATE_TIMEOUT_S = 60.0
LOOK_TIMEOUT_S = 10.0
MAX_PAGES = 10
MAX_PAGE_BYTES = 8 * 1024 * 1024
# Their clock and ours need not agree to the minute.
CLOCK_SKEW_MS = 5 * 60 * 1000

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
    """A model that can be run: where its predictions are started, and what they are told.

    ``path`` follows the base URL; ``body`` goes beside the input.
    """

    path: str
    inputs: ModelInputs
    body: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])


class Predictions:
    """The predictions of one account, as jobs.

    Args:
        known: what each model is told, by its name.
        artist: who draws, as the person who waits is told.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        provider: str,
        known: Mapping[str, ModelInputs],
        artist: str,
    ) -> None:
        vendor = Vendor(
            provider=provider,
            title="Replicate",
            key_env=KEY_ENV,
            base_url_env=BASE_URL_ENV,
            account_url="https://replicate.com/account/billing",
        )
        self.service = Service(connection, vendor, picture_hosts=PICTURE_HOSTS)
        self.artist = artist
        self._known = known

    async def runnable(self, model: str) -> Runnable:
        """How to run a model."""
        return Runnable(path=f"models/{model}/predictions", inputs=self._known[model])

    async def prepare(self, request: ImageRequest) -> ImageRequest:
        """The request with a seed where the model takes one."""
        runnable = await self.runnable(request.model)
        return runnable.inputs.prepared(request)

    async def create(self, request: ImageRequest, sink: Sink) -> JobStatus:
        """Start a prediction. A picture that comes with the answer goes into the sink."""
        runnable = await self.runnable(request.model)
        answer = await self.service.call(
            "POST",
            f"{self.service.base_url}/{runnable.path}",
            body={**runnable.body, "input": runnable.inputs.fill(request, encode=as_data_url)},
            headers={"Prefer": f"wait={HOLD_S}"},
            read_timeout_s=CREATE_TIMEOUT_S,
            paid=True,
            wanted={"output"},
            sink=sink,
        )
        return self._standing(self._read(answer))

    async def look(self, job: RemoteJob, sink: Sink, *, timeout_s: float) -> JobStatus:
        """What became of a prediction. A picture that comes with it goes into the sink."""
        answer = await self.service.call(
            "GET",
            job.url if self.service.is_own(job.url) else self._url(job.remote_id),
            read_timeout_s=min(timeout_s, LOOK_TIMEOUT_S),
            wanted={"output"},
            sink=sink,
        )
        return self._standing(self._read(answer))

    async def cancel(self, job: RemoteJob) -> bool:
        """Cancel a prediction. One that has already succeeded stays so, and is charged."""
        answer = await self.service.call(
            "POST",
            f"{self._url(job.remote_id)}/cancel",
            read_timeout_s=LOOK_TIMEOUT_S,
            wanted={"output"},
        )
        return self._read(answer).status != "succeeded"

    async def find(self, request: ImageRequest, *, since_ms: int) -> RemoteJob | None:
        """The prediction of a request, known by its seed."""
        if request.seed is None:
            return None
        asked = {"seed": request.seed, "prompt": request.prompt}
        model = request.model.partition(":")[0]
        async with contextlib.aclosing(self._search(since_ms=since_ms)) as found:
            async for prediction in found:
                inputs = as_object(prediction.input)
                same = {name: inputs.get(name) for name in asked} == asked
                if same and prediction.model == model:
                    return self._job(prediction)
        return None

    async def _search(self, *, since_ms: int) -> AsyncGenerator[Prediction]:
        """The account's predictions since a moment, the newest first; a bounded number of them."""
        url: object = f"{self.service.base_url}/predictions"
        for _ in range(MAX_PAGES):
            if not isinstance(url, str) or not self.service.is_own(url):
                return
            page = await self.service.call(
                "GET",
                url,
                read_timeout_s=LOOK_TIMEOUT_S,
                wanted={"results.output"},
                max_json_bytes=MAX_PAGE_BYTES,
            )
            url = as_object(page).get("next")
            for result in as_list(as_object(page).get("results")):
                prediction = self._read(result)
                if _created_ms(prediction) < since_ms - CLOCK_SKEW_MS:
                    return
                yield prediction

    def _standing(self, prediction: Prediction) -> JobStatus:
        ended = prediction.status in ENDED
        failed = ended and prediction.status != "succeeded"
        return JobStatus(
            job=self._job(prediction),
            ended=ended,
            failure=self._failure(prediction) if failed else None,
            picture=_picture(prediction.output),
        )

    def _job(self, prediction: Prediction) -> RemoteJob:
        """How to find a prediction again. The key is only ever sent to the API's own origin."""
        told = as_object(prediction.urls).get("get")
        url = told if isinstance(told, str) and self.service.is_own(told) else None
        return RemoteJob(remote_id=prediction.id, url=url or self._url(prediction.id))

    def _url(self, prediction_id: str) -> str:
        return f"{self.service.base_url}/predictions/{prediction_id}"

    def _read(self, answer: object) -> Prediction:
        try:
            prediction = msgspec.convert(answer, Prediction)
        except msgspec.ValidationError:
            prediction = None
        # The id becomes part of an address.
        if prediction is None or not _ID.fullmatch(prediction.id):
            raise BadProviderImage(
                "Replicate's answer is not a prediction",
                extras={"provider": self.service.vendor.provider},
            )
        return prediction

    def _failure(self, prediction: Prediction) -> ProviderError:
        said = prediction.error if isinstance(prediction.error, str) else "no reason given"
        words = self.service.for_reader(said)[:MAX_MESSAGE_CHARS]
        text = f"Replicate says the prediction is {prediction.status}: {words}"
        extras = {"provider_code": prediction.status}
        if any(refusal in said for refusal in REFUSALS):
            return ProviderRefused(text, hint=self.service.vendor.rephrase, extras=extras)
        return ProviderUnavailable(text, extras=extras)


def _picture(output: object) -> str | Marker | None:
    """The first picture of an output, which is a list for some models and bare for others."""
    pieces = as_list(output) or [output]
    if PICTURE in pieces:
        return PICTURE
    return next((piece for piece in pieces if isinstance(piece, str) and piece), None)


def _created_ms(prediction: Prediction) -> float:
    """When it was created; the end of time where that cannot be read, so that it is looked at."""
    try:
        created = datetime.fromisoformat(prediction.created_at)
    except (TypeError, ValueError):
        return float("inf")
    aware = created if created.tzinfo else created.replace(tzinfo=UTC)
    return aware.timestamp() * 1000
