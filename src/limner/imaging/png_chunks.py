"""A PNG file <-> its chunks, read by their headers alone, and the texts among them.

Works on any bytes and decodes no pixels, so the host may use it.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

SIGNATURE = b"\x89PNG\r\n\x1a\n"
# The header chunk always comes first and is always this long: here the others begin.
HEADER_END = len(SIGNATURE) + 25
MAX_TEXTS = 50
MAX_TEXT_BYTES = 64 * 1024

_TEXT_KINDS = frozenset({b"tEXt", b"zTXt", b"iTXt"})


class Chunk(NamedTuple):
    """A chunk's kind, where its data begins, and how long that is."""

    kind: bytes
    start: int
    length: int

    @property
    def end(self) -> int:
        """Where the next chunk begins."""
        return self.start + self.length + 4


class PngText(NamedTuple):
    """A text in a picture, and the keyword that says what it is."""

    keyword: str
    text: str


def walk(file: BinaryIO, *, start: int = len(SIGNATURE)) -> Iterator[Chunk]:
    """The chunks of a PNG file, up to its end marker or to where it breaks off."""
    file.seek(0)
    if file.read(len(SIGNATURE)) != SIGNATURE:
        return
    while True:
        file.seek(start)
        head = file.read(8)
        if len(head) < 8:
            return
        length, kind = struct.unpack(">I4s", head)
        chunk = Chunk(kind, start + 8, length)
        yield chunk
        if kind == b"IEND":
            return
        start = chunk.end


def text_chunk(keyword: str, text: str) -> bytes:
    """A chunk that holds a text as it is; only what the format cannot hold is left out."""
    # After the keyword: not compressed, in no language, with no translation of the keyword.
    body = keyword.encode("latin-1") + bytes(5) + text.replace("\0", "").encode()
    checksum = zlib.crc32(b"iTXt" + body)
    return struct.pack(">I4s", len(body), b"iTXt") + body + struct.pack(">I", checksum)


def texts(file: BinaryIO) -> tuple[PngText, ...]:
    """The first texts in a PNG file, long ones cut short; those that are damaged are left out."""
    found: list[PngText] = []
    for chunk in walk(file):
        if chunk.kind in _TEXT_KINDS and (words := read_text(file, chunk)) is not None:
            found.append(words)
        if len(found) == MAX_TEXTS:
            break
    return tuple(found)


def read_text(file: BinaryIO, chunk: Chunk) -> PngText | None:
    """The text that a chunk holds, None where it is damaged."""
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
    # A text that was cut may end within a character.
    return PngText(keyword.decode("latin-1"), rest.decode(charset, "ignore"))
