"""Flux at its makers: tasks asked for, looked at where they run, collected, refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from tests.providers.drawn import Drawn, source, stopped_clock
from tests.servers.bfl_server import FIELDS, BflServer, complaint, error_reply
from tests.servers.samples import KEY, PICTURE

from limner.catalogue.images import Size, image_models
from limner.errors import (
    BadProviderImage,
    ProviderAuth,
    ProviderBadRequest,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
)
from limner.net.http import Http
from limner.pictures.request import ImageRequest, Progress, Receipt, RemoteJob
from limner.providers import bfl_flux
from limner.providers.base import Connection
from limner.providers.bfl_flux import INPUTS, BflFlux
from limner.testing import FakeClock, ProviderContract
from limner.testing.servers.http_server import Reply, bytes_reply, cut_short, dropped, json_reply
from limner.testing.stage import LocalStage

REQUEST = ImageRequest(prompt="a fox", model="flux-2-pro", width=1024, height=1024, seed=42)
RECEIPT = Receipt(
    prompt_used="a fox", cost_nano=30_000_000, cost_source="provider", extras={"seed": 42}
)
FOX, HAT, MASK = source(b"a fox"), source(b"a hat"), source(b"a mask")


class TestBflFlux(ProviderContract):
    spec = bfl_flux.SPEC

    @contextmanager
    def stage(self) -> Iterator[LocalStage]:
        with BflServer(b"") as server:
            yield LocalStage(server, buying="create")


@pytest.fixture
def server() -> Iterator[BflServer]:
    with BflServer(PICTURE) as server:
        yield server


@pytest.fixture
def flux(server: BflServer, connect: Callable[..., Connection]) -> Callable[[], Drawn]:
    return lambda: Drawn(BflFlux(connect(server.base_url)))


def only_job(server: BflServer) -> RemoteJob:
    (one,) = server.tasks
    return RemoteJob(remote_id=one, url=f"{server.base_url}/get_result?id={one}")


def test_every_row_of_the_catalogue_has_its_inputs() -> None:
    assert list(INPUTS) == [model.id for model in image_models("bfl-flux")] == list(FIELDS)


async def test_a_picture_is_asked_for_looked_at_fetched_and_priced_by_the_service(
    server: BflServer, flux: Callable[[], Drawn]
) -> None:
    drawn = flux()
    assert await drawn.generate(REQUEST) == RECEIPT
    assert (drawn.data, drawn.desk.jobs) == (PICTURE, [only_job(server)])
    create, look, file = server.requests
    assert (create.method, create.target) == ("POST", "/v1/flux-2-pro")
    assert create.json() == {
        "prompt": "a fox",
        "width": 1024,
        "height": 1024,
        "output_format": "png",
        "seed": 42,
    }
    assert (create.headers["x-key"], "authorization" in create.headers) == (KEY, False)
    assert (look.headers["x-key"], server.route(file)) == (KEY, "file")


@pytest.mark.parametrize(
    ("model", "asked", "size"),
    [
        ("flux-2-max", {"sources": (FOX, HAT)}, {"width": 1024, "height": 1024}),
        ("flux-2-flex", {}, {"width": 1024, "height": 1024, "prompt_upsampling": False}),
        ("flux-2-klein-9b", {"sources": (FOX,)}, {"width": 1024, "height": 1024}),
        ("flux-2-klein-4b", {}, {"width": 1024, "height": 1024}),
        ("flux-pro-1.1", {}, {"width": 1024, "height": 1024}),
        ("flux-pro-1.1-ultra", {}, {"aspect_ratio": "1:1"}),
        ("flux-kontext-pro", {"sources": (FOX, HAT)}, {"aspect_ratio": "1:1"}),
        ("flux-kontext-max", {"sources": (FOX,)}, {"aspect_ratio": "1:1"}),
    ],
)
async def test_each_model_is_told_what_it_takes(
    model: str,
    asked: dict[str, Any],
    size: dict[str, Any],
    server: BflServer,
    flux: Callable[[], Drawn],
) -> None:
    await flux().generate(replace(REQUEST, model=model, **asked))
    pictures = dict(zip(("input_image", "input_image_2"), ("YSBmb3g=", "YSBoYXQ="), strict=True))
    count = len(asked.get("sources", ()))
    assert server.requests[0].path == f"/v1/{model}"
    assert server.requests[0].json() == {
        "prompt": "a fox",
        "output_format": "png",
        "seed": 42,
        **size,
        **dict(list(pictures.items())[:count]),
    }


async def test_a_mask_goes_to_the_model_that_fills_and_nothing_else_does(
    server: BflServer, flux: Callable[[], Drawn]
) -> None:
    filling = replace(REQUEST, model="flux-pro-1.0-fill", sources=(FOX,), mask=MASK)
    await flux().generate(filling)
    assert server.requests[0].json() == {
        "prompt": "a fox",
        "output_format": "png",
        "seed": 42,
        "image": "YSBmb3g=",
        "mask": "YSBtYXNr",
    }
    before = len(server.requests)
    with pytest.raises(ProviderBadRequest, match="only fills the area that a mask marks"):
        await flux().generate(replace(filling, mask=None))
    assert len(server.requests) == before


@pytest.mark.parametrize(
    ("size", "sources", "credits"),
    [
        # As told by the service: 3 credits for a megapixel, 4.5 for 1.98 of them.
        (Size(1024, 1024), [], 3.0),
        (Size(1920, 1072), [], 4.5),
        (Size(2048, 2048), [], 7.5),
        (Size(1024, 1024), [Size(1024, 1024)], 4.5),
    ],
)
async def test_the_price_that_is_quoted_is_the_price_that_is_told(
    size: Size,
    sources: list[Size],
    credits: float,
    server: BflServer,
    flux: Callable[[], Drawn],
) -> None:
    server.cost = credits
    receipt = await flux().generate(replace(REQUEST, width=size.width, height=size.height))
    quote = image_models("bfl-flux")[0].quote(size, "standard", "a fox", sources=sources)
    assert (receipt.cost_nano, receipt.cost_source) == (quote.nano, "provider")


@pytest.mark.parametrize(("told", "nano"), [(4.1, 41_000_000), (7, 70_000_000), (0.1, 1_000_000)])
async def test_credits_are_cents_exactly(
    told: float, nano: int, server: BflServer, flux: Callable[[], Drawn]
) -> None:
    server.cost = told
    assert (await flux().generate(REQUEST)).cost_nano == nano


@pytest.mark.parametrize("told", [None, 0, -1, True, "3", [], 1e300])
async def test_a_price_that_is_none_leaves_the_quote_standing(
    told: Any, server: BflServer, flux: Callable[[], Drawn]
) -> None:
    server.cost = told
    assert await flux().generate(REQUEST) == replace(RECEIPT, cost_nano=None, cost_source="table")


async def test_a_resumed_task_tells_its_price_at_the_end(
    server: BflServer, flux: Callable[[], Drawn]
) -> None:
    server.more = {"cost": 3.0}
    server.begin()
    drawn = flux()
    assert await drawn.resume(only_job(server), REQUEST) == RECEIPT
    assert (drawn.data, server.sent("create")) == (PICTURE, [])


@pytest.mark.parametrize("running", ["Pending", "Reasoning", "Generating", "Something New"])
async def test_a_task_that_goes_on_is_waited_for(
    running: str, server: BflServer, flux: Callable[[], Drawn], time: FakeClock
) -> None:
    server.looks, server.running = 3, running
    server.script("look", json_reply({"status": running, "progress": 0.25}))
    drawn = flux()
    assert await drawn.generate(REQUEST) == RECEIPT
    assert time.slept == [0.5, 0.75, 1.125, 1.6875]
    assert [one.fraction for one in drawn.desk.progress] == [None, 0.25, None, None]
    assert drawn.desk.progress[0] == Progress(message="Flux is drawing", elapsed_s=0.0)


async def test_after_two_minutes_the_task_is_left_to_be_recovered(
    server: BflServer, flux: Callable[[], Drawn], time: FakeClock
) -> None:
    server.looks = 10**9
    drawn = flux()
    with pytest.raises(ProviderUnavailable, match="may be billed") as caught:
        await drawn.generate(REQUEST)
    assert (caught.value.may_be_billed, caught.value.retryable) == (True, False)
    assert caught.value.extras == {
        "provider": "bfl-flux",
        "remote_id": drawn.desk.jobs[0].remote_id,
    }
    assert time.now_s == pytest.approx(120)


@pytest.mark.parametrize("status", ["Request Moderated", "Content Moderated"])
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, ""),
        ({"details": {"Moderation Reasons": ["Derivative Works Filter"]}}, "Derivative Works"),
        ({"details": {"Moderation Reasons": 7}}, ""),
        ({"details": f"because of {KEY}"}, "because of •••"),
    ],
)
async def test_what_is_moderated_is_refused_and_not_charged(
    status: str,
    more: dict[str, Any],
    words: str,
    server: BflServer,
    flux: Callable[[], Drawn],
) -> None:
    server.outcome, server.more = status, more
    with pytest.raises(ProviderRefused) as caught:
        await flux().generate(REQUEST)
    assert caught.value.message.startswith(f"Black Forest Labs says {status}")
    assert words in caught.value.message
    assert (caught.value.may_be_billed, caught.value.retryable) == (False, False)
    assert caught.value.extras["provider_code"] == status


@pytest.mark.parametrize("status", ["Error", "Failed"])
async def test_a_task_that_fails_says_how_and_may_be_asked_for_again(
    status: str, server: BflServer, flux: Callable[[], Drawn]
) -> None:
    server.outcome, server.more = status, {"error": "generation_timeout"}
    with pytest.raises(ProviderUnavailable) as caught:
        await flux().generate(REQUEST)
    assert caught.value.message == f"Black Forest Labs says {status}: generation_timeout"
    assert (caught.value.may_be_billed, caught.value.retryable) == (False, True)


async def test_a_task_that_is_forgotten_may_be_billed(
    server: BflServer, flux: Callable[[], Drawn]
) -> None:
    lost = RemoteJob(remote_id="gone", url=f"{server.base_url}/get_result?id=gone")
    with pytest.raises(ProviderUnavailable, match="no longer") as caught:
        await flux().resume(lost, REQUEST)
    assert (caught.value.may_be_billed, caught.value.retryable) == (True, False)


@pytest.mark.parametrize(
    ("reply", "kind", "message"),
    [
        (error_reply(403, "Not authenticated"), ProviderAuth, "403: Not authenticated"),
        (complaint("width", "Must be a multiple of 16"), ProviderBadRequest, "422: Must be a"),
        (
            json_reply({"error": "validation_error", "message": "Too wide"}, status=400),
            ProviderBadRequest,
            "400: Too wide",
        ),
    ],
)
async def test_an_error_says_what_the_service_says(
    reply: Reply,
    kind: type[ProviderError],
    message: str,
    server: BflServer,
    flux: Callable[[], Drawn],
) -> None:
    server.always("create", reply)
    with pytest.raises(kind, match=message):
        await flux().generate(REQUEST)


@pytest.mark.parametrize(
    "bad", [error_reply(500, "x"), error_reply(429, "x"), dropped(), cut_short(json_reply({}))]
)
async def test_a_look_that_fails_is_repeated_and_nothing_is_bought_twice(
    bad: Reply, server: BflServer, flux: Callable[[], Drawn]
) -> None:
    server.script("look", bad, bad)
    drawn = flux()
    assert await drawn.generate(REQUEST) == RECEIPT
    assert (drawn.data, len(server.sent("create"))) == (PICTURE, 1)


@pytest.mark.parametrize(
    "told",
    [
        "https://api.eu2.bfl.ai/v1/get_result?id=x",
        "https://evil.example/v1/get_result?id=x",
        "http://[::1",
        7,
    ],
)
async def test_behind_a_proxy_the_task_is_looked_at_there_whatever_the_answer_points_to(
    told: Any, server: BflServer, flux: Callable[[], Drawn]
) -> None:
    server.polling_url = told
    drawn = flux()
    assert await drawn.generate(REQUEST) == RECEIPT
    assert drawn.desk.jobs == [only_job(server)]


@pytest.mark.parametrize(
    ("told", "followed"),
    [
        ("https://api.eu2.bfl.ai/v1/get_result?id=x", True),
        ("https://api.us1.bfl.ai/v1/get_result?id=x", True),
        ("http://api.eu2.bfl.ai/v1/get_result?id=x", False),
        ("https://user@api.eu2.bfl.ai/v1/get_result?id=x", False),
        ("https://evilbfl.ai/v1/get_result?id=x", False),
        ("https://api.bfl.ai.evil.example/", False),
    ],
)
async def test_at_the_vendor_the_key_goes_to_its_regions_and_nowhere_else(
    told: str, followed: bool, server: BflServer, connect: Callable[..., Connection]
) -> None:
    asked: list[str] = []
    http = Http()

    async def to_this_server(request: Any) -> None:
        asked.append(str(request.url))
        request.url = request.url.copy_with(scheme="http", host="127.0.0.1", port=server.port)

    server.polling_url = told
    client = http.client()
    client.event_hooks["request"].append(to_this_server)
    try:
        drawn = Drawn(BflFlux(replace(connect("https://api.bfl.ai/v1"), http=client)))
        with pytest.raises((BadProviderImage, ProviderUnavailable)):
            await drawn.generate(REQUEST)
    finally:
        await http.aclose()
    (one,) = server.tasks
    own = f"https://api.bfl.ai/v1/get_result?id={one}"
    assert asked[:2] == ["https://api.bfl.ai/v1/flux-2-pro", told if followed else own]


@pytest.mark.parametrize("hostile", ["../../x", "a&b=c", "", "é", "x" * 200])
async def test_an_id_that_would_change_the_address_is_a_bad_answer(
    hostile: str, server: BflServer, flux: Callable[[], Drawn]
) -> None:
    server.script("create", json_reply({"id": hostile, "polling_url": ""}))
    with pytest.raises(BadProviderImage, match="not a task"):
        await flux().generate(REQUEST)
    assert len(server.requests) == 1


@pytest.mark.parametrize("result", [None, {}, {"sample": None}, {"sample": ""}, [], {"sample": 7}])
async def test_ready_without_a_picture_is_a_bad_answer(
    result: Any, server: BflServer, flux: Callable[[], Drawn]
) -> None:
    server.more = {"result": result}
    with pytest.raises(BadProviderImage, match="without a picture"):
        await flux().generate(REQUEST)


async def test_a_picture_elsewhere_is_not_fetched_and_one_that_has_expired_is_said_to_be(
    server: BflServer, flux: Callable[[], Drawn]
) -> None:
    server.output_url = "https://evil.example/sample.png"
    with pytest.raises(BadProviderImage, match="not a host of this service"):
        await flux().generate(REQUEST)
    server.output_url = None
    server.file = bytes_reply(b"<Error/>", status=403)
    with pytest.raises(BadProviderImage, match="may have expired"):
        await flux().generate(REQUEST)


async def test_giving_up_leaves_the_money_counted_since_nothing_can_be_cancelled(
    server: BflServer, connect: Callable[..., Connection]
) -> None:
    server.looks = 9
    clock, waiting = stopped_clock()
    drawn = Drawn(BflFlux(connect(server.base_url, clock=clock)))
    await drawn.give_up(REQUEST, when=waiting)
    assert (drawn.desk.jobs, drawn.desk.withdrawn) == ([only_job(server)], 0)
    assert [server.route(seen) for seen in server.requests] == ["create"]


async def test_a_request_whose_id_never_arrived_cannot_be_found(
    server: BflServer, connect: Callable[..., Connection]
) -> None:
    provider = BflFlux(connect(server.base_url))
    assert await provider.find(REQUEST, since_ms=0) is None
    assert server.requests == []
