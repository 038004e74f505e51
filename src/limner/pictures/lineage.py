"""A handle -> where its picture comes from, up to the roots, and what was made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from limner.content import Picture
from limner.storage.store import Row, Transaction

MAX_ANCESTORS = 100
MAX_OFFSPRING = 100


class PictureRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A picture, and what was written down of its making when it came in.

    ``parent`` is the picture it is another form of; ``drawn_from`` are those it was drawn from.
    """

    picture: Picture
    parent: str | None
    lineage: Mapping[str, Any]
    created_ms: int

    @property
    def drawn_from(self) -> tuple[str, ...]:
        """The handles of the pictures it was drawn from."""
        return tuple(self.lineage.get("parents") or ())

    @property
    def is_drawn_from_words(self) -> bool:
        """Whether a provider drew it here, and from words alone."""
        return {"provider", "prompt"} <= self.lineage.keys() and not self.drawn_from


class Lineage(msgspec.Struct, frozen=True, kw_only=True):
    """A picture among its own: the nearest ancestors first, the oldest offspring first."""

    record: PictureRecord
    ancestors: tuple[PictureRecord, ...]
    offspring: tuple[PictureRecord, ...]

    @property
    def master(self) -> PictureRecord:
        """What the picture is another form of, as it was received; mostly itself."""
        known = {one.picture.handle: one for one in self.ancestors}
        record = self.record
        while record.parent in known:
            record = known.pop(record.parent)
        return record


def read_family(tx: Transaction, handle: str) -> Lineage | None:
    """The family of a picture, or None where no such picture was recorded."""
    row = tx.one("picture_get", handle=handle)
    if row is None:
        return None
    record = _record(row)
    made = tx.all("picture_made_of", handle=handle, limit=MAX_OFFSPRING)
    return Lineage(
        record=record,
        ancestors=tuple(_ancestors(tx, record)),
        offspring=tuple(_record(one) for one in made),
    )


def is_drawn_here(tx: Transaction, handle: str) -> bool:
    """Whether a picture, or what it is another form of, was drawn here from words alone.

    Only then nobody else has put words into it.
    """
    wanted: str | None = handle
    for _ in range(MAX_ANCESTORS):
        row = None if wanted is None else tx.one("picture_get", handle=wanted)
        if row is None:
            return False
        record = _record(row)
        if record.is_drawn_from_words:
            return True
        wanted = record.parent
    return False


def _ancestors(tx: Transaction, record: PictureRecord) -> Iterator[PictureRecord]:
    seen, waiting = {record.picture.handle}, _above(record)
    while waiting and len(seen) <= MAX_ANCESTORS:
        handle = waiting.pop(0)
        row = None if handle in seen else tx.one("picture_get", handle=handle)
        seen.add(handle)
        if row is not None:
            found = _record(row)
            waiting += _above(found)
            yield found


def _above(record: PictureRecord) -> list[str]:
    return [*([] if record.parent is None else [record.parent]), *record.drawn_from]


def _record(row: Row) -> PictureRecord:
    fields = ("handle", "mime", "width", "height", "size_bytes")
    return PictureRecord(
        picture=Picture(**{name: row[name] for name in fields}),
        parent=row["parent"],
        lineage=msgspec.json.decode(row["lineage"], type=dict[str, Any]),
        created_ms=row["created_ms"],
    )
