"""Stable Diffusion WebUI: asking, watching, being called off, failing."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from tests.providers.drawn import impatient
from tests.servers.samples import PICTURE
from tests.servers.sd_webui_server import SdWebuiServer, out_of_memory

from limner.catalogue.images import Size
from limner.errors import BadProviderImage, ProviderAuth, ProviderBadRequest, ProviderUnavailable
from limner.pictures.request import ImageRequest, Progress, Receipt, SourceImage
from limner.providers import sd_webui
from limner.providers.base import Connection
from limner.providers.sd_webui import MAX_PREVIEW_BYTES, SdWebui
from limner.testing import FakeClock, FakeDesk, FakeSink, ProviderContract
from limner.testing.servers.http_server import (
    Gate,
    ReceivedRequest,
    Reply,
    dropped,
    html_reply,
    json_reply,
)
from limner.testing.stage import LocalStage

REQUEST = ImageRequest(
    prompt="a fox",
    model="loaded-checkpoint",
    width=1001,
    height=768,
    seed=42,
    negative_prompt="fog",
)
SOURCE = SourceImage(handle="ab" * 32, mime="image/png", width=64, height=64, data=b"a source")
MASK = SourceImage(handle="cd" * 32, mime="image/png", width=64, height=64, data=b"a mask")
TASK = {"force_task_id"}


class TestSdWebui(ProviderContract):
    spec = replace(sd_webui.SPEC, build=impatient(SdWebui))

    @contextmanager
    def stage(self) -> Iterator[LocalStage]:
        with SdWebuiServer(b"") as server:
            stage = LocalStage(server, buying="draw")
            stage.base_url = server.base_url
            yield stage


@pytest.fixture
def server() -> Iterator[SdWebuiServer]:
    with SdWebuiServer(PICTURE) as server:
        yield server


class Drawn:
    """One drawing, and everything around it."""

    receipt: Receipt

    def __init__(self, connection: Connection) -> None:
        self.provider = SdWebui(connection)
        self.sink, self.desk = FakeSink(), FakeDesk()

    async def generate(self, request: ImageRequest = REQUEST) -> Receipt:
        return await self.provider.generate(request, self.sink, self.desk.callbacks)

    @property
    def previews(self) -> list[bytes]:
        return [told.picture for told in self.desk.progress if told.picture is not None]


@pytest.fixture
def webui(server: SdWebuiServer, connect: Callable[..., Connection]) -> Callable[..., Drawn]:
    return lambda **rest: Drawn(connect(server.base_url, **{"key": ""} | rest))


def body(server: SdWebuiServer) -> dict[str, Any]:
    (seen,) = server.sent("draw")
    return {name: value for name, value in seen.json().items() if name not in TASK}


async def test_a_picture_is_asked_for_and_comes_as_it_was_made(
    server: SdWebuiServer, webui: Callable[..., Drawn]
) -> None:
    drawn = webui()
    receipt = await drawn.generate()
    assert bytes(drawn.sink.data) == PICTURE
    (seen,) = server.sent("draw")
    assert (seen.method, seen.target) == ("POST", "/sdapi/v1/txt2img")
    assert "authorization" not in seen.headers
    assert body(server) == {
        "prompt": "a fox",
        "negative_prompt": "fog",
        "seed": 42,
        "steps": 20,
        "width": 1008,
        "height": 768,
    }
    assert receipt == Receipt(
        prompt_used="a fox",
        cost_nano=0,
        extras={
            "seed": 42,
            "checkpoint": "sd_xl_base_1.0",
            "gpu_seconds": receipt.extras["gpu_seconds"],
        },
    )


async def test_without_a_seed_the_program_chooses_one_and_it_is_told(
    server: SdWebuiServer, webui: Callable[..., Drawn]
) -> None:
    receipt = await webui().generate(replace(REQUEST, seed=None, quality="hd"))
    assert receipt.extras["seed"] == 4_000_000_000
    assert (body(server)["seed"], body(server)["steps"]) == (-1, 40)


async def test_a_picture_is_changed_where_the_mask_is_white(
    server: SdWebuiServer, webui: Callable[..., Drawn]
) -> None:
    drawn = webui()
    await drawn.generate(replace(REQUEST, sources=(SOURCE,), mask=MASK))
    assert server.sent("draw")[0].path == "/sdapi/v1/img2img"
    assert body(server) == {
        "prompt": "a fox",
        "negative_prompt": "fog",
        "seed": 42,
        "steps": 20,
        "width": 1008,
        "height": 768,
        "init_images": [base64.b64encode(b"a source").decode()],
        "resize_mode": 1,
        "mask": base64.b64encode(b"a mask").decode(),
        "inpainting_fill": 1,
        "inpaint_full_res": False,
    }


@pytest.mark.parametrize(
    "name",
    [
        "sd_xl_base_1.0",
        "sd_xl_base_1.0.safetensors",
        "31e35c80fc",
        "sd_xl_base_1.0.safetensors [31e35c80fc]",
    ],
)
async def test_a_checkpoint_is_known_by_each_of_its_names(
    name: str, server: SdWebuiServer, webui: Callable[..., Drawn]
) -> None:
    receipt = await webui().generate(replace(REQUEST, model=name))
    chosen = {"sd_model_checkpoint": "sd_xl_base_1.0.safetensors [31e35c80fc]"}
    assert body(server)["override_settings"] == chosen
    assert receipt.extras["checkpoint"] == "sd_xl_base_1.0"


@pytest.mark.parametrize(
    ("listed", "hint"),
    [
        (None, "Did you mean 'flux1-dev-bnb-nf4.safetensors'?"),
        ([{"title": "b"}, {"title": 7}, "odd"], "It has b."),
        ([{"title": name} for name in "abcdefg"], "It has a, b, c, d, e, …"),
        ({}, "It has none: put a checkpoint into its models folder."),
    ],
)
async def test_a_checkpoint_that_is_not_there_is_refused_instead_of_drawn_with_another(
    listed: Any, hint: str, server: SdWebuiServer, webui: Callable[..., Drawn]
) -> None:
    if listed is not None:
        server.always("models", json_reply(listed))
    with pytest.raises(ProviderBadRequest, match="no checkpoint 'flux1-dev-nf4'") as caught:
        await webui().generate(replace(REQUEST, model="flux1-dev-nf4"))
    assert caught.value.hint == hint
    assert server.sent("draw") == []


async def test_any_checkpoint_is_a_model_of_the_provider() -> None:
    model = sd_webui.SPEC.model("sd-webui/dreamshaper_8")
    assert model is not None
    assert (model.id, model.quote(Size(512, 512), "hd", "a fox").nano) == ("dreamshaper_8", 0)


async def test_a_user_and_password_are_sent_where_they_are_set(
    server: SdWebuiServer, webui: Callable[..., Drawn]
) -> None:
    server.auth = "somebody:secret"
    await webui(key="somebody:secret").generate()
    with pytest.raises(ProviderAuth) as caught:
        await webui().generate()
    assert caught.value.hint == "Check the key in SD_WEBUI_AUTH."


async def test_a_card_that_is_too_small_says_so(
    server: SdWebuiServer, webui: Callable[..., Drawn]
) -> None:
    server.always("draw", out_of_memory())
    with pytest.raises(ProviderUnavailable) as caught:
        await webui().generate()
    assert caught.value.message == (
        "Stable Diffusion WebUI answered 500: CUDA out of memory. Tried to allocate 2.00 GiB; "
        "it may be drawing all the same, and was not asked again"
    )


@pytest.mark.parametrize("images", [None, [], [""], {}, "", ["https://evil.example/a.png"], 7])
async def test_an_answer_without_a_picture_is_a_bad_one(
    images: Any, server: SdWebuiServer, webui: Callable[..., Drawn]
) -> None:
    server.always("draw", json_reply({"images": images, "parameters": {}, "info": "{}"}))
    with pytest.raises(BadProviderImage, match="without a picture"):
        await webui().generate()


@pytest.mark.parametrize(
    "info", [None, 7, "", "no json", "[]", '{"seed": "x", "sd_model_name": 7}']
)
async def test_a_picture_is_worth_more_than_what_is_said_about_it(
    info: Any, server: SdWebuiServer, webui: Callable[..., Drawn]
) -> None:
    server.always("draw", json_reply({"images": ["QUJD", "REVG"], "info": info}))
    drawn = webui()
    receipt = await drawn.generate()
    assert (bytes(drawn.sink.data), list(receipt.extras)) == (b"ABC", ["gpu_seconds"])


def stepping() -> tuple[FakeClock, Callable[[], None]]:
    """A clock whose pauses end when the test says so."""
    turn = asyncio.Semaphore(0)
    clock = FakeClock()
    pass_by = clock.sleep

    async def sleep(seconds: float) -> None:
        await turn.acquire()
        await pass_by(seconds)

    clock.sleep = sleep  # type: ignore[method-assign]
    return clock, turn.release


async def watch(
    server: SdWebuiServer,
    connect: Callable[..., Connection],
    route: str,
    *,
    looks: int,
    pictures: int,
) -> Drawn:
    """A drawing that is looked at so often before it is done."""
    gate = Gate()
    server.script("draw", replace(server.answer(_draw()), hold=gate))
    time, step = stepping()
    drawn = Drawn(connect(server.base_url, key="", clock=time.clock))
    drawing = asyncio.ensure_future(drawn.generate(replace(REQUEST, partial_pictures=pictures)))
    await server.wait_until("draw")
    for count in range(looks):
        step()
        await server.wait_until(route, count=count + 1)
        while len(drawn.desk.progress) < count + 2:
            await asyncio.wait([drawing], timeout=0.01)
    gate.open()
    drawn.receipt = await drawing
    return drawn


def _draw() -> ReceivedRequest:
    target = "/sdapi/v1/txt2img"
    return ReceivedRequest(
        method="POST", target=target, headers={}, body=b'{"prompt": "", "seed": 1, "steps": 1}'
    )


DRAWING = "Stable Diffusion WebUI is drawing"


async def test_progress_and_previews_are_told_by_the_name_of_the_task(
    server: SdWebuiServer, connect: Callable[..., Connection]
) -> None:
    preview = "data:image/jpeg;base64," + base64.b64encode(b"a preview").decode()
    server.states = [
        {"queued": True, "textinfo": "In queue: 1/1"},
        {"active": True, "progress": 0.25},
        {"active": True, "progress": 0.5},
        {"active": True, "progress": 0.75, "live_preview": preview},
        {"active": True, "progress": 1},
    ]
    drawn = await watch(server, connect, "task", looks=5, pictures=1)
    busy = "Stable Diffusion WebUI is busy with other pictures"
    assert drawn.desk.progress == [
        Progress(message=DRAWING, elapsed_s=0.0),
        Progress(message=busy, elapsed_s=0.5),
        Progress(message=DRAWING, elapsed_s=1.0, fraction=0.25),
        Progress(message=DRAWING, elapsed_s=1.5, fraction=0.5),
        Progress(message=DRAWING, elapsed_s=2.0, fraction=0.75, picture=b"a preview"),
        Progress(message=DRAWING, elapsed_s=2.5, fraction=1.0),
    ]
    # The time in the queue is not its own.
    assert drawn.receipt.extras["gpu_seconds"] == 2.0
    asked = [seen.json() for seen in server.sent("task")]
    name = server.sent("draw")[0].json()["force_task_id"]
    assert {look["id_task"] for look in asked} == {name}
    assert [look["live_preview"] for look in asked] == [False, False, False, True, False]


async def test_where_only_the_api_was_started_progress_is_that_of_whatever_is_drawn(
    server: SdWebuiServer, connect: Callable[..., Connection]
) -> None:
    server.api_only = True
    server.states = [
        {"active": False, "progress": 0.0},
        {"active": True, "progress": 0.6},
        {"active": True, "progress": 0.8},
    ]
    drawn = await watch(server, connect, "progress", looks=3, pictures=1)
    assert [(told.fraction, told.picture) for told in drawn.desk.progress[2:]] == [
        (0.6, None),
        (0.8, b"a preview"),
    ]
    # The other way is tried once.
    assert len(server.sent("task")) == 1


@pytest.mark.parametrize(
    "told",
    [
        dropped(),
        html_reply(),
        json_reply([], status=500),
        json_reply({"active": True, "progress": "much", "live_preview": "no base64!"}),
        json_reply({"active": True, "progress": 10**400, "live_preview": None}),
        json_reply({"active": True, "progress": True}),
    ],
)
async def test_progress_that_makes_no_sense_does_not_disturb_the_drawing(
    told: Reply, server: SdWebuiServer, webui: Callable[..., Drawn]
) -> None:
    server.always("task", told)
    server.always("progress", html_reply())
    gate = Gate()
    server.script("draw", replace(server.answer(_draw()), hold=gate))
    drawn = webui()
    drawing = asyncio.ensure_future(drawn.generate())
    await server.wait_until("task", count=3)
    gate.open()
    assert (await drawing).cost_nano == 0
    assert {told.fraction for told in drawn.desk.progress} <= {None, 0.0, 1.0}


async def test_a_preview_that_is_too_large_is_not_shown(
    server: SdWebuiServer, connect: Callable[..., Connection]
) -> None:
    huge = base64.b64encode(bytes(MAX_PREVIEW_BYTES + 1)).decode()
    server.states = [{"active": True, "progress": 0.9, "live_preview": huge}]
    drawn = await watch(server, connect, "task", looks=2, pictures=8)
    assert drawn.previews == []


async def give_up(server: SdWebuiServer, drawn: Drawn) -> None:
    server.always("draw", Reply(hold=Gate()))
    drawing = asyncio.ensure_future(drawn.generate())
    await server.wait_until("draw")
    drawing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await drawing


@pytest.mark.parametrize("api_only", [False, True])
async def test_giving_up_stops_the_drawing(
    api_only: bool, server: SdWebuiServer, webui: Callable[..., Drawn]
) -> None:
    server.api_only = api_only
    waiting = {"active": False, "queued": True, "progress": 0.0}
    server.states = [waiting, waiting, {"active": True, "progress": 0.1}]
    drawn = webui()
    await give_up(server, drawn)
    assert [seen.method for seen in server.sent("interrupt")] == ["POST"]
    assert drawn.desk.withdrawn == 1


@pytest.mark.parametrize(
    "state",
    [{"queued": True}, {"completed": True}, {"active": False}],
    ids=lambda state: next(iter(state)),
)
async def test_giving_up_never_stops_what_others_are_drawing(
    state: dict[str, bool],
    server: SdWebuiServer,
    connect: Callable[..., Connection],
) -> None:
    server.states = [state]
    drawn = Drawn(connect(server.base_url, key=""))
    drawn.provider.cancel_timeout_s = 0.2
    await give_up(server, drawn)
    assert server.sent("interrupt") == []
    assert drawn.desk.withdrawn == 1


async def test_giving_up_twice_still_stops_the_drawing(
    server: SdWebuiServer, webui: Callable[..., Drawn]
) -> None:
    gate = Gate()
    stopped = json_reply({})
    server.always("interrupt", replace(stopped, hold=gate))
    server.always("draw", Reply(hold=Gate()))
    drawn = webui()
    drawing = asyncio.ensure_future(drawn.generate())
    await server.wait_until("draw")
    drawing.cancel()
    await server.wait_until("interrupt")
    drawing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await drawing
    gate.open()
    assert drawn.desk.withdrawn == 1
