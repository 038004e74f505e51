"""The only road in and out: untrusted bytes -> verified -> blob -> handle -> PNG.

Nothing is a picture before it has been decoded in full, in the isolated worker. The bytes as
received are the master and are kept as they came; a PNG made of them is a derivative that names
its parent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from limner.content import Picture
from limner.errors import StorageError
from limner.imaging.pool import Imaging
from limner.storage.blobs import Blobs, BlobWriter
from limner.storage.store import Store

MAX_PICTURE_BYTES = 64 * 1024 * 1024
PNG = "image/png"


class Pictures:
    """Every picture there is, by handle."""

    def __init__(
        self, *, blobs: Blobs, store: Store, imaging: Imaging, clock: Callable[[], datetime]
    ) -> None:
        self._blobs, self._store, self._imaging, self._clock = blobs, store, imaging, clock

    def sink(self) -> BlobWriter:
        """Where the bytes of one picture are poured; nothing stays unless it is taken."""
        return self._blobs.writer(max_bytes=MAX_PICTURE_BYTES)

    async def take(
        self, poured: BlobWriter, *, lineage: Mapping[str, Any], parent: Picture | None = None
    ) -> Picture:
        """Turn poured bytes into a picture.

        Raises:
            ImageError: the bytes are not a whole picture of a known format.
            StorageError: they cannot be kept; or they are, at ``kept_at``, but not recorded.
        """
        # The bytes are read on the worker's own thread: pictures that wait for their turn to be
        # verified stay on disk.
        facts = await self._imaging.verify(poured.read_all)
        picture = Picture(
            handle=await asyncio.to_thread(poured.commit),
            mime=facts.mime,
            width=facts.width,
            height=facts.height,
            size_bytes=poured.size_bytes,
        )
        try:
            await self._record(picture, lineage=lineage, parent=parent)
        except StorageError as error:
            error.extras["kept_at"] = str(self.path(picture))
            raise
        return picture

    async def png(self, picture: Picture, *, cover: tuple[int, int] | None = None) -> Picture:
        """The picture as PNG, and of exactly the size ``cover`` where that is given.

        A PNG that already fits is its own answer, byte for byte.
        """
        if cover == (picture.width, picture.height):
            cover = None
        if picture.mime == PNG and cover is None:
            return picture
        data = await self._imaging.to_png(lambda: self._blobs.read(picture.handle), cover=cover)
        with self.sink() as sink:
            sink.write(data)
            made = {"made": "png" if cover is None else "cover"}
            return await self.take(sink, lineage=made, parent=picture)

    async def recall(self, handle: str) -> Picture:
        """The picture of a handle.

        Raises:
            StorageError: no such picture is stored here.
        """
        row = await self._store.read(lambda tx: tx.one("picture_get", handle=handle))
        if row is None:
            raise StorageError(f"no picture {handle!r} is stored here", code="NO_SUCH_PICTURE")
        fields = ("handle", "mime", "width", "height", "size_bytes")
        return Picture(**{name: row[name] for name in fields})

    def path(self, picture: Picture) -> Path:
        """The file that holds the picture's bytes, for copying from."""
        return self._blobs.path(picture.handle)

    async def _record(
        self, picture: Picture, *, lineage: Mapping[str, Any], parent: Picture | None
    ) -> None:
        now_ms = int(self._clock().timestamp() * 1000)
        await self._store.write(
            lambda tx: tx.run(
                "picture_add",
                handle=picture.handle,
                mime=picture.mime,
                width=picture.width,
                height=picture.height,
                size_bytes=picture.size_bytes,
                parent=None if parent is None else parent.handle,
                lineage=msgspec.json.encode(lineage).decode(),
                created_ms=now_ms,
            )
        )
