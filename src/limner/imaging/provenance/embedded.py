"""A picture file -> whether it carries a C2PA manifest, from its headers alone.

Nothing is decoded: what the manifest says, and whether it is true, only the notary finds out.
"""

from __future__ import annotations

import os
import struct
from typing import BinaryIO

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
