"""Results as a client gets them: words, pictures of a size that every model takes."""

from __future__ import annotations

import base64
import io
import json
import random
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from PIL import Image
from tests.acceptance.conftest import Studio

from limner import Limner
from limner.content import Picture
from limner.frontends.mcp.protocol import SESSION_REVISIONS, STATELESS, ConnectedClient
from limner.frontends.mcp.results import MAX_BYTES, MAX_EDGE, Results
from limner.settings.values import PictureForm
from limner.tools.base import ToolResult


@pytest.fixture
async def lim(studio: Studio) -> AsyncGenerator[Limner]:
    async with studio.open() as lim:
        yield lim


def results(lim: Limner, form: PictureForm | None = None) -> Results:
    return Results(pictures=lim.pictures, block_images=False, form=form)


async def taken(lim: Limner, data: bytes) -> Picture:
    with lim.pictures.sink() as sink:
        sink.write(data)
        return await lim.pictures.take(sink, lineage={})


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def noise(width: int, height: int) -> Image.Image:
    return Image.frombytes("RGB", (width, height), random.Random(1).randbytes(3 * width * height))


def answer(*pictures: Picture, **value: Any) -> ToolResult:
    return ToolResult(
        call_id="1", name="image_generate", ok=True, value=json.dumps(value), content=pictures
    )


def shown(result: dict[str, Any]) -> list[tuple[str, bytes]]:
    images = [block for block in result["content"] if block["type"] == "image"]
    return [(image["mimeType"], base64.b64decode(image["data"])) for image in images]


def blocks(result: dict[str, Any]) -> list[str]:
    return [block["type"] for block in result["content"]]


def client(name: str = "", revision: str = "2025-11-25") -> ConnectedClient:
    return ConnectedClient(revision=revision, capabilities={}, name=name)


ANY, CLAUDE = client(), client("claude-code")


async def test_a_small_picture_is_sent_as_it_is(lim: Limner) -> None:
    data = encoded(Image.new("RGB", (640, 480), "red"))
    picture = await taken(lim, data)
    result = await results(lim).write(answer(picture, path="a.png"), ANY)
    assert result == {
        "content": [
            {"type": "text", "text": '{"path": "a.png"}'},
            {"type": "image", "mimeType": "image/png", "data": base64.b64encode(data).decode()},
        ],
        "isError": False,
    }


@pytest.mark.parametrize(
    ("name", "mime"),
    [
        ("", "image/jpeg"),
        ("claude-code", "image/webp"),
        ("gemini-cli-mcp-client-limner", "image/webp"),
    ],
)
async def test_a_picture_is_sent_in_the_smallest_form_that_the_client_takes(
    lim: Limner, name: str, mime: str
) -> None:
    data = encoded(noise(24, 24).resize((1024, 1024), Image.Resampling.BICUBIC))
    picture = await taken(lim, data)
    assert picture.size_bytes > 130_000
    ((found, sent),) = shown(await results(lim).write(answer(picture), client(name)))
    assert found == mime
    assert len(sent) < picture.size_bytes / 4
    assert Image.open(io.BytesIO(sent)).size == (1024, 1024)


@pytest.mark.slow
async def test_a_large_picture_is_sent_smaller_(lim: Limner) -> None:
    picture = await taken(lim, encoded(noise(2600, 1300)))
    assert picture.size_bytes > MAX_BYTES
    ((_, data),) = shown(await results(lim).write(answer(picture), CLAUDE))
    assert len(data) <= MAX_BYTES
    assert max(Image.open(io.BytesIO(data)).size) <= MAX_EDGE


async def test_a_picture_that_lies_on_its_side_is_sent_upright(lim: Limner) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    picture = await taken(lim, encoded(Image.new("RGB", (64, 32)), "JPEG", exif=exif))
    ((_, data),) = shown(await results(lim).write(answer(picture), CLAUDE))
    sent = Image.open(io.BytesIO(data))
    assert (sent.size, sent.getexif().get(0x0112, 1)) == ((32, 64), 1)


