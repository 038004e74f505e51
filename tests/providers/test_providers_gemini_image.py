"""Nano Banana over Google's wire, checked against the vendor's own types and client."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any

import pytest
from google import genai
from google.genai import types
from msgspec.structs import replace
from tests.servers.samples import KEY, PICTURE

from limner.catalogue.images import image_models
from limner.errors import (
    BadProviderImage,
    LimnerError,
    ProviderAuth,
    ProviderRateLimited,
    ProviderRefused,
    ProviderUnavailable,
)
from limner.pictures.request import ImageRequest, Progress, Receipt, SourceImage
from limner.providers.base import Connection
from limner.providers.gemini_image import ASPECT_RATIOS, SPEC, GeminiImage
from limner.testing import FakeClock, FakeDesk, FakeSink, ProviderContract
from limner.testing.servers.gemini_image_server import USAGE, GeminiImageServer, response_json
from limner.testing.servers.gemini_server import error_reply
from limner.testing.servers.http_server import Gate, Reply, bytes_reply, json_reply
from limner.testing.stage import LocalStage

FOX = ImageRequest(
    prompt="a fox — “snow”", model="gemini-nano-banana-2.1", width=1024, height=1024, seed=7
)
SOURCES = tuple(
    SourceImage(handle=str(at) * 64, mime=mime, width=8, height=8, data=f"picture {at}".encode())
    for at, mime in enumerate(("image/png", "image/jpeg", "image/webp"))
)
# 11 tokens in at $1.50, 30 said and 337 thought at $7.50, and 1,120 drawn at $30, for a million.
COST_NANO = 11 * 1_500 + (30 + 337) * 7_500 + 1_120 * 30_000

TODAY = date(2026, 11, 15)

Connect = Callable[..., Connection]


class TestGeminiImage(ProviderContract):
    spec = SPEC

    @contextmanager
    def stage(self) -> Iterator[LocalStage]:
        with GeminiImageServer(b"") as server:
            yield LocalStage(server, buying="generate")


class TestGeminiImageWithDrafts(TestGeminiImage):
    @contextmanager
    def stage(self) -> Iterator[LocalStage]:
        with GeminiImageServer(b"") as server:
            server.drafts = (b"a first draft", b"another one")
            yield LocalStage(server, buying="generate")


@pytest.fixture
def server() -> Iterator[GeminiImageServer]:
    with GeminiImageServer(PICTURE) as running:
        yield running


async def draw(provider: GeminiImage, request: ImageRequest = FOX) -> tuple[Receipt, bytes]:
    sink = FakeSink()
    receipt = await provider.generate(request, sink, FakeDesk().callbacks)
    return receipt, bytes(sink.data)


async def failure_of(
    server: GeminiImageServer, connect: Connect, reply: Reply, kind: type[LimnerError]
) -> Any:
    server.always("generate", reply)
    with pytest.raises(kind) as caught:
        await draw(GeminiImage(connect(server.base_url)))
    assert type(caught.value) is kind
    return caught.value


def assert_legal(body: dict[str, Any]) -> None:
    """The vendor's own types know every field and take every value."""
    strict = {"extra": "forbid", "by_alias": True}
    assert set(body) == {"contents", "generationConfig"}
    for content in body["contents"]:
        types.Content.model_validate(content, **strict)
    types.GenerationConfig.model_validate(
        {name: value for name, value in body["generationConfig"].items() if name != "imageConfig"},
        **strict,
    )
    types.ImageConfig.model_validate(body["generationConfig"]["imageConfig"], **strict)


async def test_it_is_asked_with_exactly_the_documented_body(
    server: GeminiImageServer, connect: Connect
) -> None:
    found = await draw(GeminiImage(connect(server.base_url)))
    assert found == (
        Receipt(prompt_used="a fox — “snow”", cost_nano=COST_NANO, cost_source="computed"),
        PICTURE,
    )
    (seen,) = server.requests
    path = "/v1beta/models/gemini-nano-banana-2.1:generateContent"
    assert (seen.method, seen.target) == ("POST", path)
    assert seen.headers["x-goog-api-key"] == KEY
    assert "authorization" not in seen.headers
    assert seen.headers["content-type"] == "application/json"
    assert seen.json() == {
        "contents": [{"role": "user", "parts": [{"text": "a fox — “snow”"}]}],
        "generationConfig": {
            "responseModalities": ["IMAGE"],
            "imageConfig": {"aspectRatio": "1:1", "imageSize": "1K"},
        },
    }
    assert_legal(seen.json())


