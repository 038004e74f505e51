"""Untrusted bytes -> a verified picture with a handle -> its bytes, formats, fits and masks.

This is the only way in and out. Bytes become a picture only after an isolated worker has decoded
all of them. The bytes as received are the master and never change. Another format or a fit for a
model is a derivative, which names its parent.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from limner import metrics
from limner.content import Picture
from limner.errors import NotFound, StorageError
from limner.imaging.facts import MaskWay
from limner.imaging.fit import FIT_VERSION, FitRequest, Fitted, Region
from limner.imaging.formats import BY_NAME, OutputFormat
from limner.imaging.pool import Imaging
from limner.pictures.labels import own_handle
from limner.pictures.lineage import (
    Lineage,
    is_drawn_here,
    is_made_here,
    picture_from_row,
    read_lineage,
)
from limner.storage.blobs import BlobStore, BlobWriter
from limner.storage.files import open_plain
from limner.storage.incoming_files import IncomingFile
from limner.storage.os_errors import disk_errors
from limner.storage.store import Store, Transaction

if TYPE_CHECKING:
    from limner.imaging.transform import TransformRequest

MAX_PICTURE_BYTES = 64 * 1024 * 1024
# A request needs the fits of the previous one again: this many are found without the database.
MAX_REMEMBERED_FITS = 1_000
_READ_BYTES = 1 << 20

logger = logging.getLogger("limner.pictures")


class Pictures:
    """Every stored picture, by handle."""

    def __init__(
        self,
        *,
        blobs: BlobStore,
        store: Store,
        imaging: Imaging,
        clock: Callable[[], datetime],
        max_bytes: int = MAX_PICTURE_BYTES,
    ) -> None:
        """``max_bytes`` is the most that the file of a picture may have."""
        self._blobs, self._store, self._imaging, self._clock = blobs, store, imaging, clock
        self._max_bytes = max_bytes
        self._fits: dict[tuple[str, str], tuple[str, Fitted]] = {}
        self._is_claimed = False

    @property
    def must_load_ocr(self) -> bool:
        """Whether the next OCR has to load its models first, which takes some seconds."""
        return self._imaging.must_load_ocr

    def sink(self) -> BlobWriter:
        """A writer for the bytes of one picture; they are discarded unless `take` keeps them."""
        return self._blobs.writer(max_bytes=self._max_bytes)

    async def expect(self) -> None:
        """Make sure that a worker can verify a picture, before the picture is paid for.

        Raises:
            LimnerError: no worker can be started.
        """
        await self._imaging.ready()

    async def take(
        self,
        writer: BlobWriter,
        *,
        lineage: Mapping[str, Any],
        parent: Picture | None = None,
        synced: bool = True,
    ) -> Picture:
        """Verify the written bytes and store them as a picture.

        Its bytes are always synced. Its row need not be ``synced`` if the caller writes next what
        names the picture: see `Store.write`.

        Raises:
            ImageError: the bytes are not a complete picture of a known format.
            StorageError: they cannot be stored; or they are at ``kept_at`` and the database failed.
        """
        # The database of a home is older than its pictures: one that is missing beside a picture
        # counts as lost. If it was made and cannot be opened, the bytes are stored nevertheless.
        try:
            await self._store.open()
        except StorageError:
            if not await self._store.was_made():
                raise
        picture = await self.verify(writer)
        try:
            await self._store.write(
                lambda tx: self.record(tx, picture, lineage=lineage, parent=parent),
                shared=True,
                synced=synced,
            )
        except StorageError as error:
            error.extras["kept_at"] = self.location(picture)
            raise
        metrics.PICTURES.add(made="taken")
        return picture

    async def verify(self, writer: BlobWriter | IncomingFile) -> Picture:
        """Verify the written bytes and store them as a blob; `record` makes them a picture.

        Raises:
            ImageError: the bytes are not a complete picture of a known format.
            StorageError: they cannot be stored.
        """
        facts = await self._imaging.verify(writer)
        if self._blobs.is_shared and not self._is_claimed:
            await self._claim()
        return Picture(
            handle=await asyncio.to_thread(writer.commit),
            mime=facts.mime,
            width=facts.width,
            height=facts.height,
            size_bytes=writer.size_bytes,
        )

    async def take_file(self, path: Path) -> Picture:
        """Store the picture in a file; the file does not change.

        A file that limner wrote is recognized: the result is the picture it was written from.

        Args:
            path: resolved by ``Reach.resolve_read``.

        Raises:
            ImageError: it is not a complete picture of a known format, or it is too large.
            ReachDenied: the file has become a symlink.
            StorageError: the file does not exist or cannot be read; or as for `take`.
        """
        if (picture := await self._recognize(path)) is not None:
            return picture
        with self.sink() as sink:
            await asyncio.to_thread(_copy, path, sink)
            return await self.take(sink, lineage={"file": str(path)})

    async def convert(
        self,
        picture: Picture,
        *,
        to: OutputFormat = "png",
        cover: tuple[int, int] | None = None,
    ) -> Picture:
        """Convert a picture to a format, and to exactly the size ``cover`` if that is given.

        A picture that already has both is returned unchanged.

        Raises:
            ImageTooLarge: the format cannot hold a picture that large.
            StorageError: the picture's bytes are missing, or the new ones cannot be stored.
        """
        if cover == (picture.width, picture.height):
            cover = None
        if picture.mime == BY_NAME[to].mime and cover is None:
            return picture
        data = await self._imaging.convert(
            lambda: self._blobs.read(picture.handle), to=to, cover=cover
        )
        with self.sink() as sink:
            sink.write(data)
            made = {"made": to if cover is None else "cover"}
            return await self.take(sink, lineage=made, parent=picture)

    async def transform(
        self, picture: Picture, request: TransformRequest, *, untrusted: bool
    ) -> tuple[Picture, tuple[str, ...]]:
        """Make a new picture from one, and say what the caller should know about it.

        It is ``untrusted`` if the request may repeat content from outside.

        Raises:
            ImageError: the request is impossible.
            InputInvalid: a part lies outside the picture.
            StorageError: the picture's bytes are missing, or the new ones cannot be stored.
        """
        made, data = await self._imaging.transform(
            lambda: self._blobs.read(picture.handle), request
        )
        with self.sink() as sink:
            sink.write(data)
            lineage = {"made": "transform", **({"untrusted": True} if untrusted else {})}
            new = await self.take(sink, lineage=lineage, parent=picture)
        return new, made.notes

    async def give(self, picture: Picture, request: FitRequest) -> tuple[Fitted, bytes]:
        """Fit a picture for a model: what was changed, and the bytes to send.

        The result is stored, and found again by the picture and the request. A picture that is
        sent unchanged is not: to look at its file again is as fast.

        Raises:
            ImageError: the request is impossible, as with a region outside the picture.
            StorageError: the picture's bytes are missing.
        """
        size = picture.width, picture.height
        if (
            request.region is None
            and request.box_contains(size)
            and request.allows_unchanged(picture.mime, picture.size_bytes)
        ):
            unchanged, data = await asyncio.to_thread(self._pass_through, picture, request)
            if unchanged is not None:
                return unchanged, data
        key = msgspec.json.encode({"version": FIT_VERSION, **msgspec.to_builtins(request)}).decode()
        if (known := await self._find_fit(picture, key)) is not None:
            logger.debug("the fit of %s is in the cache", picture.handle)
            return known
        fitted, data = await self._imaging.fit(lambda: self._blobs.read(picture.handle), request)
        # If it cannot be stored, as on a full disk, the caller still gets it.
        with suppress(StorageError):
            await self._keep_fit(picture, key, fitted, data)
        return fitted, data

    async def mask(self, drawn: Picture, *, size: tuple[int, int], way: MaskWay) -> bytes:
        """Turn a drawn mask into a mask of that size."""
        return await self._imaging.mask(lambda: self._blobs.read(drawn.handle), size=size, way=way)

    async def mask_of_region(
        self, region: Region, *, of: Picture, size: tuple[int, int], way: MaskWay
    ) -> bytes:
        """Make a mask of that size for a region of a picture."""
        return await self._imaging.mask_of_region(
            region, of=(of.width, of.height), size=size, way=way
        )

    async def original(self, picture: Picture) -> bytes:
        """The bytes as received.

        Raises:
            StorageError: they are missing or damaged.
        """
        return await asyncio.to_thread(self._blobs.read, picture.handle)

    async def recall(self, handle: str) -> Picture:
        """The picture of a handle.

        Raises:
            NotFound: no picture with that handle is stored here.
        """
        row = await self._store.read(lambda tx: tx.one("picture_get", handle=handle))
        if row is None:
            raise NotFound(f"no picture {handle!r} is stored here", code="NO_SUCH_PICTURE")
        if row["deleted_ms"] is not None:
            raise NotFound(f"the picture {handle!r} was deleted", code="NO_SUCH_PICTURE")
        return picture_from_row(row)

    async def family(self, handle: str) -> Lineage | None:
        """A picture with its ancestors and offspring; None if it is not stored here."""
        return await self._store.read(lambda tx: read_lineage(tx, handle))

    async def drawn_here(self, handles: Iterable[str]) -> bool:
        """Whether limner drew all of these from text alone: then they hold no foreign text."""
        wanted = tuple(handles)
        if not wanted:  # a plan without pictures must not create a database
            return True
        return await self._store.read(lambda tx: all(is_drawn_here(tx, one) for one in wanted))

    async def find_made(self, path: Path) -> str | None:
        """The handle of the picture in a file, if limner drew it and the file is unchanged since.

        Args:
            path: resolved by ``Reach.resolve_write``.

        Raises:
            ReachDenied: the file has become a symlink.
            StorageError: it does not exist, or cannot be read.
        """
        handle = await asyncio.to_thread(content_handle, path)
        is_made = await self._store.read(lambda tx: is_made_here(tx, handle))
        return handle if is_made else None

    def record(
        self,
        tx: Transaction,
        picture: Picture,
        *,
        lineage: Mapping[str, Any],
        parent: Picture | None = None,
    ) -> None:
        """Write the row of a picture whose bytes are stored, in a transaction of the caller."""
        now_ms = self._now_ms()
        added = tx.run(
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
        if not added:
            # A garbage collector that has seen only older bytes leaves the row alone.
            tx.run("picture_stored", handle=picture.handle, now_ms=now_ms)

    def location(self, picture: Picture) -> str:
        """Where the picture's bytes are stored, to name to the user."""
        return self._blobs.location(picture.handle)

    def local_path(self, picture: Picture) -> Path:
        """A file of this machine with the picture's bytes; raises as `original`. It blocks."""
        return self._blobs.local_path(picture.handle)

    def checked_path(self, picture: Picture) -> Path:
        """As `local_path`, to copy from: the bytes have been checked. It blocks."""
        return self._blobs.checked_path(picture.handle)

    async def _claim(self) -> None:
        """Note in the shared place that this database counts on it: see `GarbageCollector`."""
        row = await self._store.read(lambda tx: tx.one("home_id"))
        assert row is not None
        await asyncio.to_thread(self._blobs.claim, row["id"])
        self._is_claimed = True

    async def _recognize(self, path: Path) -> Picture | None:
        """The picture that limner wrote to a file, if it is still stored."""
        handle = await asyncio.to_thread(_own_handle, path)
        if handle is None or not await asyncio.to_thread(self._blobs.has, handle):
            return None
        with suppress(StorageError):  # the bytes can exist without a row
            return await self.recall(handle)
        return None

    def _pass_through(self, picture: Picture, request: FitRequest) -> tuple[Fitted | None, bytes]:
        data = self._blobs.read(picture.handle)
        return self._imaging.pass_through(data, request), data

    async def _find_fit(self, parent: Picture, key: str) -> tuple[Fitted, bytes] | None:
        # A remembered fit never changes; only its bytes can have been deleted.
        found = self._fits.pop((parent.handle, key), None)
        if found is None:
            row = await self._store.read(
                lambda tx: tx.one("fit_get", parent=parent.handle, request=key)
            )
            if row is None:
                return None
            found = row["picture"], msgspec.json.decode(row["fitted"], type=Fitted)
        handle, fitted = found
        try:
            data = await asyncio.to_thread(self._blobs.read, handle)
        except StorageError:  # the bytes were deleted or are damaged: make them again
            return None
        while len(self._fits) >= MAX_REMEMBERED_FITS:
            self._fits.pop(next(iter(self._fits)))
        self._fits[parent.handle, key] = found
        return fitted, data

    async def _keep_fit(self, parent: Picture, key: str, fitted: Fitted, data: bytes) -> None:
        handle = parent.handle
        if not fitted.untouched:
            handle = await asyncio.to_thread(self._blobs.add, data)
        picture = Picture(
            handle=handle,
            mime=fitted.mime,
            width=fitted.width,
            height=fitted.height,
            size_bytes=len(data),
        )

        def record(tx: Transaction) -> None:
            if tx.one("picture_get", handle=parent.handle) is None:
                return  # the garbage collector has deleted it in the meantime
            self.record(tx, picture, lineage={"made": "fit"}, parent=parent)
            tx.run(
                "fit_add",
                parent=parent.handle,
                request=key,
                picture=handle,
                fitted=msgspec.json.encode(fitted).decode(),
                created_ms=self._now_ms(),
            )

        # A fit that a failure of the machine takes away is made again.
        await self._store.write(record, shared=True, synced=False)
        metrics.PICTURES.add(made="fit")

    def _now_ms(self) -> int:
        return int(self._clock().timestamp() * 1000)


def content_handle(path: Path) -> str:
    """The handle of the picture in a file that limner wrote; of another file, its sha256."""
    with open_plain(path) as file, disk_errors(doing="read", path=path):
        if (handle := own_handle(file)) is not None:
            return handle
        file.seek(0)
        digest = hashlib.sha256()
        while part := file.read(_READ_BYTES):
            digest.update(part)
        return digest.hexdigest()


def _own_handle(path: Path) -> str | None:
    with open_plain(path) as file, disk_errors(doing="read", path=path):
        return own_handle(file)


def _copy(path: Path, sink: BlobWriter) -> None:
    with open_plain(path) as file, disk_errors(doing="read", path=path):
        while part := file.read(_READ_BYTES):
            sink.write(part)
