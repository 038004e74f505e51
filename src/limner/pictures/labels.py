"""A PNG, JPEG or WebP file <-> the label that limner writes into it, around the same picture.

The label is an XMP packet; a PNG also has the text chunks of its own standard. Without the label
the file is the picture that the handle names, byte for byte. That is how limner recognizes its own
files.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from limner.content import Picture
from limner.imaging.formats import webp_canvas
from limner.imaging.png_chunks import HEADER_END, PngText, parse_text, text_chunk, walk
from limner.pictures.xmp import Label, build_packet, parse_packet
from limner.storage.temp_file import Source, Spliced

__all__ = ["Label", "is_copy", "labelled", "own_handle", "read_label"]

# The keywords of the PNG specification, the one of XMP, and one of limner.
PROMPT, MODEL, PROGRAM, HANDLE = "Description", "Source", "Software", "limner:handle"
XMP = "XML:com.adobe.xmp"
_CHUNKS = 5
_READ_BYTES = 1 << 20

_JPEG_START, _JPEG_APP0, _JPEG_APP1 = b"\xff\xd8", b"\xff\xe0", b"\xff\xe1"
_JPEG_XMP = b"http://ns.adobe.com/xap/1.0/\0"
_WEBP_XMP, _WEBP_ALPHA = 0x04, 0x10
# Larger files are not limner's: no provider delivers so many bytes.
_MAX_WEBP_BYTES = 1 << 27


def labelled(path: Path, label: Label, mime: str = "image/png") -> Source:
    """The content of a picture's file with a label inserted; the file itself if it takes none."""
    match mime:
        case "image/png":
            return Spliced(path=path, at=HEADER_END, inserted=_png_chunks(label))
        case "image/jpeg":
            with path.open("rb") as file:
                at = _after_jfif(file)
            return path if at is None else Spliced(path=path, at=at, inserted=_jpeg_segment(label))
        case "image/webp":
            return _label_webp(path.read_bytes(), label) or path
        case _:
            return path


def own_handle(file: BinaryIO) -> str | None:
    """The handle of the picture that limner wrote to this file with a label.

    None if there is no label, or if the picture has changed since.
    """
    found = _find(file)
    return None if found is None else found.label.handle


def read_label(file: BinaryIO) -> tuple[Label, bytes] | None:
    """The label of a file that limner wrote, and the bytes of its picture.

    None if there is no label, or if the picture has changed since.
    """
    found = _find(file)
    return None if found is None else (found.label, b"".join(found.picture(file)))


def is_copy(file: BinaryIO, picture: Picture) -> bool:
    """Whether a file contains that picture, with or without a label."""
    if own_handle(file) == picture.handle:
        return True
    is_as_long = file.seek(0, os.SEEK_END) == picture.size_bytes
    return is_as_long and _digest(_Gap(0, 0).read(file)) == picture.handle


class _Gap(NamedTuple):
    """A run of bytes in a file that does not belong to its picture."""

    start: int
    end: int

    def read(self, file: BinaryIO) -> Iterator[bytes]:
        """The bytes of the file without it."""
        file.seek(0)
        yield file.read(self.start)
        file.seek(self.end)
        while part := file.read(_READ_BYTES):
            yield part


class _Found(NamedTuple):
    """A label that may be limner's, and where the picture is: around a gap, or in memory."""

    label: Label
    place: _Gap | bytes

    def picture(self, file: BinaryIO) -> Iterator[bytes]:
        """The bytes of the picture without its label."""
        return iter((self.place,)) if isinstance(self.place, bytes) else self.place.read(file)


def _find(file: BinaryIO) -> _Found | None:
    """The label of a file, if the rest of the file is the picture that it names."""
    for found in (*_find_in_png(file), *_find_in_jpeg(file), *_find_in_webp(file)):
        if _digest(found.picture(file)) == found.label.handle:
            return found
    return None


