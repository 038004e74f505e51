"""A search and filters -> one page of the stored pictures, the newest first."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from limner.content import Picture
from limner.pictures.lineage import picture_from_row
from limner.storage.store import Row, Store, Transaction

MAX_PAGE = 200
# Above every id that SQLite gives.
_NEWEST = 2**63 - 1
_WORD = re.compile(r"\w+")
_MAX_WORDS = 20
# SQLite has an index of the beginnings of words up to this length. Of a longer beginning, at most
# so many words are asked for one by one.
_INDEXED_CHARS = 4
_MAX_TERMS = 50
_MAX_TEXT_CHARS = 20_000


class GalleryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which pictures; an empty text is no filter.

    Attributes:
        words: every word must begin a word of the prompt, of the name of its file, or of the text
            that was drawn or read in it.
        provider: the provider that drew it.
        model: the model that drew it, as provider/model.
        session_id: the session that paid for it.
        day: the day on which it came, in UTC.
        cost_nano: what it cost at least.
    """

    words: str = ""
    provider: str = ""
    model: str = ""
    session_id: str = ""
    day: str = ""
    cost_nano: int = 0


class GalleryPicture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture of the gallery. ``id`` is its place in the order in which pictures came."""

    id: int
    picture: Picture
    created_ms: int
    provider: str
    model: str
    session_id: str
    cost_nano: int
    lineage: Mapping[str, Any]


class GalleryPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some pictures, the newest first.

    ``next_id`` continues the list, and is None at its end. ``total`` is how many pictures there
    are without any filter.
    """

    pictures: tuple[GalleryPicture, ...]
    next_id: int | None
    total: int


class Gallery(msgspec.Struct, frozen=True, kw_only=True):
    """The stored pictures as a person looks for them."""

    store: Store

    async def page(
        self, wanted: GalleryFilter, *, limit: int, before: int | None = None, skip: int = 0
    ) -> GalleryPage:
        """The pictures before a place in the list, after leaving out the first ``skip``."""
        words = _WORD.findall(wanted.words)[:_MAX_WORDS]
        query = "gallery_by_words" if words else _query(wanted)
        limit = min(limit, MAX_PAGE)

        def read(tx: Transaction) -> GalleryPage:
            total, place = _place(tx, query, before=before or _NEWEST, skip=skip)
            match = json.dumps([_match(tx, word) for word in words], ensure_ascii=False)
            filters = {**msgspec.structs.asdict(wanted), "words": match, "limit": limit + 1}
            ids = [row["id"] for row in tx.all(query, **filters, **place)]
            shown = ids[:limit]
            return GalleryPage(
                pictures=tuple(map(_picture, tx.all("gallery_page", ids=json.dumps(shown)))),
                next_id=shown[-1] if len(ids) > len(shown) else None,
                total=total,
            )

        return await self.store.read(read)

    async def mark(self) -> tuple[int, int]:
        """What changes when pictures come or go: how many there are, and the newest id."""
        span = await self.store.read(lambda tx: tx.one("gallery_span"))
        assert span is not None, "the query has no condition"
        return span["total"], span["newest"]

    async def find(self, handles: Iterable[str]) -> tuple[GalleryPicture, ...]:
        """These pictures in this order; those that are not in the gallery are left out."""
        wanted = [*dict.fromkeys(handles)]
        rows = await self.store.read(lambda tx: tx.all("gallery_find", handles=json.dumps(wanted)))
        found = {row["handle"]: _picture(row) for row in rows}
        return tuple(found[handle] for handle in wanted if handle in found)

    async def keep_text(self, handle: str, rows: Iterable[str]) -> None:
        """Find a picture by the text that was read in it, or in a form of it."""
        words = " ".join(rows)[:_MAX_TEXT_CHARS]
        if words:
            await self.store.write(
                lambda tx: tx.run("picture_text_add", handle=handle, words=words)
            )

    async def models(self) -> tuple[tuple[str, int], ...]:
        """The models that drew pictures, with how many."""
        rows = await self.store.read(lambda tx: tx.all("gallery_models"))
        return tuple((row["name"], row["pictures"]) for row in rows)


def _query(wanted: GalleryFilter) -> str:
    """The query that starts with the narrowest filter, if no words are searched."""
    for name, field in (("session", "session_id"), ("day", "day"), ("model", "model")):
        if getattr(wanted, field):
            return f"gallery_by_{name}"
    if wanted.provider:
        return "gallery_by_provider"
    return "gallery_by_cost" if wanted.cost_nano else "gallery_by_id"


def _match(tx: Transaction, word: str) -> str:
    """How SQLite is asked for words that begin with this one."""
    # Other letters become simpler ones in the index, in a way that only SQLite knows.
    if word.isascii() and word.isalnum() and len(word) > _INDEXED_CHARS:
        found = tx.all("gallery_terms", word=word.lower(), limit=_MAX_TERMS + 1)
        if 0 < len(found) <= _MAX_TERMS:
            return "(" + " OR ".join(f'"{row["term"]}"' for row in found) + ")"
    # A word in quotes has no meaning for SQLite; a star after it finds words that begin so.
    return f'"{word}"*'


def _place(tx: Transaction, query: str, *, before: int, skip: int) -> tuple[int, dict[str, int]]:
    """How many pictures there are, and where in the list to start reading."""
    span = tx.one("gallery_span")
    assert span is not None, "the query has no condition"
    total, newest = span["total"], span["newest"]
    if query != "gallery_by_id" or not skip:
        return total, {"before": before, "skip": skip}

    def gaps(first: int, end: int) -> int:
        row = tx.one("gallery_gaps", first=first, end=end)
        return 0 if row is None else row["gaps"]

    # If every id without a picture is known, a jump needs no walk over what is left out.
    if newest - span["oldest"] + 1 - gaps(span["oldest"], newest + 1) != total:
        return total, {"before": before, "skip": skip}
    end = min(before, newest + 1)
    start = end - skip
    while start > 0 and (further := end - skip - gaps(start, end)) < start:
        start = further
    return total, {"before": max(start, 0), "skip": 0}


def _picture(row: Row) -> GalleryPicture:
    return GalleryPicture(
        id=row["id"],
        picture=picture_from_row(row),
        created_ms=row["created_ms"],
        provider=row["provider"],
        model=row["model"],
        session_id=row["session_id"],
        cost_nano=row["cost_nano"],
        lineage=msgspec.json.decode(row["lineage"], type=dict[str, Any]),
    )
