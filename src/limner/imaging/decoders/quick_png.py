"""PNG bytes -> an opened picture whose pixel data is inflated here, and not by Pillow.

Pillow's builds for Linux inflate with the zlib of the system, which takes half the time of a
decoding. Here zlib-ng inflates each block that Pillow reads, if the extra has installed it, or the
verification has inflated all of them before. Pillow gets the result as a zlib stream that is not
compressed. It still walks through the chunks, undoes the filters and unpacks the pixels, so every
kind of PNG works.

A picture counts as decoded only if its whole stream inflated and its checksum was right. Otherwise
Pillow alone decodes the file from the start, and decides. So pixels and errors stay the same.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import Any

from PIL import Image, PngImagePlugin, features

from limner.imaging.decoders.png_check import BLOCK_BYTES
from limner.imaging.deflate import FULL_WINDOW, library, zlib_ng

# The name under which Pillow finds the plug-in.
NAME = "PNG INFLATED HERE"

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

    ``inflated`` are the blocks of its stream, if they are known to be right.
    """

    inflated: deque[bytes] | None = None
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
            pixels = super().load()
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


def reuse(image: Image.Image, blocks: deque[bytes]) -> None:
    """Let a picture that is not loaded have the blocks of its stream, instead of inflating it."""
    if isinstance(image, _QuickPng):
        image.inflated = blocks


Image.register_open(NAME, _QuickPng, lambda prefix: prefix.startswith(b"\x89PNG\r\n\x1a\n"))
