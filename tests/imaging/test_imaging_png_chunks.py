"""PNG chunks by their headers: walking them, and the texts among them."""

from __future__ import annotations

import io
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imaging_samples import encoded
from PIL import Image, PngImagePlugin

from limner.imaging.decode import open_picture
from limner.imaging.limits import DEFAULT_LIMITS
from limner.imaging.png_chunks import (
    HEADER_END,
    MAX_TEXT_BYTES,
    MAX_TEXTS,
    PngText,
    text_chunk,
    texts,
    walk,
)

PLAIN = encoded(Image.new("RGB", (4, 4), "red"), "PNG")
# Keywords are Latin-1 letters; texts are anything but lone surrogates.
keywords = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=79)
# Pillow keeps facts about the pixels under the same names as texts.
FACTS = [
    *("interlace", "transparency", "gamma", "icc_profile", "srgb", "chromaticity", "dpi"),
    *("aspect", "xmp", "exif", "loop", "bbox", "duration", "disposal", "blend", "default_image"),
]
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


def with_texts(*words: tuple[str, str], packed: bool = False, kind: str = "iTXt") -> bytes:
    """A PNG with texts, written by Pillow."""
    info = PngImagePlugin.PngInfo()
    for keyword, text in words:
        if kind == "iTXt":
            info.add_itxt(keyword, text, lang="en", tkey="Wort", zip=packed)
        else:
            info.add_text(keyword, text, zip=packed)
    return encoded(Image.new("RGB", (4, 4)), "PNG", pnginfo=info)


def test_the_chunks_of_a_file_are_walked_to_its_end_marker() -> None:
    chunks = list(walk(io.BytesIO(PLAIN + b"more")))
    assert [chunk.kind for chunk in chunks] == [b"IHDR", b"IDAT", b"IEND"]
    assert (chunks[0].end, chunks[-1].end) == (HEADER_END, len(PLAIN))


def test_texts_of_all_three_kinds_are_parsed() -> None:
    words = (("Title", "a fox"), ("Comment", "schön"))
    expected = tuple(PngText(*word) for word in words)
    for kind in ("iTXt", "tEXt"):
        for packed in (False, True):
            assert texts(io.BytesIO(with_texts(*words, packed=packed, kind=kind))) == expected


@given(keyword=keywords.filter(lambda word: word not in FACTS), text=any_text)
def test_property_a_written_text_is_parsed_by_limner_and_by_pillow(keyword: str, text: str) -> None:
    data = PLAIN[:HEADER_END] + text_chunk(keyword, text) + PLAIN[HEADER_END:]
    expected = text.replace("\0", "")
    assert texts(io.BytesIO(data)) == (PngText(keyword, expected),)
    with Image.open(io.BytesIO(data)) as image:
        image.load()
        assert image.info[keyword] == expected


@pytest.mark.parametrize("kind", ["RGB", "P"])
@pytest.mark.parametrize("keyword", FACTS)
def test_no_text_is_taken_for_a_fact_about_the_pixels(keyword: str, kind: str) -> None:
    whole = Image.radial_gradient("L").convert(kind)
    plain = encoded(whole, "PNG")
    text, pixels = text_chunk(keyword, "1"), plain.rindex(b"IEND") - 4
    for at in (HEADER_END, pixels):
        _, opened = open_picture(plain[:at] + text + plain[at:], limits=DEFAULT_LIMITS)
        shown = opened.image.convert("RGBA")
        assert shown.tobytes() == whole.convert("RGBA").tobytes()
        assert keyword not in opened.image.info


@given(data=st.binary(max_size=200))
def test_property_the_texts_in_any_bytes_are_bounded(data: bytes) -> None:
    for start in (b"", PLAIN[:HEADER_END], PLAIN[:HEADER_END] + b"\0\0\0\x20zTXt"):
        found = texts(io.BytesIO(start + data))
        assert all(len(word.text) <= MAX_TEXT_BYTES for word in found)


def test_a_text_that_inflates_without_end_is_truncated() -> None:
    bomb = zlib.compress(bytes(50_000_000).replace(b"\0", b"a"))
    info = PngImagePlugin.PngInfo()
    info.add(b"zTXt", b"Comment\0\0" + bomb)
    data = encoded(Image.new("RGB", (4, 4)), "PNG", pnginfo=info)
    assert texts(io.BytesIO(data)) == (PngText("Comment", "a" * MAX_TEXT_BYTES),)


def test_texts_over_the_limit_are_left_out() -> None:
    data = PLAIN[:HEADER_END] + text_chunk("Comment", "x") * 1000 + PLAIN[HEADER_END:]
    assert texts(io.BytesIO(data)) == (PngText("Comment", "x"),) * MAX_TEXTS
