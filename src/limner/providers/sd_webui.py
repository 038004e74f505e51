"""Stable Diffusion WebUI (AUTOMATIC1111, Forge): a request -> a picture drawn on one's own GPU.

The program draws one picture at a time and holds the request until it is there. What it says of
itself is for all its users, and its one switch stops whatever is being drawn; so each request
names its task, and only a task of our own is ever stopped.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
from collections.abc import Mapping
from typing import Any

import msgspec

from limner.catalogue.images import image_models
from limner.errors import BadProviderImage, LimnerError
from limner.json_shapes import as_list, as_object
from limner.net.failures import Vendor
from limner.net.json_pictures import PICTURE
from limner.net.service import Service, patiently
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, ProviderCallbacks, Receipt
from limner.providers.base import Connection, ProviderSpec
from limner.providers.local_server import UNKNOWN_FATE, unknown_checkpoint
from limner.providers.sd_webui_task import Task, Watch

NAME = "sd-webui"
TITLE = "Stable Diffusion WebUI"
BASE_URL = "http://127.0.0.1:7860"
BASE_URL_ENV = "SD_WEBUI_BASE_URL"
KEY_ENV = "SD_WEBUI_AUTH"
MODELS = image_models(NAME)
LOADED = MODELS[0]
# A large picture on a small card takes minutes, and others may be before it.
READ_TIMEOUT_S = 600.0
LIST_TIMEOUT_S = 30.0
CALL_OFF_S = 5.0
# What is drawn has edges in steps of this many pixels; the rest would be cut off.
STEP_PIXELS = 8
CROP_AND_RESIZE = 1
FILL_WITH_ORIGINAL = 1


class SdWebui:
    """Draws with a Stable Diffusion WebUI.

    Args:
        call_off_s: how long a caller who gives up waits for the drawing to be stopped.
    """

    def __init__(self, connection: Connection, *, call_off_s: float = CALL_OFF_S) -> None:
        vendor = Vendor(
            provider=NAME,
            title=TITLE,
            key_env=KEY_ENV,
            base_url_env=BASE_URL_ENV,
            account_url=connection.base_url,
            unknown_fate=UNKNOWN_FATE,
        )
        self._service = Service(connection, vendor, headers=_authorization(connection.key))
        self._clock = connection.clock
        self._call_off_s = call_off_s
        self._calling_off: set[asyncio.Task[None]] = set()

    async def generate(self, request: ImageRequest, sink: Sink, desk: ProviderCallbacks) -> Receipt:
        """Draw, pouring the bytes into the sink; raises as `Provider.generate`."""
        task = Task(self._service, f"limner-{secrets.token_hex(8)}")
        body = _body(request) | {"force_task_id": task.name}
        if request.model != LOADED.id:
            title = await patiently(lambda: self._checkpoint(request.model), self._clock)
            body["override_settings"] = {"sd_model_checkpoint": title}
        watch = Watch(task, desk, self._clock, pictures=request.partial_pictures)
        watching = asyncio.ensure_future(watch.run())
        try:
            facts = await patiently(lambda: self._draw(request, body, sink), self._clock)
        except asyncio.CancelledError:
            await self._undisturbed(task, desk)
            raise
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        extras = {**facts, "gpu_seconds": watch.drawing_s}
        return Receipt(prompt_used=request.prompt, cost_nano=0, extras=extras)

    async def _draw(
        self, request: ImageRequest, body: Mapping[str, Any], sink: Sink
    ) -> Mapping[str, Any]:
        """Ask for the picture; the facts that come with it."""
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
            raise BadProviderImage(f"{TITLE} answered without a picture", extras={"provider": NAME})
        return self._facts(as_object(answer).get("info"))

    async def _checkpoint(self, name: str) -> str:
        """The title of a checkpoint. The program ignores a name it does not know, silently."""
        listed = await self._service.call(
            "GET", f"{self._service.base_url}/sdapi/v1/sd-models", read_timeout_s=LIST_TIMEOUT_S
        )
        titles: dict[str, str] = {}
        for row in map(as_object, as_list(listed)):
            title = row.get("title")
            if isinstance(title, str):
                # As it stands there: "name.safetensors [hash]".
                aliases = (title, title.partition(" [")[0], row.get("model_name"), row.get("hash"))
                titles |= {alias: title for alias in aliases if isinstance(alias, str)}
        if name in titles:
            return titles[name]
        known = dict.fromkeys(self._service.for_reader(title) for title in titles.values())
        raise unknown_checkpoint(name, known, title=TITLE, provider=NAME)

    def _facts(self, info: object) -> dict[str, Any]:
        """What the program says of a picture: JSON inside a string of JSON."""
        try:
            told = as_object(msgspec.json.decode(info if isinstance(info, str) else ""))
        except (msgspec.DecodeError, RecursionError):
            return {}
        seed, checkpoint = told.get("seed"), told.get("sd_model_name")
        facts: dict[str, Any] = {"seed": seed} if type(seed) is int else {}
        if isinstance(checkpoint, str):
            facts["checkpoint"] = self._service.for_reader(checkpoint)[:200]
        return facts

    async def _undisturbed(self, task: Task, desk: ProviderCallbacks) -> None:
        """Call a task off, to the end even where the waiting for that is cancelled too."""
        calling_off = asyncio.ensure_future(self._call_off(task))
        self._calling_off.add(calling_off)
        calling_off.add_done_callback(self._calling_off.discard)
        # Whatever becomes of it, it costs nothing.
        desk.withdraw()
        await asyncio.shield(calling_off)

    async def _call_off(self, task: Task) -> None:
        with contextlib.suppress(LimnerError, TimeoutError):
            async with asyncio.timeout(self._call_off_s):
                await task.interrupt(self._clock)


def _authorization(key: str) -> Mapping[str, str]:
    """What the program asks for where it was started with --api-auth user:password."""
    if not key:
        return {}
    return {"Authorization": f"Basic {base64.b64encode(key.encode()).decode()}"}


def _body(request: ImageRequest) -> dict[str, Any]:
    body: dict[str, Any] = {
        "prompt": request.prompt,
        "negative_prompt": request.negative_prompt or "",
        "seed": -1 if request.seed is None else request.seed,
        "steps": int(LOADED.qualities[request.quality]),
        "width": _up(request.width),
        "height": _up(request.height),
    }
    if request.sources:
        body["init_images"] = [base64.b64encode(request.sources[0].data).decode()]
        body["resize_mode"] = CROP_AND_RESIZE
    if request.mask is not None:
        body["mask"] = base64.b64encode(request.mask.data).decode()
        body["inpainting_fill"] = FILL_WITH_ORIGINAL
        body["inpaint_full_res"] = False
    return body


def _up(edge: int) -> int:
    return -(-edge // STEP_PIXELS) * STEP_PIXELS


SPEC = ProviderSpec(
    name=NAME,
    key_env=KEY_ENV,
    base_url_env=BASE_URL_ENV,
    base_url=BASE_URL,
    models=MODELS,
    build=SdWebui,
    other_model=LOADED,
    named_only=True,
    key_optional=True,
)
