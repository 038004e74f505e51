"""A handle -> the ancestors of its picture, up to the roots, and the pictures made from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from limner.content import Picture
from limner.json_shapes import as_list
from limner.storage.store import Row, Transaction

MAX_ANCESTORS = 100
MAX_OFFSPRING = 100


class PictureRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A picture, and what was recorded about its origin when it was stored.

    ``parent`` is the picture it is another format or fit of. ``drawn_from`` are the pictures that
    a provider used as sources.
    """

    picture: Picture
    parent: str | None
    lineage: Mapping[str, object]
    created_ms: int

    @property
    def drawn_from(self) -> tuple[str, ...]:
        """The handles of the pictures that a provider used as sources."""
        return tuple(str(one) for one in as_list(self.lineage.get("parents")))

    @property
    def is_drawn_from_words(self) -> bool:
        """Whether limner had a provider draw it, and nothing in it comes from outside.

        If it was drawn from pictures, or after content from outside was read, its mark decides. A
        repair knows only what a file says about itself, and another program may have written it.
        """
        is_drawn = {"provider", "prompt"} <= self.lineage.keys() and "repaired" not in self.lineage
        return is_drawn and not self.lineage.get("untrusted", bool(self.drawn_from))


class Lineage(msgspec.Struct, frozen=True, kw_only=True):
    """A picture with its ancestors, nearest first, and its offspring, oldest first."""

    record: PictureRecord
    ancestors: tuple[PictureRecord, ...]
    offspring: tuple[PictureRecord, ...]

    @property
    def master(self) -> PictureRecord:
        """The received picture that this is another form of; often itself."""
        known = {one.picture.handle: one for one in self.ancestors}
        record = self.record
        while record.parent in known:
            record = known.pop(record.parent)
        return record


def read_lineage(tx: Transaction, handle: str) -> Lineage | None:
    """The lineage of a picture; None if it is not recorded."""
    row = tx.one("picture_get", handle=handle)
    if row is None:
        return None
    record = _record(row)
    offspring = tx.all("picture_made_of", handle=handle, limit=MAX_OFFSPRING)
    return Lineage(
        record=record,
        ancestors=tuple(_ancestors(tx, record)),
        offspring=tuple(map(_record, offspring)),
    )


def is_drawn_here(tx: Transaction, handle: str) -> bool:
    """Whether a picture, or one it is another form of, was drawn here from text alone.

    Only then it contains no text of another author.
    """
    for record in _forms(tx, handle):
        if record.is_drawn_from_words:
            return True
        if record.lineage.get("untrusted"):
            return False
    return False


def is_made_here(tx: Transaction, handle: str) -> bool:
    """Whether limner had a provider draw a picture, or one it is another form of."""
    return any("provider" in record.lineage for record in _forms(tx, handle))


def _forms(tx: Transaction, handle: str) -> Iterator[PictureRecord]:
    """A picture, the one it is another form of, and so on."""
    wanted: str | None = handle
    for _ in range(MAX_ANCESTORS):
        row = None if wanted is None else tx.one("picture_get", handle=wanted)
        if row is None:
            return
        record = _record(row)
        yield record
        wanted = record.parent


def picture_from_row(row: Row) -> Picture:
    """The picture of a row of the table of pictures."""
    fields = ("handle", "mime", "width", "height", "size_bytes")
    return Picture(**{name: row[name] for name in fields})


def _ancestors(tx: Transaction, record: PictureRecord) -> Iterator[PictureRecord]:
    seen, waiting = {record.picture.handle}, _parents(record)
    while waiting and len(seen) <= MAX_ANCESTORS:
        handle = waiting.pop(0)
        row = None if handle in seen else tx.one("picture_get", handle=handle)
        seen.add(handle)
        if row is not None:
            found = _record(row)
            waiting += _parents(found)
            yield found


def _parents(record: PictureRecord) -> list[str]:
    return [*([] if record.parent is None else [record.parent]), *record.drawn_from]


def _record(row: Row) -> PictureRecord:
    return PictureRecord(
        picture=picture_from_row(row),
        parent=row["parent"],
        lineage=msgspec.json.decode(row["lineage"], type=dict[str, Any]),
        created_ms=row["created_ms"],
    )
