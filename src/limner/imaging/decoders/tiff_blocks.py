"""One page of a large TIFF -> its strips or tiles, decoded a few at a time.

A few blocks become the strips of a small TIFF with the tags of the page, which Pillow decodes; it
takes as long to read the tags as to decode a tile. Deflated pixels of eight bits are inflated here,
which takes half the time. Only the blocks that touch the wanted part are decoded.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from itertools import accumulate

import msgspec
from PIL import Image

from limner.errors import CorruptImage, ImageTooLarge
from limner.imaging.decoders.part_reader import (
    GROUP_PIXELS,
    MAX_BLOCK_PIXELS,
    BlockReader,
    Box,
    Size,
)
from limner.imaging.deflate import inflate
from limner.imaging.limits import WorkerLimits

_BIG_VERSION = 43
_SUBFILE_TYPE = 254
_SHORT, _LONG = 3, 4
_REDUCED = 1
# The bytes of one value, by type.
_TYPE_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 16: 8}
_KINDS = {_SHORT: "H", _LONG: "I", 16: "Q"}

_WIDTH, _LENGTH, _BITS, _COMPRESSION, _PHOTOMETRIC = 256, 257, 258, 259, 262
_STRIP_OFFSETS, _ORIENTATION, _SAMPLES, _STRIP_ROWS, _STRIP_BYTES = 273, 274, 277, 278, 279
_PLANAR, _TILE_WIDTH, _TILE_LENGTH, _TILE_OFFSETS, _TILE_BYTES = 284, 322, 323, 324, 325
_PREDICTOR = 317
# How samples are stored: depth, compression, meaning, fill order, fax options, prediction, colour
# map, ink, extra samples, their type, JPEG tables, and the terms of YCbCr.
_COPIED = frozenset(
    {_BITS, _COMPRESSION, _PHOTOMETRIC, _SAMPLES, _PLANAR, 266, 292, 293, _PREDICTOR, 320}
) | {*(332, 338, 339, 347, 529, 530, 531, 532)}
_MAX_TAG_BYTES = 1 << 20
_UNCOMPRESSED = 1
_DEFLATED = frozenset({8, 32_946})
_YCBCR = 6
_SEPARATE_PLANES = 2
# Compressions that begin anew in each strip or tile: none, fax, LZW, JPEG, deflate, PackBits.
_STACKABLE = _DEFLATED | {_UNCOMPRESSED, 2, 3, 4, 5, 7, 32_773}
# The blocks that are decoded at once have at most this many pixels together, and this number.
_STACK_PIXELS = 1_000_000
_MAX_STACKED = 64


class TiffLayout:
    """How one file stores numbers: their byte order, and 64 bits in a BigTIFF."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.order = "<" if data[:2] == b"II" else ">"
        self.is_big = self.number(2, "H") == _BIG_VERSION
        self.first_at = 8 if self.is_big else 4
        self.offset = "Q" if self.is_big else "I"
        self.count = "Q" if self.is_big else "H"
        self.entry_bytes = 20 if self.is_big else 12

    def number(self, at: int, kind: str) -> int | None:
        """The number at an offset; None behind the end of the file."""
        size = struct.calcsize(kind)
        if at + size > len(self._data):
            return None
        return int.from_bytes(self._data[at : at + size], "little" if self.order == "<" else "big")

    def packed(self, number: int) -> bytes:
        """An offset in the encoding of this file."""
        return struct.pack(self.order + self.offset, number)

    def is_reduced(self, entry: int) -> bool:
        """Whether the first entry of a directory (entries are sorted) marks a smaller copy."""
        if self.number(entry, "H") != _SUBFILE_TYPE:
            return False
        kind = "H" if self.number(entry + 2, "H") == _SHORT else "I"
        value = self.number(entry + (12 if self.is_big else 8), kind) or 0
        return bool(value & _REDUCED)

    def tags(self, start: int) -> dict[int, _Tag]:
        """The entries of the directory at an offset, as far as they lie inside the file."""
        found: dict[int, _Tag] = {}
        head = struct.calcsize(self.count)
        for index in range(min(self.number(start, self.count) or 0, 1 << 16)):
            at = start + head + index * self.entry_bytes
            tag, kind = self.number(at, "H"), self.number(at + 2, "H")
            count = self.number(at + 4, self.offset)
            size = _TYPE_BYTES.get(kind or 0)
            if tag is None or kind is None or count is None or size is None:
                continue
            value = at + (12 if self.is_big else 8)
            if count * size > (8 if self.is_big else 4):
                value = self.number(value, self.offset) or 0
            if value + count * size <= len(self._data):
                found.setdefault(tag, _Tag(kind=kind, count=count, at=value))
        return found