async def test_pictures_to_draw_from_come_first_and_in_order(
    server: GeminiImageServer, connect: Connect
) -> None:
    await draw(GeminiImage(connect(server.base_url)), replace(FOX, sources=SOURCES))
    (seen,) = server.requests
    (content,) = seen.json()["contents"]
    assert content["parts"] == [
        {
            "inlineData": {
                "mimeType": source.mime,
                "data": base64.b64encode(source.data).decode(),
            }
        }
        for source in SOURCES
    ] + [{"text": "a fox — “snow”"}]
    assert_legal(seen.json())


@pytest.mark.parametrize(
    ("model", "size", "config"),
    [
        ("gemini-nano-banana-2.1", (512, 512), {"aspectRatio": "1:1", "imageSize": "1K"}),
        ("gemini-nano-banana-2.1", (1792, 1024), {"aspectRatio": "16:9", "imageSize": "2K"}),
        ("gemini-nano-banana-2.1", (2048, 2048), {"aspectRatio": "1:1", "imageSize": "2K"}),
        ("gemini-nano-banana-2.1", (3840, 2160), {"aspectRatio": "16:9", "imageSize": "4K"}),
        ("gemini-nano-banana-2.1", (256, 2048), {"aspectRatio": "1:8", "imageSize": "1K"}),
        ("gemini-3.1-flash-image", (512, 512), {"aspectRatio": "1:1", "imageSize": "512"}),
        ("gemini-3.1-flash-image", (1280, 320), {"aspectRatio": "4:1", "imageSize": "1K"}),
        ("gemini-3-pro-image", (1200, 400), {"aspectRatio": "21:9", "imageSize": "1K"}),
        ("gemini-3-pro-image", (1600, 1280), {"aspectRatio": "5:4", "imageSize": "2K"}),
        # The models of one size refuse to be told it.
        ("gemini-3.1-flash-lite-image", (1024, 1024), {"aspectRatio": "1:1"}),
        ("gemini-2.5-flash-image", (768, 1024), {"aspectRatio": "3:4"}),
    ],
)
async def test_a_size_becomes_the_nearest_shape_and_the_first_tier_that_is_large_enough(
    model: str,
    size: tuple[int, int],
    config: dict[str, str],
    server: GeminiImageServer,
    connect: Connect,
) -> None:
    request = replace(FOX, model=model, width=size[0], height=size[1])
    assert (await draw(GeminiImage(connect(server.base_url)), request))[1] == PICTURE
    (seen,) = server.requests
    assert seen.json()["generationConfig"]["imageConfig"] == config
    assert_legal(seen.json())


@pytest.mark.parametrize("suffix", ["", "/v1beta", "/v1"])
async def test_a_base_url_may_name_the_version(
    suffix: str, server: GeminiImageServer, connect: Connect
) -> None:
    await draw(GeminiImage(connect(f"{server.origin}{suffix}")))
    (seen,) = server.requests
    assert seen.path == f"{suffix or '/v1beta'}/models/gemini-nano-banana-2.1:generateContent"


async def test_of_several_pictures_the_last_is_the_one(
    server: GeminiImageServer, connect: Connect
) -> None:
    server.drafts = (b"draft one", b"draft two" * 10_000)
    assert (await draw(GeminiImage(connect(server.base_url))))[1] == PICTURE


async def test_the_caller_hears_that_work_has_started(
    server: GeminiImageServer, connect: Connect
) -> None:
    desk = FakeDesk()
    await GeminiImage(connect(server.base_url)).generate(FOX, FakeSink(), desk.callbacks)
    assert desk.progress == [Progress(message="Google is drawing", elapsed_s=0.0)]
    assert (desk.jobs, desk.withdrawn) == ([], 0)


@pytest.mark.parametrize(
    "reason",
    [
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    ],
)
async def test_a_refused_picture_is_a_refusal_with_its_reason_and_its_cost(
    reason: str, server: GeminiImageServer, connect: Connect
) -> None:
    types.FinishReason(reason)
    candidate = {"finishReason": reason, "finishMessage": f"Not this. {KEY}", "content": {}}
    usage = {"promptTokenCount": 11, "totalTokenCount": 211, "thoughtsTokenCount": 200}
    reply = json_reply(response_json(candidate, usage))
    error = await failure_of(server, connect, reply, ProviderRefused)
    assert error.message == f"Google refused ({reason}): Not this. •••"
    assert error.hint == "Describe the picture in other words."
    assert error.provider_message == "Not this. •••"
    assert error.extras == {"provider": "gemini-image", "provider_code": reason, "stage": "output"}
    assert (error.retryable, error.may_be_billed) == (False, False)
    assert (error.cost_nano, error.cost_source) == (11 * 1_500 + 200 * 7_500, "computed")
    assert len(server.requests) == 1


