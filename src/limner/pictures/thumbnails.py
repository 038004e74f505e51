"""A stored picture -> a small one to show in a list, made once and kept in a bounded folder.

A thumbnail can be made again at any time, so it is written without a sync, and the oldest ones are
deleted if the folder grows too large.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from contextlib import suppress
from pathlib import Path

from limner.content import Picture
from limner.errors import ImageError
from limner.imaging.fit import FitRequest
from limner.imaging.pool import Imaging
from limner.storage.blobs import Blobs

MIME = "image/webp"
EDGE = 384
MAX_BYTES = 256 * 1024 * 1024
_REQUEST = FitRequest(
    mode="fast", max_width=EDGE, max_height=EDGE, max_bytes=64 * 1024, formats=(MIME,)
)
# A refused deletion must not make the folder grow: this much is freed at a time.
_KEPT_PART = 0.8


class Thumbnails:
    """The small pictures of one home. Making this value does not touch the disk."""

    def __init__(
        self, folder: Path, *, blobs: Blobs, imaging: Imaging, max_bytes: int = MAX_BYTES
    ) -> None:
        self._folder, self._blobs, self._imaging = folder, blobs, imaging
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._held_bytes: int | None = None

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
        with self._lock:
            if self._held_bytes is None:
                self._held_bytes = sum(size for size, _, _ in self._files())
            else:
                self._held_bytes += len(data)
            if self._held_bytes > self._max_bytes:
                self._held_bytes = self._drop_oldest()

    def _drop_oldest(self) -> int:
        """Delete the oldest thumbnails; returns how many bytes are left."""
        files = sorted(self._files(), key=lambda one: one[1])
        held = sum(size for size, _, _ in files)
        for size, _, file in files:
            if held <= self._max_bytes * _KEPT_PART:
                break
            with suppress(OSError):
                file.unlink()
                held -= size
        return held

    def _files(self) -> list[tuple[int, float, Path]]:
        found: list[tuple[int, float, Path]] = []
        for folder, _, names in os.walk(self._folder):
            for name in names:
                file = Path(folder, name)
                with suppress(OSError):
                    about = file.stat()
                    found.append((about.st_size, about.st_mtime, file))
        return found
