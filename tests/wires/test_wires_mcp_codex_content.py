"""Pictures to and from tools of MCP and of Codex: content blocks and content items."""

from __future__ import annotations

import base64
from typing import Any

import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from tests.wires.wire_prompts import FOX, OWL, PICTURES, image, text

from limner.errors import InputInvalid
from limner.wires import codex_content, mcp_content
from limner.wires.base import ModelPicture
from limner.wires.incoming_media import Omitted, RawAudio, RawPicture, parse_data_url
from limner.wires.items import image_part

FOX64 = base64.b64encode(b"\x89PNG fox").decode()
SOUND = {"type": "input_audio", "audio_url": "data:audio/wav;base64,AAAA"}
CONTENT = [text("A fox:"), image(FOX), image(OWL), SOUND]
WHY = {OWL: "it is too old"}
NOT_SHOWN = f"[picture limner://image/{OWL} is not shown: it is too old]"

blocks = TypeAdapter(list[mcp_types.ContentBlock])


def test_a_result_of_mcp_carries_the_pictures() -> None:
    written = mcp_content.write(CONTENT, PICTURES, omitted=WHY)
    assert written == [
        {"type": "text", "text": "A fox:"},
        {"type": "image", "data": FOX64, "mimeType": "image/png"},
        {"type": "text", "text": NOT_SHOWN},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
    ]
    judged = blocks.dump_python(blocks.validate_python(written), exclude_none=True, by_alias=True)
    assert judged == written
    assert mcp_content.read(written) == [
        "A fox:",
        RawPicture(data=b"\x89PNG fox", mime="image/png"),
        NOT_SHOWN,
        RawAudio(url="data:audio/wav;base64,AAAA"),
    ]


def test_an_answer_to_codex_carries_the_pictures() -> None:
    written = codex_content.write(CONTENT, PICTURES, omitted=WHY)
    assert written == [
        {"type": "inputText", "text": "A fox:"},
        {"type": "inputImage", "imageUrl": f"data:image/png;base64,{FOX64}"},
        {"type": "inputText", "text": NOT_SHOWN},
        {"type": "inputAudio", "audioUrl": "data:audio/wav;base64,AAAA"},
    ]
    assert codex_content.read(written) == [
        "A fox:",
        RawPicture(data=b"\x89PNG fox", mime="image/png"),
        NOT_SHOWN,
        RawAudio(url="data:audio/wav;base64,AAAA"),
    ]


@pytest.mark.parametrize("door", [mcp_content, codex_content])
def test_a_picture_that_is_not_there_is_an_error(door: Any) -> None:
    with pytest.raises(InputInvalid, match="was not loaded"):
        door.write([image(FOX)], {}, omitted={})
    with pytest.raises(InputInvalid, match="without a handle"):
        door.write([{"type": "input_image", "image_url": "https://x/y.png"}], {}, omitted={})


@pytest.mark.parametrize("door", [mcp_content, codex_content])
@given(data=st.lists(st.binary(min_size=1), max_size=4, unique=True))
def test_property_every_picture_arrives_as_it_was_sent(door: Any, data: list[bytes]) -> None:
    pictures = {
        f"{at:064x}": ModelPicture(mime="image/webp", data=one) for at, one in enumerate(data)
    }
    written = door.write([image_part(handle) for handle in pictures], pictures, omitted={})
    read = door.read(written)
    assert [one.data for one in read] == data


def test_mcp_has_more_kinds_than_text_and_pictures() -> None:
    def resource(**fields: Any) -> dict[str, Any]:
        return {"type": "resource", "resource": {"uri": "file:///a", **fields}}

    content = [
        {"type": "resource_link", "uri": "https://x/y", "name": "the page"},
        resource(text="words"),
        resource(blob=FOX64, mimeType="image/png"),
        resource(blob="AAAA", mimeType="application/pdf"),
        {"type": "hologram"},
        {"type": "image", "data": "A", "mimeType": "image/png", "annotations": {"priority": 1}},
    ]
    assert mcp_content.read(content) == [
        "the page: https://x/y",
        "words",
        RawPicture(data=b"\x89PNG fox", mime="image/png"),
        Omitted(why="the resource 'file:///a' is application/pdf"),
        Omitted(why="a content block of the kind 'hologram'"),
        Omitted(why="A picture is not in base64"),
    ]
    assert Omitted(why="it is broken").text == "[not shown: it is broken]"


@pytest.mark.parametrize("block", ["words", 5, None, {}, {"type": "text", "text": 5}])
def test_an_invalid_content_block_is_an_error(block: Any) -> None:
    with pytest.raises(InputInvalid, match="A content block is invalid"):
        mcp_content.read([block])


@pytest.mark.parametrize(
    "item",
    [
        "words",
        {"type": "input_text", "text": "snake"},
        {"type": "inputText"},
        {"type": "inputImage", "image_url": "data:x"},
        {"output": "dynamic-ok"},
    ],
)
def test_an_invalid_content_item_is_an_error_that_shows_the_shape(item: Any) -> None:
    with pytest.raises(InputInvalid, match="A content item is invalid") as caught:
        codex_content.read([item])
    assert caught.value.hint is not None
    assert '"inputImage"' in caught.value.hint


@pytest.mark.parametrize(
    "url",
    ["https://x/y.png", "http://x", "file:///etc/passwd", "not a url", "", "data:image/png", "x,"],
)
def test_an_address_is_never_followed_and_costs_nothing_beside_it(url: str) -> None:
    with pytest.raises(InputInvalid, match="must come as a data URL"):
        parse_data_url(url)
    read = codex_content.read(
        [{"type": "inputImage", "imageUrl": url}, {"type": "inputText", "text": "beside"}]
    )
    assert isinstance(read[0], Omitted)
    assert read[1] == "beside"


@pytest.mark.parametrize(
    ("url", "mime"),
    [
        ("data:image/png;base64,AAAA", "image/png"),
        ("DATA:Image/PNG;charset=utf-8;BASE64,AAAA", "image/png"),
        ("data:;base64,AA\nAA", ""),
    ],
)
def test_a_data_url_may_be_written_in_many_ways(url: str, mime: str) -> None:
    assert parse_data_url(url) == RawPicture(data=b"\0\0\0", mime=mime)


@pytest.mark.parametrize("url", ["data:image/svg+xml,<svg/>", "data:image/png;base64,A", "data:,é"])
def test_a_data_url_without_base64_is_an_error(url: str) -> None:
    with pytest.raises(InputInvalid, match="base64"):
        parse_data_url(url)


def test_the_bytes_of_a_picture_are_not_shown() -> None:
    assert repr(RawPicture(data=b"secret", mime="x")) == "RawPicture(mime='x')"
