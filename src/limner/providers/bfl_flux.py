"""Black Forest Labs' own API: a request -> a task, looked at where it runs -> a picture.

A task is looked at by the address its answer names, at the region that works on it. The picture's
own address is good for ten minutes. There is no way to cancel a task, and none to list them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Any, TypeVar

import httpx2
import msgspec

from limner.catalogue.images import image_models
from limner.errors import BadProviderImage, ProviderError, ProviderRefused, ProviderUnavailable
from limner.json_shapes import as_list, as_object
from limner.net.failures import MAX_MESSAGE_CHARS, Vendor
from limner.net.service import Service
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, RemoteJob
from limner.providers.base import Connection, ProviderSpec
from limner.providers.jobs import CALL_OFF_S, JobProvider, JobStatus
from limner.providers.model_inputs import ModelInputs, as_base64

NAME = "bfl-flux"
BASE_URL = "https://api.bfl.ai/v1"
BASE_URL_ENV = "BFL_BASE_URL"
KEY_ENV = "BFL_API_KEY"
VENDOR_DOMAIN = ".bfl.ai"
PICTURE_HOSTS = (
    f"*{VENDOR_DOMAIN}",
    "bfldeliveryprod.blob.core.windows.net",
    "bfldeliverysc.blob.core.windows.net",
)
CREATE_TIMEOUT_S = 60.0
LOOK_TIMEOUT_S = 10.0
NANO_PER_CREDIT = 10_000_000
# More than any picture costs; a larger number is an error or an attack.
MAX_CREDITS = 10_000

READY = "Ready"
REFUSED = frozenset({"Request Moderated", "Content Moderated"})
FAILED = frozenset({"Error", "Failed"})
LOST = "Task not found"

ASPECT_RATIOS = (
    *("1:1", "21:9", "16:9", "3:2", "4:3", "5:4"),
    *("9:21", "9:16", "2:3", "3:4", "4:5"),
)
_PNG = {"output_format": "png"}
_FLUX_2 = ModelInputs(edges="apart", source="input_image", several="numbered", fixed=_PNG)
_KONTEXT = ModelInputs(ratios=ASPECT_RATIOS, source="input_image", several="numbered", fixed=_PNG)

INPUTS: Mapping[str, ModelInputs] = {
    "flux-2-pro": _FLUX_2,
    "flux-2-max": _FLUX_2,
    # Left to itself it rewrites the prompt.
    "flux-2-flex": ModelInputs(
        edges="apart",
        source="input_image",
        several="numbered",
        fixed={**_PNG, "prompt_upsampling": False},
    ),
    "flux-2-klein-9b": _FLUX_2,
    "flux-2-klein-4b": _FLUX_2,
    "flux-pro-1.1": ModelInputs(edges="apart", fixed=_PNG),
    "flux-pro-1.1-ultra": ModelInputs(ratios=ASPECT_RATIOS, fixed=_PNG),
    "flux-kontext-pro": _KONTEXT,
    "flux-kontext-max": _KONTEXT,
    "flux-pro-1.0-fill": ModelInputs(source="image", mask="mask", needs_mask=True, fixed=_PNG),
}

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")

T = TypeVar("T")


class _Begun(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a request: the task, where to look at it and what it costs in credits."""

    id: str
    polling_url: Any = None
    cost: Any = None


class _Look(msgspec.Struct, frozen=True, kw_only=True):
    """How a task stands."""

    status: str
    result: Any = None
    details: Any = None
    error: Any = None
    progress: Any = None
    cost: Any = None


class BflFlux(JobProvider):
    """Draws with Flux, at its makers.

    Args:
        call_off_s: how long a caller who gives up waits for the task's id.
    """

    def __init__(self, connection: Connection, *, call_off_s: float = CALL_OFF_S) -> None:
        super().__init__(_Tasks(connection), call_off_s=call_off_s)


