"""The bytes of a PNG -> whether its pixels can be decoded, without decoding them.

They can be decoded if the stream inflates to exactly the rows of the picture, its checksum is
right, and each row names a filter that exists. What is left, undoing the filters and unpacking the
pixels, cannot fail and takes most of the time. Anything unusual is left to the decoder.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO

from limner.imaging import png_chunks
from limner.imaging.deflate import FULL_WINDOW, library
from limner.imaging.png_chunks import Chunk

# The samples of a pixel, by colour type.
SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_HEADER = struct.Struct(">4sIIBBBBB")
_HEADER_START = 12
# Pillow reads these behind the pixels and cannot fail on them, except on too much text.
_HARMLESS = frozenset({b"tEXt", b"tIME", b"IEND"})
_FILTERS = bytes(range(5))
_INPUT_BYTES = 1 << 15
# The most that a block of a zlib stream has that is not compressed.
BLOCK_BYTES = 65_535


def can_decode(
    data: bytes,
    size: tuple[int, int],
    *,
    keep: Callable[[bytes], None] | None = None,
    max_text_bytes: int = 1 << 20,
) -> bool:
    """Whether a picture of that size can be decoded; False if only its decoder can tell.

    The caller has opened the file, and has checked the checksums of its chunks. ``keep`` gets each
    block of its inflated stream, which has at most ``BLOCK_BYTES``. ``max_text_bytes`` is how much
    text the decoder still takes.
    """
    kind, width, height, depth, colour, _, _, interlaced = _HEADER.unpack_from(data, _HEADER_START)
    is_plain = kind == b"IHDR" and colour in SAMPLES and not interlaced
    if not is_plain or (width, height) != size or 0 in size:
        return False
    pixel_data = _pixel_data(list(png_chunks.walk(BytesIO(data))), max_text_bytes)
    if not pixel_data or not data.startswith(FULL_WINDOW, pixel_data[0].start):
        return False
    row_bytes = 1 + (width * SAMPLES[colour] * depth + 7) // 8
    try:
        blocks = _inflate(data, pixel_data)
        return _are_rows(blocks, height * row_bytes, row_bytes=row_bytes, keep=keep)
    except library.error:
        return False


def _are_rows(
    blocks: Iterable[bytes],
    left: int,
    *,
    row_bytes: int,
    keep: Callable[[bytes], None] | None,
) -> bool:
    """Whether the blocks have ``left`` bytes together, and each row begins with a filter."""
    for block in blocks:
        if block[left % row_bytes :: row_bytes].translate(None, _FILTERS):
            return False
        left -= len(block)
        if left < 0:
            return False
        if keep is not None and block:
            keep(block)
    return left == 0


def _pixel_data(chunks: Sequence[Chunk], max_text_bytes: int) -> list[Chunk]:
    """The chunks with pixels; none if the decoder may see more in the file than one picture."""
    kinds = [chunk.kind for chunk in chunks]
    if b"IDAT" not in kinds or b"acTL" in kinds or kinds.count(b"IHDR") > 1:
        return []
    first = kinds.index(b"IDAT")
    behind = first + kinds.count(b"IDAT")
    if not _HARMLESS.issuperset(kinds[behind:]) or kinds[-1] != b"IEND":
        return []
    if sum(chunk.length for chunk in chunks[behind:] if chunk.kind == b"tEXt") > max_text_bytes:
        return []
    return list(chunks[first:behind])


def _inflate(data: bytes, chunks: Sequence[Chunk]) -> Iterator[bytes]:
    """The whole stream, a block at a time.

    Raises:
        error: of the library, also if the stream has no end or does not end with its last chunk.
    """
    view, inflater = memoryview(data), library.decompressobj()
    for chunk in chunks:
        end = chunk.start + chunk.length
        for start in range(chunk.start, end, _INPUT_BYTES):
            piece: bytes | memoryview = view[start : min(start + _INPUT_BYTES, end)]
            while piece:
                # Behind its end the stream would return the same tail for ever.
                if inflater.eof:
                    raise library.error("there is more behind the end of the stream")
                yield inflater.decompress(piece, BLOCK_BYTES)
                piece = inflater.unconsumed_tail
            if inflater.unused_data:
                raise library.error("there is more behind the end of the stream")
    yield inflater.decompress(b"", BLOCK_BYTES)
    if not inflater.eof:
        raise library.error("the stream has no end")