async def test_a_refused_prompt_is_a_refusal_with_its_categories(
    server: GeminiImageServer, connect: Connect
) -> None:
    feedback = {
        "blockReason": "PROHIBITED_CONTENT",
        "safetyRatings": [
            {"category": "HARM_CATEGORY_HARASSMENT", "probability": "LOW"},
            {"category": "HARM_CATEGORY_DANGEROUS", "probability": "HIGH", "blocked": True},
        ],
    }
    reply = json_reply({"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 4}})
    error = await failure_of(server, connect, reply, ProviderRefused)
    assert error.message == "Google refused (PROHIBITED_CONTENT)"
    assert error.extras == {
        "provider": "gemini-image",
        "provider_code": "PROHIBITED_CONTENT",
        "stage": "input",
        "categories": ["HARM_CATEGORY_DANGEROUS"],
    }
    assert (error.billed, error.cost_nano) == (True, 4 * 1_500)


async def test_a_draft_does_not_make_up_for_a_refused_picture(
    server: GeminiImageServer, connect: Connect
) -> None:
    parts = [{"inlineData": {"mimeType": "image/png", "data": "QUJD"}}]
    candidate = {"content": {"parts": parts}, "finishReason": "IMAGE_SAFETY"}
    await failure_of(server, connect, json_reply(response_json(candidate)), ProviderRefused)


@pytest.mark.parametrize(
    ("candidate", "message"),
    [
        ({"finishReason": "NO_IMAGE"}, "Google answered without a picture (NO_IMAGE)"),
        (
            {"finishReason": "IMAGE_OTHER", "finishMessage": "Try rephrasing."},
            "Google answered without a picture (IMAGE_OTHER): Try rephrasing.",
        ),
        (
            {
                "finishReason": "STOP",
                "content": {
                    "parts": [
                        {"text": "Hm.", "thought": True},
                        {"text": f"I cannot, {KEY}"},
                        {"text": 7},
                        None,
                    ]
                },
            },
            "Google answered without a picture (STOP): I cannot, •••",
        ),
        ({"content": {"parts": None}}, "Google answered without a picture"),
        ({"content": [], "finishReason": 5}, "Google answered without a picture"),
        (
            {"content": {"parts": [{"inlineData": {"data": None}}, {"inlineData": []}]}},
            "Google answered without a picture",
        ),
    ],
)
async def test_an_answer_without_a_picture_is_a_bad_answer(
    candidate: Any, message: str, server: GeminiImageServer, connect: Connect
) -> None:
    error = await failure_of(
        server, connect, json_reply(response_json(candidate)), BadProviderImage
    )
    assert error.message == message
    assert error.extras["provider"] == "gemini-image"


async def test_an_answer_without_a_picture_costs_what_its_usage_says(
    server: GeminiImageServer, connect: Connect
) -> None:
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 20, "totalTokenCount": 31}
    reply = json_reply(response_json({"finishReason": "NO_IMAGE"}, usage))
    error = await failure_of(server, connect, reply, BadProviderImage)
    assert (error.cost_nano, error.cost_source) == (11 * 1_500 + 20 * 7_500, "computed")


@pytest.mark.parametrize(
    ("reply", "kind", "code"),
    [
        (
            error_reply(400, "INVALID_ARGUMENT", "API key not valid.", reason="API_KEY_INVALID"),
            ProviderAuth,
            "API_KEY_INVALID",
        ),
        (error_reply(403, "PERMISSION_DENIED", "No."), ProviderAuth, "PERMISSION_DENIED"),
        (
            error_reply(429, "RESOURCE_EXHAUSTED", "Quota."),
            ProviderRateLimited,
            "RESOURCE_EXHAUSTED",
        ),
        (error_reply(503, "UNAVAILABLE", "Overloaded."), ProviderUnavailable, "UNAVAILABLE"),
    ],
)
async def test_googles_own_errors_are_known_by_status_and_reason(
    reply: Reply, kind: type[LimnerError], code: str, server: GeminiImageServer, connect: Connect
) -> None:
    error = await failure_of(server, connect, reply, kind)
    assert error.extras["provider_code"] == code
    assert error.may_be_billed == (kind is ProviderUnavailable)


async def test_a_rate_limit_passes_and_the_picture_is_bought_once(
    server: GeminiImageServer, connect: Connect, time: FakeClock
) -> None:
    server.script("generate", error_reply(429, "RESOURCE_EXHAUSTED", "Slow down"))
    assert (await draw(GeminiImage(connect(server.base_url))))[1] == PICTURE
    assert (time.slept, len(server.requests)) == ([0.5], 2)


async def test_giving_up_closes_the_connection(server: GeminiImageServer, connect: Connect) -> None:
    server.always("generate", Reply(hold=Gate()))
    drawing = asyncio.ensure_future(draw(GeminiImage(connect(server.base_url))))
    await server.wait_until("generate")
    drawing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await drawing
    await server.wait_for_hangup()


async def test_an_answer_that_ends_early_but_in_order_may_be_billed(
    server: GeminiImageServer, connect: Connect
) -> None:
    body = b'{"candidates": [{"content": {"parts": [{"inlineData": {"data": "QUJD'
    error = await failure_of(server, connect, bytes_reply(body), ProviderUnavailable)
    assert (error.may_be_billed, error.retryable) == (True, False)
    assert error.extras == {"provider": "gemini-image"}


async def test_an_endless_answer_is_not_kept(server: GeminiImageServer, connect: Connect) -> None:
    body = b'{"candidates": "' + b"x" * (17 * 1024 * 1024)
    error = await failure_of(server, connect, bytes_reply(body), BadProviderImage)
    assert "more than 16777216 bytes besides the picture" in error.message


@pytest.mark.parametrize("model", [row.id for row in SPEC.models])
async def test_the_vendors_own_client_understands_the_same_server(
    model: str, server: GeminiImageServer
) -> None:
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=server.base_url)).aio
    config = types.GenerateContentConfig(
        response_modalities=["IMAGE"], image_config=types.ImageConfig(aspect_ratio="1:1")
    )
    try:
        answer = await client.models.generate_content(model=model, contents="a fox", config=config)
    finally:
        await client.aclose()
    assert answer.parts is not None
    assert [part.inline_data.data for part in answer.parts if part.inline_data] == [PICTURE]
    assert answer.usage_metadata is not None
    assert answer.usage_metadata.thoughts_token_count == USAGE["thoughtsTokenCount"]


