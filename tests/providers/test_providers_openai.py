"""DALL·E 3 and GPT Image over OpenAI's wire, checked against the vendor's own types and client."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any, get_type_hints

import openai
import pytest
from openai.types.image_generate_params import ImageGenerateParamsNonStreaming
from pydantic import TypeAdapter
from tests.servers.samples import KEY, PICTURE

from limner.errors import BadProviderImage, ProviderRefused, ProviderUnavailable
from limner.pictures.request import ImageRequest, Progress, Quality, Receipt
from limner.providers.base import Connection
from limner.providers.openai import OpenAIDalle, OpenAIImage
from limner.testing import FakeClock, FakeDesk, FakeSink
from limner.testing.servers.http_server import Gate, Reply, bytes_reply, json_reply
from limner.testing.servers.openai_server import USAGE, OpenAIServer, error_reply

DALLE = ImageRequest(
    prompt="a fox — “snow”", model="dall-e-3", width=1024, height=1792, quality="hd"
)
FLARE = ImageRequest(
    prompt="a fox", model="gpt-image-2.5-flare", width=1536, height=864, quality="standard"
)


def assert_legal(body: dict[str, Any]) -> None:
    """The vendor's own types know every field and take every value."""
    assert set(body) <= set(get_type_hints(ImageGenerateParamsNonStreaming))
    TypeAdapter(ImageGenerateParamsNonStreaming).validate_python(body)


async def draw(provider: Any, request: ImageRequest) -> tuple[Receipt, bytes]:
    sink = FakeSink()
    receipt = await provider.generate(request, sink, FakeDesk().callbacks)
    return receipt, bytes(sink.data)


