"""Of several pictures in one answer the last is poured, whatever the chunks."""

from __future__ import annotations

import base64
import json
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.errors import BadProviderImage, ImageTooLarge, ProviderUnavailable
from limner.net.json_pictures import DROPPED, PICTURE, LastPicture, read_json_with_pictures
from limner.testing import FakeSink

PATH = "parts.inline.data"


async def read_last(body: bytes, sizes: list[int], sink: FakeSink) -> Any:
    async def chunks() -> AsyncIterator[bytes]:
        rest = body
        for size in sizes:
            yield rest[:size]
            rest = rest[size:]
        yield rest

    return await read_json_with_pictures(chunks(), wanted={PATH}, sink=sink, last=True)


def answer(pictures: list[bytes]) -> bytes:
    parts: list[Any] = [{"text": "drawing…"}]
    parts += [{"inline": {"data": base64.b64encode(one).decode()}} for one in pictures]
    return json.dumps({"parts": parts, "usage": {"images": len(pictures)}}).encode()


@given(
    pictures=st.lists(st.binary(min_size=1, max_size=600), min_size=1, max_size=4),
    sizes=st.lists(st.integers(1, 300), max_size=20),
)
async def test_property_the_last_picture_is_in_the_sink_and_marked(
    pictures: list[bytes], sizes: list[int]
) -> None:
    sink = FakeSink()
    value = await read_last(answer(pictures), sizes, sink)
    assert bytes(sink.data) == pictures[-1]
    marks = [part["inline"]["data"] for part in value["parts"][1:]]
    assert marks == [DROPPED] * (len(pictures) - 1) + [PICTURE]
    assert value["usage"] == {"images": len(pictures)}


async def test_without_a_picture_nothing_is_poured() -> None:
    sink = FakeSink()
    assert await read_last(b'{"parts": []}', [], sink) == {"parts": []}
    assert bytes(sink.data) == b""


async def test_a_picture_that_breaks_off_leaves_the_sink_empty() -> None:
    sink = FakeSink()
    with pytest.raises(ProviderUnavailable, match="is incomplete"):
        await read_last(answer([b"draft", b"picture"])[:-60], [], sink)
    assert bytes(sink.data) == b""


async def test_a_draft_that_is_not_base64_is_refused_like_any_picture() -> None:
    body = b'{"parts": [{"inline": {"data": "????"}}, {"inline": {"data": "QUJD"}}]}'
    with pytest.raises(BadProviderImage, match="not base64"):
        await read_last(body, [], FakeSink())


async def test_the_sinks_own_limit_holds() -> None:
    with pytest.raises(ImageTooLarge, match="more than 100 bytes"):
        await read_last(answer([b"x" * 200]), [], FakeSink(max_bytes=100))


def test_what_is_held_has_a_limit_of_its_own() -> None:
    with closing(LastPicture(max_bytes=10)) as picture:
        picture.write(b"0123456789")
        picture.restart()
        picture.write(b"0123456789")
        with pytest.raises(ImageTooLarge, match="larger than 10 bytes"):
            picture.write(b"0")


def test_a_large_picture_is_held_on_disk_and_comes_back_whole() -> None:
    large, sink = bytes(range(256)) * 40_000, FakeSink()
    with closing(LastPicture()) as picture:
        picture.write(large + b"a draft is longer")
        picture.restart()
        for at in range(0, len(large), 1_000_003):
            picture.write(large[at : at + 1_000_003])
        picture.copy_to(sink)
    assert bytes(sink.data) == large


async def test_memory_stays_flat_however_large_the_pictures_are() -> None:
    class Counting:
        count = 0

        def write(self, data: bytes | memoryview) -> None:
            self.count += len(data)

    async def chunks() -> AsyncIterator[bytes]:
        piece = base64.b64encode(bytes(48 * 1024))
        yield b'{"parts": ['
        for _ in range(2):
            yield b'{"inline": {"data": "'
            for _ in range(512):
                yield piece
            yield b'"}},'
        yield b"{}]}"

    sink = Counting()
    tracemalloc.start()
    try:
        await read_json_with_pictures(chunks(), wanted={PATH}, sink=sink, last=True)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sink.count == 512 * 48 * 1024
    assert peak_bytes < 8 * 1024 * 1024
