"""OpenRouter's Image API, checked against the vendor's own types and client."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, get_args

import openrouter
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from openrouter.components import (
    ImageGenerationRequest,
    ImageGenerationRequestAspectRatio,
    ImageGenerationRequestResolution,
)
from tests.servers.openrouter_server import USAGE, OpenRouterServer, error_reply
from tests.servers.samples import KEY, PICTURE

from limner.catalogue.images import ImageModel, Needs, Size
from limner.catalogue.prices import Quote
from limner.errors import (
    BadProviderImage,
    LimnerError,
    ProviderAuth,
    ProviderError,
    ProviderPaymentRequired,
    ProviderRateLimited,
    ProviderRefused,
    ProviderUnavailable,
)
from limner.pictures.request import ImageRequest, Progress, Receipt, SourceImage
from limner.providers.base import Connection
from limner.providers.model_inputs import COMMON_RATIOS
from limner.providers.openrouter import SPEC, TIERS, OpenRouter
from limner.testing import FakeClock, FakeDesk, FakeSink, ProviderContract
from limner.testing.servers.http_server import Gate, Reply, bytes_reply, json_reply
from limner.testing.stage import LocalStage

FOX = ImageRequest(
    prompt="a fox — “snow”", model="google/gemini-nano-banana-2.1", width=1024, height=1024, seed=7
)
SOURCES = tuple(
    SourceImage(handle=str(at) * 64, mime=mime, width=8, height=8, data=f"picture {at}".encode())
    for at, mime in enumerate(("image/png", "image/jpeg"))
)
COST_NANO = 33_616_500

Connect = Callable[..., Connection]


class TestOpenRouter(ProviderContract):
    spec = SPEC

    @contextmanager
    def stage(self) -> Iterator[LocalStage]:
        with OpenRouterServer(b"") as server:
            yield LocalStage(server, buying="generate")


@pytest.fixture
def server() -> Iterator[OpenRouterServer]:
    with OpenRouterServer(PICTURE) as running:
        yield running


async def draw(provider: OpenRouter, request: ImageRequest = FOX) -> tuple[Receipt, bytes]:
    sink = FakeSink()
    receipt = await provider.generate(request, sink, FakeDesk().callbacks)
    return receipt, bytes(sink.data)


async def failure_of(
    server: OpenRouterServer, connect: Connect, reply: Reply, kind: type[LimnerError]
) -> Any:
    server.always("generate", reply)
    with pytest.raises(kind) as caught:
        await draw(OpenRouter(connect(server.base_url)))
    assert type(caught.value) is kind
    return caught.value


def assert_legal(body: dict[str, Any]) -> None:
    """The vendor's own types know every field and every word."""
    ImageGenerationRequest.model_validate(body, extra="forbid")
    for name, union in (
        ("aspect_ratio", ImageGenerationRequestAspectRatio),
        ("resolution", ImageGenerationRequestResolution),
    ):
        assert body.get(name) in (None, *get_args(get_args(union)[0]))


@pytest.mark.parametrize(
    ("model", "size", "shape"),
    [
        ("google/gemini-nano-banana-2.1", (1024, 1024), {"aspect_ratio": "1:1"}),
        (
            "google/gemini-nano-banana-2.1",
            (1792, 1024),
            {"aspect_ratio": "16:9", "resolution": "2K"},
        ),
        ("google/gemini-3-pro-image", (2160, 3840), {"aspect_ratio": "9:16", "resolution": "4K"}),
        ("openai/gpt-image-2.5-flare", (1536, 1024), {"size": "1536x1024", "quality": "medium"}),
        ("somebody/a-new-model", (800, 600), {"aspect_ratio": "4:3"}),
    ],
)
async def test_it_is_asked_with_exactly_the_documented_body(
    model: str,
    size: tuple[int, int],
    shape: dict[str, str],
    server: OpenRouterServer,
    connect: Connect,
) -> None:
    request = replace(FOX, model=model, width=size[0], height=size[1])
    found = await draw(OpenRouter(connect(server.base_url)), request)
    assert found == (
        Receipt(prompt_used="a fox — “snow”", cost_nano=COST_NANO, cost_source="provider"),
        PICTURE,
    )
    (seen,) = server.requests
    assert (seen.method, seen.target) == ("POST", "/api/v1/images")
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.headers["content-type"] == "application/json"
    assert seen.json() == {"model": model, "prompt": "a fox — “snow”", "n": 1, **shape}
    assert_legal(seen.json())


async def test_pictures_to_draw_from_are_data_urls_in_order(
    server: OpenRouterServer, connect: Connect
) -> None:
    await draw(OpenRouter(connect(server.base_url)), replace(FOX, sources=SOURCES))
    body = server.requests[0].json()
    urls = [
        f"data:{source.mime};base64,{base64.b64encode(source.data).decode()}" for source in SOURCES
    ]
    assert body["input_references"] == [
        {"type": "image_url", "image_url": {"url": url}} for url in urls
    ]
    assert_legal(body)


