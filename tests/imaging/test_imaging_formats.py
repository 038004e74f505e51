from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imaging_samples import encoded
from PIL import Image

from limner.imaging.formats import NAMES, sniff, webp_canvas


def picture(kind: str, **options: object) -> bytes:
    return encoded(Image.new("RGB", (5, 4), "red"), kind, **options)


@pytest.mark.parametrize(
    ("head", "mime"),
    [
        (picture("PNG"), "image/png"),
        (picture("JPEG"), "image/jpeg"),
        (picture("GIF"), "image/gif"),
        (b"GIF87a", "image/gif"),
        (picture("WEBP"), "image/webp"),
        (picture("BMP"), "image/bmp"),
        (picture("TIFF"), "image/tiff"),
        (b"MM\x00*\x00\x00\x00\x08", "image/tiff"),
        (picture("ICO"), "image/x-icon"),
        (picture("PDF"), "application/pdf"),
        (b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic", "image/heic"),
        (b"\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00mif1avifmiaf", "image/avif"),
        (b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp41isom", None),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
        (b"\xef\xbb\xbf\n<?xml version='1.0'?><!-- a fox --><SVG/>", "image/svg+xml"),
        (b" <!DOCTYPE html><svg/>", "text/html"),
        (b"<html><body>502 Bad Gateway", "text/html"),
        (b"<p>not a picture</p>", None),
        (b"BMW is a car, not a bitmap", None),
        (b"RIFF\x24\x00\x00\x00WAVEfmt ", None),
        (b"", None),
        (b"\x89PNG", None),
        (b'{"error": "no"}', None),
    ],
)
def test_the_first_bytes_name_the_format(head: bytes, mime: str | None) -> None:
    assert sniff(head) == mime


@given(st.binary(max_size=80))
def test_property_whatever_is_sniffed_has_a_name_for_the_reader(head: bytes) -> None:
    assert sniff(head) in {None, *NAMES}


@pytest.mark.parametrize(
    "options", [{"lossless": True}, {"quality": 50}, {"quality": 50, "exif": b"Exif\0\0"}]
)
@given(width=st.integers(1, 400), height=st.integers(1, 400))
def test_property_the_webp_header_tells_the_size(
    options: dict[str, object], width: int, height: int
) -> None:
    data = encoded(Image.new("RGB", (width, height)), "WEBP", method=0, **options)
    assert webp_canvas(data) == (width, height)


def test_a_cut_or_unknown_webp_header_tells_no_size() -> None:
    data = picture("WEBP")
    assert webp_canvas(data[:29]) is None
    assert webp_canvas(data[:12] + b"ABCD" + data[16:]) is None
