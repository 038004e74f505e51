"""fal's queue: a request -> a queued request at a model, polled until it is done -> a picture."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.catalogue.images import picture_hosts
from limner.errors import BadProviderImage, ProviderBadRequest, ProviderError, ProviderRefused
from limner.json_shapes import as_list, as_object
from limner.net.json_pictures import Marker
from limner.net.service import Service
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, RemoteJob
from limner.providers.base import Connection
from limner.providers.jobs import JobProvider, JobStatus
from limner.providers.model_inputs import ModelInputs, as_data_url
from limner.providers.specs import BUILT_IN


class FalRoute(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint and the fields it takes."""

    path: str
    inputs: ModelInputs


class FalRoutes(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoints of one model; ``editing_several`` if several pictures have their own."""

    drawing: FalRoute
    editing: FalRoute | None = None
    editing_several: FalRoute | None = None

    def select(self, request: ImageRequest) -> FalRoute:
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

# What most models take; a model ignores a field that it does not know.
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


ROUTES: Mapping[str, FalRoutes] = {
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
    # By default it rewrites the prompt.
    "fal-ai/ideogram/v3": _drawing(
        "fal-ai/ideogram/v3",
        ModelInputs(
            edges="together",
            negative_prompt=True,
            fixed={"num_images": 1, "rendering_speed": "BALANCED", "expand_prompt": False},
        ),
    ),
}


SPEC = BUILT_IN["fal"]
CREATE_TIMEOUT_S = 60.0
POLL_TIMEOUT_S = 10.0
STATUS = "/status"
DONE = "COMPLETED"
CANCELLED = "OK"
# With these statuses of a result the model has failed, not the queue.
MODEL_FAILURES = frozenset({400, 422})

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_MODEL = re.compile(r"[A-Za-z0-9][\w.-]{0,99}(?:/[A-Za-z0-9][\w.-]{0,99}){1,7}", re.ASCII)


class _Queued(msgspec.Struct, frozen=True, kw_only=True):
    """A queued request, and the URLs to poll."""

    status: str
    request_id: Any = None
    response_url: Any = None
    status_url: Any = None
    queue_position: Any = None
    error: Any = None


class Fal(JobProvider):
    """Draws with any model on fal. The URL of a job is the URL of its status."""

    def __init__(self, connection: Connection) -> None:
        service = Service(
            connection,
            SPEC.vendor(connection),
            picture_hosts=picture_hosts(SPEC.name),
            headers={"Authorization": f"Key {connection.key}"},
        )
        super().__init__(service, artist="The model")

    async def prepare(self, request: ImageRequest) -> ImageRequest:
        """Add a seed if the model takes one."""
        return _route(request).inputs.prepare(request)

    async def create(self, request: ImageRequest, sink: Sink) -> JobStatus:
        """Put the request into the queue."""
        route = _route(request)
        answer = await self.service.call(
            "POST",
            f"{self.service.base_url}/{route.path}",
            body=route.inputs.fill(request, encode=as_data_url),
            read_timeout_s=CREATE_TIMEOUT_S,
            paid=True,
        )
        queued = _parse(answer)
        # The id becomes part of a URL.
        if not isinstance(queued.request_id, str) or not _ID.fullmatch(queued.request_id):
            raise _not_queued()
        owner, app, *_ = route.path.split("/")
        built = f"{self.service.base_url}/{owner}/{app}/requests/{queued.request_id}{STATUS}"
        job = RemoteJob(remote_id=queued.request_id, url=self._own_url(queued.status_url) or built)
        return JobStatus(job=job, ended=False, note=_note(queued))

    async def poll(self, job: RemoteJob, sink: Sink, *, timeout_s: float) -> JobStatus:
        """Get the status; once it is done, the picture or the reason why there is none."""
        timeout_s = min(timeout_s, POLL_TIMEOUT_S)
        url = self._own_url(job.url)
        if url is None:
            raise ProviderBadRequest(
                f"The request {job.remote_id} is not at {self.service.base_url}",
                hint=f"Set {self.service.vendor.base_url_env} to its value at the time of the "
                "request.",
            )
        queued = _parse(await self.service.call("GET", url, read_timeout_s=timeout_s))
        if queued.request_id not in (None, job.remote_id):
            raise self.confused("fal answered about another request")
        if queued.status != DONE:
            return JobStatus(job=job, ended=False, note=_note(queued))
        result_url = self._own_url(queued.response_url) or url.removesuffix(STATUS)
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
            if status in MODEL_FAILURES or (status is not None and queued.error is not None):
                # fal does not charge for a failed request.
                return JobStatus(job=job, ended=True, failure=error)
            raise
        return self._result_status(job, as_object(result))

    async def cancel(self, job: RemoteJob) -> bool:
        """Remove the request from the queue. A running request is only asked to stop."""
        url = self._own_url(job.url)
        if url is None:
            return False
        answer = await self.service.call(
            "PUT", f"{url.removesuffix(STATUS)}/cancel", read_timeout_s=POLL_TIMEOUT_S
        )
        return as_object(answer).get("status") == CANCELLED

    def _own_url(self, url: object) -> str | None:
        """The URL if it is at the API's own origin, the only one that gets the key."""
        return url if isinstance(url, str) and self.service.is_own(url) else None

    def _result_status(self, job: RemoteJob, result: Mapping[str, Any]) -> JobStatus:
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


def _route(request: ImageRequest) -> FalRoute:
    """The endpoint of the request's model: for text, for one source picture or for several."""
    if request.model in ROUTES:
        return ROUTES[request.model].select(request)
    if not _MODEL.fullmatch(request.model):
        raise ProviderBadRequest(
            f"{request.model[:100]!r} is not a model's name at fal; nothing was sent",
            hint="Write it as its page does, such as fal-ai/flux/dev.",
            extras={"provider": SPEC.name},
        )
    return FalRoute(path=request.model, inputs=OTHER)


def _parse(answer: object) -> _Queued:
    try:
        return msgspec.convert(answer, _Queued)
    except msgspec.ValidationError:
        raise _not_queued() from None


def _not_queued() -> BadProviderImage:
    return BadProviderImage(
        "fal's response is not a queued request", extras={"provider": SPEC.name}
    )


def _note(queued: _Queued) -> str | None:
    before = queued.queue_position
    if queued.status != "IN_QUEUE" or not isinstance(before, int) or before < 1:
        return None
    return f"Waiting in the queue, {before} before this one"
