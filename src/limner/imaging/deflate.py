"""zlib stream -> bytes, and bytes -> their checksum: by zlib-ng, if the extra has installed it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

# The library of the extra; its types are those of zlib.
zlib_ng: Any = None
with suppress(ImportError):
    zlib_ng = import_module("zlib_ng.zlib_ng")

# The first byte of a stream that may refer to 32 KiB before, as nearly all do. With a smaller
# window, zlib refuses references that zlib-ng may follow.
FULL_WINDOW = b"\x78"

library: Any = zlib if zlib_ng is None else zlib_ng

# zlib-ng takes a tenth of the time.
crc32: Callable[[bytes | memoryview], int] = library.crc32


def inflate(data: bytes, size: int) -> bytes | None:
    """All bytes of a stream; None if it is damaged, or has not exactly ``size`` of them."""
    if not data.startswith(FULL_WINDOW):
        return None
    inflater = library.decompressobj()
    try:
        # One byte more lets the stream end, with its checksum, or shows that it is too long.
        found: bytes = inflater.decompress(data, size + 1)
    except library.error:
        return None
    return found if inflater.eof and len(found) == size else None
