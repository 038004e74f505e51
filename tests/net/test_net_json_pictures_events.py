"""Pictures in a stream of events are decoded as they arrive, however the stream is cut."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.errors import BadProviderImage, ImageTooLarge, ProviderUnavailable
from limner.net import json_pictures as module
from limner.net.json_pictures import PICTURE, picture_events


async def read(*chunks: bytes) -> list[tuple[str, Any, bytes]]:
    async def arriving() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    events = picture_events(arriving(), wanted={"b64_json"})
    return [(event.name, event.body, bytes(event.picture)) async for event in events]


def event(name: str, picture: bytes) -> bytes:
    data = json.dumps({"type": name, "b64_json": base64.b64encode(picture).decode(), "n": 1})
    return f"event: {name}\ndata: {data}\n\n".encode()


async def test_each_event_has_its_own_picture() -> None:
    stream = event("one", b"first") + event("two", b"second") + b"data: {}\n\n"
    assert await read(stream) == [
        ("one", {"type": "one", "b64_json": PICTURE, "n": 1}, b"first"),
        ("two", {"type": "two", "b64_json": PICTURE, "n": 1}, b"second"),
        ("message", {}, b""),
    ]


async def test_base64_over_several_lines_of_data_is_put_together() -> None:
    assert await read(b'data: {"b64_json": "QUJD\ndata: REVG"}\n\n') == [
        ("message", {"b64_json": PICTURE}, b"ABCDEF")
    ]


@given(st.lists(st.binary(max_size=50), max_size=4), st.data())
async def test_property_any_cutting_gives_the_same_events(
    pictures: list[bytes], data: st.DataObject
) -> None:
    stream = b": ping\r\n".join(event("p", picture) for picture in pictures)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    chunks = [stream[a:b] for a, b in pairwise([0, *cuts, len(stream)])]
    whole = await read(stream)
    assert [picture for _, _, picture in whole] == pictures
    assert await read(*chunks) == whole


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"hello", BadProviderImage),
        (b"", BadProviderImage),
        (b'{"b64_json": "?"}', BadProviderImage),
        (b'{"b64_json": "QUJ"}', BadProviderImage),
        (b'{"b64_json": "QUJD"', ProviderUnavailable),
    ],
)
async def test_an_event_that_is_not_what_was_promised_fails(
    data: bytes, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await read(b"data: " + data + b"\n\n")


async def test_a_picture_without_an_end_is_not_held_without_end() -> None:
    piece = b"A" * 1_048_576
    endless = [b'data: {"b64_json": "', *[piece] * 100]
    with pytest.raises(ImageTooLarge, match=f"more than {module.MAX_PICTURE_BYTES:,} bytes"):
        await read(*endless)


async def test_words_without_an_end_are_not_held_either() -> None:
    endless = [b'data: {"words": "', *[b"a" * 100_000] * 100]
    with pytest.raises(BadProviderImage, match="besides the picture"):
        await read(*endless)
