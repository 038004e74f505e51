"""A PNG <-> the label in its text chunks: the prompt, the model and its handle.

The text chunks follow the header, the handle last. Without them the file is the picture that the
handle names, byte for byte. That is how limner recognizes its own files.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from limner.content import Picture
from limner.imaging.png_chunks import HEADER_END, PngText, parse_text, text_chunk, walk
from limner.storage.temp_file import Spliced

# The keywords of the PNG specification, and one of limner.
PROMPT, MODEL, PROGRAM, HANDLE = "Description", "Source", "Software", "limner:handle"
_CHUNKS = 4
_READ_BYTES = 1 << 20


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says about its picture."""

    prompt: str
    model: str
    handle: str


def labelled(path: Path, label: Label) -> Spliced:
    """The content of a PNG file with a label inserted."""
    texts = {
        PROGRAM: "limner",
        MODEL: label.model,
        PROMPT: label.prompt,
        HANDLE: label.handle,
    }
    chunks = b"".join(text_chunk(keyword, text) for keyword, text in texts.items())
    return Spliced(path=path, at=HEADER_END, inserted=chunks)


def own_handle(file: BinaryIO) -> str | None:
    """The handle of the picture that limner wrote to this file with a label.

    None if there is no label, or if the picture has changed since.
    """
    tag = _tag(file)
    return tag.handle if tag is not None and _digest(file, tag.end) == tag.handle else None


def read_label(file: BinaryIO) -> tuple[Label, bytes] | None:
    """The label of a file that limner wrote, and the bytes of its picture.

    None if there is no label, or if the picture has changed since.
    """
    handle = own_handle(file)
    tag = None if handle is None else _tag(file)
    if tag is None:
        return None
    texts = {text.keyword: text.text for text in _texts(file)}
    file.seek(0)
    data = file.read(HEADER_END)
    file.seek(tag.end)
    label = Label(prompt=texts.get(PROMPT, ""), model=texts.get(MODEL, ""), handle=tag.handle)
    return label, data + file.read()


def is_copy(file: BinaryIO, picture: Picture) -> bool:
    """Whether a file contains that picture, with or without a label."""
    tag = _tag(file)
    if tag is not None and tag.handle == picture.handle:
        return _digest(file, tag.end) == picture.handle
    is_as_long = file.seek(0, os.SEEK_END) == picture.size_bytes
    return is_as_long and _digest(file, HEADER_END) == picture.handle


class _Tag(NamedTuple):
    """The last chunk of a label: the handle, and the offset of the next chunk."""

    handle: str
    end: int


def _tag(file: BinaryIO) -> _Tag | None:
    for number, chunk in enumerate(walk(file, start=HEADER_END), start=1):
        if chunk.kind != b"iTXt" or number > _CHUNKS:
            return None
        text = parse_text(file, chunk)
        if text is not None and text.keyword == HANDLE:
            return _Tag(text.text, chunk.end)
    return None


def _texts(file: BinaryIO) -> Iterator[PngText]:
    for chunk in islice(walk(file, start=HEADER_END), _CHUNKS):
        if (text := parse_text(file, chunk)) is not None:
            yield text


def _digest(file: BinaryIO, end: int) -> str:
    """The sha256 of a file without the bytes between its header and ``end``."""
    file.seek(0)
    digest = hashlib.sha256(file.read(HEADER_END))
    file.seek(end)
    while part := file.read(_READ_BYTES):
        digest.update(part)
    return digest.hexdigest()
