"""The bytes of one format -> an opened picture: a module for each family of decoders.

They run inside a worker only. A reader is called with bytes that begin as its format does. It
checks the pixels that a header claims before it has any of them decoded, and leaves what its
decoder raises on damaged data to the worker's loop, which answers ``CorruptImage``.
"""

from __future__ import annotations

from typing import Protocol

import msgspec
from PIL import Image

from limner.errors import CorruptImage
from limner.imaging.limits import WorkerLimits

# The one pixel cap is ours: Pillow's own warns at one size and raises at twice that.
Image.MAX_IMAGE_PIXELS = None


class OpenedPicture(msgspec.Struct, frozen=True, kw_only=True):
    """One picture of a file: its header has been read, its pixels may still have to be decoded.

    ``turn`` is how it has to be turned, as EXIF counts it; 1 where it is upright. ``pages`` is how
    many pages the file has, of which this is one. Where it ``may_move``, further pictures in the
    file are an animation; anywhere else they are something that need not be told.
    """

    image: Image.Image
    turn: int = 1
    pages: int = 1
    may_move: bool = False

    @property
    def frames(self) -> int:
        """How many frames an animation has; 1 for a still picture."""
        return getattr(self.image, "n_frames", 1) if self.may_move else 1

    @property
    def animated(self) -> bool:
        """Whether there is more than one frame, without counting them."""
        return self.may_move and getattr(self.image, "is_animated", False)


class Decoder(Protocol):
    """How one format is opened."""

    def __call__(self, data: bytes, *, page: int, limits: WorkerLimits) -> OpenedPicture:
        """Open that page; a format without pages takes no notice of it."""
        ...


def check_page(page: int, pages: int) -> None:
    """Refuse a page before any is decoded.

    Raises:
        CorruptImage: there is no such page.
    """
    if not 1 <= page <= pages:
        count = "1 page" if pages == 1 else f"{pages} pages"
        hint = "Leave the page out." if pages == 1 else f"Give a page from 1 to {pages}."
        raise CorruptImage(f"there is no page {page}: the file has {count}", hint=hint)