class _Tasks:
    """The tasks of one account, as jobs."""

    def __init__(self, connection: Connection) -> None:
        vendor = Vendor(
            provider=NAME,
            title="Black Forest Labs",
            key_env=KEY_ENV,
            base_url_env=BASE_URL_ENV,
            account_url="https://dashboard.bfl.ai",
        )
        self.service = Service(
            connection,
            vendor,
            picture_hosts=PICTURE_HOSTS,
            headers={"x-key": connection.key},
        )
        self.artist = "Flux"

    async def prepare(self, request: ImageRequest) -> ImageRequest:
        """The request with a seed."""
        return INPUTS[request.model].prepared(request)

    async def create(self, request: ImageRequest, sink: Sink) -> JobStatus:
        """Start a task."""
        answer = await self.service.call(
            "POST",
            f"{self.service.base_url}/{request.model}",
            body=INPUTS[request.model].fill(request, encode=as_base64),
            read_timeout_s=CREATE_TIMEOUT_S,
            paid=True,
        )
        begun = self._read(answer, _Begun)
        # The id becomes part of an address.
        if not _ID.fullmatch(begun.id):
            raise self._not_a_task()
        job = RemoteJob(remote_id=begun.id, url=self._address(begun.id, begun.polling_url))
        return JobStatus(job=job, ended=False, cost_nano=_nano_of_credits(begun.cost))

    async def look(self, job: RemoteJob, sink: Sink, *, timeout_s: float) -> JobStatus:
        """What became of a task."""
        answer = await self.service.call(
            "GET",
            self._address(job.remote_id, job.url),
            read_timeout_s=min(timeout_s, LOOK_TIMEOUT_S),
        )
        look = self._read(answer, _Look)
        failure = self._failure(look)
        return JobStatus(
            job=job,
            ended=look.status == READY or failure is not None,
            failure=failure,
            picture=as_object(look.result).get("sample"),
            cost_nano=_nano_of_credits(look.cost),
            fraction=_fraction(look.progress),
        )

    async def cancel(self, job: RemoteJob) -> bool:
        """Nothing: the service goes on with what it has begun."""
        return False

    async def find(self, request: ImageRequest, *, since_ms: int) -> RemoteJob | None:
        """None: the service has no list of tasks."""
        return None

    def _address(self, task_id: str, told: object) -> str:
        """Where a task is looked at. The key is only ever sent to where it belongs."""
        if isinstance(told, str) and (self.service.is_own(told) or self._is_region(told)):
            return told
        return f"{self.service.base_url}/get_result?id={task_id}"

    def _is_region(self, url: str) -> bool:
        """Whether an address is at one of the vendor's regions, and the key is the vendor's."""
        try:
            told, base = httpx2.URL(url), httpx2.URL(self.service.base_url)
        except (httpx2.InvalidURL, ValueError):
            return False
        ours = base.host.endswith(VENDOR_DOMAIN) and told.host.endswith(VENDOR_DOMAIN)
        return ours and told.scheme == base.scheme == "https" and not told.userinfo

    def _read(self, answer: object, kind: type[T]) -> T:
        try:
            return msgspec.convert(answer, kind)
        except msgspec.ValidationError:
            raise self._not_a_task() from None

    def _not_a_task(self) -> BadProviderImage:
        return BadProviderImage(
            "Black Forest Labs' answer is not a task", extras={"provider": NAME}
        )

    def _failure(self, look: _Look) -> ProviderError | None:
        """How a task ended without a picture; it is not charged then."""
        extras = {"provider_code": look.status}
        if look.status == LOST:
            return ProviderUnavailable(
                "Black Forest Labs does not know the task, or no longer; it may be billed",
                may_be_billed=True,
                retryable=False,
                extras=extras,
            )
        if look.status not in REFUSED | FAILED:
            return None
        words = self.service.for_reader(_reason(look))[:MAX_MESSAGE_CHARS]
        text = f"Black Forest Labs says {look.status}{f': {words}' if words else ''}"
        if look.status in REFUSED:
            return ProviderRefused(text, hint=self.service.vendor.rephrase, extras=extras)
        return ProviderUnavailable(text, extras=extras)


def _reason(look: _Look) -> str:
    """Why, as far as the service says: a text, or the moderation's reasons."""
    details = as_object(look.details)
    told = [
        *as_list(details.get("Moderation Reasons")),
        look.error,
        *details.values(),
        look.details,
    ]
    return ", ".join(one for one in told if isinstance(one, str))


def _nano_of_credits(count: object) -> int | None:
    """A number of credits in nano-dollars; None where it is not one that a picture can cost."""
    if not isinstance(count, int | float) or isinstance(count, bool):
        return None
    if not 0 < count <= MAX_CREDITS:
        return None
    # By way of its decimal digits: 4.1 credits are 41,000,000 nano-dollars and nothing over.
    nano = Decimal(str(count)) * NANO_PER_CREDIT
    return int(nano.to_integral_value(rounding=ROUND_CEILING))


def _fraction(progress: object) -> float | None:
    return progress if isinstance(progress, float) and 0 <= progress <= 1 else None


SPEC = ProviderSpec(
    name=NAME,
    key_env=KEY_ENV,
    base_url_env=BASE_URL_ENV,
    base_url=BASE_URL,
    models=image_models(NAME),
    build=BflFlux,
)
