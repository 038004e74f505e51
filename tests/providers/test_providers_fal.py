"""fal's queue: a place taken, looked at, collected, given up; and each model told what it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import fal_client
import pytest
from msgspec.structs import replace
from tests.providers.drawn import Drawn, source, stopped_clock
from tests.servers.fal_server import FalServer, error_reply
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
from limner.pictures.request import ImageRequest, Receipt, RemoteJob
from limner.providers import fal
from limner.providers.base import Connection
from limner.providers.fal import ROUTES, Fal
from limner.testing import FakeClock, ProviderContract
from limner.testing.servers.http_server import Gate, Reply, cut_short, dropped, json_reply
from limner.testing.stage import LocalStage

PRO = "fal-ai/flux-2-pro"
REQUEST = ImageRequest(prompt="a fox", model=PRO, width=1024, height=768, seed=42)
RECEIPT = Receipt(prompt_used="a fox", extras={"seed": 42})
FOX, HAT, MASK = source(b"a fox"), source(b"a hat", mime="image/webp"), source(b"a mask")
FOX_URL, HAT_URL = "data:image/png;base64,YSBmb3g=", "data:image/webp;base64,YSBoYXQ="
SIZED = {"image_size": {"width": 1024, "height": 768}}
PNG, ONE = {"output_format": "png"}, {"num_images": 1}
POLICY = [
    {
        "loc": ["body", "prompt"],
        "msg": "The content could not be processed.",
        "type": "content_policy_violation",
    }
]


class TestFal(ProviderContract):
    spec = fal.SPEC

    @contextmanager
    def stage(self) -> Iterator[LocalStage]:
        with FalServer(b"") as server:
            yield LocalStage(server, buying="submit")


class TestFalWithDataUrls(TestFal):
    @contextmanager
    def stage(self) -> Iterator[LocalStage]:
        with FalServer(b"") as server:
            server.delivery = "data"
            yield LocalStage(server, buying="submit")


@pytest.fixture
def server() -> Iterator[FalServer]:
    with FalServer(PICTURE) as server:
        yield server


@pytest.fixture
def queue(server: FalServer, connect: Callable[..., Connection]) -> Callable[[], Drawn]:
    return lambda: Drawn(Fal(connect(server.base_url)))


def only_job(server: FalServer) -> RemoteJob:
    (one,) = server.places
    return RemoteJob(remote_id=one, url=server.status_url(one))


def test_every_row_of_the_catalogue_has_its_ways() -> None:
    assert set(ROUTES) == {model.id for model in image_models("fal")}


async def test_a_picture_is_asked_for_waited_for_and_fetched(
    server: FalServer, queue: Callable[[], Drawn], time: FakeClock
) -> None:
    server.looks = 2
    drawn = queue()
    assert await drawn.generate(REQUEST) == RECEIPT
    assert (drawn.data, drawn.desk.jobs) == (PICTURE, [only_job(server)])
    routes = [server.route(seen) for seen in server.requests]
    assert routes == ["submit", "status", "status", "result", "file"]
    assert server.requests[0].headers["authorization"] == f"Key {KEY}"
    assert time.slept == [0.5, 0.75]
    assert [one.message for one in drawn.desk.progress] == [
        "Waiting in the queue, 2 before this one",
        "The model is drawing",
    ]


@pytest.mark.parametrize(
    ("model", "asked", "path", "fields"),
    [
        (PRO, {}, PRO, SIZED | PNG),
        (PRO, {"sources": (FOX,)}, f"{PRO}/edit", SIZED | PNG | {"image_urls": [FOX_URL]}),
        (
            "fal-ai/flux-2-max",
            {"sources": (FOX, HAT)},
            "fal-ai/flux-2-max/edit",
            SIZED | PNG | {"image_urls": [FOX_URL, HAT_URL]},
        ),
        ("fal-ai/flux/schnell", {}, "fal-ai/flux/schnell", SIZED | PNG | ONE),
        ("fal-ai/flux/dev", {}, "fal-ai/flux/dev", SIZED | PNG | ONE),
        ("fal-ai/flux-pro/v1.1", {}, "fal-ai/flux-pro/v1.1", SIZED | PNG | ONE),
        (
            "fal-ai/flux-pro/v1.1-ultra",
            {},
            "fal-ai/flux-pro/v1.1-ultra",
            PNG | ONE | {"aspect_ratio": "4:3"},
        ),
        (
            "fal-ai/flux-pro/kontext",
            {},
            "fal-ai/flux-pro/kontext/text-to-image",
            PNG | ONE | {"aspect_ratio": "4:3"},
        ),
        (
            "fal-ai/flux-pro/kontext",
            {"sources": (FOX,)},
            "fal-ai/flux-pro/kontext",
            PNG | ONE | {"aspect_ratio": "4:3", "image_url": FOX_URL},
        ),
        (
            "fal-ai/flux-pro/kontext/max",
            {"sources": (FOX, HAT)},
            "fal-ai/flux-pro/kontext/max/multi",
            PNG | ONE | {"aspect_ratio": "4:3", "image_urls": [FOX_URL, HAT_URL]},
        ),
        (
            "fal-ai/flux-pro/v1/fill",
            {"sources": (FOX,), "mask": MASK},
            "fal-ai/flux-pro/v1/fill",
            PNG | ONE | {"image_url": FOX_URL, "mask_url": "data:image/png;base64,YSBtYXNr"},
        ),
        (
            "fal-ai/nano-banana-2",
            {"sources": (FOX,)},
            "fal-ai/nano-banana-2/edit",
            PNG | ONE | {"aspect_ratio": "4:3", "resolution": "1K", "image_urls": [FOX_URL]},
        ),
        (
            "fal-ai/ideogram/v3",
            {"negative_prompt": "text"},
            "fal-ai/ideogram/v3",
            SIZED
            | ONE
            | {"rendering_speed": "BALANCED", "expand_prompt": False, "negative_prompt": "text"},
        ),
        ("bria/text-to-image/3.2", {}, "bria/text-to-image/3.2", SIZED | PNG | ONE),
    ],
)
async def test_each_model_is_asked_at_its_endpoint_and_told_what_it_takes(
    model: str,
    asked: dict[str, Any],
    path: str,
    fields: dict[str, Any],
    server: FalServer,
    queue: Callable[[], Drawn],
) -> None:
    await queue().generate(replace(REQUEST, model=model, **asked))
    submit = server.requests[0]
    assert submit.path == f"/{path}"
    assert submit.json() == {"prompt": "a fox", "seed": 42, **fields}


@pytest.mark.parametrize(
    ("request_", "match"),
    [
        (
            replace(REQUEST, model="fal-ai/flux-pro/v1/fill"),
            "only fills the area that a mask marks",
        ),
        (replace(REQUEST, model="acme/draws", sources=(FOX,)), "does not draw from pictures"),
        (replace(REQUEST, model="../../etc"), "is not a model's name"),
        (replace(REQUEST, model="fal-ai/../x"), "is not a model's name"),
        (replace(REQUEST, model="fal-ai/x?y"), "is not a model's name"),
        (replace(REQUEST, model="alone"), "is not a model's name"),
    ],
)
async def test_what_cannot_be_done_is_refused_before_anything_is_sent(
    request_: ImageRequest, match: str, server: FalServer, queue: Callable[[], Drawn]
) -> None:
    with pytest.raises(ProviderBadRequest, match=match) as caught:
        await queue().generate(request_)
    assert (server.requests, caught.value.may_be_billed) == ([], False)


@pytest.mark.parametrize(
    ("model", "size", "sources", "nano"),
    [
        (PRO, Size(1024, 1024), [], 30_000_000),
        (PRO, Size(2048, 2048), [], 75_000_000),
        (PRO, Size(1024, 1024), [Size(1024, 1024)] * 2, 60_000_000),
        ("fal-ai/flux-2-max", Size(1024, 1024), [Size(512, 512)], 100_000_000),
        ("fal-ai/flux/schnell", Size(1024, 1024), [], 3_000_000),
        ("fal-ai/flux/dev", Size(1920, 1080), [], 50_000_000),
        ("fal-ai/flux-pro/kontext", Size(1024, 1024), [Size(2048, 2048)], 40_000_000),
    ],
)
def test_prices_are_by_the_started_megapixel_of_what_is_drawn_and_drawn_from(
    model: str, size: Size, sources: list[Size], nano: int
) -> None:
    row = fal.SPEC.model(model)
    assert row is not None
    assert row.quote(size, "standard", "a fox", sources=sources).nano == nano


def test_any_other_model_has_no_price_but_is_counted() -> None:
    row = fal.SPEC.model("bria/text-to-image/3.2")
    assert row is not None
    quote = row.quote(Size(1024, 1024), "standard", "a fox")
    assert (row.title, quote.nano, quote.source) == (
        "bria/text-to-image/3.2",
        250_000_000,
        "unknown",
    )


@pytest.mark.parametrize("error", [None, "Unprocessable Entity"])
async def test_a_prompt_against_the_policy_is_refused_and_not_charged(
    error: str | None, server: FalServer, queue: Callable[[], Drawn]
) -> None:
    server.outcome, server.error = error_reply(422, POLICY), error
    with pytest.raises(ProviderRefused) as caught:
        await queue().generate(REQUEST)
    assert caught.value.message == "fal answered 422: The content could not be processed."
    assert (caught.value.may_be_billed, caught.value.retryable) == (False, False)
    assert caught.value.extras["remote_id"] == only_job(server).remote_id


async def test_a_picture_that_was_blacked_out_is_refused_and_may_be_billed(
    server: FalServer, queue: Callable[[], Drawn]
) -> None:
    server.more = {"has_nsfw_concepts": [True]}
    with pytest.raises(ProviderRefused, match="blacked out") as caught:
        await queue().generate(REQUEST)
    assert (caught.value.may_be_billed, server.sent("file")) == (True, [])


async def test_a_model_that_failed_for_good_is_not_asked_for_ever(
    server: FalServer, queue: Callable[[], Drawn]
) -> None:
    server.outcome = error_reply(500, "Internal Server Error")
    server.error = "Internal Server Error"
    with pytest.raises(ProviderUnavailable, match="500") as caught:
        await queue().generate(REQUEST)
    assert (caught.value.may_be_billed, caught.value.retryable) == (False, True)
    assert len(server.sent("result")) == 1


@pytest.mark.parametrize("route", ["status", "result"])
@pytest.mark.parametrize(
    "bad",
    [
        error_reply(500, "x"),
        error_reply(429, "x"),
        dropped(),
        cut_short(json_reply({"status": "COMPLETED"})),
    ],
)
async def test_an_answer_that_fails_on_the_way_is_asked_for_again(
    route: str, bad: Reply, server: FalServer, queue: Callable[[], Drawn]
) -> None:
    server.script(route, bad, bad)
    drawn = queue()
    assert await drawn.generate(REQUEST) == RECEIPT
    assert (drawn.data, len(server.sent("submit"))) == (PICTURE, 1)
    assert len(server.sent(route)) == 3


@pytest.mark.parametrize("route", ["status", "result"])
@pytest.mark.parametrize(("status", "kind"), [(401, ProviderAuth), (404, ProviderBadRequest)])
async def test_being_turned_away_while_it_is_drawn_leaves_the_money_at_stake(
    route: str,
    status: int,
    kind: type[ProviderError],
    server: FalServer,
    queue: Callable[[], Drawn],
) -> None:
    server.always(route, error_reply(status, "no"))
    with pytest.raises(kind) as caught:
        await queue().generate(REQUEST)
    assert (caught.value.may_be_billed, caught.value.retryable) == (True, False)


@pytest.mark.parametrize(
    "more",
    [{"images": []}, {"images": [{}]}, {"images": [{"url": ""}]}, {"images": None}, {"images": 7}],
)
async def test_a_result_without_a_picture_is_a_bad_answer(
    more: dict[str, Any], server: FalServer, queue: Callable[[], Drawn]
) -> None:
    server.more = more
    with pytest.raises(BadProviderImage, match="without a picture"):
        await queue().generate(REQUEST)


async def test_a_model_that_answers_with_one_picture_is_understood(
    server: FalServer, queue: Callable[[], Drawn]
) -> None:
    server.more = {"images": None, "image": {"url": f"{server.origin}/files/out.png"}}
    drawn = queue()
    await drawn.generate(REQUEST)
    assert drawn.data == PICTURE


async def test_a_picture_elsewhere_is_not_fetched(
    server: FalServer, queue: Callable[[], Drawn]
) -> None:
    server.output_url = "https://storage.example/out.png"
    with pytest.raises(BadProviderImage, match="not a host of this service"):
        await queue().generate(REQUEST)


@pytest.mark.parametrize("hostile", ["https://evil.example/x", "//evil.example", 7, None])
async def test_the_key_is_not_sent_where_a_hostile_answer_points(
    hostile: Any, server: FalServer, queue: Callable[[], Drawn]
) -> None:
    server.addresses = dict.fromkeys(("status_url", "response_url", "cancel_url"), hostile)
    drawn = queue()
    assert await drawn.generate(replace(REQUEST, sources=(FOX,))) == RECEIPT
    # Built, as the documentation has it, from the owner and the app alone.
    assert drawn.desk.jobs == [only_job(server)]


@pytest.mark.parametrize("hostile", ["../../x", "a/b", "", "é", "x" * 200, 7, None])
async def test_an_id_that_would_change_the_address_is_a_bad_answer(
    hostile: Any, server: FalServer, queue: Callable[[], Drawn]
) -> None:
    server.script("submit", json_reply({"status": "IN_QUEUE", "request_id": hostile}))
    with pytest.raises(BadProviderImage, match="not a queued request"):
        await queue().generate(REQUEST)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("answer", "withdrawn"),
    [
        (json_reply({"status": "OK"}), 1),
        (json_reply({"status": "CANCELLATION_REQUESTED"}, status=202), 0),
        (json_reply({"status": "ALREADY_COMPLETED"}, status=400), 0),
        (json_reply({"status": "NOT_FOUND"}, status=404), 0),
        (dropped(), 0),
    ],
)
async def test_giving_up_is_free_only_when_the_queue_says_so(
    answer: Reply, withdrawn: int, server: FalServer, connect: Callable[..., Connection]
) -> None:
    server.looks, server.cancelled = 9, answer
    clock, waiting = stopped_clock()
    drawn = Drawn(Fal(connect(server.base_url, clock=clock)))
    await drawn.give_up(REQUEST, when=waiting)
    (cancel,) = server.sent("cancel")
    (one,) = server.places
    assert (cancel.method, cancel.path) == ("PUT", f"/fal-ai/flux-2-pro/requests/{one}/cancel")
    assert (drawn.desk.jobs, drawn.desk.withdrawn) == ([only_job(server)], withdrawn)


async def test_giving_up_before_the_id_is_known_waits_for_it(
    server: FalServer, connect: Callable[..., Connection]
) -> None:
    gate = Gate()
    one = server.begin()
    told = {"status": "IN_QUEUE", "request_id": one, "status_url": server.status_url(one)}
    server.script("submit", replace(json_reply(told), hold=gate))
    drawn = Drawn(Fal(connect(server.base_url)))
    drawing = asyncio.ensure_future(drawn.generate(REQUEST))
    await server.wait_until("submit")
    drawing.cancel()
    await asyncio.sleep(0)
    gate.open()
    with pytest.raises(asyncio.CancelledError):
        await drawing
    assert (drawn.desk.jobs, drawn.desk.withdrawn) == ([only_job(server)], 1)


async def test_a_request_is_resumed_to_its_picture(
    server: FalServer, queue: Callable[[], Drawn]
) -> None:
    server.looks = 2
    server.begin()
    drawn = queue()
    assert await drawn.resume(only_job(server), REQUEST) == RECEIPT
    assert (drawn.data, server.sent("submit")) == (PICTURE, [])


async def test_a_request_is_not_resumed_where_it_was_not_made(
    server: FalServer, queue: Callable[[], Drawn]
) -> None:
    elsewhere = RemoteJob(remote_id="x", url="https://queue.fal.run/fal-ai/flux/requests/x/status")
    with pytest.raises(ProviderBadRequest, match="is not at") as caught:
        await queue().resume(elsewhere, REQUEST)
    assert (server.requests, caught.value.may_be_billed) == ([], True)


async def test_a_request_whose_id_never_arrived_cannot_be_found(
    server: FalServer, connect: Callable[..., Connection]
) -> None:
    assert await Fal(connect(server.base_url)).find(REQUEST, since_ms=0) is None


async def test_the_vendors_own_client_understands_the_same_server(
    server: FalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.looks = 3
    monkeypatch.setattr("fal_client.client.QUEUE_URL_FORMAT", f"{server.origin}/")

    def ask() -> tuple[Any, Any]:
        client = fal_client.SyncClient(key="k")
        handle = client.submit(f"{PRO}/edit", arguments={"prompt": "a fox"})
        result = handle.get(interval=0.0)
        handle.cancel()
        client._client.close()
        return handle, result

    handle, result = await asyncio.to_thread(ask)
    assert handle.status_url == only_job(server).url
    assert result["images"][0]["url"] == f"{server.origin}/files/out.png"
    routes = [server.route(seen) for seen in server.requests]
    assert routes == ["submit", "status", "status", "status", "result", "cancel"]
