"""Drawing from pictures over OpenAI's wire, checked against the vendor's own types and client."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import openai
import pytest
from msgspec.structs import replace
from openai.types.image_edit_params import ImageEditParamsNonStreaming
from pydantic import ConfigDict, TypeAdapter, with_config
from tests.servers.samples import KEY, PICTURE
from tests.servers.test_servers_processes import serving

from limner.catalogue.images import Size, image_models
from limner.errors import ProviderBadRequest, ProviderRefused
from limner.pictures.request import ImageRequest, Receipt, SourceImage
from limner.providers.base import Connection
from limner.providers.openai import OpenAIImage
from limner.testing import FakeDesk, FakeSink
from limner.testing.servers.openai_server import (
    FormFile,
    OpenAIServer,
    ReceivedForm,
    error_reply,
    read_form,
)

# Every byte there is, line ends and a boundary's dashes among them.
ODD_BYTES = bytes(range(256)) + b"\r\n--\r\n" + bytes(reversed(range(256)))
USAGE = {
    "input_tokens": 3100,
    "input_tokens_details": {"text_tokens": 40, "image_tokens": 3060},
    "output_tokens": 439,
    "output_tokens_details": {"image_tokens": 439, "text_tokens": 0},
    "total_tokens": 3539,
}


def source(data: bytes, mime: str = "image/png", *, edge: int = 1024) -> SourceImage:
    return SourceImage(handle="0" * 64, mime=mime, width=edge, height=edge, data=data)


EDIT = ImageRequest(
    prompt="make it “blue”",
    model="gpt-image-2.5-flare",
    width=1024,
    height=1024,
    quality="hd",
    sources=(source(b"first" + ODD_BYTES), source(b"second", "image/jpeg")),
    mask=source(b"mask" + ODD_BYTES),
)


async def draw(
    server: OpenAIServer, connect: Callable[..., Connection], request: ImageRequest
) -> tuple[Receipt, bytes]:
    sink = FakeSink()
    provider = OpenAIImage(connect(server.base_url))
    return await provider.generate(request, sink, FakeDesk().callbacks), bytes(sink.data)


def assert_legal(form: ReceivedForm) -> None:
    """The vendor's own types know every field and take every value."""
    images = [part for part in form.files if part.field in ("image", "image[]")]
    params: dict[str, Any] = {
        **form.fields,
        "n": int(form.fields["n"]),
        "image": [(part.filename, part.data, part.mime) for part in images],
    }
    params |= {
        part.field: (part.filename, part.data, part.mime)
        for part in form.files
        if part not in images
    }
    assert set(params) <= set(get_type_hints(ImageEditParamsNonStreaming))
    relaxed = with_config(ConfigDict(arbitrary_types_allowed=True))
    TypeAdapter(relaxed(ImageEditParamsNonStreaming)).validate_python(params)


