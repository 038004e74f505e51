"""The streaming JSON reader against json.loads and b64decode, for any document and chunking."""

from __future__ import annotations

import base64
import contextlib
import json
import random
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from limner.errors import BadProviderImage, ImageTooLarge, ProviderUnavailable
from limner.net.json_pictures import DROPPED, MAX_DEPTH, PICTURE, read_json_with_pictures

PATH = "data.b64_json"


class Bucket:
    """A sink that keeps what it gets."""

    def __init__(self, max_bytes: int = 1 << 30) -> None:
        self.data = b""
        self.sizes: list[int] = []
        self._max_bytes = max_bytes

    def write(self, data: bytes | memoryview) -> None:
        self.data += data
        self.sizes.append(len(data))
        if len(self.data) > self._max_bytes:
            raise ImageTooLarge("too large")


async def in_chunks(body: bytes, sizes: Iterable[int]) -> AsyncIterator[bytes]:
    for size in sizes:
        yield body[:size]
        body = body[size:]
    yield body


async def read(
    body: bytes, *, wanted: str = PATH, sizes: Iterable[int] = (), **rest: Any
) -> tuple[Any, bytes]:
    bucket = Bucket()
    value = await read_json_with_pictures(
        in_chunks(body, sizes), wanted={wanted}, sink=bucket, **rest
    )
    return value, bucket.data


def answer(base64_text: str) -> bytes:
    return b'{"created": 1, "data": [{"b64_json": "%b", "n": null}]}' % base64_text.encode()


PARSED = {"created": 1, "data": [{"b64_json": PICTURE, "n": None}]}

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | st.text() | st.sampled_from(["NaN", "Infinity"])
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
).filter(lambda value: isinstance(value, (dict, list)))
chunkings = st.lists(st.integers(1, 40), max_size=30)


@given(document=documents, sizes=chunkings, escaped=st.booleans())
async def test_property_without_pictures_it_reads_what_json_loads_reads(
    document: Any, sizes: list[int], escaped: bool
) -> None:
    body = json.dumps(document, ensure_ascii=escaped).encode()
    assert await read(body, wanted="no.such.path", sizes=sizes) == (json.loads(body), b"")


@given(
    picture=st.binary(min_size=1, max_size=3000),
    before=documents,
    after=documents,
    sizes=chunkings,
    indent=st.none() | st.integers(0, 3),
    prefix=st.sampled_from(["", "data:image/png;base64,", "data:;base64,"]),
    slashes=st.booleans(),
    wrap=st.none() | st.integers(1, 80),
)
async def test_property_a_picture_is_what_b64decode_makes_of_it(
    picture: bytes,
    before: Any,
    after: Any,
    sizes: list[int],
    indent: int | None,
    prefix: str,
    slashes: bool,
    wrap: int | None,
) -> None:
    text = base64.b64encode(picture).decode()
    if wrap is not None:
        text = "\n".join(text[at : at + wrap] for at in range(0, len(text), wrap))
    document = {"before": before, "data": [{"b64_json": prefix + text}], "after": after}
    body = json.dumps(document, indent=indent)
    expected = json.loads(body)
    expected["data"][0]["b64_json"] = PICTURE
    if slashes:
        # Legal, and what some languages write; only strings hold a slash.
        body = body.replace("/", "\\/")
    assert await read(body.encode(), sizes=sizes) == (expected, picture)


@given(body=st.binary(max_size=300), sizes=chunkings)
@example(body=b'"\\/\x80"', sizes=[])
@example(body=b'"\x80"', sizes=[])
async def test_property_any_bytes_give_a_value_or_one_of_our_errors(
    body: bytes, sizes: list[int]
) -> None:
    # Nothing else may escape, whatever comes.
    with contextlib.suppress(BadProviderImage, ProviderUnavailable):
        await read(b'{"data":[{"b64_json":' + body, sizes=sizes)


@given(text=st.text(st.characters(codec="ascii", exclude_characters=": \t\r\n"), min_size=1))
@example(text="0000=")
async def test_property_what_b64decode_refuses_is_refused(text: str) -> None:
    body = json.dumps({"data": [{"b64_json": text}]}).encode()
    try:
        picture = base64.b64decode(text, validate=True)
        if len(text) % 4:
            raise ValueError("Python accepts padding that nothing needs")
    except ValueError:
        with pytest.raises(BadProviderImage):
            await read(body)
    else:
        assert await read(body) == ({"data": [{"b64_json": PICTURE}]}, picture)


@pytest.mark.parametrize(
    "text",
    [
        "AAA",
        "AAAA=",
        "AA==AAAA",
        "=AAA",
        "AA-_",
        "AAAA\\\\",
        'AAAA\\"',
        "AAAA\\u00e9",
        "AAAA\\ud800",
        "<svg/>" * 100,
        "data:image/svg+xml,<svg/>",
        "data:image/png;base64",
        "data:" + "x" * 500,
    ],
)
@pytest.mark.parametrize("sizes", [(), (40, 1, 1, 1, 1, 1)])
async def test_a_string_that_is_no_base64_is_refused(text: str, sizes: tuple[int, ...]) -> None:
    with pytest.raises(BadProviderImage):
        await read(answer(text), sizes=sizes)


async def test_padding_at_the_end_of_a_chunk_still_ends_the_picture() -> None:
    whole_block = "A" * (128 * 1024 - 4) + "QQ=="
    body = answer(whole_block + "QUFB")
    with pytest.raises(BadProviderImage, match="after its end"):
        await read(body, sizes=[body.index(b"==") + 2])


