"""The picture that was verified last -> its pixels, for the fit that often follows at once.

Runs inside a worker only. Decoding is most of what a large screenshot costs, and what comes into a
conversation is verified and then fitted.
"""

from __future__ import annotations

from limner.imaging.decoders import OpenedPicture
from limner.imaging.formats import Format

# How screens come. A JPEG is better decoded anew, at the scale that is wanted.
_REUSABLE = frozenset({"png", "webp"})


class PixelCache:
    """At most one decoded picture, which is handed out at most once."""

    def __init__(self) -> None:
        self._kept: tuple[bytes, Format, OpenedPicture] | None = None

    def keep(self, data: bytes, form: Format, opened: OpenedPicture) -> None:
        """Remember a picture whose pixels were just decoded."""
        self._kept = (data, form, opened) if form.name in _REUSABLE else None

    def forget(self) -> None:
        """Remember none."""
        self._kept = None

    def take(self, data: bytes) -> tuple[Format, OpenedPicture] | None:
        """The picture of exactly these bytes, if it is remembered; either way none is after."""
        kept, self._kept = self._kept, None
        if kept is None or kept[0] != data:
            return None
        return kept[1:]
