"""All stored pictures -> those that nothing refers to, removed, and the space they used.

A picture stays while a session refers to it, while the ledger has a payment for it, and while it is
an ancestor or another form of a picture that stays. A recent picture stays as well: it is on disk
before a session can refer to it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from limner.agent.session import milliseconds
from limner.storage.blobs import Blobs
from limner.storage.store import Store, Transaction

GRACE_S = 24 * 60 * 60
SETTLING_S = 60
"""Pictures of the last minute stay, however short the grace period is."""

_FILES_AT_ONCE = 200


class FreedSpace(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed, or would be in a dry run.

    Attributes:
        pictures: how many pictures, fits and other derivatives included.
        files: how many files; a file that a crash left is in no table.
        size_bytes: the space they used.
        young: how many more pictures are unused, but too recent to remove.
    """

    pictures: int
    files: int
    size_bytes: int
    young: int


class _Sorted(msgspec.Struct, frozen=True, kw_only=True):
    """The pictures in the tables: the sizes of the garbage, and the handles of all."""

    garbage: Mapping[str, int]
    young: int
    known: frozenset[str]


class GarbageCollector(msgspec.Struct, frozen=True, kw_only=True):
    """Removes the pictures that nothing refers to."""

    store: Store
    blobs: Blobs
    clock: Callable[[], datetime]

    async def collect(
        self,
        *,
        grace_s: float = GRACE_S,
        among: Collection[str] | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int], None] = lambda _done, _of: None,
    ) -> FreedSpace:
        """Remove unused pictures: first from the tables, then from the disk.

        Args:
            grace_s: how long an unused picture stays.
            among: only these pictures and their other forms; all if it is None.
            dry_run: remove nothing, and return what would be removed.
            progress: gets the number of files that are done, and of all files.

        Raises:
            StorageError: the tables or the disk cannot be read or written.
        """
        age_s = max(grace_s, SETTLING_S)
        since_s = time.time() - age_s
        since_ms = milliseconds(self.clock()) - int(age_s * 1000)

        def sort(tx: Transaction) -> _Sorted:
            found = self._sort(tx, since_ms=since_ms, since_s=since_s, among=among)
            if not dry_run:
                _delete_rows(tx, found.garbage)
            return found

        # The transaction also reads the times of the files, while no other process can write to
        # the tables: a process that stores a picture touches its file first and its row after.
        found = await (self.store.read if dry_run else self.store.write)(sort)
        strays = [] if among is not None else await asyncio.to_thread(self._strays, found, since_s)
        if dry_run:
            sizes = [*found.garbage.values(), *await asyncio.to_thread(self._sizes, strays)]
        else:
            sizes = await self._remove([*found.garbage, *strays], since_s, progress)
        return FreedSpace(
            pictures=len(found.garbage),
            files=sum(size > 0 for size in sizes),
            size_bytes=sum(sizes),
            young=found.young,
        )

    def _sort(
        self, tx: Transaction, *, since_ms: int, since_s: float, among: Collection[str] | None
    ) -> _Sorted:
        rows = {row["handle"]: row for row in tx.all("garbage_pictures")}
        families = _Families()
        for handle, row in rows.items():
            families.add(handle, parent=row["parent"])
            for source in json.loads(row["drawn_from"] or "[]"):
                families.parents[handle].add(source)
        for row in tx.all("garbage_fits"):
            families.add(row["picture"], parent=row["parent"])
        live = families.kept_with(row["handle"] for row in tx.all("garbage_named"))
        young = {
            handle
            for handle, row in rows.items()
            if handle not in live
            and (row["created_ms"] >= since_ms or (self.blobs.stored_at_s(handle) or 0) >= since_s)
        }
        garbage = rows.keys() - live - families.kept_with(young)
        if among is not None:
            considered = families.forms_of(among)
            garbage, young = garbage & considered, young & considered
        return _Sorted(
            garbage={handle: rows[handle]["size_bytes"] for handle in sorted(garbage)},
            young=len(young),
            known=frozenset(rows),
        )

    def _strays(self, found: _Sorted, since_s: float) -> list[str]:
        """The files on disk that are in no table and are not recent."""
        return sorted(
            handle
            for handle in self.blobs.handles()
            if handle not in found.known and (self.blobs.stored_at_s(handle) or since_s) < since_s
        )

    def _sizes(self, handles: Iterable[str]) -> list[int]:
        return [self.blobs.path(handle).stat().st_size for handle in handles]

    async def _remove(
        self, handles: Sequence[str], since_s: float, progress: Callable[[int, int], None]
    ) -> list[int]:
        def remove_chunk(chunk: Sequence[str]) -> list[int]:
            return [
                self.blobs.remove_unless_stored_since(handle, since_s=since_s) for handle in chunk
            ]

        sizes: list[int] = []
        for start in range(0, len(handles), _FILES_AT_ONCE):
            sizes += await asyncio.to_thread(remove_chunk, handles[start : start + _FILES_AT_ONCE])
            progress(len(sizes), len(handles))
        leftovers = await asyncio.to_thread(self.blobs.remove_leftovers, before_s=since_s)
        return [*sizes, *leftovers]


class _Families:
    """The parents and the other forms of each picture."""

    def __init__(self) -> None:
        self.parents: defaultdict[str, set[str]] = defaultdict(set)
        self._forms: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, handle: str, *, parent: str | None) -> None:
        """Record that a picture is another form of its parent; a fit may have several parents."""
        if parent is not None and parent != handle:
            self.parents[handle].add(parent)
            self._forms[parent].add(handle)

    def kept_with(self, handles: Iterable[str]) -> set[str]:
        """These pictures, all their ancestors, and every other form of any of them.

        Two pictures may have the same small form. It stays with the one that stays, and does not
        keep the other.
        """
        return self.forms_of(_reached(handles, self.parents))

    def forms_of(self, handles: Iterable[str]) -> set[str]:
        """These pictures and every other form of them."""
        return _reached(handles, self._forms)


def _reached(handles: Iterable[str], steps: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(handles)
    while waiting:
        handle = waiting.pop()
        if handle not in reached:
            reached.add(handle)
            waiting += steps.get(handle, ())
    return reached


def _delete_rows(tx: Transaction, garbage: Iterable[str]) -> None:
    handles = json.dumps(list(garbage))
    for query in ("garbage_drop_fits", "garbage_part", "garbage_drop_pictures"):
        tx.run(query, handles=handles)
