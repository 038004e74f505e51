"""C2PA manifests: found by their headers, read and checked in a separate process."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from imaging_samples import encoded
from msgspec.structs import replace
from PIL import Image
from tests.servers.c2pa_signer import GENERATOR, ISSUER, SIGNER, signed

from limner.errors import CorruptImage, ImageError
from limner.imaging.c2pa_worker import MAX_CHARS, ManifestReader, parse_report
from limner.imaging.pool import Imaging
from limner.imaging.provenance import Ingredient, Manifest, has_manifest
from limner.testing.servers.http_server import LocalServer

KINDS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP"}
CLAIM = Manifest(
    state="valid",
    claim_generator=GENERATOR,
    signer=SIGNER,
    issuer=ISSUER,
    signed_at=None,
    problems=(),
    ingredients=(),
)


def picture(mime: str = "image/png", colour: str = "orange") -> bytes:
    return encoded(Image.new("RGB", (48, 32), colour), KINDS[mime])


SIGNED_JPEG = signed(picture("image/jpeg"), "image/jpeg")


@pytest.mark.parametrize("mime", KINDS)
def test_a_manifest_is_found_where_the_format_puts_it(mime: str) -> None:
    assert has_manifest(io.BytesIO(signed(picture(mime), mime)))
    assert not has_manifest(io.BytesIO(picture(mime)))


def test_text_that_looks_like_a_manifest_is_not_one() -> None:
    image = Image.new("RGB", (4, 4))
    assert not has_manifest(io.BytesIO(encoded(image, "JPEG", comment=b"JP jumb jumdc2pa caBX")))
    assert not has_manifest(io.BytesIO(picture() + b"\0\0\0\0caBX"))


starts = st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8", b"RIFF\0\0\0\0WEBP"])


@given(start=starts, rest=st.binary(max_size=300))
def test_property_a_search_for_a_manifest_in_any_bytes_ends(start: bytes, rest: bytes) -> None:
    assert has_manifest(io.BytesIO(start + rest)) in {True, False}


@given(data=st.data())
def test_property_a_search_for_a_manifest_in_a_broken_file_never_fails(
    data: st.DataObject,
) -> None:
    whole = bytearray(SIGNED_JPEG)
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    assert has_manifest(io.BytesIO(bytes(whole[:cut]))) in {True, False}


@pytest.mark.parametrize("mime", KINDS)
async def test_a_manifest_is_read_and_its_signature_checked(imaging: Imaging, mime: str) -> None:
    assert await imaging.read_manifest(signed(picture(mime), mime), mime=mime) == CLAIM


async def test_the_ingredients_of_a_manifest_are_listed(imaging: Imaging) -> None:
    data = signed(picture(), made_from=picture(colour="teal"))
    part = Ingredient(title="sketch.png", mime="image/png", relationship="componentOf")
    assert await imaging.read_manifest(data, mime="image/png") == replace(
        CLAIM, ingredients=(part,)
    )


async def test_a_picture_that_was_changed_after_signing_is_not_valid(imaging: Imaging) -> None:
    """Other pixels under the same manifest; every checksum of the file is right."""
    data = signed(picture())
    start = data.index(b"caBX") - 4
    end = start + 12 + int.from_bytes(data[start : start + 4], "big")
    other = picture(colour="teal")
    forged = other[:33] + data[start:end] + other[33:]
    assert (await imaging.verify(forged)).mime == "image/png"
    assert await imaging.read_manifest(forged, mime="image/png") == replace(
        CLAIM, state="invalid", problems=("assertion.dataHash.mismatch",)
    )


def test_an_added_text_breaks_a_manifest() -> None:
    data = signed(picture())
    body = b"iTXt" + b"Comment" + bytes(5) + b"hello"
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    report = ManifestReader().read(data[:33] + chunk + data[33:], mime="image/png")
    assert report.state == "invalid"


@pytest.mark.parametrize(
    "data",
    [
        picture(),
        b"",
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I4s", 9, b"caBX") + bytes(13),
        signed(picture())[:4000],
    ],
    ids=["none", "nothing", "garbage", "cut short"],
)
async def test_a_manifest_that_cannot_be_parsed_is_an_error(imaging: Imaging, data: bytes) -> None:
    with pytest.raises(ImageError):
        await imaging.read_manifest(data, mime="image/png")
    assert await imaging.read_manifest(signed(picture()), mime="image/png") == CLAIM


async def test_nothing_is_fetched_for_a_file_that_names_an_address(imaging: Imaging) -> None:
    with LocalServer() as server:
        data = signed(picture(), told_at=f"{server.origin}/manifest.c2pa")
        assert server.origin.encode() in data
        assert not has_manifest(io.BytesIO(data))
        with pytest.raises(CorruptImage):
            await imaging.read_manifest(data, mime="image/png")
        assert server.requests == []


words = st.text(max_size=300)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)


def report(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object with these members, each of which may be missing or be anything else."""
    optional = {name: member | values for name, member in members.items()}
    return st.fixed_dictionaries({}, optional=optional)


reports = report(
    active_manifest=st.just("a"),
    validation_state=st.sampled_from(["Valid", "Trusted", "Invalid"]),
    validation_results=report(activeManifest=report(failure=st.lists(report(code=words)))),
    manifests=report(
        a=report(
            claim_generator=words,
            claim_generator_info=st.lists(report(name=words, version=words)),
            signature_info=report(common_name=words, issuer=words, time=words),
            ingredients=st.lists(report(title=words, format=words, relationship=words)),
        )
    ),
)


@given(report=reports)
def test_property_the_texts_of_any_manifest_are_short(report: dict[str, Any]) -> None:
    found = parse_report(report)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Manifest) == found
    shown = [found.claim_generator, found.signer, found.issuer, found.signed_at, *found.problems]
    shown += [text for part in found.ingredients for text in (part.title, part.mime)]
    assert all(text is None or 0 < len(text) <= 2 * MAX_CHARS + 1 for text in shown)
