"""The bytes of one format -> an opened picture: a module for each family of decoders.

They run inside a worker only. A decoder is called with bytes that begin as its format does. It
checks the number of pixels that the header claims before it decodes any. It does not catch what its
library raises on damaged data: the worker's loop replies with ``CorruptImage``.
"""

from __future__ import annotations

from typing import Protocol

import msgspec
from PIL import Image

from limner.errors import InputInvalid
from limner.imaging.decoders.part_reader import PartReader
from limner.imaging.limits import WorkerLimits

# The pixel cap is in `WorkerLimits`: Pillow's own only warns, and raises at twice the size.
Image.MAX_IMAGE_PIXELS = None


class OpenedPicture(msgspec.Struct, frozen=True, kw_only=True):
    """One picture of a file, with its header parsed and its pixels not necessarily decoded.

    ``orientation`` is that of EXIF; 1 means upright. ``pages`` is the number of pages in the file.
    If it ``may_be_animated``, further pictures in the file are the frames of an animation; else
    they are ignored. If it has a ``reader``, it has too many pixels for memory: only the reader
    decodes it.
    """

    image: Image.Image
    orientation: int = 1
    pages: int = 1
    may_be_animated: bool = False
    reader: PartReader | None = None

    @property
    def size(self) -> tuple[int, int]:
        """The size of the stored picture, before it is turned upright."""
        return self.image.size if self.reader is None else self.reader.size

    @property
    def frames(self) -> int:
        """How many frames an animation has; 1 for a still picture."""
        return getattr(self.image, "n_frames", 1) if self.may_be_animated else 1

    @property
    def animated(self) -> bool:
        """Whether there is more than one frame; this does not count them."""
        return self.may_be_animated and getattr(self.image, "is_animated", False)


class Decoder(Protocol):
    """Opens a picture of one format."""

    def __call__(self, data: bytes, *, page: int, limits: WorkerLimits) -> OpenedPicture:
        """Open that page; a format without pages ignores it."""
        ...


def check_page(page: int, pages: int) -> None:
    """Check a page number before a page is decoded.

    Raises:
        InputInvalid: the file does not have that page.
    """
    if not 1 <= page <= pages:
        count = "1 page" if pages == 1 else f"{pages} pages"
        hint = "Leave the page out." if pages == 1 else f"Give a page from 1 to {pages}."
        raise InputInvalid(f"there is no page {page}: the file has {count}", hint=hint)