async def test_the_vendors_own_client_sends_what_we_send(
    server: GeminiImageServer, connect: Connect
) -> None:
    await draw(GeminiImage(connect(server.base_url)), replace(FOX, sources=SOURCES[:1]))
    client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=server.base_url)).aio
    source = SOURCES[0]
    try:
        await client.models.generate_content(
            model=FOX.model,
            contents=types.Content(
                role="user",
                parts=[
                    types.Part.from_bytes(data=source.data, mime_type=source.mime),
                    types.Part.from_text(text=FOX.prompt),
                ],
            ),
            config=types.GenerateContentConfig(
                response_modalities=["IMAGE"],
                image_config=types.ImageConfig(aspect_ratio="1:1", image_size="1K"),
            ),
        )
    finally:
        await client.aclose()
    ours, theirs = (
        (
            seen.method,
            # Their version is v1; the documentation of these models says v1beta, and so do we.
            seen.path.split("/")[2:],
            seen.headers["x-goog-api-key"],
            # They write one of the names in the other of the two ways that the service reads.
            [types.Content.model_validate(one) for one in seen.json()["contents"]],
            seen.json()["generationConfig"],
        )
        for seen in server.requests
    )
    assert ours == theirs


def test_every_ratio_is_one_that_the_vendor_documents() -> None:
    described = types.ImageConfig.model_fields["aspect_ratio"].description or ""
    documented = {ratio for ratio in ASPECT_RATIOS if f'"{ratio}"' in described}
    assert {"1:1", "2:3", "3:2", "3:4", "4:3", "9:16", "16:9", "21:9"} <= documented


def test_the_default_is_the_newest_and_the_first_generation_is_retired() -> None:
    rows = {row.id: row for row in image_models("gemini-image")}
    assert next(iter(rows)) == "gemini-nano-banana-2.1"
    old = rows["gemini-2.5-flash-image"]
    assert old.status(TODAY) == "retired"
    assert old.successor == "gemini-image/gemini-nano-banana-2.1"
    assert all(row.status(TODAY) == "current" for row in rows.values() if row is not old)
