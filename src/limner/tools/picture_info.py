"""A handle or a path -> everything that is known about the picture; nothing is stored."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec

from limner.content import Discreet, Picture
from limner.errors import ImageError, ImageTooLarge, MissingExtra, StorageError
from limner.imaging.png_chunks import PngText, texts
from limner.imaging.pool import Imaging
from limner.imaging.provenance import Manifest, has_manifest
from limner.money.ledger import Money
from limner.money.records import LedgerRow
from limner.pictures.labels import own_handle
from limner.pictures.lineage import Lineage, PictureRecord
from limner.pictures.take import MAX_PICTURE_BYTES, Pictures
from limner.storage.blobs import is_handle
from limner.storage.files import open_plain
from limner.storage.os_errors import disk_errors
from limner.tools.base import ToolContext
from limner.tools.file_lookup import find_file


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """A C2PA manifest that was found.

    ``of_original`` says that it is not in the picture itself, but in the original that the picture
    was made from. ``manifest`` is what it claims. If that is None, ``unread`` says why, and
    ``hint`` what to do.
    """

    of_original: bool
    manifest: Manifest | None = None
    unread: str | None = None
    hint: str | None = None


class PictureSize(msgspec.Struct, frozen=True, kw_only=True):
    """Pixels across and down, upright."""

    width: int
    height: int


class RelatedPicture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture that another one was made from, or that was made from it."""

    handle: str
    mime: str
    dimensions: PictureSize
    bytes: int
    parent: str | None
    lineage: Mapping[str, Any]
    created_ms: int


class PictureFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON object of a picture: what `limner show --json` prints.

    Attributes:
        path: the file that the caller named.
        handle: its name in the store.
        mime: its type.
        dimensions: its size in pixels.
        bytes: its size in bytes.
        kept_at: its file in the store.
        created_ms: when it came.
        lineage: what was recorded about its origin.
        ancestors: the pictures that it was made from, nearest first.
        offspring: the pictures that were made from it, oldest first.
        cost_usd: what the last call that brought it in cost.
        cost_source: how that is known.
        calls: the calls that brought it in.
        metadata: the texts in the file.
        provenance: what its C2PA manifest claims.
    """

    path: str | None
    handle: str | None
    mime: str
    dimensions: PictureSize
    bytes: int
    kept_at: str | None
    created_ms: int | None
    lineage: Mapping[str, Any] | None
    ancestors: tuple[RelatedPicture, ...]
    offspring: tuple[RelatedPicture, ...]
    cost_usd: float | None
    cost_source: str | None
    calls: tuple[Mapping[str, Any], ...]
    metadata: tuple[Mapping[str, str], ...]
    provenance: Mapping[str, Any] | None


class PictureInfo(Discreet, frozen=True, kw_only=True):
    """A picture and what is known about it.

    Attributes:
        data: its bytes, as they are in the file or in the store.
        mime: its type.
        width: pixels across, upright.
        height: pixels down.
        path: the file that the caller named; None for a handle.
        kept_at: where it is in the store; None if it is not there.
        family: its record in the store; None if it is not there.
        purchases: the calls that brought it in, the last one first.
        words: the texts in the file.
        provenance: its C2PA manifest, if one was found.
    """

    unshown = ("data",)

    data: bytes
    mime: str
    width: int
    height: int
    path: Path | None = None
    kept_at: Path | None = None
    family: Lineage | None = None
    purchases: tuple[LedgerRow, ...] = ()
    words: tuple[PngText, ...] = ()
    provenance: Provenance | None = None


class PictureInfoReader(msgspec.Struct, frozen=True, kw_only=True):
    """Finds what is known about a picture."""

    pictures: Pictures
    money: Money
    imaging: Imaging

    async def show(self, name: str, context: ToolContext) -> PictureInfo:
        """What is known about the picture with that handle, or in that file.

        Raises:
            ReachDenied: the caller may not read the path.
            StorageError: there is no such picture or file, or it cannot be read.
            ImageError: the file is not a picture.
        """
        path, data, family = await self._find(name, context)
        if family is None:
            facts = await self.imaging.verify(data)
            mime, width, height = facts.mime, facts.width, facts.height
            kept_at, purchases = None, ()
        else:
            picture = family.record.picture
            mime, width, height = picture.mime, picture.width, picture.height
            kept_at = await asyncio.to_thread(self.pictures.local_path, picture)
            purchases = await self.money.purchases(family.master.picture.handle)
        return PictureInfo(
            data=data,
            mime=mime,
            width=width,
            height=height,
            path=path,
            kept_at=kept_at,
            family=family,
            purchases=purchases,
            words=texts(BytesIO(data)),
            provenance=await self._provenance(data, mime, family),
        )

    async def _find(
        self, name: str, context: ToolContext
    ) -> tuple[Path | None, bytes, Lineage | None]:
        if is_handle(name):
            picture = await self.pictures.recall(name)
            data = await self.pictures.original(picture)
            return None, data, await self.pictures.family(name)
        path = find_file(name, context)
        data = await asyncio.to_thread(_bytes_in, path)
        family = None
        # A file that limner labelled elsewhere may have been taken in here as it is.
        for handle in (own_handle(BytesIO(data)), hashlib.sha256(data).hexdigest()):
            if family is None and handle is not None:
                family = await self.pictures.family(handle)
        return path, data, family

    async def _provenance(
        self, data: bytes, mime: str, family: Lineage | None
    ) -> Provenance | None:
        if has_manifest(BytesIO(data)):
            return await self._read(data, mime, of_original=False)
        if family is None or family.master is family.record:
            return None
        master = family.master.picture
        original = await self._original(master)
        if original is None or not has_manifest(BytesIO(original)):
            return None
        return await self._read(original, master.mime, of_original=True)

    async def _original(self, picture: Picture) -> bytes | None:
        try:
            return await self.pictures.original(picture)
        except StorageError:
            return None

    async def _read(self, data: bytes, mime: str, *, of_original: bool) -> Provenance:
        try:
            manifest = await self.imaging.read_manifest(data, mime=mime)
        except (MissingExtra, ImageError) as error:
            return Provenance(of_original=of_original, unread=error.message, hint=error.hint)
        return Provenance(of_original=of_original, manifest=manifest)


def facts_of(info: PictureInfo) -> PictureFacts:
    """Everything but the bytes, as JSON values."""
    family = info.family
    call = info.purchases[0] if info.purchases else None
    return PictureFacts(
        path=None if info.path is None else str(info.path),
        handle=None if family is None else family.record.picture.handle,
        mime=info.mime,
        dimensions=PictureSize(width=info.width, height=info.height),
        bytes=len(info.data),
        kept_at=None if info.kept_at is None else str(info.kept_at),
        created_ms=None if family is None else family.record.created_ms,
        lineage=None if family is None else family.record.lineage,
        ancestors=() if family is None else tuple(map(_related, family.ancestors)),
        offspring=() if family is None else tuple(map(_related, family.offspring)),
        cost_usd=None if call is None else call.cost_usd,
        cost_source=None if call is None else call.cost_source,
        calls=tuple(row.as_json() for row in info.purchases),
        metadata=tuple(word._asdict() for word in info.words),
        provenance=_provenance_facts(info.provenance),
    )


def _related(record: PictureRecord) -> RelatedPicture:
    picture = record.picture
    return RelatedPicture(
        handle=picture.handle,
        mime=picture.mime,
        dimensions=PictureSize(width=picture.width, height=picture.height),
        bytes=picture.size_bytes,
        parent=record.parent,
        lineage=record.lineage,
        created_ms=record.created_ms,
    )


def _provenance_facts(provenance: Provenance | None) -> Mapping[str, object] | None:
    if provenance is None:
        return None
    manifest = provenance.manifest
    facts: dict[str, object] = {"kind": "c2pa", "of_original": provenance.of_original}
    if manifest is None:
        return {**facts, "state": "unread", "reason": provenance.unread, "hint": provenance.hint}
    return {
        **facts,
        "state": manifest.state,
        "claim_generator": manifest.claim_generator,
        "signer": manifest.signer,
        "issuer": manifest.issuer,
        "signed_at": manifest.signed_at,
        "problems": manifest.problems,
        "ingredients": manifest.ingredients,
    }


def _bytes_in(path: Path) -> bytes:
    with open_plain(path) as file, disk_errors(doing="read", path=path):
        data = file.read(MAX_PICTURE_BYTES + 1)
    if len(data) > MAX_PICTURE_BYTES:
        raise ImageTooLarge(f"The picture is larger than {MAX_PICTURE_BYTES:,} bytes.")
    return data