async def test_plus_signs_written_as_escapes_are_decoded_across_chunks() -> None:
    picture = b"\xfb\xef\xbe" * 200
    text = base64.b64encode(picture).decode().replace("+", "\\u002b")
    assert await read(answer(text), sizes=[7] * 1000) == (PARSED, picture)


@pytest.mark.parametrize("url", ["https://replicate.delivery/a.png", "", "http:\\/\\/x\\/y"])
async def test_an_address_at_the_wanted_path_is_kept(url: str) -> None:
    body = b'{"output": ["%b"]}' % url.encode()
    for sizes in ((), [1] * 60):
        assert await read(body, wanted="output", sizes=sizes) == (json.loads(body), b"")


async def test_a_long_address_is_kept_whole_and_counts_as_json() -> None:
    url = "https://x/" + "y" * 2000 + '"\\é'
    body = json.dumps({"output": url}).encode()
    for sizes in ((), [1] * 3000, [10 + 256], [9 + 256]):
        assert await read(body, wanted="output", sizes=sizes) == ({"output": url}, b"")
    with pytest.raises(BadProviderImage, match="more than 1000 bytes"):
        await read(body, wanted="output", max_json_bytes=1000)


async def test_only_the_first_picture_is_poured_and_the_others_are_marked() -> None:
    one, two = base64.b64encode(b"one" * 200).decode(), base64.b64encode(b"two" * 200).decode()
    document = {"data": [{"b64_json": one}, {"b64_json": two}, {"b64_json": "aGk="}]}
    value, data = await read(json.dumps(document).encode(), sizes=[700])
    assert data == b"one" * 200
    assert [item["b64_json"] for item in value["data"]] == [PICTURE, DROPPED, DROPPED]


async def test_without_a_sink_every_picture_is_dropped() -> None:
    body = answer("QUJD\\/\\\\" * 2000)
    value = await read_json_with_pictures(
        in_chunks(body, [297, 1, 1, 1]), wanted={PATH}, max_json_bytes=200
    )
    assert value == {"created": 1, "data": [{"b64_json": DROPPED, "n": None}]}


async def test_the_path_is_of_keys_and_not_of_their_spelling() -> None:
    body = b'{"d\\u0061ta": {"x": [[{"b64_json": "QUJD"}]], "b64_json": "QUJD"}}'
    assert await read(body) == (
        {"data": {"x": [[{"b64_json": "QUJD"}]], "b64_json": PICTURE}},
        b"ABC",
    )
    dotted = b'{"data.b64_json": "QUJD"}'
    assert await read(dotted) == ({"data.b64_json": "QUJD"}, b"")


@pytest.mark.parametrize("cut", [1, 30, 45, 60, -2, -1])
async def test_a_body_that_breaks_off_may_be_billed_and_is_not_retryable(cut: int) -> None:
    with pytest.raises(ProviderUnavailable, match="may be billed") as caught:
        await read(answer("QUJD" * 10)[:cut])
    assert (caught.value.may_be_billed, caught.value.retryable) == (True, False)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"  \n",
        b"<html>{}</html>",
        b"null",
        b'"text"',
        b"{]",
        b"[}",
        b"}",
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": tru}',
        b'{"a" 1}',
        b"{} {}",
        b'{"a": "\xff"}',
        b'{"a\\x": 1}',
        b"[" + b"1" * 5000 + b"]",
        b"[" * (MAX_DEPTH + 1),
    ],
)
async def test_what_is_not_a_json_object_or_list_is_a_bad_answer(body: bytes) -> None:
    for sizes in ((), [1] * len(body)):
        with pytest.raises(BadProviderImage):
            await read(body, sizes=sizes)


async def test_too_much_json_is_refused_before_it_is_all_there() -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield b'{"a": "'
        while True:
            yield b"x" * 65536

    with pytest.raises(BadProviderImage, match="more than 1048576 bytes"):
        await read_json_with_pictures(endless(), wanted={PATH}, sink=Bucket())


async def test_a_sink_that_is_full_ends_an_endless_picture() -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield b'{"data": [{"b64_json": "'
        while True:
            yield b"A" * 65536

    bucket = Bucket(max_bytes=1_000_000)
    with pytest.raises(ImageTooLarge):
        await read_json_with_pictures(endless(), wanted={PATH}, sink=bucket)
    assert max(bucket.sizes) <= 128 * 1024


@pytest.mark.parametrize("wrap", [None, 76])
@pytest.mark.parametrize("slashes", [False, True])
@pytest.mark.parametrize("size", [9_973, 65_536, 300_007])
async def test_a_large_picture_is_written_in_whole_pages(
    wrap: int | None, slashes: bool, size: int
) -> None:
    picture = random.Random(1).randbytes(1_000_003)
    text = base64.b64encode(picture).decode()
    if wrap is not None:
        text = "\\n".join(text[at : at + wrap] for at in range(0, len(text), wrap))
    body = answer(text.replace("/", "\\/") if slashes else text)
    bucket = Bucket()
    chunks = in_chunks(body, [size] * (len(body) // size))
    value = await read_json_with_pictures(chunks, wanted={PATH}, sink=bucket)
    assert (value, bucket.data) == (PARSED, picture)
    *pages, _ = bucket.sizes
    assert {written % 4096 for written in pages} == {0}