def _png_chunks(label: Label) -> bytes:
    texts = {
        PROGRAM: "limner",
        MODEL: label.model,
        PROMPT: label.prompt,
        XMP: build_packet(label).decode(),
        HANDLE: label.handle,
    }
    return b"".join(text_chunk(keyword, text) for keyword, text in texts.items())


def _find_in_png(file: BinaryIO) -> Iterator[_Found]:
    texts: dict[str, str] = {}
    for chunk in islice(walk(file, start=HEADER_END), _CHUNKS):
        text: PngText | None = None if chunk.kind != b"iTXt" else parse_text(file, chunk)
        if text is None:
            return
        texts[text.keyword] = text.text
        if text.keyword == HANDLE:
            packet = parse_packet(texts.get(XMP, "").encode())
            label = Label(
                prompt=texts.get(PROMPT, ""),
                model=texts.get(MODEL, ""),
                handle=text.text,
                scene="" if packet is None else packet.scene,
            )
            yield _Found(label, _Gap(HEADER_END, chunk.end))
            return


def _after_jfif(file: BinaryIO) -> int | None:
    """Where a segment can be inserted into a JPEG file; None if the file is no JPEG."""
    file.seek(0)
    head = file.read(6)
    if not head.startswith(_JPEG_START):
        return None
    has_jfif = head[2:4] == _JPEG_APP0
    return 4 + int.from_bytes(head[4:6], "big") if has_jfif else 2


def _jpeg_segment(label: Label) -> bytes:
    body = _JPEG_XMP + build_packet(label)
    return _JPEG_APP1 + struct.pack(">H", len(body) + 2) + body


def _find_in_jpeg(file: BinaryIO) -> Iterator[_Found]:
    at = _after_jfif(file)
    if at is None:
        return
    file.seek(at)
    head = file.read(4)
    if head[:2] != _JPEG_APP1 or len(head) < 4:
        return
    body = file.read(int.from_bytes(head[2:], "big") - 2)
    label = parse_packet(body.removeprefix(_JPEG_XMP)) if body.startswith(_JPEG_XMP) else None
    if label is not None:
        yield _Found(label, _Gap(at, at + 4 + len(body)))


def _label_webp(data: bytes, label: Label) -> bytes | None:
    """The file with an XMP chunk at its end; None if it cannot have one, or has one already."""
    size = webp_canvas(data)
    if size is None:
        return None
    body = data[12:]
    if body[:4] != b"VP8X":
        has_alpha = body[:4] == b"VP8L" and bool(data[24] & _WEBP_ALPHA)
        flags = _WEBP_ALPHA if has_alpha else 0
        edges = b"".join((edge - 1).to_bytes(3, "little") for edge in size)
        body = b"VP8X" + struct.pack("<II", 10, flags) + edges + body
    if body[8] & _WEBP_XMP:
        return None
    body = body[:8] + bytes([body[8] | _WEBP_XMP]) + body[9:]
    packet = build_packet(label)
    chunk = b"XMP " + struct.pack("<I", len(packet)) + packet + bytes(len(packet) % 2)
    return _riff(body + chunk)


def _find_in_webp(file: BinaryIO) -> Iterator[_Found]:
    file.seek(0)
    head = file.read(30)
    if head[:4] != b"RIFF" or head[8:16] != b"WEBPVP8X" or not head[20] & _WEBP_XMP:
        return
    file.seek(0)
    data = file.read(_MAX_WEBP_BYTES)
    start = data.rfind(b"XMP ")
    label = parse_packet(data[start + 8 :]) if start > 0 else None
    if label is None:
        return
    rest = data[12:start]
    extended = rest[:8] + bytes([rest[8] & ~_WEBP_XMP]) + rest[9:]
    # Before it had a label, the file was of the extended or of the simple kind.
    yield from (_Found(label, _riff(body)) for body in (extended, rest[18:]))


def _riff(body: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body


def _digest(parts: Iterator[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
