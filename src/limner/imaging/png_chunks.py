"""A PNG file <-> its chunks, found by their headers, and the text chunks among them.

It works on any bytes and decodes no pixels, so the host may use it.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Collection, Iterator
from io import BytesIO
from typing import BinaryIO, NamedTuple

from limner.imaging.formats import PNG_SIGNATURE

# Where the header chunk ends: it always comes first and always has the same length.
HEADER_END = len(PNG_SIGNATURE) + 25
MAX_TEXTS = 50
MAX_TEXT_BYTES = 64 * 1024

_HEAD_BYTES = 8
# The longest keyword, and the null character that ends it.
_KEYWORD_BYTES = 80
_TEXT_KINDS = frozenset({b"tEXt", b"zTXt", b"iTXt"})


class Chunk(NamedTuple):
    """The kind of a chunk, and the offset and length of its data."""

    kind: bytes
    start: int
    length: int

    @property
    def end(self) -> int:
        """The offset of the next chunk."""
        return self.start + self.length + 4


class PngText(NamedTuple):
    """A text in a PNG file, and its keyword."""

    keyword: str
    text: str


def walk(file: BinaryIO, *, start: int = len(PNG_SIGNATURE)) -> Iterator[Chunk]:
    """The chunks of a PNG file, up to its end marker or the end of a truncated file."""
    file.seek(0)
    if file.read(len(PNG_SIGNATURE)) != PNG_SIGNATURE:
        return
    while True:
        file.seek(start)
        head = file.read(_HEAD_BYTES)
        if len(head) < _HEAD_BYTES:
            return
        length, kind = struct.unpack(">I4s", head)
        chunk = Chunk(kind, start + _HEAD_BYTES, length)
        yield chunk
        if kind == b"IEND":
            return
        start = chunk.end


def text_chunk(keyword: str, text: str) -> bytes:
    """A text chunk; the null characters of the text are left out, as the format requires."""
    # The five zero bytes after the keyword: not compressed, no language, no translated keyword.
    body = keyword.encode("latin-1") + bytes(5) + text.replace("\0", "").encode()
    checksum = zlib.crc32(b"iTXt" + body)
    return struct.pack(">I4s", len(body), b"iTXt") + body + struct.pack(">I", checksum)


def texts(file: BinaryIO) -> tuple[PngText, ...]:
    """The first texts of a PNG file; long ones are truncated, damaged ones are left out."""
    found: list[PngText] = []
    for chunk in walk(file):
        if chunk.kind in _TEXT_KINDS and (text := parse_text(file, chunk)) is not None:
            found.append(text)
        if len(found) == MAX_TEXTS:
            break
    return tuple(found)


def without_texts(data: bytes, keywords: Collection[bytes]) -> bytes:
    """A PNG file without the texts of these keywords; the same bytes if it has none of them."""
    texts = [
        chunk
        for chunk in walk(BytesIO(data))
        if chunk.kind in _TEXT_KINDS
        and data[chunk.start : chunk.start + _KEYWORD_BYTES].partition(b"\0")[0] in keywords
    ]
    if not texts:
        return data
    starts = [0, *(chunk.end for chunk in texts)]
    ends = [*(chunk.start - _HEAD_BYTES for chunk in texts), len(data)]
    return b"".join(data[start:end] for start, end in zip(starts, ends, strict=True))


def parse_text(file: BinaryIO, chunk: Chunk) -> PngText | None:
    """The text of a text chunk; None if it is damaged."""
    file.seek(chunk.start, os.SEEK_SET)
    keyword, mark, rest = file.read(min(chunk.length, MAX_TEXT_BYTES)).partition(b"\0")
    packed, charset = chunk.kind == b"zTXt", "latin-1"
    if packed:
        rest = rest[1:]
    if chunk.kind == b"iTXt":
        packed, charset = rest[:1] == b"\1", "utf-8"
        rest = rest[2:].partition(b"\0")[2].partition(b"\0")[2]
    if packed:
        try:
            rest = zlib.decompressobj().decompress(rest, MAX_TEXT_BYTES)
        except zlib.error:
            return None
    if not keyword or not mark:
        return None
    # A truncated text may end within a character.
    return PngText(keyword.decode("latin-1"), rest.decode(charset, "ignore"))
