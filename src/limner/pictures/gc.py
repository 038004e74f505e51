"""All stored pictures -> those that nothing refers to, removed, and the space they used.

A picture stays while a session refers to it, while the ledger has a payment for it, and while it is
an ancestor or another form of a picture that stays. A recent picture stays as well: it is on disk
before a session can refer to it. Whatever a call that has not ended may own stays too, however old
the clock says that it is.

Everything is read, sorted and looked up on disk or in a bucket without a lock. Then a few pictures
at a time are checked once more and their rows deleted, in one short transaction each, and then
their bytes.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from math import inf
from typing import NamedTuple

import msgspec

from limner.errors import StorageError
from limner.storage.blobs import DATABASES, BlobFacts, BlobStore
from limner.storage.incoming_files import Incoming
from limner.storage.store import Row, Store, Transaction

GRACE_S = 24 * 60 * 60
SETTLING_S = 60
"""Pictures of the last minute stay, however short the grace period is."""
LISTED_STRAYS = 1_000
TOO_MANY_STRAYS = "TOO_MANY_STRAYS"

_ROWS_AT_ONCE = 25


class FreedSpace(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed, or would be in a dry run.

    Attributes:
        pictures: how many pictures, fits and other derivatives included.
        files: how many files; a file that a crash left is in no table.
        size_bytes: the space they used.
        young: how many more pictures are unused, but too recent to remove.
        owed: how many files in no table stay because an interrupted job may own them.
    """

    pictures: int
    files: int
    size_bytes: int
    young: int
    owed: int = 0


class _Tables(NamedTuple):
    """All that the database says, as one transaction saw it."""

    pictures: Sequence[Row]
    fits: Sequence[Row]
    drawn_from: Sequence[Row]
    named: Sequence[str]
    owed: Mapping[str, float]


class _Plan(NamedTuple):
    """What can be removed: the sizes of pictures in groups of relatives, and stray files."""

    known: Collection[str]
    groups: Sequence[Mapping[str, int]]
    strays: Sequence[str]
    young: int
    owed: int


class _Moments(NamedTuple):
    """What is older may go: bytes by the clock of the system, rows by that of the program."""

    stored_s: float
    recorded_s: float