async def test_quality_and_background_go_to_a_model_that_has_them(
    server: OpenRouterServer, connect: Connect
) -> None:
    request = replace(
        FOX, model="openai/gpt-image-2.5-flare", quality="hd", background="transparent"
    )
    await draw(OpenRouter(connect(server.base_url)), request)
    body = server.requests[0].json()
    assert body == {
        "model": "openai/gpt-image-2.5-flare",
        "prompt": "a fox — “snow”",
        "n": 1,
        "size": "1024x1024",
        "quality": "high",
        "background": "transparent",
        "output_format": "png",
    }
    assert_legal(body)


async def test_the_caller_hears_that_work_has_started(
    server: OpenRouterServer, connect: Connect
) -> None:
    desk = FakeDesk()
    await OpenRouter(connect(server.base_url)).generate(FOX, FakeSink(), desk.callbacks)
    assert desk.progress == [Progress(message="OpenRouter is drawing", elapsed_s=0.0)]
    assert (desk.jobs, desk.withdrawn) == ([], 0)


@pytest.mark.parametrize(
    ("usage", "cost_nano"),
    [
        ({"cost": 0.04}, 40_000_000),
        ({"cost": 1}, 1_000_000_000),
        # Finer than can be written down: the next that can, upwards.
        ({"cost": 0.0000000001}, 1),
        ({"cost": 1e-7}, 100),
        # The service itself says that it was free.
        ({"cost": 0, "is_byok": False}, 0),
        # With the user's own key there are two bills.
        (
            {
                "cost": 0.0016,
                "is_byok": True,
                "cost_details": {"upstream_inference_cost": 0.0336},
            },
            35_200_000,
        ),
    ],
)
async def test_what_the_service_charged_is_the_cost(
    usage: Any, cost_nano: int, server: OpenRouterServer, connect: Connect
) -> None:
    server.usage = usage
    receipt, _ = await draw(OpenRouter(connect(server.base_url)))
    assert (receipt.cost_nano, receipt.cost_source) == (cost_nano, "provider")


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        [],
        {"cost": None},
        {"cost": "0.04"},
        {"cost": True},
        {"cost": -1},
        {"cost": 1e300},
        {"cost": 0, "is_byok": True},
        {"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": None}},
    ],
)
async def test_a_charge_that_is_not_told_is_not_nothing(
    usage: Any, server: OpenRouterServer, connect: Connect
) -> None:
    server.usage = usage
    receipt, data = await draw(OpenRouter(connect(server.base_url)))
    assert (receipt, data) == (Receipt(prompt_used="a fox — “snow”"), PICTURE)


@pytest.mark.parametrize(
    ("status", "metadata", "categories"),
    [
        (403, {"error_type": "content_policy_violation", "reasons": ["violence"]}, ["violence"]),
        (403, {"reasons": ["sexual", 7], "flagged_input": "a fox…"}, ["sexual"]),
        (403, {"error_type": "refusal", "provider_name": "OpenAI"}, None),
        (400, {"error_type": "content_policy_violation"}, None),
    ],
)
async def test_a_refusal_is_known_by_the_errors_metadata(
    status: int,
    metadata: dict[str, Any],
    categories: list[str] | None,
    server: OpenRouterServer,
    connect: Connect,
) -> None:
    reply = error_reply(status, "Flagged.", **metadata)
    error = await failure_of(server, connect, reply, ProviderRefused)
    assert error.message == f"OpenRouter answered {status}: Flagged."
    assert error.hint == "Describe the picture in other words."
    assert error.extras.get("categories") == categories
    assert (error.may_be_billed, error.retryable, len(server.requests)) == (False, False, 1)


@pytest.mark.parametrize(
    ("status", "error_type", "kind"),
    [
        (401, "authentication", ProviderAuth),
        (402, "insufficient_credits", ProviderPaymentRequired),
        (403, "permission_denied", ProviderAuth),
        (429, "rate_limit_exceeded", ProviderRateLimited),
        (503, "no_provider_available", ProviderUnavailable),
        (529, "provider_overloaded", ProviderUnavailable),
    ],
)
async def test_the_services_own_errors_are_known_by_status(
    status: int,
    error_type: str,
    kind: type[LimnerError],
    server: OpenRouterServer,
    connect: Connect,
) -> None:
    reply = error_reply(status, f"No. {KEY}", error_type=error_type)
    error = await failure_of(server, connect, reply, kind)
    assert error.extras["provider_code"] == error_type
    assert error.provider_message == "No. •••"


