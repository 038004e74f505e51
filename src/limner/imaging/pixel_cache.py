"""The picture that was verified last -> an opened picture, for the fit that often follows.

Runs inside a worker only. A picture that enters a conversation is verified and then fitted, and
both would read the file from its start.
"""

from __future__ import annotations

from limner.imaging.decoders import OpenedPicture
from limner.imaging.formats import Format

# The formats of screenshots. A JPEG is decoded again instead, at the scale that the fit needs.
_REUSABLE = frozenset({"png", "webp"})


class PixelCache:
    """Keeps at most one verified picture, and returns it at most once."""

    def __init__(self) -> None:
        self._kept: tuple[bytes, Format, OpenedPicture] | None = None
        self._digest = b""

    def keep(self, data: bytes, form: Format, opened: OpenedPicture) -> None:
        """Keep a picture that was just verified: its pixels, or what they are unpacked from."""
        self.clear()
        if opened.reader is not None:
            # Memory may not hold the file twice, so its digest stands for it.
            self._digest = _digest(data)
            opened.image.close()
            opened.reader.data = b""
            self._kept = b"", form, opened
        elif form.name in _REUSABLE:
            self._kept = data, form, opened

    def clear(self) -> None:
        """Drop the picture."""
        self._kept = None

    def take(self, data: bytes) -> tuple[Format, OpenedPicture] | None:
        """The picture of exactly these bytes, if it is here; the cache is empty afterwards."""
        kept, self._kept = self._kept, None
        if kept is None:
            return None
        expected, form, opened = kept
        if opened.reader is None:
            return (form, opened) if expected == data else None
        if _digest(data) != self._digest:
            return None
        opened.reader.data = data
        return form, opened


def _digest(data: bytes) -> bytes:
    from hashlib import sha256  # noqa: PLC0415 - it takes 4 MB, and few workers meet such a picture

    return sha256(data).digest()
