"""Black Forest Labs' own API: a request -> a task, polled in its region -> a picture.

The response to a request names the URL to poll, which is in the region that runs the task. The
picture's own URL is valid for ten minutes. The API cannot cancel tasks or list them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Any, TypeVar

import msgspec

from limner.catalogue.images import picture_hosts
from limner.errors import BadProviderImage, ProviderError, ProviderRefused, ProviderUnavailable
from limner.json_shapes import as_list, as_object
from limner.net.failures import MAX_MESSAGE_CHARS
from limner.net.http import parse_url
from limner.net.service import Service
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, RemoteJob
from limner.providers.base import Connection
from limner.providers.jobs import JobProvider, JobStatus
from limner.providers.model_inputs import ModelInputs, as_base64
from limner.providers.specs import BUILT_IN

SPEC = BUILT_IN["bfl-flux"]
VENDOR_DOMAIN = ".bfl.ai"
CREATE_TIMEOUT_S = 60.0
POLL_TIMEOUT_S = 10.0
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
    # By default it rewrites the prompt.
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


class _Task(msgspec.Struct, frozen=True, kw_only=True):
    """The response to a request: the task, the URL to poll and its cost in credits."""

    id: str
    polling_url: Any = None
    cost: Any = None


class _TaskStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a task."""

    status: str
    id: Any = None
    result: Any = None
    details: Any = None
    error: Any = None
    progress: Any = None
    cost: Any = None


class BflFlux(JobProvider):
    """Draws with Flux, at its makers."""

    def __init__(self, connection: Connection) -> None:
        service = Service(
            connection,
            SPEC.vendor(connection),
            picture_hosts=picture_hosts(SPEC.name),
            headers={"x-key": connection.key},
        )
        super().__init__(service, artist="Flux")

    async def prepare(self, request: ImageRequest) -> ImageRequest:
        """Add a seed."""
        return INPUTS[request.model].prepare(request)

    async def create(self, request: ImageRequest, sink: Sink) -> JobStatus:
        """Start a task."""
        answer = await self.service.call(
            "POST",
            f"{self.service.base_url}/{request.model}",
            body=INPUTS[request.model].fill(request, encode=as_base64),
            read_timeout_s=CREATE_TIMEOUT_S,
            paid=True,
        )
        task = _parse(answer, _Task)
        # The id becomes part of a URL.
        if not _ID.fullmatch(task.id):
            raise _not_a_task()
        job = RemoteJob(remote_id=task.id, url=self._poll_url(task.id, task.polling_url))
        return JobStatus(job=job, ended=False, cost_nano=_nano_of_credits(task.cost))

    async def poll(self, job: RemoteJob, sink: Sink, *, timeout_s: float) -> JobStatus:
        """Get the status of a task."""
        answer = await self.service.call(
            "GET",
            self._poll_url(job.remote_id, job.url),
            read_timeout_s=min(timeout_s, POLL_TIMEOUT_S),
        )
        task = _parse(answer, _TaskStatus)
        if task.id not in (None, job.remote_id):
            raise self.confused("Black Forest Labs answered about another task")
        failure = self._failure(task)
        return JobStatus(
            job=job,
            ended=task.status == READY or failure is not None,
            failure=failure,
            picture=as_object(task.result).get("sample"),
            cost_nano=_nano_of_credits(task.cost),
            fraction=_fraction(task.progress),
        )

    def _poll_url(self, task_id: str, url: object) -> str:
        """The URL to poll. The key is sent only to the API and to the vendor's regions."""
        if isinstance(url, str) and (self.service.is_own(url) or self._is_region(url)):
            return url
        return f"{self.service.base_url}/get_result?id={task_id}"

    def _is_region(self, url: str) -> bool:
        """Whether the URL is in one of the vendor's regions, and the key is the vendor's."""
        region, base = parse_url(url), parse_url(self.service.base_url)
        if region is None or base is None:
            return False
        is_vendor = base.host.endswith(VENDOR_DOMAIN) and region.host.endswith(VENDOR_DOMAIN)
        return is_vendor and region.scheme == base.scheme == "https" and not region.userinfo

    def _failure(self, task: _TaskStatus) -> ProviderError | None:
        """Why a task ended without a picture; None if it did not. The service charges nothing."""
        extras = {"provider_code": task.status}
        if task.status == LOST:
            return ProviderUnavailable(
                "Black Forest Labs does not know the task, or no longer; it may be billed",
                may_be_billed=True,
                retryable=False,
                extras=extras,
            )
        if task.status not in REFUSED | FAILED:
            return None
        reason = self.service.safe_text(_reason(task))[:MAX_MESSAGE_CHARS]
        text = f"Black Forest Labs says {task.status}{f': {reason}' if reason else ''}"
        if task.status in REFUSED:
            return ProviderRefused(text, hint=self.service.vendor.rephrase, extras=extras)
        return ProviderUnavailable(text, extras=extras)


def _parse(answer: object, kind: type[T]) -> T:
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError:
        raise _not_a_task() from None


def _not_a_task() -> BadProviderImage:
    return BadProviderImage(
        "Black Forest Labs' response is not a task", extras={"provider": SPEC.name}
    )


def _reason(task: _TaskStatus) -> str:
    """The reasons that the service gives: a text, or the reasons of its moderation."""
    details = as_object(task.details)
    texts = [
        *as_list(details.get("Moderation Reasons")),
        task.error,
        *details.values(),
        task.details,
    ]
    return ", ".join(text for text in texts if isinstance(text, str))


def _nano_of_credits(count: object) -> int | None:
    """A number of credits in nano-dollars; None if no picture can cost that much."""
    if not isinstance(count, int | float) or isinstance(count, bool):
        return None
    if not 0 < count <= MAX_CREDITS:
        return None
    # By its decimal digits: 4.1 credits are exactly 41,000,000 nano-dollars.
    nano = Decimal(str(count)) * NANO_PER_CREDIT
    return int(nano.to_integral_value(rounding=ROUND_CEILING))


def _fraction(progress: object) -> float | None:
    return progress if isinstance(progress, float) and 0 <= progress <= 1 else None