@pytest.mark.parametrize(
    ("problem", "kind", "code"),
    [
        ({"code": 502, "message": f"Upstream {KEY}"}, ProviderUnavailable, "502"),
        (
            {
                "code": 403,
                "message": "No.",
                "metadata": {"error_type": "content_policy_violation"},
            },
            ProviderRefused,
            "content_policy_violation",
        ),
        ({"message": 7, "metadata": []}, ProviderUnavailable, None),
    ],
)
async def test_an_error_that_is_told_with_status_200_may_be_billed(
    problem: Any,
    kind: type[ProviderError],
    code: str | None,
    server: OpenRouterServer,
    connect: Connect,
) -> None:
    error = await failure_of(server, connect, json_reply({"error": problem}), kind)
    assert (error.may_be_billed, error.extras.get("provider_code")) == (True, code)
    assert KEY not in error.message
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        {"created": 1, "data": []},
        {"created": 1, "data": [{}]},
        {"data": [None, {"b64_json": 5}, {"b64_json": ""}]},
        {"data": {"b64_json": None}},
    ],
)
async def test_an_answer_without_a_picture_is_a_bad_answer_that_costs_what_it_says(
    answer: Any, server: OpenRouterServer, connect: Connect
) -> None:
    reply = json_reply(answer | {"usage": USAGE})
    error = await failure_of(server, connect, reply, BadProviderImage)
    assert error.message == "OpenRouter answered without a picture"
    assert error.extras == {"provider": "openrouter"}
    assert (error.cost_nano, error.cost_source) == (COST_NANO, "provider")


async def test_a_rate_limit_passes_and_the_picture_is_bought_once(
    server: OpenRouterServer, connect: Connect, time: FakeClock
) -> None:
    server.script("generate", error_reply(429, "Slow down", error_type="rate_limit_exceeded"))
    assert (await draw(OpenRouter(connect(server.base_url))))[1] == PICTURE
    assert (time.slept, len(server.requests)) == ([0.5], 2)


async def test_giving_up_closes_the_connection(server: OpenRouterServer, connect: Connect) -> None:
    server.always("generate", Reply(hold=Gate()))
    drawing = asyncio.ensure_future(draw(OpenRouter(connect(server.base_url))))
    await server.wait_until("generate")
    drawing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await drawing
    await server.wait_for_hangup()


async def test_an_answer_that_ends_early_but_in_order_may_be_billed(
    server: OpenRouterServer, connect: Connect
) -> None:
    reply = bytes_reply(b'{"data":[{"b64_json":"QUJD')
    error = await failure_of(server, connect, reply, ProviderUnavailable)
    assert (error.may_be_billed, error.retryable) == (True, False)


async def test_the_vendors_own_client_understands_the_server_and_sends_what_we_send(
    server: OpenRouterServer, connect: Connect
) -> None:
    request = replace(FOX, width=2048, height=1152, sources=SOURCES)
    await draw(OpenRouter(connect(server.base_url)), request)
    ours = server.requests[0]

    def ask() -> Any:
        with openrouter.OpenRouter(api_key=KEY, server_url=server.base_url) as client:
            return client.images.generate(**ours.json())

    answer = await asyncio.to_thread(ask)
    assert base64.b64decode(answer.data[0].b64_json) == PICTURE
    assert answer.usage.cost == USAGE["cost"]
    theirs = server.requests[1]
    assert [
        (seen.method, seen.target, seen.json(), seen.headers["authorization"])
        for seen in (ours, theirs)
    ] == [("POST", "/api/v1/images", ours.json(), f"Bearer {KEY}")] * 2


@given(
    model=st.sampled_from([*SPEC.models, SPEC.model("somebody/a-new-model")]),
    size=st.builds(Size, st.integers(1, 16_384), st.integers(1, 16_384)),
)
def test_property_the_nearest_size_is_legal_and_has_a_price_and_a_tier(
    model: ImageModel, size: Size
) -> None:
    near = model.nearest_size(size)
    assert model.sizes.allows(near)
    assert model.quote(near, "standard", "a fox").nano > 0
    assert near.pixels <= TIERS[-1][0]


def test_a_model_of_any_name_can_be_drawn_with_and_draws_from_pictures() -> None:
    model = SPEC.model("openrouter/black-forest-labs/flux.2-pro")
    assert model is not None
    assert (model.id, model.fit_to_size) == ("black-forest-labs/flux.2-pro", True)
    assert model.quote(Size(1024, 1024), "hd", "a fox") == Quote(
        nano=500_000_000, source="table", exact=False
    )
    assert model.lacks(Needs(sources=4)) is None
    assert model.lacks(Needs(sources=1, mask=True)) == "takes no mask"


def test_every_ratio_is_one_of_the_services() -> None:
    (words, _) = get_args(ImageGenerationRequestAspectRatio)
    assert set(COMMON_RATIOS) <= set(get_args(words))
