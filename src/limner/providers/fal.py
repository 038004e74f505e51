"""fal's queue: a request -> a place in a model's queue, looked at until its turn -> a picture."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.catalogue.images import image_models, other_image_model
from limner.errors import BadProviderImage, ProviderBadRequest, ProviderError, ProviderRefused
from limner.json_shapes import as_list, as_object
from limner.net.failures import Vendor
from limner.net.json_pictures import Marker
from limner.net.service import Service
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, RemoteJob
from limner.providers.base import Connection, ProviderSpec
from limner.providers.jobs import CALL_OFF_S, JobProvider, JobStatus
from limner.providers.model_inputs import ModelInputs, as_data_url


class FalRoute(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint, and what it takes."""

    path: str
    inputs: ModelInputs


class FalRoutes(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoints of one model; ``editing_several`` where several pictures have their own."""

    drawing: FalRoute
    editing: FalRoute | None = None
    editing_several: FalRoute | None = None

    def of(self, request: ImageRequest) -> FalRoute:
        """The endpoint for a request."""
        if len(request.sources) > 1 and self.editing_several is not None:
            return self.editing_several
        return self.editing if request.sources and self.editing is not None else self.drawing


_RATIOS = ("1:1", "21:9", "16:9", "4:3", "3:2", "2:3", "3:4", "9:16", "9:21")
_PNG = {"output_format": "png"}
_ONE_PNG = {**_PNG, "num_images": 1}

_SIZED = ModelInputs(edges="together", fixed=_ONE_PNG)
_FLUX_2 = ModelInputs(edges="together", fixed=_PNG)
_FLUX_2_EDIT = replace(_FLUX_2, source="image_urls", several="list")
_KONTEXT = ModelInputs(ratios=_RATIOS, fixed=_ONE_PNG)
_BANANA = ModelInputs(
    ratios=(
        *("1:1", "21:9", "16:9", "3:2", "4:3", "5:4", "4:5", "3:4", "2:3", "9:16"),
        *("4:1", "1:4", "8:1", "1:8"),
    ),
    fixed={**_ONE_PNG, "resolution": "1K"},
)

# What most models take; what one does not know it leaves aside.
OTHER = replace(_SIZED, negative_prompt=True)


def _drawing(path: str, inputs: ModelInputs) -> FalRoutes:
    return FalRoutes(drawing=FalRoute(path=path, inputs=inputs))


def _flux_2(path: str) -> FalRoutes:
    return FalRoutes(
        drawing=FalRoute(path=path, inputs=_FLUX_2),
        editing=FalRoute(path=f"{path}/edit", inputs=_FLUX_2_EDIT),
    )


def _kontext(path: str) -> FalRoutes:
    several = replace(_KONTEXT, source="image_urls", several="list")
    return FalRoutes(
        drawing=FalRoute(path=f"{path}/text-to-image", inputs=_KONTEXT),
        editing=FalRoute(path=path, inputs=replace(_KONTEXT, source="image_url")),
        editing_several=FalRoute(path=f"{path}/multi", inputs=several),
    )


WAYS: Mapping[str, FalRoutes] = {
    "fal-ai/flux-2-pro": _flux_2("fal-ai/flux-2-pro"),
    "fal-ai/flux-2-max": _flux_2("fal-ai/flux-2-max"),
    "fal-ai/flux/schnell": _drawing("fal-ai/flux/schnell", _SIZED),
    "fal-ai/flux/dev": _drawing("fal-ai/flux/dev", _SIZED),
    "fal-ai/flux-pro/v1.1": _drawing("fal-ai/flux-pro/v1.1", _SIZED),
    "fal-ai/flux-pro/v1.1-ultra": _drawing(
        "fal-ai/flux-pro/v1.1-ultra", ModelInputs(ratios=_RATIOS, fixed=_ONE_PNG)
    ),
    "fal-ai/flux-pro/kontext": _kontext("fal-ai/flux-pro/kontext"),
    "fal-ai/flux-pro/kontext/max": _kontext("fal-ai/flux-pro/kontext/max"),
    "fal-ai/flux-pro/v1/fill": _drawing(
        "fal-ai/flux-pro/v1/fill",
        ModelInputs(source="image_url", mask="mask_url", needs_mask=True, fixed=_ONE_PNG),
    ),
    "fal-ai/nano-banana-2": FalRoutes(
        drawing=FalRoute(path="fal-ai/nano-banana-2", inputs=_BANANA),
        editing=FalRoute(
            path="fal-ai/nano-banana-2/edit",
            inputs=replace(_BANANA, source="image_urls", several="list"),
        ),
    ),
    # Left to itself it rewrites the prompt.
    "fal-ai/ideogram/v3": _drawing(
        "fal-ai/ideogram/v3",
        ModelInputs(
            edges="together",
            negative_prompt=True,
            fixed={"num_images": 1, "rendering_speed": "BALANCED", "expand_prompt": False},
        ),
    ),
}


NAME = "fal"
BASE_URL = "https://queue.fal.run"
BASE_URL_ENV = "FAL_BASE_URL"
KEY_ENV = "FAL_KEY"
PICTURE_HOSTS = ("*.fal.media",)
CREATE_TIMEOUT_S = 60.0
LOOK_TIMEOUT_S = 10.0
STATUS = "/status"
DONE = "COMPLETED"
CANCELLED = "OK"
# The statuses of a result that are the model's own word, and not the queue's.
MODEL_SAYS = frozenset({400, 422})

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_MODEL = re.compile(r"[A-Za-z0-9][\w.-]{0,99}(?:/[A-Za-z0-9][\w.-]{0,99}){1,7}", re.ASCII)


class _Queued(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a queue, and the addresses it is looked at by."""

    status: str
    request_id: Any = None
    response_url: Any = None
    status_url: Any = None
    queue_position: Any = None
    error: Any = None


class Fal(JobProvider):
    """Draws with whatever model is named.

    Args:
        call_off_s: how long a caller who gives up waits for the request to be cancelled.
    """

    def __init__(self, connection: Connection, *, call_off_s: float = CALL_OFF_S) -> None:
        super().__init__(_Queue(connection), call_off_s=call_off_s)


class _Queue:
    """The queue of one account, as jobs. A job's address is that of its status."""

    def __init__(self, connection: Connection) -> None:
        vendor = Vendor(
            provider=NAME,
            title="fal",
            key_env=KEY_ENV,
            base_url_env=BASE_URL_ENV,
            account_url="https://fal.ai/dashboard/billing",
        )
        self.service = Service(
            connection,
            vendor,
            picture_hosts=PICTURE_HOSTS,
            headers={"Authorization": f"Key {connection.key}"},
        )
        self.artist = "The model"

    async def prepare(self, request: ImageRequest) -> ImageRequest:
        """The request with a seed where the model takes one."""
        return _way(request).inputs.prepared(request)

    async def create(self, request: ImageRequest, sink: Sink) -> JobStatus:
        """Take a place in the queue."""
        way = _way(request)
        answer = await self.service.call(
            "POST",
            f"{self.service.base_url}/{way.path}",
            body=way.inputs.fill(request, encode=as_data_url),
            read_timeout_s=CREATE_TIMEOUT_S,
            paid=True,
        )
        queued = self._read(answer)
        # The id becomes part of an address.
        if not isinstance(queued.request_id, str) or not _ID.fullmatch(queued.request_id):
            raise self._not_a_place()
        owner, app, *_ = way.path.split("/")
        built = f"{self.service.base_url}/{owner}/{app}/requests/{queued.request_id}{STATUS}"
        job = RemoteJob(remote_id=queued.request_id, url=self._own(queued.status_url) or built)
        return JobStatus(job=job, ended=False, note=_note(queued))

    async def look(self, job: RemoteJob, sink: Sink, *, timeout_s: float) -> JobStatus:
        """How far the queue is; and once it is done, the picture or why there is none."""
        timeout_s = min(timeout_s, LOOK_TIMEOUT_S)
        url = self._own(job.url)
        if url is None:
            raise ProviderBadRequest(
                f"The request {job.remote_id} is not at {self.service.base_url}",
                hint=f"Set {BASE_URL_ENV} to what it was when the picture was asked for.",
            )
        queued = self._read(await self.service.call("GET", url, read_timeout_s=timeout_s))
        if queued.status != DONE:
            return JobStatus(job=job, ended=False, note=_note(queued))
        result_url = self._own(queued.response_url) or url.removesuffix(STATUS)
        try:
            result = await self.service.call(
                "GET",
                result_url,
                read_timeout_s=timeout_s,
                wanted={"images.url", "image.url"},
                sink=sink,
            )
        except ProviderError as error:
            status = error.extras.get("status")
            if status in MODEL_SAYS or (status is not None and queued.error is not None):
                # What has failed is not charged.
                return JobStatus(job=job, ended=True, failure=error)
            raise
        return self._collected(job, as_object(result))

    async def cancel(self, job: RemoteJob) -> bool:
        """Give the place up. One that is being worked on is only asked to stop."""
        url = self._own(job.url)
        if url is None:
            return False
        answer = await self.service.call(
            "PUT", f"{url.removesuffix(STATUS)}/cancel", read_timeout_s=LOOK_TIMEOUT_S
        )
        return as_object(answer).get("status") == CANCELLED

    async def find(self, request: ImageRequest, *, since_ms: int) -> RemoteJob | None:
        """None: the queue has no list of requests."""
        return None

    def _own(self, url: object) -> str | None:
        """An address at the API's own origin, the only one the key is sent to."""
        return url if isinstance(url, str) and self.service.is_own(url) else None

    def _read(self, answer: object) -> _Queued:
        try:
            return msgspec.convert(answer, _Queued)
        except msgspec.ValidationError:
            raise self._not_a_place() from None

    def _not_a_place(self) -> BadProviderImage:
        return BadProviderImage(
            "fal's answer is not a place in its queue", extras={"provider": NAME}
        )

    def _collected(self, job: RemoteJob, result: Mapping[str, Any]) -> JobStatus:
        if True in as_list(result.get("has_nsfw_concepts")):
            failure = ProviderRefused(
                "fal drew a picture that its safety checker has blacked out; it may be billed",
                may_be_billed=True,
                hint=self.service.vendor.rephrase,
            )
            return JobStatus(job=job, ended=True, failure=failure)
        pictures = [*as_list(result.get("images")), result.get("image")]
        urls = (as_object(picture).get("url") for picture in pictures)
        found = next((url for url in urls if isinstance(url, str | Marker) and url), None)
        return JobStatus(job=job, ended=True, picture=found)


def _way(request: ImageRequest) -> FalRoute:
    """How the request's model is asked: to draw, or to draw from one picture or several."""
    if request.model in WAYS:
        return WAYS[request.model].of(request)
    if not _MODEL.fullmatch(request.model):
        raise ProviderBadRequest(
            f"{request.model[:100]!r} is not a model's name at fal; nothing was sent",
            hint="Write it as its page does, such as fal-ai/flux/dev.",
            extras={"provider": NAME},
        )
    return FalRoute(path=request.model, inputs=OTHER)


def _note(queued: _Queued) -> str | None:
    before = queued.queue_position
    if queued.status != "IN_QUEUE" or not isinstance(before, int) or before < 1:
        return None
    return f"Waiting in the queue, {before} before this one"


SPEC = ProviderSpec(
    name=NAME,
    key_env=KEY_ENV,
    base_url_env=BASE_URL_ENV,
    base_url=BASE_URL,
    models=image_models(NAME),
    build=Fal,
    other_model=other_image_model(NAME),
)