class GarbageCollector(msgspec.Struct, frozen=True, kw_only=True):
    """Removes the pictures that nothing refers to."""

    store: Store
    blobs: BlobStore
    incoming: Incoming
    clock: Callable[[], datetime]

    async def collect(
        self,
        *,
        grace_s: float = GRACE_S,
        among: Collection[str] | None = None,
        dry_run: bool = False,
        strays: bool = False,
        progress: Callable[[int, int], None] = lambda _done, _of: None,
    ) -> FreedSpace:
        """Remove unused pictures: first from the tables, then from the disk.

        Args:
            grace_s: how long an unused picture stays.
            among: only these pictures and their other forms; all if it is None.
            dry_run: remove nothing, and return what would be removed.
            strays: also remove files that no table knows if they are most of the files, and
                pictures that only a repair has recorded.
            progress: gets the number of files that are done, and of all files.

        Raises:
            StorageError: the tables or the disk cannot be read or written; or most of the files
                are unknown to the database (``TOO_MANY_STRAYS``), or another database counts on
                them (``BLOBS_SHARED``), and nothing was removed.
        """
        if self.blobs.is_shared:
            await self._check_alone()
        age_s = max(grace_s, SETTLING_S, self.blobs.min_age_s)
        since_s, row_since_s = time.time() - age_s, self.clock().timestamp() - age_s
        tables = await self.store.read(lambda tx: _read_tables(tx, repaired=not strays))
        plan = await asyncio.to_thread(
            self._plan, tables, since_s=since_s, row_since_s=row_since_s, among=among, strays=strays
        )
        if dry_run:
            sizes = [size for group in plan.groups for size in group.values()]
            pictures = len(sizes)
            sizes += await asyncio.to_thread(self._sizes, plan.strays)
        else:
            pictures, sizes = await self._remove(plan, _Moments(since_s, row_since_s), progress)
        return FreedSpace(
            pictures=pictures,
            files=sum(size > 0 for size in sizes),
            size_bytes=sum(sizes),
            young=plan.young,
            owed=plan.owed,
        )

    async def _check_alone(self) -> None:
        """Refuse to remove what another database may use: this one does not know it."""
        row = await self.store.read(lambda tx: tx.one("home_id"))
        assert row is not None
        others = sorted(await asyncio.to_thread(self.blobs.claimants) - {row["id"]})
        if others:
            raise StorageError(
                f"Another database stores its pictures in {self.blobs.place}: nothing was removed.",
                code="BLOBS_SHARED",
                hint="Give each database a folder of its own with LIMNER_BLOBS. If the other one "
                f"is no longer used, delete {self.blobs.place}/{DATABASES}/{others[0]}.",
            )

    def _plan(
        self,
        tables: _Tables,
        *,
        since_s: float,
        row_since_s: float,
        among: Collection[str] | None,
        strays: bool,
    ) -> _Plan:
        rows = {row["handle"]: row for row in tables.pictures}
        families = _Families()
        for handle, row in rows.items():
            families.add(handle, parent=row["parent"])
        for row in tables.drawn_from:
            families.parents[row["picture"]].add(row["parent"])
        for row in tables.fits:
            families.add(row["picture"], parent=row["parent"])
        owned = (handle for handle, row in rows.items() if _may_be_owed(row, tables.owed))
        live = families.kept_with([*tables.named, *owned])
        unused = rows.keys() - live
        young = {one for one in unused if rows[one]["created_ms"] >= row_since_s * 1000}
        facts = self.blobs.facts(unused - young)
        young.update(one for one, blob in facts.items() if blob.stored_at_s >= since_s)
        garbage = rows.keys() - live - families.kept_with(young)
        if among is not None:
            considered = families.forms_of(among)
            garbage, young = garbage & considered, young & considered
        unknown = [] if among is not None else self._unknown({*rows, *tables.named}, insist=strays)
        owed_s = min([since_s, *(moment - SETTLING_S for moment in tables.owed.values())])
        ages = dict.fromkeys(unknown, since_s)  # one that is gone is as good as young
        ages |= {one: blob.stored_at_s for one, blob in self.blobs.facts(unknown).items()}
        return _Plan(
            known=rows.keys(),
            groups=[
                {handle: rows[handle]["size_bytes"] for handle in group}
                for group in families.groups_in(garbage)
            ],
            strays=[handle for handle in unknown if ages[handle] < owed_s],
            young=len(young),
            owed=sum(owed_s <= age_s < since_s for age_s in ages.values()),
        )

    def _unknown(self, known: Collection[str], *, insist: bool) -> list[str]:
        """The files on disk that are in no table.

        Raises:
            StorageError: they are most of the files, and the user does not insist.
        """
        files = list(self.blobs.handles())
        unknown = sorted(handle for handle in files if handle not in known)
        if len(unknown) > len(files) - len(unknown) and not insist:
            raise StorageError(
                f"The database does not know {len(unknown):,} of {len(files):,} stored files: "
                "nothing was removed.",
                code=TOO_MANY_STRAYS,
                hint="If the database was lost or replaced, `limner doctor --repair` brings the "
                "pictures back. `limner gc --strays` deletes the files.",
                extras={
                    "stray_count": len(unknown),
                    "strays": [self.blobs.location(one) for one in unknown[:LISTED_STRAYS]],
                },
            )
        return unknown

    def _sizes(self, handles: Iterable[str]) -> list[int]:
        return [blob.size_bytes for blob in self.blobs.facts(handles).values()]

    async def _remove(
        self, plan: _Plan, since: _Moments, progress: Callable[[int, int], None]
    ) -> tuple[int, list[int]]:
        """Remove a few pictures at a time, then stray files; how many pictures, and the sizes."""
        since_s = since.stored_s
        of = sum(map(len, plan.groups)) + len(plan.strays)
        sizes: list[int] = []
        pictures = done = 0
        for batch in _batches(plan.groups):
            named = [handle for group in batch for handle in group]
            # A bucket may be slow, so it is asked before the transaction, which others wait for.
            facts = await asyncio.to_thread(self.blobs.facts, named)
            drop = _drop_unused(batch, known=plan.known, facts=facts, since=since)
            dropped, before_s = await self.store.write(drop)
            pictures += len(dropped)
            sizes += await asyncio.to_thread(self._delete, dropped, before_s)
            done += sum(map(len, batch))
            progress(done, of)
        before_s = since_s
        for start in range(0, len(plan.strays), _ROWS_AT_ONCE):
            chunk = plan.strays[start : start + _ROWS_AT_ONCE]
            still, before_s = await self.store.read(_still_unknown(chunk, since_s))
            sizes += await asyncio.to_thread(self._delete, still, before_s)
            done += len(chunk)
            progress(done, of)
        before_s = min(before_s, await self.store.read(lambda tx: _owed_since_s(tx, since_s)))
        leftovers = await asyncio.to_thread(self.blobs.remove_leftovers, before_s=before_s)
        return pictures, [*sizes, *leftovers, *await self._remove_incoming()]

    async def _remove_incoming(self) -> list[int]:
        """Delete delivered bytes that a crash left after their job had ended.

        Those of a job that the database does not know stay: a repair may have lost its row.
        """
        ids = json.dumps(sorted(await asyncio.to_thread(self.incoming.job_ids)))
        ended = await self.store.read(lambda tx: tx.all("jobs_concluded", ids=ids))
        return await asyncio.to_thread(self.incoming.remove_concluded, [row["id"] for row in ended])

    def _delete(self, handles: Iterable[str], before_s: float) -> list[int]:
        return [
            self.blobs.remove_unless_stored_since(handle, since_s=before_s) for handle in handles
        ]


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

    def groups_in(self, handles: Collection[str]) -> Iterator[list[str]]:
        """The pictures in groups of relatives. A new reference to one of a group keeps them all."""
        relatives: defaultdict[str, set[str]] = defaultdict(set)
        for handle in handles:
            for parent in self.parents.get(handle, ()):
                if parent in handles:
                    relatives[handle].add(parent)
                    relatives[parent].add(handle)
        seen: set[str] = set()
        for handle in sorted(handles):
            if handle not in seen:
                group = _reached([handle], relatives)
                seen |= group
                yield sorted(group)


