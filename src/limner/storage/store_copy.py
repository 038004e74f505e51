"""The records of one store -> an empty store of another kind, with their numbers compared.

Triggers of the new database make what follows from other tables (sums, gallery), so the ledger
comes before the pictures. Leases of sessions stay behind: their processes do not know the copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from limner.errors import StorageError
from limner.storage.store import Row, Store, Transaction

# Each table, and the order of its rows. A row comes after those that it refers to.
_TABLES = {
    "sessions": "rowid",
    "items": "session_id, seq",
    "item_pictures": "session_id, handle, seq",
    "owners": "id",
    "ledger": "id",
    "jobs": "ledger_id",
    "calls": "rowid",
    "pictures": "rowid",
    "picture_text": "handle",
    "fits": "parent, request",
    "answers": "key",
    "picture_verdicts": "handle, model",
    "batches": "created_ms, id",
    "batch_rows": "batch_id, row_key",
    "rate_buckets": "name",
    "remote_batches": "created_ms, id",
}
# Made by triggers, and compared with the rest. A batch that has lost its rows keeps its counts, and
# the copy never has any.
_DERIVED = {
    "spending": "",
    "gallery": "",
    "drawn_from": "",
    "batch_counts": "WHERE waiting + running + done + failed > 0",
}
_TOTAL = "the total of the ledger"


class StoreCopy(msgspec.Struct, frozen=True, kw_only=True):
    """What was copied: the places of both stores, and how many rows each table has."""

    source: str
    target: str
    rows: dict[str, int]


async def copy_store(source: Store, target: Store) -> StoreCopy:
    """Copy every record into a store that has none.

    Raises:
        StorageError: the target has records, or its numbers differ afterwards. Then nothing of it
            was changed.
    """
    # One view of the source for all tables, which the thread of the target reads.
    numbers = await source.read(
        lambda old: target.submit_write(lambda new: _copy(old, new, target.place)).result()
    )
    rows = {name: number for name, number in numbers.items() if name != _TOTAL}
    return StoreCopy(source=source.place, target=target.place, rows=rows)


def _copy(old: Transaction, new: Transaction, place: str) -> dict[str, int]:
    if any(_count(new, table) for table in _TABLES):
        raise StorageError(
            f"{place} has records already; nothing was copied.", hint="Copy into an empty database."
        )
    for table, order in _TABLES.items():
        rows = map(_as_dict, old.raw(f"SELECT * FROM {table} ORDER BY {order}"))  # noqa: S608 - our names
        for row in _parents_first(rows) if table == "pictures" else rows:
            _insert(new, table, row)
    new.one("ledger_ids_go_on")
    before, after = _numbers(old), _numbers(new)
    wrong = [name for name, number in before.items() if after[name] != number]
    if wrong:
        raise StorageError(
            f"The copy would differ in {', '.join(wrong)}; nothing was copied.",
            hint="`limner doctor` checks the store that you copy from.",
        )
    return after


def _as_dict(row: Row) -> dict[str, Any]:
    # The new database gives its own.
    return {name: row[name] for name in row.keys() if name != "rowid"}  # noqa: SIM118


def _parents_first(pictures: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    left = {row["handle"]: row for row in pictures}
    while left:
        line = [next(iter(left))]
        while (parent := left[line[-1]]["parent"]) in left and parent not in line:
            line.append(parent)
        yield from (left.pop(handle) for handle in reversed(line))


def _insert(tx: Transaction, table: str, row: dict[str, Any]) -> None:
    names = ", ".join(row)
    values = ", ".join(f":{name}" for name in row)
    tx.raw(f"INSERT INTO {table} ({names}) VALUES ({values})", row)  # noqa: S608 - our names


def _count(tx: Transaction, table: str, where: str = "") -> int:
    return tx.raw(f"SELECT count(*) FROM {table} {where}")[0][0]  # noqa: S608 - our names


def _numbers(tx: Transaction) -> dict[str, int]:
    """How many rows each table has, and the totals of the money."""
    counts = {table: _count(tx, table) for table in _TABLES}
    derived = {table: _count(tx, table, where) for table, where in _DERIVED.items()}
    total = tx.one("spending_of", kind="all", name="")
    return {**counts, **derived, _TOTAL: 0 if total is None else sum(total)}
