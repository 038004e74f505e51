"""A home -> which of its pictures are damaged or missing; a damaged home -> its pictures again.

Each stored file is named by its sha256, so a damaged one shows. Rows of the database are made anew
from the stored files. The labelled files of the generated folder tell who drew a picture, and bring
back bytes that the store has lost.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from limner.errors import ImageError, StorageError
from limner.imaging.pool import Imaging
from limner.pictures.labels import Label, read_label
from limner.storage.blobs import BlobStore, digest_of
from limner.storage.home import Home
from limner.storage.os_errors import disk_errors
from limner.storage.repair import DatabaseRepair, repair_database
from limner.storage.store import Store, Transaction

SAMPLE = 32
PG_RESTORE = (
    'pg_restore --clean --if-exists --dbname="$LIMNER_STORE" limner.dump brings back a copy of '
    "pg_dump; `limner doctor --scrub` checks every picture."
)
_FILES_AT_ONCE = 100

Tell = Callable[[str, int, int], None]
"""Gets what is being done, and how many of how many pictures are done."""


class Scrub(msgspec.Struct, frozen=True, kw_only=True):
    """What the check of stored files found.

    Attributes:
        checked: how many files were hashed.
        pictures: how many pictures the database has.
        damaged: the handles whose bytes do not match.
        missing: the handles that the database has, without a file.
    """

    checked: int
    pictures: int
    damaged: tuple[str, ...]
    missing: tuple[str, ...]


class HomeRepair(msgspec.Struct, frozen=True, kw_only=True):
    """What a repair did.

    Attributes:
        database: what it did to the database.
        pictures: how many pictures are there now, whole and recorded.
        recorded: how many of them got a new row.
        restored: how many of them got their bytes back from the generated folder.
        damaged: the handles whose bytes are damaged and were not found elsewhere.
        missing: the handles that the database has, whose bytes were not found.
        unreadable: the files in the store that are no picture.
    """

    database: DatabaseRepair
    pictures: int
    recorded: int
    restored: int
    damaged: tuple[str, ...]
    missing: tuple[str, ...]
    unreadable: tuple[str, ...]


class HomeRepairer(msgspec.Struct, frozen=True, kw_only=True):
    """Checks and repairs a home."""

    home: Home
    store: Store
    blobs: BlobStore
    imaging: Imaging

    async def scrub(
        self, *, sample: int | None = None, tell: Tell = lambda _what, _done, _of: None
    ) -> Scrub:
        """Hash every stored file, or a sample of the pictures.

        Raises:
            StorageError: the database or the disk cannot be read.
        """
        rows = await self._recorded()
        files = rows if sample is not None else {*await asyncio.to_thread(self._stored), *rows}
        chosen = sorted(files)
        if sample is not None and sample < len(chosen):
            chosen = random.sample(chosen, sample)
        states = await self._hash(chosen, tell)
        return Scrub(
            checked=sum(state is not None for state in states.values()),
            pictures=len(rows),
            damaged=tuple(handle for handle, state in states.items() if state is False),
            missing=tuple(handle for handle, state in states.items() if state is None),
        )

    async def repair(self, *, tell: Tell = lambda _what, _done, _of: None) -> HomeRepair:
        """Repair the database, then bring back every picture whose bytes are anywhere in the home.

        Raises:
            StorageError: another process uses the home (``HOME_IN_USE``), the disk fails, or the
                database is not a file of the home.
        """
        self.store.refuse_shared("The repair", instead=PG_RESTORE)
        database = await asyncio.to_thread(repair_database, self.home)
        rows = await self._recorded()
        copies = await asyncio.to_thread(self._generated)
        labels = {handle: label for handle, (_, label) in copies.items() if label is not None}
        handles = sorted({*rows, *labels, *await asyncio.to_thread(self._stored)})
        states = await self._hash(handles, tell)
        broken = [handle for handle, state in states.items() if not state]
        restored = await asyncio.to_thread(self._restore, broken, copies)
        whole = {handle for handle, state in states.items() if state} | restored
        unreadable = await self._record(sorted(whole - rows), labels, tell)
        return HomeRepair(
            database=database,
            pictures=len(whole) - len(unreadable),
            recorded=len(whole - rows) - len(unreadable),
            restored=len(restored),
            damaged=tuple(one for one in broken if one not in restored and states[one] is False),
            missing=tuple(one for one in broken if one not in restored and states[one] is None),
            unreadable=tuple(unreadable),
        )

    async def _recorded(self) -> set[str]:
        rows = await self.store.read(lambda tx: tx.all("picture_handles"))
        return {row["handle"] for row in rows}

    def _stored(self) -> set[str]:
        with disk_errors(doing="read", path=self.home.blobs):
            return set(self.blobs.handles())

    async def _hash(self, handles: list[str], tell: Tell) -> dict[str, bool | None]:
        """Whether the bytes of each handle match it; None if there are none."""
        states: dict[str, bool | None] = {}
        for start in range(0, len(handles), _FILES_AT_ONCE):
            chunk = handles[start : start + _FILES_AT_ONCE]
            states |= await asyncio.to_thread(self._hash_some, chunk)
            tell("Checking", len(states), len(handles))
        return states

    def _hash_some(self, handles: list[str]) -> dict[str, bool | None]:
        return {handle: self.blobs.is_whole(handle) for handle in handles}

    def _generated(self) -> dict[str, tuple[Path, Label | None]]:
        """The files of the generated folder by the handle of their picture."""
        found: dict[str, tuple[Path, Label | None]] = {}
        for path in sorted(self.home.generated.glob("*")):
            with disk_errors(doing="read", path=path):
                if not path.is_file():
                    continue
                with path.open("rb") as file:
                    read = read_label(file)
                if read is None:
                    found.setdefault(digest_of(path), (path, None))
                else:
                    found[read[0].handle] = (path, read[0])
        return found

    def _restore(
        self, handles: Iterable[str], copies: Mapping[str, tuple[Path, Label | None]]
    ) -> set[str]:
        """Store the bytes of these pictures again; those of which there is a copy."""
        restored: set[str] = set()
        for handle in handles:
            if handle not in copies:
                continue
            path, label = copies[handle]
            with disk_errors(doing="read", path=path), path.open("rb") as file:
                read = None if label is None else read_label(file)
                data = path.read_bytes() if read is None else read[1]
            if self.blobs.add(data) == handle:
                restored.add(handle)
        return restored

    async def _record(
        self, handles: list[str], labels: Mapping[str, Label], tell: Tell
    ) -> list[str]:
        """Write the rows of these pictures; the handles of files that are none."""
        unreadable: list[str] = []
        for number, handle in enumerate(handles, start=1):
            try:
                row = await self._row(handle, labels.get(handle))
            except (ImageError, StorageError):
                unreadable.append(handle)
                continue

            def add(tx: Transaction, row: Mapping[str, Any] = row) -> None:
                tx.run("picture_add", **row)

            await self.store.write(add)
            tell("Recording", number, len(handles))
        return unreadable

    async def _row(self, handle: str, label: Label | None) -> dict[str, Any]:
        facts = await self.imaging.verify(lambda: self.blobs.read(handle))
        lineage: dict[str, Any] = {"repaired": True}
        if label is not None:
            provider, _, model = label.model.partition("/")
            lineage |= {"provider": provider, "model": model, "prompt": label.prompt}
            with suppress(msgspec.DecodeError, RecursionError):
                lineage["scene"] = msgspec.json.decode(label.scene)
        facts_of_blob = await asyncio.to_thread(self.blobs.facts, [handle])
        size_bytes, stored_at_s = facts_of_blob[handle]
        return {
            "handle": handle,
            "mime": facts.mime,
            "width": facts.width,
            "height": facts.height,
            "size_bytes": size_bytes,
            "parent": None,
            "lineage": msgspec.json.encode(lineage).decode(),
            "created_ms": int(stored_at_s * 1000),
        }
