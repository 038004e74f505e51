"""Stable Diffusion WebUI (AUTOMATIC1111, Forge): a request -> a picture drawn on the user's GPU.

The program draws one picture at a time and holds the request until it is done. Its progress API
reports on all users' requests, and its interrupt API stops the running one. So each request names
its task, and limner stops only its own task.

The program has two progress APIs. One takes the task's name and exists if the web page is on. The
other reports on the running task, and is the only one if just the API is on.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
from collections.abc import Mapping
from typing import Any

import msgspec

from limner.base64_text import encode_base64
from limner.errors import BadProviderImage, LimnerError, ProviderBadRequest
from limner.json_shapes import as_list, as_object
from limner.net.clock import Clock
from limner.net.json_pictures import PICTURE
from limner.net.service import Service, send_with_retries
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, Progress, ProviderCallbacks, Receipt
from limner.providers.base import Connection
from limner.providers.jobs import CANCEL_TIMEOUT_S, run_shielded
from limner.providers.local_server import parse_fraction, unknown_checkpoint
from limner.providers.specs import BUILT_IN

SPEC = BUILT_IN["sd-webui"]
LOADED = SPEC.models[0]
# A large picture on a small card takes minutes, and other requests may be before it.
READ_TIMEOUT_S = 600.0
LIST_TIMEOUT_S = 30.0
POLL_TIMEOUT_S = 10.0
POLL_PAUSE_S = 0.5
MAX_PREVIEW_BYTES = 16 * 1024 * 1024
# The program draws edges in steps of this many pixels; the rest would be cut off.
STEP_PIXELS = 8
CROP_AND_RESIZE = 1
FILL_WITH_ORIGINAL = 1


class SdWebui:
    """Draws with a Stable Diffusion WebUI.

    Attributes:
        cancel_timeout_s: how long a caller that cancels waits for the drawing to be stopped.
    """

    cancel_timeout_s = CANCEL_TIMEOUT_S

    def __init__(self, connection: Connection) -> None:
        headers = _authorization(connection.key)
        self._service = Service(connection, SPEC.vendor(connection), headers=headers)
        self._clock = connection.clock

    async def generate(
        self, request: ImageRequest, sink: Sink, callbacks: ProviderCallbacks
    ) -> Receipt:
        """Draw one picture and write its bytes to the sink; raises as `Provider.generate`."""
        task = _Task(self._service, f"limner-{secrets.token_hex(8)}")
        body = _body(request) | {"force_task_id": task.name}
        if request.model != LOADED.id:
            title = await send_with_retries(lambda: self._checkpoint(request.model), self._clock)
            body["override_settings"] = {"sd_model_checkpoint": title}
        watcher = _Watcher(task, callbacks, self._clock, pictures=request.partial_pictures)
        watching = asyncio.ensure_future(watcher.run())
        try:
            facts = await send_with_retries(lambda: self._draw(request, body, sink), self._clock)
        except asyncio.CancelledError:
            # It costs nothing in any case.
            callbacks.withdraw()
            await run_shielded(self._interrupt(task))
            raise
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        extras = {**facts, "gpu_seconds": watcher.drawing_s}
        return Receipt(prompt_used=request.prompt, cost_nano=0, extras=extras)

    async def _draw(
        self, request: ImageRequest, body: Mapping[str, Any], sink: Sink
    ) -> Mapping[str, Any]:
        """Request the picture; returns the facts in the response."""
        kind = "img2img" if request.sources else "txt2img"
        answer = await self._service.call(
            "POST",
            f"{self._service.base_url}/sdapi/v1/{kind}",
            body=body,
            read_timeout_s=READ_TIMEOUT_S,
            paid=True,
            wanted={"images"},
            sink=sink,
        )
        if PICTURE not in as_list(as_object(answer).get("images")):
            raise BadProviderImage(
                f"{SPEC.title} answered without a picture", extras={"provider": SPEC.name}
            )
        return self._facts(as_object(answer).get("info"))

    async def _checkpoint(self, name: str) -> str:
        """The title of a checkpoint. The program silently ignores a name that it does not know."""
        listed = await self._service.call(
            "GET", f"{self._service.base_url}/sdapi/v1/sd-models", read_timeout_s=LIST_TIMEOUT_S
        )
        titles: dict[str, str] = {}
        for row in map(as_object, as_list(listed)):
            title = row.get("title")
            if isinstance(title, str):
                # A title is "name.safetensors [hash]".
                aliases = (title, title.partition(" [")[0], row.get("model_name"), row.get("hash"))
                titles |= {alias: title for alias in aliases if isinstance(alias, str)}
        if name in titles:
            return titles[name]
        known = dict.fromkeys(self._service.safe_text(title) for title in titles.values())
        raise unknown_checkpoint(name, known, vendor=self._service.vendor)

    def _facts(self, info: object) -> dict[str, Any]:
        """The facts about a picture, which are JSON inside a JSON string."""
        try:
            facts = as_object(msgspec.json.decode(info if isinstance(info, str) else ""))
        except (msgspec.DecodeError, RecursionError):
            return {}
        seed, checkpoint = facts.get("seed"), facts.get("sd_model_name")
        known: dict[str, Any] = {"seed": seed} if type(seed) is int else {}
        if isinstance(checkpoint, str):
            known["checkpoint"] = self._service.safe_text(checkpoint)[:200]
        return known

    async def _interrupt(self, task: _Task) -> None:
        with contextlib.suppress(LimnerError, TimeoutError):
            async with asyncio.timeout(self.cancel_timeout_s):
                await task.interrupt(self._clock)


def _authorization(key: str) -> Mapping[str, str]:
    """The header for a program that was started with --api-auth user:password."""
    if not key:
        return {}
    return {"Authorization": f"Basic {base64.b64encode(key.encode()).decode()}"}


def _body(request: ImageRequest) -> dict[str, Any]:
    body: dict[str, Any] = {
        "prompt": request.prompt,
        "negative_prompt": request.negative_prompt or "",
        "seed": -1 if request.seed is None else request.seed,
        "steps": int(LOADED.qualities[request.quality]),
        "width": _round_up(request.width),
        "height": _round_up(request.height),
        **request.vendor_fields,
    }
    if request.sources:
        body["init_images"] = [encode_base64(request.sources[0].data)]
        body["resize_mode"] = CROP_AND_RESIZE
    if request.mask is not None:
        body["mask"] = encode_base64(request.mask.data)
        body["inpainting_fill"] = FILL_WITH_ORIGINAL
        body["inpaint_full_res"] = False
    return body


def _round_up(edge: int) -> int:
    return -(-edge // STEP_PIXELS) * STEP_PIXELS


class _TaskStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a task; ``picture`` is the preview, if one was requested."""

    is_active: bool
    is_completed: bool
    fraction: float
    picture: bytes | None


