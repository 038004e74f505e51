"""Batches <-> their rows in the store: load, claim, end, list. The store is the queue.

Each method is one short transaction, so that any number of processes take rows of one batch, and
each row has one owner at a time. A claim that the owner's process did not end is taken over by
another process once that owner has ended.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from limner.batches.manifest import ManifestRow
from limner.batches.records import (
    Batch,
    BatchCounts,
    ClaimedRow,
    RemoteBatch,
    RowOutcome,
    RowResult,
    RowState,
)
from limner.errors import InputInvalid, NotFound, StorageError
from limner.storage.owners import has_live_owner
from limner.storage.store import Row, Store, Transaction

LOAD_ROWS = 500
PAGE_ROWS = 500

Keys: TypeAlias = Sequence[str]


class CheckedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a manifest whose tool takes its arguments, which are JSON now."""

    key: str
    number: int
    tool: str
    arguments: str


class BatchQueue(msgspec.Struct, frozen=True, kw_only=True):
    """The batches of one home.

    ``in_hand`` has the batch and the key of each row that this process has. If a claim is stored
    and its answer is lost, the row is not among them, and is claimed again as an interrupted one.
    """

    store: Store
    clock: Callable[[], datetime]
    in_hand: set[tuple[str, str]] = msgspec.field(default_factory=set[tuple[str, str]])

    async def find(self, name: str) -> Batch | None:
        """The batch with this id or this name; None if there is none."""
        row = await self.store.read(lambda tx: tx.one("batch_find", name=name))
        return None if row is None else _batch(row)

    async def get(self, name: str) -> Batch:
        """As `find`.

        Raises:
            NotFound: there is no such batch.
        """
        if (batch := await self.find(name)) is None:
            raise NotFound(
                f"There is no batch of {name!r} here.", hint="`limner batch run` starts one."
            )
        return batch

    async def open_batches(self) -> list[Batch]:
        """The batches that have rows to run, oldest first."""
        return [_batch(row) for row in await self.store.read(lambda tx: tx.all("batches_open"))]

    async def recent(self, count: int = 20) -> list[Batch]:
        """The newest batches."""
        rows = await self.store.read(lambda tx: tx.all("batches_recent", count=count))
        return [_batch(row) for row in rows]

    async def add(
        self, name: str, *, digest: str, budget_nano: int, lane: str, rates: str, caller: str
    ) -> Batch:
        """A new batch without rows, or the batch of that name with these terms."""
        terms: dict[str, Any] = {"budget_nano": budget_nano, "lane": lane, "rates": rates}

        def work(tx: Transaction) -> Batch:
            found = tx.one("batch_find", name=name)
            if found is None:
                batch_id = f"batch_{secrets.token_hex(8)}"
                tx.run(
                    "batch_add",
                    id=batch_id,
                    name=name,
                    digest=digest,
                    caller=caller,
                    now_ms=self._now_ms(),
                    **terms,
                )
            else:
                tx.run("batch_terms", id=found["id"], now_ms=self._now_ms(), **terms)
            row = tx.one("batch_find", name=name)
            assert row is not None
            return _batch(row)

        return await self.store.write(work)

    async def load(self, batch: Batch, rows: Iterable[CheckedRow], *, digest: str) -> Batch:
        """Put the rows of a manifest into a batch, unless exactly these are in it.

        Rows that ended stay as they are. A row that was not paid for may change.

        Raises:
            InputInvalid: two rows have the same key, or a row that was paid for has changed.
        """
        if batch.state != "loading" and batch.digest == digest:
            return batch
        await self.store.write(
            lambda tx: tx.run("batch_reload", id=batch.id, digest=digest, now_ms=self._now_ms())
        )
        batch = await self.get(batch.id)
        chunk: list[CheckedRow] = []
        for row in rows:
            chunk.append(row)
            if len(chunk) == LOAD_ROWS:
                await self._put(batch, chunk)
                chunk = []
        await self._put(batch, chunk)

        def finish(tx: Transaction) -> None:
            tx.run("batch_rows_drop", batch_id=batch.id, load=batch.load)
            tx.run("batch_state", id=batch.id, state="open", now_ms=self._now_ms())

        await self.store.write(finish)
        return await self.get(batch.id)

    async def set_state(self, batch: Batch, state: str) -> Batch:
        """Open a batch for workers, or cancel it: then they claim no further rows."""
        now_ms = self._now_ms()
        await self.store.write(
            lambda tx: tx.run("batch_state", id=batch.id, state=state, now_ms=now_ms)
        )
        return await self.get(batch.id)

    async def add_rows(self, batch: Batch, rows: Sequence[CheckedRow]) -> list[str]:
        """Put rows into a batch beside those that it has.

        Rows that are in it already stay as they are; one that failed and cost nothing may change.
        Returns the keys under which the batch has another row.
        """
        now_ms = self._now_ms()

        def work(tx: Transaction) -> list[str]:
            tx.lock(f"batch {batch.id}")
            return [row.key for row in rows if not _add_row(tx, batch, row, now_ms=now_ms)]

        return await self.store.write(work, shared=True)

    async def named(self, batch: Batch, keys: Keys) -> dict[str, RowResult]:
        """Rows by their keys."""
        rows = await self.store.read(
            lambda tx: tx.all("batch_rows_named", batch_id=batch.id, keys=_json(keys))
        )
        return {row["row_key"]: RowResult(**row) for row in rows}

    async def retry(self, batch: Batch, *, keys: Keys | None = None) -> int:
        """Let failed rows wait again if nothing was paid for them; returns how many."""
        facts = {"batch_id": batch.id, "keys": _keys(keys), "now_ms": self._now_ms()}
        return await self.store.write(lambda tx: tx.run("batch_rows_retry", **facts))

    async def claim(
        self, batch: Batch, *, count: int, keys: Keys | None = None
    ) -> list[ClaimedRow]:
        """The next rows, which this process runs now; none if the batch is cancelled."""
        wanted: dict[str, Any] = {"batch_id": batch.id, "count": count, "keys": _keys(keys)}

        def work(tx: Transaction) -> list[Row]:
            rows = tx.all("batch_claim", **wanted, **self._mine())
            if rows:
                self.store.owner.claim(tx)
            return rows

        return await self._take(batch, work, shared=True, interrupted=False)

    async def claim_interrupted(
        self, batch: Batch, *, uncertain: bool, keys: Keys | None = None
    ) -> list[ClaimedRow]:
        """The rows whose process has ended; with ``uncertain`` also failed rows that may be paid.

        What became of their payments has to be found out before they run again.
        """
        wanted = frozenset(keys or ())

        def work(tx: Transaction) -> list[Row]:
            held = tx.all("batch_rows_held", batch_id=batch.id)
            chosen = held if keys is None else [row for row in held if row["row_key"] in wanted]
            dead = [row for row in chosen if not self._is_held(batch, row)]
            mine = self._mine()
            for row in dead:
                place = {"batch_id": batch.id, "row_key": row["row_key"]}
                tx.run("batch_row_take", ended=row["owner"], **place, **mine)
            if uncertain:
                dead += tx.all("batch_rows_reopen", batch_id=batch.id, keys=_keys(keys), **mine)
            if dead:
                self.store.owner.claim(tx)
            return dead

        return await self._take(batch, work, shared=False, interrupted=True)

    def check_held(self, tx: Transaction, batch: Batch, row_key: str) -> None:
        """See in a transaction that this process still runs the row.

        Raises:
            NotFound: another process took it over, since this one seemed to have ended.
        """
        held = {"batch_id": batch.id, "row_key": row_key, "owner": self.store.owner.id}
        if tx.one("batch_row_held", **held) is None:
            raise NotFound(f"Another process runs the row {row_key!r} now; nothing was sent.")

    async def end(
        self, batch: Batch, row_key: str, outcome: RowOutcome, *, again_in_s: float | None = None
    ) -> None:
        """Record how a row ended; with ``again_in_s`` it waits for another try."""
        state: RowState = "done" if outcome.error is None else "failed"
        now = self._mine()
        facts: dict[str, Any] = {
            "state": state if again_in_s is None else "waiting",
            "result": outcome.result,
            "error": None if outcome.error is None else _json(outcome.error),
            "cost_nano": outcome.cost_nano,
            "cost_source": outcome.cost_source,
            "picture": outcome.picture,
            "not_before_ms": now["now_ms"] + int((again_in_s or 0) * 1000),
        }
        await self.store.write(
            lambda tx: tx.run("batch_row_end", batch_id=batch.id, row_key=row_key, **facts, **now),
            shared=True,
        )
        self.in_hand.discard((batch.id, row_key))

    async def let_go(self, batch: Batch, row_keys: Sequence[str]) -> None:
        """Put claimed rows back, which this process did not run."""
        mine = self._mine()

        def work(tx: Transaction) -> None:
            for row_key in row_keys:
                tx.run("batch_rows_let_go", batch_id=batch.id, row_key=row_key, **mine)

        if row_keys:
            await self.store.write(work, shared=True)
        self.in_hand.difference_update((batch.id, row_key) for row_key in row_keys)

    async def counts(self, batch: Batch, *, keys: Keys | None = None) -> BatchCounts:
        """How many rows are in which state."""
        if keys is not None:
            named = await self.named(batch, keys)
            return BatchCounts(**Counter(row.state for row in named.values()))
        row = await self.store.read(lambda tx: tx.one("batch_counts", batch_id=batch.id))
        return BatchCounts() if row is None else BatchCounts(**row)

    async def remote_batches(self, batch: Batch) -> list[RemoteBatch]:
        """The batches at vendors that have not ended."""
        rows = await self.store.read(lambda tx: tx.all("remote_batches_of", batch_id=batch.id))
        return [remote_batch(row) for row in rows]

    async def next_in_s(self, batch: Batch, *, keys: Keys | None = None) -> float | None:
        """How long until a waiting row may be claimed; None if none waits."""
        chosen = {"batch_id": batch.id, "keys": _keys(keys)}
        row = await self.store.read(lambda tx: tx.one("batch_next_ms", **chosen))
        if row is None or row["ms"] is None:
            return None
        return max(0.0, (row["ms"] - self._now_ms()) / 1000)

    async def results(
        self, batch: Batch, *, state: RowState | None = None, limit: int | None = None
    ) -> AsyncIterator[RowResult]:
        """The rows in the order of the manifest, read page by page."""
        after, after_key, left = -1, "", limit
        while left is None or left > 0:
            page: dict[str, Any] = {
                "state": state,
                "after": after,
                "after_key": after_key,
                "count": PAGE_ROWS if left is None else min(PAGE_ROWS, left),
            }
            rows = await self.store.read(
                lambda tx, page=page: tx.all("batch_rows_page", batch_id=batch.id, **page)
            )
            for row in rows:
                yield RowResult(**row)
            if len(rows) < page["count"]:
                return
            after, after_key = rows[-1]["number"], rows[-1]["row_key"]
            left = None if left is None else left - len(rows)

    async def _put(self, batch: Batch, rows: Sequence[CheckedRow]) -> None:
        now_ms = self._now_ms()

        def work(tx: Transaction) -> None:
            tx.lock(f"batch {batch.id}")
            for row in rows:
                _put_row(tx, batch, row, now_ms=now_ms)

        await self.store.write(work, shared=True)

    async def _take(
        self,
        batch: Batch,
        work: Callable[[Transaction], list[Row]],
        *,
        shared: bool,
        interrupted: bool,
    ) -> list[ClaimedRow]:
        taken: set[tuple[str, str]] = set()

        def noted(tx: Transaction) -> list[Row]:
            rows = work(tx)
            # Before the commit, so that the row is never seen without its holder.
            taken.update((batch.id, row["row_key"]) for row in rows)
            self.in_hand.update(taken)
            return rows

        writing = self.store.submit_write(noted, shared=shared)
        try:
            rows = await asyncio.wrap_future(writing)
        except (StorageError, asyncio.CancelledError):
            # The caller does not get the rows. A transaction that has started still ends.
            writing.add_done_callback(lambda _: self.in_hand.difference_update(taken))
            raise
        return _claimed(rows, interrupted=interrupted)

    def _is_held(self, batch: Batch, row: Row) -> bool:
        if row["owner"] == self.store.owner.id:
            return (batch.id, row["row_key"]) in self.in_hand
        return has_live_owner(row)

    def _mine(self) -> dict[str, Any]:
        return {"owner": self.store.owner.id, "now_ms": self._now_ms()}

    def _now_ms(self) -> int:
        return int(self.clock().timestamp() * 1000)


