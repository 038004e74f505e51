"""A picture's bytes -> who says they made it: whether a C2PA manifest is there, and what it claims.

The host imports the values of ``record``, and ``embedded``, which only looks; what a manifest says
is read by ``claims``, with native code, inside the process `notary` and nowhere else.
"""

from __future__ import annotations

import os
import struct
from importlib.util import find_spec
from typing import BinaryIO, Literal

import msgspec

from limner.imaging.png_chunks import SIGNATURE, walk

_JPEG = b"\xff\xd8"
_START_OF_SCAN, _APP11 = 0xDA, 0xEB
# A segment of APP11 begins with "JP", a box number and a sequence number; then comes the box.
_JUMBF_HEAD_BYTES = 28


def has_manifest(file: BinaryIO) -> bool:
    """Whether a PNG, JPEG or WebP file carries a manifest; False for what is damaged."""
    file.seek(0)
    head = file.read(12)
    if head.startswith(SIGNATURE):
        return any(chunk.kind == b"caBX" for chunk in walk(file))
    if head.startswith(_JPEG):
        return _among_jpeg_segments(file)
    if head[:4] == b"RIFF" and head[8:] == b"WEBP":
        return _among_webp_chunks(file)
    return False


def _among_jpeg_segments(file: BinaryIO) -> bool:
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


def _among_webp_chunks(file: BinaryIO) -> bool:
    file.seek(12)
    while len(head := file.read(8)) == 8:
        kind, length = struct.unpack("<4sI", head)
        if kind == b"C2PA":
            return True
        file.seek(length + length % 2, os.SEEK_CUR)
    return False


INSTALL = "pip install 'limner[c2pa]'"

State = Literal["trusted", "valid", "invalid"]


class Ingredient(msgspec.Struct, frozen=True, kw_only=True):
    """Another file that the picture is said to be made of."""

    title: str | None
    mime: str | None
    relationship: str | None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What the active manifest of a picture claims, and whether the claim holds.

    Attributes:
        state: ``valid`` says that the bytes are those that were signed, with the certificate of
            ``signer``; whether that is who they say needs a list of trusted signers, which would
            make it ``trusted``. What is ``invalid`` was changed after signing, or signed wrongly.
        claim_generator: the program that made the claim.
        signer: whose certificate signed it.
        issuer: the organisation in that certificate.
        signed_at: when, where a time-stamping service vouches for it.
        problems: the codes of C2PA for what is wrong.
        ingredients: what the picture is said to be made of.
    """

    state: State
    claim_generator: str | None
    signer: str | None
    issuer: str | None
    signed_at: str | None
    problems: tuple[str, ...]
    ingredients: tuple[Ingredient, ...]


def can_read() -> bool:
    """Whether what reads manifests is installed; it is not loaded to find out."""
    return find_spec("c2pa") is not None


__all__ = ["INSTALL", "Ingredient", "Manifest", "State", "can_read"]