class _Tag(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a directory: the type and number of its values, and where they are."""

    kind: int
    count: int
    at: int


class _Block(msgspec.Struct, frozen=True, kw_only=True):
    """One strip or tile: its place, its size as stored, and the bytes of each of its planes."""

    x: int
    y: int
    width: int
    height: int
    parts: tuple[tuple[int, int], ...]


class TiffReader(BlockReader):
    """Reads the page whose directory is at an offset.

    ``finish`` turns decoded blocks into pixels of eight bits. ``plain_mode`` is the mode of a page
    whose decompressed bytes are its pixels, if it has no planes and no predictor.

    Raises:
        CorruptImage: the page names too few blocks, or none.
        ImageTooLarge: a block has too many pixels to be decoded.
    """

    def __init__(
        self,
        data: bytes,
        start: int,
        *,
        info: dict[str | tuple[int, int], object],
        finish: Callable[[Image.Image], Image.Image],
        plain_mode: str | None,
        limits: WorkerLimits,
    ) -> None:
        self._tags = TiffLayout(data).tags(start)
        self._info, self._finish = info, finish
        super().__init__(data, (0, 0), max_pixels=limits.max_pixels)
        self.size = self._value(_WIDTH), self._value(_LENGTH)
        self.orientation = self._value(_ORIENTATION, 1)
        self._tiled = _TILE_OFFSETS in self._tags
        width, height = self.size
        if self._tiled:
            self._block = self._value(_TILE_WIDTH), self._value(_TILE_LENGTH)
        else:
            self._block = width, min(self._value(_STRIP_ROWS, height), height)
        if min(self._block) < 1 or min(self.size) < 1:
            raise CorruptImage("the TIFF has blocks without pixels")
        is_separate = self._value(_PLANAR, 1) == _SEPARATE_PLANES
        self._planes = self._value(_SAMPLES, 1) if is_separate else 1
        self._columns = -(-width // self._block[0])
        self._rows = -(-height // self._block[1])
        self._rows_at_once = self._choose_rows()
        self._check_blocks()
        self._stacked = self._choose_stacked()
        is_plain = (
            not is_separate
            and self._value(_COMPRESSION, 1) in _DEFLATED
            and self._value(_PREDICTOR, 1) == 1
            # Python holds the bytes of a block beside its pixels.
            and self._block[0] * self._block[1] <= GROUP_PIXELS
        )
        self._plain_mode = plain_mode if is_plain else None

    def _choose_rows(self) -> int:
        """The rows of a block that are decoded at once: those of a raw strip can be divided."""
        divisible = (
            not self._tiled
            and self._planes == 1
            and self._value(_COMPRESSION, 1) == _UNCOMPRESSED
            and self._value(_PHOTOMETRIC, 1) != _YCBCR
        )
        if not divisible:
            return self._block[1]
        return min(self._block[1], max(1, GROUP_PIXELS // self._block[0]))

    def _choose_stacked(self) -> int:
        """How many blocks are decoded at once."""
        is_divided = self._rows_at_once < self._block[1]
        if is_divided or self._value(_COMPRESSION, 1) not in _STACKABLE:
            return 1
        pixels = self._block[0] * self._block[1]
        return min(_MAX_STACKED, max(1, _STACK_PIXELS // pixels))

    def _check_blocks(self) -> None:
        needed = self._columns * self._rows * self._planes
        offsets, sizes = self._places()
        if min(offsets.count, sizes.count) < needed:
            raise CorruptImage(f"the TIFF has {offsets.count} strips or tiles instead of {needed}")
        pixels = self._block[0] * self._rows_at_once
        if pixels > MAX_BLOCK_PIXELS:
            raise ImageTooLarge(
                f"the TIFF has strips or tiles of {pixels / 1e6:.0f} megapixels",
                hint=f"save it with tiles of at most {MAX_BLOCK_PIXELS // 1_000_000} megapixels",
            )

    def _places(self) -> tuple[_Tag, _Tag]:
        names = (_TILE_OFFSETS, _TILE_BYTES) if self._tiled else (_STRIP_OFFSETS, _STRIP_BYTES)
        offsets, sizes = (self._tags.get(name) for name in names)
        if offsets is None or sizes is None:
            raise CorruptImage("the TIFF does not say where its strips or tiles are")
        return offsets, sizes

    def _value(self, name: int, default: int = 0, index: int = 0) -> int:
        tag = self._tags.get(name)
        return default if tag is None else self._item(tag, index)

    def _item(self, tag: _Tag, index: int) -> int:
        kind = _KINDS.get(tag.kind)
        if kind is None or index >= tag.count:
            raise CorruptImage("a tag of the TIFF has the wrong type")
        return TiffLayout(self.data).number(tag.at + index * struct.calcsize(kind), kind) or 0

    def _blocks(self, box: Box) -> Iterator[tuple[Image.Image, Size]]:
        """Blocks that are small are put together first."""
        across, down = self._block[0], self._rows_at_once
        many = max(1, GROUP_PIXELS // (across * down))
        in_row = min(self._columns, many)
        rows = max(1, many // in_row) * down
        held: _Group | None = None
        for block in self._touching(box):
            left = block.x - block.x % (across * in_row)
            bottom = block.y + block.height
            if held is not None and (held.corner[0] != left or bottom > held.corner[1] + rows):
                yield held.finished()
                held = None
            if held is None:
                size = across * in_row, rows
                held = _Group((left, block.y), self.size, size, self._decode, self._stacked)
            held.add(block)
        if held is not None:
            yield held.finished()

    def _touching(self, box: Box) -> Iterator[_Block]:
        left, top, right, bottom = box
        across, down = self._block
        for row in range(top // down, -(-bottom // down)):
            for column in range(left // across, -(-right // across)):
                yield from self._divided(column, row, top, bottom)

    def _divided(self, column: int, row: int, top: int, bottom: int) -> Iterator[_Block]:
        """A block, or the rows of a raw strip that are wanted, a few at a time."""
        width, height = self._block
        parts = tuple(self._part(plane, column, row) for plane in range(self._planes))
        y = row * height
        if not self._tiled:
            height = min(height, self.size[1] - y)
        if self._rows_at_once >= height:
            yield _Block(x=column * width, y=y, width=width, height=height, parts=parts)
            return
        bits = self._value(_BITS, 1) * self._value(_SAMPLES, 1)
        row_bytes = (width * bits + 7) // 8
        for first in range(0, height, self._rows_at_once):
            rows = min(self._rows_at_once, height - first)
            if y + first < bottom and y + first + rows > top:
                part = parts[0][0] + first * row_bytes, rows * row_bytes
                yield _Block(x=0, y=y + first, width=width, height=rows, parts=(part,))

    def _part(self, plane: int, column: int, row: int) -> tuple[int, int]:
        offsets, sizes = self._places()
        index = (plane * self._rows + row) * self._columns + column
        return self._item(offsets, index), self._item(sizes, index)

    def _decode(self, blocks: Sequence[_Block]) -> list[Image.Image]:
        for block in blocks:
            for start, length in block.parts:
                if length == 0 or start + length > len(self.data):
                    raise CorruptImage(f"a strip or tile of the TIFF at row {block.y} is missing")
        if self._plain_mode is None:
            return self._decode_with_pillow(blocks)
        return [self._inflate(block, self._plain_mode) for block in blocks]

    def _inflate(self, block: _Block, mode: str) -> Image.Image:
        ((start, length),) = block.parts
        size = block.width, block.height
        pixels = inflate(
            self.data[start : start + length], size[0] * size[1] * Image.getmodebands(mode)
        )
        if pixels is None:  # Pillow decides about what is damaged or unusual
            return self._decode_with_pillow([block])[0]
        image = Image.frombytes(mode, size, pixels)
        image.info = dict(self._info)
        return image

    def _decode_with_pillow(self, blocks: Sequence[_Block]) -> list[Image.Image]:
        image = Image.open(BytesIO(self._small_file(blocks)), formats=["TIFF"])
        image.load()
        image = self._finish(image)
        image.info = dict(self._info)
        if len(blocks) == 1:
            return [image]
        bottoms = accumulate(block.height for block in blocks)
        return [
            image.crop((0, bottom - block.height, block.width, bottom))
            for block, bottom in zip(blocks, bottoms, strict=True)
        ]

    def _small_file(self, blocks: Sequence[_Block]) -> bytes:
        """A TIFF in which each plane of each block is a strip; only the last may have less rows."""
        order = TiffLayout(self.data).order
        entries: dict[int, tuple[int, int, bytes]] = {}
        for name in _COPIED & self._tags.keys():
            tag = self._tags[name]
            raw = self.data[tag.at : tag.at + tag.count * _TYPE_BYTES[tag.kind]]
            if len(raw) <= _MAX_TAG_BYTES:
                entries[name] = tag.kind, tag.count, raw
        # The strips of one plane come before those of the next.
        strips = [block.parts[plane] for plane in range(self._planes) for block in blocks]
        count = len(strips)
        numbers = {
            _WIDTH: blocks[0].width,
            _LENGTH: sum(block.height for block in blocks),
            _STRIP_ROWS: blocks[0].height,
        }
        for name, number in numbers.items():
            entries[name] = _LONG, 1, struct.pack(f"{order}I", number)
        lengths = [length for _, length in strips]
        entries[_STRIP_BYTES] = _LONG, count, struct.pack(f"{order}{count}I", *lengths)
        entries[_STRIP_OFFSETS] = _LONG, count, bytes(4 * count)
        # The header, the directory, the values that do not fit into it, the strips.
        at = 8 + 2 + 12 * len(entries) + 4
        start = at + sum(len(raw) + len(raw) % 2 for _, _, raw in entries.values() if len(raw) > 4)
        places = list(accumulate(lengths[:-1], initial=start))
        entries[_STRIP_OFFSETS] = _LONG, count, struct.pack(f"{order}{count}I", *places)
        mark = b"II" if order == "<" else b"MM"
        out = [mark, struct.pack(f"{order}HIH", 42, 8, len(entries))]
        values: list[bytes] = []
        for name, (kind, number, raw) in sorted(entries.items()):
            inline = raw.ljust(4, b"\0")
            if len(raw) > 4:
                inline = struct.pack(f"{order}I", at)
                values.append(raw + b"\0" * (len(raw) % 2))
                at += len(values[-1])
            out.append(struct.pack(f"{order}HHI", name, kind, number) + inline)
        packed = (self.data[begin : begin + length] for begin, length in strips)
        return b"".join((*out, bytes(4), *values, *packed))


class _Group:
    """Neighbouring blocks as one image, cut off at the edge of the picture.

    ``decode`` decodes at most ``stacked`` blocks at once.
    """

    def __init__(
        self,
        corner: Size,
        picture: Size,
        most: Size,
        decode: Callable[[Sequence[_Block]], list[Image.Image]],
        stacked: int,
    ) -> None:
        self.corner = corner
        self._size = min(most[0], picture[0] - corner[0]), min(most[1], picture[1] - corner[1])
        self._decode, self._stacked = decode, stacked
        self._waiting: list[_Block] = []
        self._image: Image.Image | None = None
        self._right = self._bottom = 0

    def add(self, block: _Block) -> None:
        """Take a block, which is decoded as soon as there are enough of them."""
        self._waiting.append(block)
        if len(self._waiting) == self._stacked:
            self._decode_waiting()

    def _decode_waiting(self) -> None:
        for image, block in zip(self._decode(self._waiting), self._waiting, strict=True):
            self._place(image, block)
        self._waiting.clear()

    def _place(self, image: Image.Image, block: _Block) -> None:
        x, y = block.x - self.corner[0], block.y - self.corner[1]
        if self._image is None:
            if (x, y) == (0, 0) and image.width >= self._size[0] and image.height >= self._size[1]:
                self._image = image
            else:
                # What stays empty is outside of the wanted part.
                self._image = Image.new(image.mode, self._size, None)
                self._image.info = image.info
                if image.palette is not None:
                    self._image.putpalette(image.palette)
        if image is not self._image:
            self._image.paste(image, (x, y))
        self._right = max(self._right, x + image.width)
        self._bottom = max(self._bottom, y + image.height)

    def finished(self) -> tuple[Image.Image, Size]:
        """The image, as far as it was filled, and its place in the picture."""
        if self._waiting:
            self._decode_waiting()
        assert self._image is not None
        size = min(self._right, self._size[0]), min(self._bottom, self._size[1])
        if size == self._image.size:
            return self._image, self.corner
        cut = self._image.crop((0, 0, *size))
        cut.info = self._image.info
        return cut, self.corner