def _put_row(tx: Transaction, batch: Batch, row: CheckedRow, *, now_ms: int) -> None:
    place = {"batch_id": batch.id, "row_key": row.key}
    found = tx.one("batch_row_get", **place)
    if found is not None and found["load"] == batch.load:
        raise InputInvalid(f"Two rows have the key {row.key!r}", field="key")
    if found is not None and (found["tool"], found["arguments"]) == (row.tool, row.arguments):
        tx.run("batch_row_keep", number=row.number, load=batch.load, **place)
        return
    if found is not None and (found["cost_nano"] > 0 or found["state"] == "running"):
        raise InputInvalid(
            f"The row {row.key!r} has changed, and it is paid for or running",
            field="key",
            hint="Give the changed row another key.",
        )
    _insert_row(tx, batch, row, now_ms=now_ms)


def _add_row(tx: Transaction, batch: Batch, row: CheckedRow, *, now_ms: int) -> bool:
    """Put a row that is new; False if another row has its key."""
    place = {"batch_id": batch.id, "row_key": row.key}
    found = tx.one("batch_row_get", **place)
    if found is not None and (found["tool"], found["arguments"]) == (row.tool, row.arguments):
        return True
    if found is not None and (found["state"] != "failed" or found["cost_nano"] > 0):
        return False
    _insert_row(tx, batch, row, now_ms=now_ms)
    return True


