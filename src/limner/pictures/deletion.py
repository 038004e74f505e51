"""Handles of pictures -> their bytes, small forms and files deleted; what they cost stays known.

The row of a picture stays, because others may be made from it, and because the ledger and
conversations name it. If the same bytes come in again, the picture is back.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from limner.errors import LimnerError
from limner.pictures.gc import FreedSpace
from limner.pictures.take import content_handle
from limner.pictures.thumbnails import Thumbnails
from limner.storage.blobs import BlobStore
from limner.storage.store import Row, Store, Transaction


class PictureDeleter(msgspec.Struct, frozen=True, kw_only=True):
    """Deletes the pictures that a person names.

    Of the files that were written for them, only those in the folder ``generated`` are deleted: the
    others are the user's own.
    """

    store: Store
    blobs: BlobStore
    thumbnails: Thumbnails
    generated: Path
    clock: Callable[[], datetime]

    async def delete(self, handles: Iterable[str]) -> FreedSpace:
        """Delete pictures with their fits, formats and masks; unknown ones are left out.

        Raises:
            StorageError: the database or a file cannot be written.
        """
        named = json.dumps(sorted({*handles}))
        now_s = time.time()

        def mark(tx: Transaction) -> tuple[Sequence[Row], Sequence[Row]]:
            forms = tx.all("picture_forms", handles=named)
            marked = json.dumps([row["handle"] for row in forms])
            files = tx.all("picture_files", handles=marked)
            tx.run("garbage_drop_fits", handles=marked)
            now_ms = int(self.clock().timestamp() * 1000)
            tx.run("pictures_delete", handles=marked, now_ms=now_ms)
            return forms, files

        forms, files = await self.store.write(mark)
        gone = {row["handle"] for row in forms}
        paths = [Path(row["path"]) for row in files]
        sizes = await asyncio.to_thread(self._remove, gone, paths, now_s)
        return FreedSpace(
            pictures=len(gone),
            files=sum(size > 0 for size in sizes),
            size_bytes=sum(sizes),
            young=0,
        )

    def _remove(self, handles: set[str], paths: Sequence[Path], now_s: float) -> list[int]:
        sizes: list[int] = []
        for handle in sorted(handles):
            self.thumbnails.forget(handle)
            # A process that stores the same bytes at this moment touches the file first.
            sizes.append(self.blobs.remove_unless_stored_since(handle, since_s=now_s))
        for path in paths:
            # A file that was changed or replaced since is not limner's any more.
            with suppress(OSError, LimnerError):
                is_ours = path.parent.resolve() == self.generated.resolve()
                if is_ours and content_handle(path) in handles:
                    size = path.stat().st_size
                    path.unlink()
                    sizes.append(size)
        return sizes