class _Task:
    """A task, identified by the name that limner gave it."""

    def __init__(self, service: Service, name: str) -> None:
        self._service = service
        self.name = name
        self._has_names = True

    async def poll(self, *, picture: bool) -> _TaskStatus:
        """Get the status of the task.

        Raises:
            ProviderError: the program does not answer.
            BadProviderImage: the response is not valid.
        """
        if self._has_names:
            try:
                return await self._poll_by_name(picture=picture)
            except ProviderBadRequest:
                self._has_names = False
        return await self._poll_running(picture=picture)

    async def interrupt(self, clock: Clock) -> None:
        """Stop the task as soon as it is the running one; never stop another task."""
        while not (status := await self.poll(picture=False)).is_active:
            if status.is_completed:
                return
            await clock.sleep(POLL_PAUSE_S)
        await self._call("POST", "sdapi/v1/interrupt")

    async def _poll_by_name(self, *, picture: bool) -> _TaskStatus:
        body = {"id_task": self.name, "id_live_preview": -1, "live_preview": picture}
        preview = _Preview()
        answer = await self._call("POST", "internal/progress", body, "live_preview", preview)
        return _TaskStatus(
            is_active=answer.get("active") is True,
            is_completed=answer.get("completed") is True,
            fraction=parse_fraction(answer.get("progress")) or 0.0,
            picture=preview.whole,
        )

    async def _poll_running(self, *, picture: bool) -> _TaskStatus:
        preview = _Preview()
        skip = "false" if picture else "true"
        path = f"sdapi/v1/progress?skip_current_image={skip}"
        answer = await self._call("GET", path, None, "current_image", preview)
        jobs = as_object(answer.get("state")).get("job_count")
        return _TaskStatus(
            is_active=isinstance(jobs, int) and jobs != 0,
            is_completed=False,
            fraction=parse_fraction(answer.get("progress")) or 0.0,
            picture=preview.whole,
        )

    async def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        wanted: str = "",
        sink: _Preview | None = None,
    ) -> Mapping[str, Any]:
        answer = await self._service.call(
            method,
            f"{self._service.base_url}/{path}",
            body=body,
            read_timeout_s=POLL_TIMEOUT_S,
            wanted={wanted},
            sink=sink,
        )
        return as_object(answer)


class _Watcher:
    """Reports the progress of a task to the caller, until it is cancelled."""

    def __init__(
        self, task: _Task, callbacks: ProviderCallbacks, clock: Clock, *, pictures: int
    ) -> None:
        self._task, self._desk, self._clock = task, callbacks, clock
        self._started = self._drawing_since = clock.now()
        self._pictures = pictures
        self._shown = 0
        self._fraction = 0.0

    @property
    def drawing_s(self) -> float:
        """How long the task has been the running one, as far as the polls show."""
        return round(self._clock.now() - self._drawing_since, 3)

    async def run(self) -> None:
        """Poll the task again and again."""
        self._report(f"{SPEC.title} is drawing", None)
        while True:
            await self._clock.sleep(POLL_PAUSE_S)
            try:
                status = await self._task.poll(picture=self._is_preview_due())
            except LimnerError:
                # A failed poll must not stop the drawing.
                continue
            self._handle(status)

    def _is_preview_due(self) -> bool:
        """Whether to show one more preview; they are spread evenly over the drawing."""
        if self._shown >= self._pictures:
            return False
        return self._fraction >= (self._shown + 1) / (self._pictures + 1)

    def _handle(self, status: _TaskStatus) -> None:
        if not status.is_active:
            self._drawing_since = self._clock.now()
            self._report(f"{SPEC.title} is busy with other pictures", None)
            return
        self._fraction = status.fraction
        self._shown += status.picture is not None
        self._report(f"{SPEC.title} is drawing", status.fraction, status.picture)

    def _report(self, message: str, fraction: float | None, picture: bytes | None = None) -> None:
        self._desk.progress(
            Progress(
                message=message,
                elapsed_s=self._clock.now() - self._started,
                fraction=fraction,
                picture=picture,
            )
        )


class _Preview:
    """A sink for a preview, which is shown only if it is whole and not too large."""

    def __init__(self) -> None:
        self._data = bytearray()

    def write(self, data: bytes | memoryview) -> None:
        if len(self._data) <= MAX_PREVIEW_BYTES:
            self._data += data

    @property
    def whole(self) -> bytes | None:
        return bytes(self._data) if 0 < len(self._data) <= MAX_PREVIEW_BYTES else None
