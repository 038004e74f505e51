"""The picture that was verified last -> its pixels, for the fit that often follows.

Runs inside a worker only. A picture that enters a conversation is verified and then fitted, and
decoding is most of the work for a large screenshot.
"""

from __future__ import annotations

from limner.imaging.decoders import OpenedPicture
from limner.imaging.formats import Format

# The formats of screenshots. A JPEG is decoded again instead, at the scale that the fit needs.
_REUSABLE = frozenset({"png", "webp"})


class PixelCache:
    """Keeps at most one decoded picture, and returns it at most once."""

    def __init__(self) -> None:
        self._kept: tuple[bytes, Format, OpenedPicture] | None = None

    def keep(self, data: bytes, form: Format, opened: OpenedPicture) -> None:
        """Keep a picture whose pixels were just decoded."""
        self._kept = (data, form, opened) if form.name in _REUSABLE else None

    def clear(self) -> None:
        """Drop the picture."""
        self._kept = None

    def take(self, data: bytes) -> tuple[Format, OpenedPicture] | None:
        """The picture of exactly these bytes, if it is here; the cache is empty afterwards."""
        kept, self._kept = self._kept, None
        if kept is None or kept[0] != data:
            return None
        return kept[1:]
