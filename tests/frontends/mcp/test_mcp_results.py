"""Results as a client gets them: words, pictures of a size that every model takes, links."""

from __future__ import annotations

import base64
import io
import json
import random
from collections.abc import AsyncGenerator
from typing import Any

import mcp_types as types
import pytest
from PIL import Image
from tests.acceptance.conftest import Studio

from limner import Limner
from limner.content import Picture
from limner.frontends.mcp.results import MAX_BYTES, MAX_EDGE, Results
from limner.tools.base import ToolResult


@pytest.fixture
async def lim(studio: Studio) -> AsyncGenerator[Limner]:
    async with studio.open() as lim:
        yield lim


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


def shown(result: types.CallToolResult) -> list[tuple[str, bytes]]:
    images = [block for block in result.content if isinstance(block, types.ImageContent)]
    return [(image.mime_type, base64.b64decode(image.data)) for image in images]


async def test_a_picture_that_every_model_takes_is_sent_as_it_is(lim: Limner) -> None:
    data = encoded(Image.new("RGB", (640, 480), "red"))
    picture = await taken(lim, data)
    result = await Results(pictures=lim.pictures, block_images=False).write(
        answer(picture, path="a.png")
    )
    text, image, link = result.content
    assert isinstance(text, types.TextContent)
    assert (text.text, result.structured_content) == ('{"path": "a.png"}', {"path": "a.png"})
    assert isinstance(image, types.ImageContent)
    assert shown(result) == [("image/png", data)]
    assert isinstance(link, types.ResourceLink)
    assert (str(link.uri), link.mime_type, link.size) == (
        f"limner://image/{picture.handle}",
        "image/png",
        len(data),
    )


async def test_a_large_picture_is_sent_smaller_and_linked_whole(lim: Limner) -> None:
    picture = await taken(lim, encoded(noise(2600, 1300)))
    assert picture.size_bytes > MAX_BYTES
    ((_, data),) = shown(
        await Results(pictures=lim.pictures, block_images=False).write(answer(picture))
    )
    assert len(data) <= MAX_BYTES
    assert max(Image.open(io.BytesIO(data)).size) <= MAX_EDGE


async def test_a_picture_that_lies_on_its_side_is_sent_upright(lim: Limner) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    picture = await taken(lim, encoded(Image.new("RGB", (64, 32)), "JPEG", exif=exif))
    ((_, data),) = shown(
        await Results(pictures=lim.pictures, block_images=False).write(answer(picture))
    )
    sent = Image.open(io.BytesIO(data))
    assert (sent.size, sent.getexif().get(0x0112, 1)) == ((32, 64), 1)


async def test_a_moving_picture_stands_still(lim: Limner) -> None:
    frames = [Image.new("RGB", (32, 32), colour) for colour in ("red", "blue")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    ((mime, _),) = shown(
        await Results(pictures=lim.pictures, block_images=False).write(
            answer(await taken(lim, data))
        )
    )
    assert mime in {"image/png", "image/jpeg", "image/webp"}


async def test_a_set_of_pictures_shares_the_room_of_one(lim: Limner) -> None:
    pictures = [await taken(lim, encoded(noise(900 + n, 700))) for n in range(4)]
    sent = shown(await Results(pictures=lim.pictures, block_images=False).write(answer(*pictures)))
    assert len(sent) == 4
    assert sum(len(data) for _, data in sent) <= MAX_BYTES


async def test_no_picture_is_in_the_words_or_the_structure(lim: Limner) -> None:
    data = encoded(noise(100, 100))
    picture = await taken(lim, data)
    result = await Results(pictures=lim.pictures, block_images=False).write(
        answer(picture, image=picture.handle)
    )
    words = json.dumps(result.structured_content) + str(result.content[0])
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
    result = await Results(pictures=lim.pictures, block_images=False).write(failed)
    assert result.is_error
    assert result.structured_content == {
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
    result = await blocking.write(answer(picture, path="a.png"))
    assert [block.type for block in result.content] == ["text", "text", "resource_link"]
    assert isinstance(result.content[1], types.TextContent)
    assert "images.block_images" in result.content[1].text


async def test_a_picture_whose_bytes_are_gone_takes_nothing_else_with_it(lim: Limner) -> None:
    """What was paid for and where it is must still be told."""
    picture = await taken(lim, encoded(Image.new("RGB", (64, 64), "red")))
    lim.pictures.path(picture).unlink()
    result = await Results(pictures=lim.pictures, block_images=False).write(
        answer(picture, path="a.png")
    )
    assert result.structured_content == {"path": "a.png"}
    assert [block.type for block in result.content] == ["text", "text", "resource_link"]
    assert not result.is_error