def _insert_row(tx: Transaction, batch: Batch, row: CheckedRow, *, now_ms: int) -> None:
    """Write a row that waits, in place of one with its key."""
    tx.run(
        "batch_row_put",
        batch_id=batch.id,
        row_key=row.key,
        tool=row.tool,
        arguments=row.arguments,
        number=row.number,
        load=batch.load,
        now_ms=now_ms,
    )


def _claimed(rows: Iterable[Row], *, interrupted: bool) -> list[ClaimedRow]:
    names = ("row_key", "number", "tool", "arguments", "tries")
    found = [
        ClaimedRow(**{name: row[name] for name in names}, interrupted=interrupted) for row in rows
    ]
    return sorted(found, key=lambda row: row.number)


def remote_batch(row: Row) -> RemoteBatch:
    """A row of the table of remote batches."""
    return RemoteBatch(**{name: row[name] for name in RemoteBatch.__struct_fields__})


def _batch(row: Row) -> Batch:
    return Batch(**row)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _keys(keys: Keys | None) -> str | None:
    return None if keys is None else _json(keys)


def checked(row: ManifestRow, arguments: object) -> CheckedRow:
    """A row of a manifest with its arguments as JSON, always in the same order."""
    text = msgspec.json.encode(arguments, order="deterministic").decode()
    return CheckedRow(key=row.key, number=row.number, tool=row.tool, arguments=text)