def _reached(handles: Iterable[str], steps: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(handles)
    while waiting:
        handle = waiting.pop()
        if handle not in reached:
            reached.add(handle)
            waiting += steps.get(handle, ())
    return reached


def _batches(groups: Iterable[Mapping[str, int]]) -> Iterator[list[Mapping[str, int]]]:
    batch: list[Mapping[str, int]] = []
    for group in groups:
        batch.append(group)
        if sum(map(len, batch)) >= _ROWS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _read_tables(tx: Transaction, *, repaired: bool) -> _Tables:
    named = [row["handle"] for row in tx.all("garbage_named")]
    if repaired:
        named += [row["handle"] for row in tx.all("garbage_repaired")]
    return _Tables(
        pictures=tx.all("garbage_pictures"),
        fits=tx.all("garbage_fits"),
        drawn_from=tx.all("garbage_drawn_from"),
        named=named,
        owed={row["provider"]: row["since_ms"] / 1000 for row in tx.all("garbage_owed")},
    )


def _may_be_owed(row: Row, owed: Mapping[str, float]) -> bool:
    """Whether a call that has not ended may have brought a picture."""
    return row["created_ms"] >= (owed.get(row["provider"], inf) - SETTLING_S) * 1000


def _owed_since_s(tx: Transaction, since_s: float) -> float:
    """The time that a file must be older than, so that no call that has not ended may own it."""
    owed = (row["since_ms"] / 1000 - SETTLING_S for row in tx.all("garbage_owed"))
    return min([since_s, *owed])


def _drop_unused(
    groups: Sequence[Mapping[str, int]],
    *,
    known: Collection[str],
    facts: Mapping[str, BlobFacts],
    since: _Moments,
) -> Callable[[Transaction], tuple[list[str], float]]:
    """A transaction that deletes the rows of those groups that are still unused.

    ``known`` are the pictures that were sorted. One that has been made since then is in use, and so
    is what it was made from. A process that stores a picture stores its bytes first and writes its
    row after. So either its bytes are in ``facts``, or its row tells that they came again, or it
    has not written its row yet: then it makes a new one.
    """

    def work(tx: Transaction) -> tuple[list[str], float]:
        open_rows = [row["since_ms"] / 1000 - SETTLING_S for row in tx.all("garbage_in_flight")]
        before_s, row_before_s = (min([moment, *open_rows]) for moment in since)
        handles = json.dumps([handle for group in groups for handle in group])
        used = {row["handle"] for row in tx.all("garbage_used", handles=handles)}
        made = tx.all("garbage_made_from", handles=handles)
        used.update(row["parent"] for row in made if row["picture"] not in known)
        since_ms = int(row_before_s * 1000)
        stored = tx.all("garbage_stored", handles=handles, since_ms=since_ms)
        used.update(row["handle"] for row in stored)
        used.update(one for one, blob in facts.items() if blob.stored_at_s >= before_s)
        dropped = [handle for group in groups if used.isdisjoint(group) for handle in group]
        for query in ("garbage_drop_fits", "garbage_part", "garbage_drop_pictures"):
            tx.run(query, handles=json.dumps(dropped))
        return dropped, before_s

    return work


def _still_unknown(
    handles: Sequence[str], since_s: float
) -> Callable[[Transaction], tuple[list[str], float]]:
    def work(tx: Transaction) -> tuple[list[str], float]:
        known = {row["handle"] for row in tx.all("garbage_known", handles=json.dumps(handles))}
        return [one for one in handles if one not in known], _owed_since_s(tx, since_s)

    return work
