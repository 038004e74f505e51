"""A PNG <-> the words it carries beside its pixels: the prompt, the model and its handle.

They are one run of text chunks behind the header, the handle last. Without the run the file is the
picture that the handle names, byte for byte, which is how limner knows its own files again.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from limner.content import Picture
from limner.imaging.png_chunks import HEADER_END, parse_text, text_chunk, walk
from limner.storage.temp_file import Spliced

# The keywords of the PNG specification, and one of our own.
PROMPT, MODEL, PROGRAM, HANDLE = "Description", "Source", "Software", "limner:handle"
_RUN = 4
_READ_BYTES = 1 << 20


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """What a picture says about itself."""

    prompt: str
    model: str
    handle: str


def labelled(path: Path, label: Label) -> Spliced:
    """The file of a PNG as it is written with a label."""
    words = {
        PROGRAM: "limner",
        MODEL: label.model,
        PROMPT: label.prompt,
        HANDLE: label.handle,
    }
    run = b"".join(text_chunk(keyword, text) for keyword, text in words.items())
    return Spliced(path=path, at=HEADER_END, inserted=run)


def own_handle(file: BinaryIO) -> str | None:
    """The handle of the picture that limner wrote to this file with a label.

    None where there is no label, or where the picture beside it is no longer the one it names.
    """
    tag = _tag(file)
    return tag.handle if tag is not None and _digest(file, tag.end) == tag.handle else None


def is_copy(file: BinaryIO, picture: Picture) -> bool:
    """Whether a file holds that picture, with a label or without."""
    tag = _tag(file)
    if tag is not None and tag.handle == picture.handle:
        return _digest(file, tag.end) == picture.handle
    is_as_long = file.seek(0, os.SEEK_END) == picture.size_bytes
    return is_as_long and _digest(file, HEADER_END) == picture.handle


class _Tag(NamedTuple):
    """The last part of a label: whose it is, and where the picture goes on."""

    handle: str
    end: int


def _tag(file: BinaryIO) -> _Tag | None:
    for number, chunk in enumerate(walk(file, start=HEADER_END), start=1):
        if chunk.kind != b"iTXt" or number > _RUN:
            return None
        words = parse_text(file, chunk)
        if words is not None and words.keyword == HANDLE:
            return _Tag(words.text, chunk.end)
    return None


def _digest(file: BinaryIO, goes_on: int) -> str:
    """The sha256 of a file, without what lies between its header and where the picture goes on."""
    file.seek(0)
    digest = hashlib.sha256(file.read(HEADER_END))
    file.seek(goes_on)
    while part := file.read(_READ_BYTES):
        digest.update(part)
    return digest.hexdigest()
