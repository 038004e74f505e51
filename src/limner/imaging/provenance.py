"""A picture's file -> whether it carries a C2PA manifest, and the types of what a manifest claims.

The host only searches for a manifest. Native code parses it, in the process of `c2pa_worker`.
"""

from __future__ import annotations

import os
import struct
from importlib.util import find_spec
from typing import BinaryIO, Literal

import msgspec

from limner.imaging.png_chunks import PNG_SIGNATURE, walk

_JPEG = b"\xff\xd8"
_START_OF_SCAN, _APP11 = 0xDA, 0xEB
# A segment of APP11 begins with "JP", a box number and a sequence number; then comes the box.
_JUMBF_HEAD_BYTES = 28


INSTALL_C2PA = "pip install 'limner[c2pa]'"

State = Literal["trusted", "valid", "invalid"]


class Ingredient(msgspec.Struct, frozen=True, kw_only=True):
    """Another file that was used to make the picture, as the manifest claims."""

    title: str | None
    mime: str | None
    relationship: str | None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of a picture's active manifest, and whether its signature is valid.

    Attributes:
        state: ``valid`` means that the bytes are those that were signed with the certificate of
            ``signer``. ``trusted`` means that ``signer`` is also on a list of trusted signers.
            ``invalid`` means that the picture changed after signing, or was signed wrongly.
        claim_generator: the program that made the claim.
        signer: the owner of the certificate.
        issuer: the organisation in that certificate.
        signed_at: the time of signing, if a time-stamping service confirms it.
        problems: the C2PA codes of validation errors.
        ingredients: the files that were used to make the picture.
    """

    state: State
    claim_generator: str | None
    signer: str | None
    issuer: str | None
    signed_at: str | None
    problems: tuple[str, ...]
    ingredients: tuple[Ingredient, ...]


def has_c2pa() -> bool:
    """Whether the C2PA library is installed; this does not load it."""
    return find_spec("c2pa") is not None


def has_manifest(file: BinaryIO) -> bool:
    """Whether a PNG, JPEG or WebP file carries a manifest; False if the file is damaged."""
    file.seek(0)
    head = file.read(12)
    if head.startswith(PNG_SIGNATURE):
        return any(chunk.kind == b"caBX" for chunk in walk(file))
    if head.startswith(_JPEG):
        return _has_manifest_segment(file)
    if head[:4] == b"RIFF" and head[8:] == b"WEBP":
        return _has_manifest_chunk(file)
    return False


def _has_manifest_segment(file: BinaryIO) -> bool:
    file.seek(len(_JPEG))
    while len(head := file.read(4)) == 4:
        mark, kind, length = struct.unpack(">BBH", head)
        if mark != 0xFF or kind == _START_OF_SCAN or length < 2:
            return False
        body = file.tell()
        if kind == _APP11:
            start = file.read(_JUMBF_HEAD_BYTES)
            if start[:2] == b"JP" and start[12:16] == b"jumb" and start[20:28] == b"jumdc2pa":
                return True
        file.seek(body + length - 2)
    return False


def _has_manifest_chunk(file: BinaryIO) -> bool:
    file.seek(12)
    while len(head := file.read(8)) == 8:
        kind, length = struct.unpack("<4sI", head)
        if kind == b"C2PA":
            return True
        file.seek(length + length % 2, os.SEEK_CUR)
    return False