async def test_an_edit_is_a_form_with_the_pictures_as_they_are(
    openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    openai_server.usage = USAGE
    receipt, data = await draw(openai_server, connect, replace(EDIT, background="opaque"))
    assert data == PICTURE
    # Text at $5, pictures drawn from at $8 and the picture at $30 for a million tokens.
    assert receipt == Receipt(
        prompt_used="make it “blue”",
        cost_nano=40 * 5_000 + 3060 * 8_000 + 439 * 30_000,
        cost_source="computed",
    )
    (seen,) = openai_server.requests
    assert (seen.method, seen.target) == ("POST", "/v1/images/edits")
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert int(seen.headers["content-length"]) == len(seen.body)
    form = read_form(seen)
    assert form == ReceivedForm(
        fields={
            "model": "gpt-image-2.5-flare",
            "prompt": "make it “blue”",
            "size": "1024x1024",
            "quality": "high",
            "output_format": "png",
            "n": "1",
            "background": "opaque",
        },
        files=[
            FormFile("image[]", "image-1.png", "image/png", b"first" + ODD_BYTES),
            FormFile("image[]", "image-2.jpeg", "image/jpeg", b"second"),
            FormFile("mask", "mask.png", "image/png", b"mask" + ODD_BYTES),
        ],
    )
    assert_legal(form)


@pytest.mark.parametrize("request_", [EDIT, replace(EDIT, sources=EDIT.sources[:1], mask=None)])
async def test_the_vendors_own_client_sends_the_same_form(
    request_: ImageRequest, openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    await draw(openai_server, connect, request_)
    ours = read_form(openai_server.requests[0])
    files: list[Any] = [(part.filename, part.data, part.mime) for part in ours.files]
    count = len(request_.sources)
    given: dict[str, Any] = {"image": files[0] if count == 1 else files[:count]}
    given |= {"mask": files[count]} if request_.mask else {}

    def ask() -> Any:
        with openai.OpenAI(base_url=openai_server.base_url, api_key=KEY, max_retries=0) as client:
            return client.images.edit(**given, **{**ours.fields, "n": 1})

    await asyncio.to_thread(ask)
    theirs = openai_server.requests[1]
    assert (theirs.method, theirs.target) == ("POST", "/v1/images/edits")
    assert read_form(theirs) == ours


@pytest.mark.parametrize("background", ["transparent", "opaque"])
async def test_a_background_is_asked_for(
    background: Any, openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    request = replace(EDIT, sources=(), mask=None, background=background)
    await draw(openai_server, connect, request)
    (seen,) = openai_server.requests
    assert (seen.path, seen.json()["background"]) == ("/v1/images/generations", background)


@pytest.mark.parametrize("sources", [1, 16])
def test_an_edit_costs_no_more_than_was_quoted(sources: int) -> None:
    """A square of 1024 takes about 1,500 tokens; the usage is what such an edit reports."""
    (model, *_) = image_models("openai-image")
    quote = model.quote(Size(1024, 1024), "hd", EDIT.prompt, sources=[Size(1024, 1024)] * sources)
    assert (quote.source, quote.exact) == ("computed", False)
    assert quote.nano >= 40 * 5_000 + sources * 1530 * 8_000 + 1756 * 30_000


async def test_a_refused_edit_says_why_and_is_sent_once(
    openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    details = {"categories": ["violence"], "moderation_stage": "input"}
    openai_server.always(
        "edit",
        error_reply(400, "Rejected.", code="moderation_blocked", moderation_details=details),
    )
    with pytest.raises(ProviderRefused) as caught:
        await draw(openai_server, connect, EDIT)
    assert caught.value.extras["categories"] == ["violence"]
    assert len(openai_server.requests) == 1


async def test_a_mask_that_the_service_does_not_like_is_the_callers_mistake(
    openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    openai_server.always("edit", error_reply(400, "Invalid mask", code="invalid_image_format"))
    with pytest.raises(ProviderBadRequest, match="Invalid mask") as caught:
        await draw(openai_server, connect, EDIT)
    assert (caught.value.retryable, caught.value.may_be_billed) == (False, False)


async def test_a_rate_limit_passes_and_the_whole_form_is_sent_again(
    openai_server: OpenAIServer, connect: Callable[..., Connection]
) -> None:
    openai_server.script("edit", error_reply(429, "Slow down", headers={"retry-after": "1"}))
    _, data = await draw(openai_server, connect, EDIT)
    assert data == PICTURE
    first, second = map(read_form, openai_server.requests)
    assert first == second


@pytest.mark.slow
async def test_pictures_are_held_once_however_large_they_are(
    tmp_path: Path, connect: Callable[..., Connection]
) -> None:
    drawn = tmp_path / "drawn.png"
    drawn.write_bytes(PICTURE)
    large = source(bytes(8_000_000))
    request = replace(EDIT, sources=(large, large), mask=large)
    sink = FakeSink()
    async with serving("openai", "--picture", str(drawn)) as origin:
        provider = OpenAIImage(connect(f"{origin}/v1"))
        tracemalloc.start()
        try:
            await provider.generate(request, sink, FakeDesk().callbacks)
            peak_bytes = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert bytes(sink.data) == PICTURE
    assert peak_bytes < 4_000_000
