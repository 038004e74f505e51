"""PNG bytes -> an opened picture whose pixel data is inflated here, and not by Pillow.

Pillow's builds for Linux inflate with the zlib of the system, which takes half the time of a
decoding. Here zlib-ng inflates each block that Pillow reads, if the extra has installed it, or the
verification has inflated all of them before. Pillow gets the result as a zlib stream that is not
compressed. It still walks through the chunks, undoes the filters and unpacks the pixels, so every
kind of PNG works.

A picture counts as decoded only if its whole stream inflated and its checksum was right. Otherwise
Pillow alone decodes the file from the start, and decides. So pixels and errors stay the same.

Most of the time goes into undoing the filters. Two threads can share this work if all is inflated
and a row near the middle has a filter that does not look at the row above. Screenshots have such
rows nearly everywhere, photographs have none.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, cast

from PIL import Image, PngImagePlugin, features

from limner.imaging.decoders.png_check import BLOCK_BYTES
from limner.imaging.deflate import FULL_WINDOW, library, zlib_ng

# The name under which Pillow finds the plug-in.
NAME = "PNG INFLATED HERE"

# One thread has decoded a smaller picture before another one begins. Of a larger one, the rows that
# are not needed any more should be freed early, and two threads need all of them.
_LEAST_SHARED_PIXELS, _MOST_SHARED_PIXELS = 250_000, 9_000_000
# Each of two threads gets at least this share of the rows.
_LEAST_SHARE = 0.2
# The filters that do not look at the row above.
_INDEPENDENT_FILTERS = b"\0\1"

# The head of a stream with the smallest window, since blocks that are not compressed need none.
_STORED_STREAM = b"\x08\x1d"
_STORED_BLOCK = struct.Struct("<BHH")


def _pillow_has_zlib_ng() -> bool:
    """Whether Pillow inflates with zlib-ng already: some of its builds carry it."""
    return "zlib-ng" in (features.version("zlib") or "")


IS_FASTER = zlib_ng is not None and not _pillow_has_zlib_ng()
"""Whether to inflate here is faster than to leave it to Pillow."""


class _QuickPng(PngImagePlugin.PngImageFile):
    """A PNG file that is inflated here the first time its pixels are loaded.

    ``inflated`` are the blocks of its stream, if they are known to be right. ``lower`` is the other
    thread and the first row that it decodes, if there is one.
    """

    inflated: deque[bytes] | None = None
    lower: tuple[ThreadPoolExecutor, int] | None = None
    _is_loaded = False
    _inflater: Any = None
    _begun = False
    _pending = b""

    def load(self) -> Any:
        if self._is_loaded or not self.tile or not (self.inflated or IS_FASTER):
            return super().load()
        self._is_loaded = True
        file = self.fp
        self._inflater = None if self.inflated else library.decompressobj()
        assert file is not None
        try:
            pixels = self._load_both_parts() if self.lower else super().load()
        except (OSError, library.error):
            pass
        else:
            if self._inflater is None or self._inflater.eof:
                self._inflater = None
                return pixels
        file.seek(0)
        self.inflated = None
        plain = PngImagePlugin.PngImageFile(file)
        pixels = plain.load()
        vars(self).clear()
        vars(self).update(vars(plain))  # as Pillow does for files that another object loads
        self._is_loaded = True
        return pixels

    def _load_both_parts(self) -> Any:
        """Decode the upper rows while the other thread decodes those below."""
        lower = self._decode_lower_part()
        try:
            return super().load()
        finally:
            lower.result()

    def _decode_lower_part(self) -> Future[None]:
        assert self.lower is not None
        assert self.inflated is not None
        thread, row = self.lower
        (whole,) = self.tile
        self.load_prepare()  # the memory for the pixels of both
        decoder = cast("Any", Image)._getdecoder(self.mode, whole.codec_name, whole.args)
        decoder.setimage(self.im, (0, row, *self.size))
        self.tile = [whole._replace(extents=(0, 0, self.width, row))]
        self.inflated, below = _cut(self.inflated, row * _row_bytes(self.inflated, self.height))
        return thread.submit(_decode, decoder, below)

    def load_read(self, read_bytes: int) -> bytes:
        """Read more pixel data, as blocks that are not compressed."""
        if self.inflated is not None:
            return self._next_inflated(self.inflated)
        if self._inflater is None:
            return super().load_read(read_bytes)
        head = b""
        if not self._begun:
            first = super().load_read(read_bytes)
            if not first.startswith(FULL_WINDOW):
                self._inflater = None
                return first
            self._begun, self._pending, head = True, first, _STORED_STREAM
        while True:
            if not self._pending:
                self._pending = super().load_read(read_bytes)
                if not self._pending:
                    return head
            block = self._inflater.decompress(self._pending, BLOCK_BYTES)
            # Behind its end the stream would return the same tail for ever.
            self._pending = b"" if self._inflater.eof else self._inflater.unconsumed_tail
            if block:
                return head + _stored(block)

    def _next_inflated(self, blocks: deque[bytes]) -> bytes:
        if not blocks:
            return b""
        head = b"" if self._begun else _STORED_STREAM
        self._begun = True
        return head + _stored(blocks.popleft())


def _stored(block: bytes) -> bytes:
    """A block of a zlib stream that is not compressed."""
    size = len(block)
    return _STORED_BLOCK.pack(0, size, BLOCK_BYTES - size) + block


def _decode(decoder: Any, blocks: deque[bytes]) -> None:
    """Decode the rows of a stream.

    Raises:
        OSError: the stream has fewer rows than the decoder expects.
    """
    pending, used = _STORED_STREAM, 0
    try:
        while blocks and used >= 0:
            pending += _stored(blocks.popleft())
            used, _ = decoder.decode(pending)
            pending = pending[used:]
    finally:
        decoder.cleanup()
    if used >= 0:
        raise OSError("the lower part of the PNG has too few rows")


def _row_bytes(blocks: Iterable[bytes], height: int) -> int:
    return sum(map(len, blocks)) // height


def _filters(blocks: Iterable[bytes], row_bytes: int) -> bytes:
    """The filter of each row, which is its first byte."""
    found, start = bytearray(), 0
    for block in blocks:
        found += block[start::row_bytes]
        start = (start - len(block)) % row_bytes
    return bytes(found)


def _cut(blocks: Iterable[bytes], at: int) -> tuple[deque[bytes], deque[bytes]]:
    """The blocks of the first ``at`` bytes, and those of the others."""
    upper, lower = deque[bytes](), deque[bytes]()
    for block in blocks:
        if at > 0:
            upper.append(block[:at])
        if at < len(block):
            lower.append(block[at:])
        at = max(0, at - len(block))
    return upper, lower


def reuse(image: Image.Image, blocks: deque[bytes]) -> None:
    """Let a picture that is not loaded have the blocks of its stream, instead of inflating it."""
    if isinstance(image, _QuickPng):
        image.inflated = blocks


def share(image: Image.Image, thread: ThreadPoolExecutor) -> bool:
    """Let another thread decode a part of a picture, if that is of use; returns whether it is.

    The picture is not loaded yet.
    """
    if not isinstance(image, _QuickPng) or not image.inflated:
        return False
    if not _LEAST_SHARED_PIXELS <= image.width * image.height <= _MOST_SHARED_PIXELS:
        return False
    filters = _filters(image.inflated, _row_bytes(image.inflated, image.height))
    rows = (row for row, kind in enumerate(filters) if kind in _INDEPENDENT_FILTERS)
    first = min(rows, key=lambda row: abs(row - image.height / 2), default=0)
    if min(first, image.height - first) < _LEAST_SHARE * image.height:
        return False
    image.lower = thread, first
    return True


Image.register_open(NAME, _QuickPng, lambda prefix: prefix.startswith(b"\x89PNG\r\n\x1a\n"))
