"""A stored picture -> a small one to show in a list, made once and kept in a bounded folder.

A thumbnail can be made again at any time, so it is written without a sync, and the oldest ones are
deleted if the folder grows too large.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from pathlib import Path

from limner.content import Picture
from limner.errors import ImageError
from limner.imaging.fit import FitRequest
from limner.imaging.pool import Imaging
from limner.storage.blobs import BlobStore
from limner.storage.bounded_folder import BoundedFolder

MIME = "image/webp"
EDGE = 384
MAX_BYTES = 256 * 1024 * 1024
_REQUEST = FitRequest(
    mode="fast", max_width=EDGE, max_height=EDGE, max_bytes=64 * 1024, formats=(MIME,)
)


class Thumbnails:
    """The small pictures of one home. Making this value does not touch the disk."""

    def __init__(
        self, folder: Path, *, blobs: BlobStore, imaging: Imaging, max_bytes: int = MAX_BYTES
    ) -> None:
        self._folder, self._blobs, self._imaging = folder, blobs, imaging
        self._bound = BoundedFolder(folder, max_bytes=max_bytes)

    async def get(self, picture: Picture) -> bytes:
        """The bytes of the small picture, as WebP.

        Raises:
            ImageError: the picture cannot be decoded.
            StorageError: its bytes are missing.
        """
        file = self._file(picture.handle)
        with suppress(FileNotFoundError):
            return await asyncio.to_thread(file.read_bytes)
        fitted, data = await self._imaging.fit(lambda: self._blobs.read(picture.handle), _REQUEST)
        if fitted.mime != MIME:
            raise ImageError(f"the worker made a thumbnail of the type {fitted.mime}")
        # On a full disk the picture is shown all the same.
        with suppress(OSError):
            await asyncio.to_thread(self._keep, file, data)
        return data

    def forget(self, handle: str) -> None:
        """Delete the small picture of a picture that was deleted."""
        with suppress(OSError):
            self._file(handle).unlink()

    def _file(self, handle: str) -> Path:
        return self._folder / handle[:2] / f"{handle}.webp"

    def _keep(self, file: Path, data: bytes) -> None:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = file.with_name(f".{secrets.token_hex(8)}")
        part.write_bytes(data)
        part.replace(file)
        self._bound.count(len(data))