async def test_a_moving_picture_stands_still(lim: Limner) -> None:
    frames = [Image.new("RGB", (32, 32), colour) for colour in ("red", "blue")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    ((mime, _),) = shown(await results(lim).write(answer(await taken(lim, data)), CLAUDE))
    assert mime in {"image/png", "image/jpeg", "image/webp"}


@pytest.mark.slow
async def test_a_set_of_pictures_shares_the_room_of_one(lim: Limner) -> None:
    pictures = [await taken(lim, encoded(noise(900 + n, 700))) for n in range(4)]
    sent = shown(await results(lim).write(answer(*pictures), ANY))
    assert len(sent) == 4
    assert sum(len(data) for _, data in sent) <= MAX_BYTES


async def test_no_picture_is_in_the_words_or_the_structure(lim: Limner) -> None:
    data = encoded(noise(100, 100))
    picture = await taken(lim, data)
    result = await results(lim).write(answer(picture, image=picture.handle), ANY)
    assert "structuredContent" not in result
    words = str(result["content"][0])
    assert base64.b64encode(data).decode()[:64] not in words


async def test_a_failure_is_an_answer_with_its_code_and_what_to_do(lim: Limner) -> None:
    failed = ToolResult(
        call_id="1",
        name="image_generate",
        ok=False,
        code="input_invalid",
        domain_code="INPUT_INVALID",
        error="prompt is blank",
        hint="Say what to draw.",
        field="prompt",
        cost_nano=5_000_000,
        billed=True,
        extras={"job_id": "job_1"},
    )
    result = await results(lim).write(failed, ANY)
    assert result["isError"]
    assert json.loads(result["content"][0]["text"]) == {
        "error": {
            "code": "INPUT_INVALID",
            "message": "prompt is blank",
            "retryable": False,
            "billed": True,
            "cost_usd": 0.005,
            "hint": "Say what to draw.",
            "field": "prompt",
            "job_id": "job_1",
        }
    }


async def test_where_pictures_are_kept_from_models_the_words_say_so(lim: Limner) -> None:
    picture = await taken(lim, encoded(Image.new("RGB", (64, 64), "red")))
    blocking = Results(pictures=lim.pictures, block_images=True)
    result = await blocking.write(answer(picture, path="a.png"), ANY)
    assert blocks(result) == ["text", "text"]
    assert "images.block_images" in result["content"][1]["text"]


async def test_pictures_can_be_left_out_of_results(lim: Limner) -> None:
    picture = await taken(lim, encoded(Image.new("RGB", (64, 64), "red")))
    file = f"The picture is in the file {lim.pictures.local_path(picture)}"
    cases: list[tuple[PictureForm, dict[str, str]]] = [
        ("none", {"image": picture.handle}),
        ("path", {"path": "a.png"}),
        ("path", {"image": picture.handle}),
    ]
    found: list[list[str]] = []
    for form, value in cases:
        result = await results(lim, form=form).write(answer(picture, **value), ANY)
        found.append([block["text"] for block in result["content"][1:]])
    assert found == [[], [], [file]]


@pytest.mark.parametrize("revision", [*SESSION_REVISIONS, STATELESS])
async def test_a_tool_without_pictures_has_a_structure_if_the_revision_has_one(
    lim: Limner, revision: str
) -> None:
    told = ToolResult(call_id="1", name="spend", ok=True, value='{"total_usd": 1.5}')
    result = await results(lim).write(told, client(revision=revision))
    assert result.get("structuredContent") == (
        {"total_usd": 1.5} if revision >= "2025-06-18" else None
    )


async def test_a_picture_whose_bytes_are_gone_takes_nothing_else_with_it(lim: Limner) -> None:
    """What was paid for and where it is must still be told."""
    picture = await taken(lim, encoded(Image.new("RGB", (64, 64), "red")))
    lim.pictures.local_path(picture).unlink()
    result = await results(lim).write(answer(picture, path="a.png"), ANY)
    assert result["content"][0]["text"] == '{"path": "a.png"}'
    assert blocks(result) == ["text", "text"]
    assert not result["isError"]
