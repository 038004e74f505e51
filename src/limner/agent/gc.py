"""Every picture there is -> those that nothing refers to, and the room they took.

A picture stays while a session names it, while the ledger says it was paid for, and while it comes
from one that stays or was made of one. What came in a short while ago stays as well: a process may
be about to refer to it, and a picture is on disk before anything can name it.
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
"""However short the grace, what came in the last minute stays."""

_FILES_AT_ONCE = 200


class FreedSpace(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed, or would be.

    Attributes:
        pictures: how many pictures, fits and other derivatives included.
        files: how many files; one that a crash left is in no table.
        size_bytes: the room they took.
        young: how many more nothing refers to that came in too short a while ago.
    """

    pictures: int
    files: int
    size_bytes: int
    young: int


class _Sorted(msgspec.Struct, frozen=True, kw_only=True):
    """The pictures in the tables: their sizes where they are garbage, and all of them by handle."""

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
        """Remove what nothing refers to: first from the tables, then from the disk.

        Args:
            grace_s: how long a picture stays that nothing refers to yet.
            among: only these pictures and what was made of them; all where it is left out.
            dry_run: remove nothing, and tell what would be removed.
            progress: gets how many files are done, and of how many.

        Raises:
            StorageError: the tables or the disk cannot be read or written.
        """
        age_s = max(grace_s, SETTLING_S)
        since_s = time.time() - age_s
        since_ms = milliseconds(self.clock()) - int(age_s * 1000)

        def sort(tx: Transaction) -> _Sorted:
            found = self._sorted(tx, since_ms=since_ms, since_s=since_s, among=among)
            if not dry_run:
                _forget(tx, found.garbage)
            return found

        # The files' times are looked at while nobody else can write to the tables: whoever takes
        # a picture in touches its file first and its row after.
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

    def _sorted(
        self, tx: Transaction, *, since_ms: int, since_s: float, among: Collection[str] | None
    ) -> _Sorted:
        rows = {row["handle"]: row for row in tx.all("garbage_pictures")}
        made = _Families()
        for handle, row in rows.items():
            made.add(handle, parent=row["parent"])
            for source in json.loads(row["drawn_from"] or "[]"):
                made.comes_from[handle].add(source)
        for row in tx.all("garbage_fits"):
            made.add(row["picture"], parent=row["parent"])
        live = made.kept_with(row["handle"] for row in tx.all("garbage_named"))
        young = {
            handle
            for handle, row in rows.items()
            if handle not in live
            and (row["created_ms"] >= since_ms or (self.blobs.stored_at_s(handle) or 0) >= since_s)
        }
        garbage = rows.keys() - live - made.kept_with(young)
        if among is not None:
            considered = made.made_of(among)
            garbage, young = garbage & considered, young & considered
        return _Sorted(
            garbage={handle: rows[handle]["size_bytes"] for handle in sorted(garbage)},
            young=len(young),
            known=frozenset(rows),
        )

    def _strays(self, found: _Sorted, since_s: float) -> list[str]:
        """The bytes on disk that no table knows, and did not know a while ago."""
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
        def some(chunk: Sequence[str]) -> list[int]:
            return [
                self.blobs.remove_unless_stored_since(handle, since_s=since_s) for handle in chunk
            ]

        sizes: list[int] = []
        for start in range(0, len(handles), _FILES_AT_ONCE):
            sizes += await asyncio.to_thread(some, handles[start : start + _FILES_AT_ONCE])
            progress(len(sizes), len(handles))
        leftovers = await asyncio.to_thread(self.blobs.remove_leftovers, before_s=since_s)
        return [*sizes, *leftovers]


class _Families:
    """Which picture comes from which."""

    def __init__(self) -> None:
        self.comes_from: defaultdict[str, set[str]] = defaultdict(set)
        self._forms: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, handle: str, *, parent: str | None) -> None:
        """Note that a picture is another form of one; a fit may be that of several."""
        if parent is not None and parent != handle:
            self.comes_from[handle].add(parent)
            self._forms[parent].add(handle)

    def kept_with(self, handles: Iterable[str]) -> set[str]:
        """These pictures, all they come from, and every other form of any of them.

        Two pictures may look the same when made small. That form stays with the one that stays,
        and does not keep the other.
        """
        return self.made_of(_reached(handles, self.comes_from))

    def made_of(self, handles: Iterable[str]) -> set[str]:
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


def _forget(tx: Transaction, garbage: Iterable[str]) -> None:
    handles = json.dumps(list(garbage))
    for query in ("garbage_drop_fits", "garbage_part", "garbage_drop_pictures"):
        tx.run(query, handles=handles)