async def test_dalle_is_asked_with_exactly_the_documented_body(
    openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    found = await draw(OpenAIDalle(connect(openai_server.base_url)), DALLE)
    assert found == (Receipt(prompt_used="A fox, revised"), PICTURE)
    (seen,) = openai_server.requests
    assert (seen.method, seen.target) == ("POST", "/v1/images/generations")
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.headers["content-type"] == "application/json"
    assert seen.json() == {
        "model": "dall-e-3",
        "prompt": "a fox — “snow”",
        "size": "1024x1792",
        "quality": "hd",
        "response_format": "b64_json",
        "n": 1,
    }
    assert_legal(seen.json())


@pytest.mark.parametrize(("quality", "word"), [("standard", "medium"), ("hd", "high")])
async def test_gpt_image_is_asked_in_its_own_words_and_priced_by_its_usage(
    quality: Quality, word: str, openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    request = ImageRequest(
        prompt="a fox", model="gpt-image-2.5-flare", width=1536, height=864, quality=quality
    )
    receipt, data = await draw(OpenAIImage(connect(openai_server.base_url)), request)
    assert data == PICTURE
    # 50 tokens of text at $5 and 439 of picture at $30 for a million.
    assert receipt == Receipt(
        prompt_used="a fox", cost_nano=50 * 5_000 + 439 * 30_000, cost_source="computed"
    )
    (seen,) = openai_server.requests
    assert seen.json() == {
        "model": "gpt-image-2.5-flare",
        "prompt": "a fox",
        "size": "1536x864",
        "quality": word,
        "output_format": "png",
        "n": 1,
    }
    assert_legal(seen.json())


@pytest.mark.parametrize("usage", [None, {}, [], "free", {"output_tokens": -1}])
async def test_without_a_usage_that_makes_sense_the_catalogues_price_holds(
    usage: Any, openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    openai_server.usage = usage
    receipt, _ = await draw(OpenAIImage(connect(openai_server.base_url)), FLARE)
    assert receipt == Receipt(prompt_used="a fox")


@pytest.mark.parametrize("revised", [None, "", 7, ["x"]])
async def test_without_a_revised_prompt_the_prompt_was_used(
    revised: Any, openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    openai_server.revised_prompt = revised
    receipt, _ = await draw(OpenAIDalle(connect(openai_server.base_url)), DALLE)
    assert receipt.prompt_used == DALLE.prompt


async def test_a_revised_prompt_is_a_strangers_text(
    openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    openai_server.revised_prompt = f"your key is {KEY} \ud83e"
    receipt, _ = await draw(OpenAIDalle(connect(openai_server.base_url)), DALLE)
    assert receipt.prompt_used == "your key is ••• ?"


async def test_an_answer_by_address_is_fetched_from_the_base_urls_host(
    openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    url = f"{openai_server.origin}/files/picture.png"
    answer = {"created": 1, "data": [{"url": url, "b64_json": None, "revised_prompt": "Fox"}]}
    openai_server.script("generate", json_reply(answer))
    found = await draw(OpenAIDalle(connect(openai_server.base_url)), DALLE)
    assert found == (Receipt(prompt_used="Fox"), PICTURE)


async def test_an_address_elsewhere_is_not_fetched(
    openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    answer = {"data": [{"url": "https://169.254.169.254/latest/meta-data"}]}
    openai_server.script("generate", json_reply(answer))
    with pytest.raises(BadProviderImage, match="not a host of this service") as caught:
        await draw(OpenAIDalle(connect(openai_server.base_url)), DALLE)
    assert caught.value.extras == {"provider": "openai-dalle"}


async def test_more_pictures_than_asked_for_are_dropped(
    openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    items = [
        {"b64_json": None},
        {"b64_json": base64.b64encode(b"one").decode(), "revised_prompt": "first"},
        {"b64_json": base64.b64encode(b"two").decode(), "revised_prompt": "second"},
    ]
    openai_server.script("generate", json_reply({"data": items}))
    found = await draw(OpenAIDalle(connect(openai_server.base_url)), DALLE)
    assert found == (Receipt(prompt_used="first"), b"one")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"data": []}, "OpenAI answered without a picture"),
        ({"data": [{}]}, "OpenAI answered without a picture"),
        ({"data": [None, 1, {"b64_json": 5, "url": 5}]}, "OpenAI answered without a picture"),
        ({"data": {"b64_json": None}}, "OpenAI answered without a picture"),
        ({"error": {"message": f"no {KEY}"}}, "OpenAI answered without a picture: no •••"),
    ],
)
async def test_an_answer_without_a_picture_is_a_bad_answer(
    answer: Any, message: str, openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    openai_server.script("generate", json_reply(answer))
    with pytest.raises(BadProviderImage) as caught:
        await draw(OpenAIImage(connect(openai_server.base_url)), FLARE)
    assert (caught.value.message, caught.value.extras) == (message, {"provider": "openai-image"})


async def test_a_refusal_says_why(
    openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    details = {"categories": ["sexual"], "moderation_stage": "output"}
    openai_server.always(
        "generate",
        error_reply(
            400,
            "Your request was rejected by the safety system.",
            code="moderation_blocked",
            moderation_details=details,
        ),
    )
    with pytest.raises(ProviderRefused) as caught:
        await draw(OpenAIImage(connect(openai_server.base_url)), FLARE)
    assert caught.value.extras == {
        "provider": "openai-image",
        "status": 400,
        "provider_code": "moderation_blocked",
        "categories": ["sexual"],
        "stage": "output",
    }
    assert len(openai_server.requests) == 1


async def test_a_rate_limit_passes_and_the_picture_is_bought_once(
    openai_server: OpenAIServer, connect: Callable[..., Connection], time: FakeClock
) -> None:
    slow = error_reply(429, "Slow down", headers={"retry-after-ms": "1500"})
    openai_server.script("generate", slow, slow)
    found = await draw(OpenAIDalle(connect(openai_server.base_url)), DALLE)
    assert found == (Receipt(prompt_used="A fox, revised"), PICTURE)
    assert time.slept == [1.5, 1.5]
    assert len(openai_server.requests) == 3


async def test_the_caller_hears_that_work_has_started(
    openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    desk = FakeDesk()
    for provider, request in ((OpenAIDalle, DALLE), (OpenAIImage, FLARE)):
        built = provider(connect(openai_server.base_url))
        await built.generate(request, FakeSink(), desk.callbacks)
    assert desk.progress == [Progress(message="OpenAI is drawing", elapsed_s=0.0)] * 2
    assert (desk.jobs, desk.withdrawn) == ([], 0)


async def test_giving_up_closes_the_connection(
    openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    openai_server.always("generate", Reply(hold=Gate()))
    drawing = asyncio.ensure_future(draw(OpenAIDalle(connect(openai_server.base_url)), DALLE))
    await openai_server.wait_until("generate")
    drawing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await drawing
    await openai_server.wait_for_hangup()


async def test_a_slow_answer_in_pieces_is_put_together(
    openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    text = base64.b64encode(PICTURE)
    gate = Gate()
    openai_server.script(
        "generate",
        Reply(
            pieces=(b'{"data":[{"b64_json":"', text[:1001], gate, text[1001:], b'"}]}'),
            chunked=True,
        ),
    )
    sink = FakeSink()
    provider = OpenAIDalle(connect(openai_server.base_url))
    drawing = asyncio.ensure_future(provider.generate(DALLE, sink, FakeDesk().callbacks))
    await openai_server.wait_until("generate")
    gate.open()
    assert (await drawing).prompt_used == DALLE.prompt
    assert bytes(sink.data) == PICTURE


async def test_a_chunked_answer_that_breaks_off_may_be_billed(
    openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    half = base64.b64encode(PICTURE)[:50_000]
    openai_server.script(
        "generate",
        Reply(pieces=(b'{"data":[{"b64_json":"', half), chunked=True, ending="close"),
    )
    with pytest.raises(ProviderUnavailable, match="may be billed") as caught:
        await draw(OpenAIDalle(connect(openai_server.base_url)), DALLE)
    assert (caught.value.may_be_billed, caught.value.retryable) == (True, False)


async def test_an_answer_that_ends_early_but_in_order_may_be_billed(
    openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    openai_server.script("generate", bytes_reply(b'{"data":[{"b64_json":"QUJD'))
    with pytest.raises(ProviderUnavailable, match="is incomplete") as caught:
        await draw(OpenAIDalle(connect(openai_server.base_url)), DALLE)
    assert caught.value.extras == {"provider": "openai-dalle"}
    assert caught.value.may_be_billed


@pytest.mark.parametrize("response_format", ["b64_json", "url"])
async def test_the_vendors_own_client_understands_the_same_server(
    response_format: Any, openai_server: OpenAIServer
) -> None:
    def ask() -> Any:
        with openai.OpenAI(base_url=openai_server.base_url, api_key="k", max_retries=0) as client:
            return client.images.generate(
                model="dall-e-3", prompt="a fox", response_format=response_format, n=1
            )

    answer = await asyncio.to_thread(ask)
    (item,) = answer.data
    assert item.revised_prompt == "A fox, revised"
    if response_format == "b64_json":
        assert base64.b64decode(item.b64_json) == PICTURE
    else:
        assert item.url == f"{openai_server.origin}/files/picture.png"


async def test_the_vendors_own_client_sends_what_we_send(
    openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    await draw(OpenAIImage(connect(openai_server.base_url)), FLARE)
    ours = openai_server.requests[0]

    def ask() -> Any:
        with openai.OpenAI(base_url=openai_server.base_url, api_key=KEY, max_retries=0) as client:
            return client.images.generate(**ours.json())

    answer = await asyncio.to_thread(ask)
    assert answer.usage.model_dump(exclude_none=True) == USAGE
    theirs = openai_server.requests[1]
    same = [
        (seen.method, seen.target, seen.json(), seen.headers["authorization"])
        for seen in (ours, theirs)
    ]
    assert same[0] == same[1]
    assert json.loads(ours.body) == json.loads(theirs.body)
