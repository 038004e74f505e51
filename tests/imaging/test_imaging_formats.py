from __future__ import annotations

from typing import get_args

import pytest
from format_samples import SAMPLES
from hypothesis import given
from hypothesis import strategies as st
from imaging_samples import encoded
from PIL import Image

from limner.imaging.formats import (
    ALWAYS_ACCEPTED,
    BY_NAME,
    HEAD_BYTES,
    accepted_formats,
    sniff,
    webp_canvas,
)
from limner.settings import Format, ImageSettings

SVG = b"<svg xmlns='http://www.w3.org/2000/svg'/>"


def picture(kind: str, **options: object) -> bytes:
    return encoded(Image.new("RGB", (5, 4), "red"), kind, **options)


def name(head: bytes) -> str | None:
    form = sniff(head)
    return None if form is None else form.name


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (picture("PNG"), "png"),
        (picture("JPEG"), "jpeg"),
        (picture("GIF"), "gif"),
        (b"GIF87a", "gif"),
        (picture("WEBP"), "webp"),
        (picture("BMP"), "bmp"),
        (picture("TIFF"), "tiff"),
        (b"MM\x00*\x00\x00\x00\x08", "tiff"),
        (b"II+\x00\x08\x00", "tiff"),
        (picture("ICO"), "ico"),
        (picture("PDF"), "pdf"),
        (b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic", "heic"),
        (b"\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00mif1avifmiaf", "avif"),
        (b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp41isom", None),
        (b"\x00\x00\x00\x18ftypmp42heicmp41isom", None),
        (SVG, "svg"),
        (b"\xef\xbb\xbf\n<?xml version='1.0'?><!-- a fox --><SVG/>", "svg"),
        (b"<svg:svg xmlns:svg='http://www.w3.org/2000/svg'/>", "svg"),
        (b"<!DOCTYPE svg [<!ENTITY a '>'> ]>" + SVG, "svg"),
        (b" <!DOCTYPE html><svg/>", "html"),
        (b"<!-- saved --><html><svg/>", "html"),
        (b"<html><body>502 Bad Gateway", "html"),
        (b"<p>not a picture</p>", None),
        (b"<p><svg/></p>", None),
        (b"<svgs/>", None),
        (b"<!-- <svg/> -->", None),
        (b"BMW is a car, not a bitmap", None),
        (b"RIFF\x24\x00\x00\x00WAVEfmt ", None),
        (b"", None),
        (b"\x89PNG", None),
        (b'{"error": "no"}', None),
    ],
)
def test_the_first_bytes_name_the_format(head: bytes, found: str | None) -> None:
    assert name(head) == found


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_a_drawing_is_recognized_in_every_encoding(encoding: str) -> None:
    document = f"<?xml version='1.0' encoding='{encoding}'?>\n<!-- é -->\n{SVG.decode()}"
    assert name(document.encode(encoding)) == "svg"


def test_a_drawing_is_found_behind_a_long_comment_but_not_beyond_the_head() -> None:
    comment = b"<!--" + b"x" * (HEAD_BYTES - len(SVG) - 7) + b"-->"
    assert HEAD_BYTES == 256 * 1024
    assert name(comment + SVG) == "svg"
    assert name(b" " * len(SVG) + comment + SVG) is None


@given(st.binary(max_size=80))
def test_property_any_bytes_are_sniffed_without_an_error(head: bytes) -> None:
    for data in (head, b"<" + head, b"\xff\xfe" + head):
        assert name(data) in {None, *BY_NAME}


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_sample_is_recognized_by_its_type(sample: str) -> None:
    mime, data = SAMPLES[sample]
    form = sniff(data)
    assert form is not None
    assert form.mime == mime


def test_the_setting_widens_what_is_accepted_and_cannot_narrow_it() -> None:
    assert accepted_formats(()) == ALWAYS_ACCEPTED == ("png", "jpeg", "gif", "webp")
    assert accepted_formats(["svg", "heic", "png"]) == ("png", "jpeg", "gif", "webp", "heic", "svg")


def test_every_format_of_the_setting_can_be_accepted() -> None:
    assert set(accepted_formats(get_args(Format))) == set(get_args(Format))
    assert ImageSettings().accept == ALWAYS_ACCEPTED


@pytest.mark.parametrize("wrong", ["jpg", "html", ""])
def test_a_format_that_cannot_be_accepted_is_an_error_at_once(wrong: str) -> None:
    with pytest.raises(ValueError, match=f"no such format: '{wrong}'"):
        accepted_formats([wrong])


@pytest.mark.parametrize(
    "options", [{"lossless": True}, {"quality": 50}, {"quality": 50, "exif": b"Exif\0\0"}]
)
@given(width=st.integers(1, 400), height=st.integers(1, 400))
def test_property_the_webp_header_has_the_size(
    options: dict[str, object], width: int, height: int
) -> None:
    data = encoded(Image.new("RGB", (width, height)), "WEBP", method=0, **options)
    assert webp_canvas(data) == (width, height)


def test_a_truncated_or_unknown_webp_header_has_no_size() -> None:
    data = picture("WEBP")
    assert webp_canvas(data[:29]) is None
    assert webp_canvas(data[:12] + b"ABCD" + data[16:]) is None
