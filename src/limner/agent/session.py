"""The items of one session <-> rows of the store, on disk before the call returns."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import msgspec

from limner.agent.history_repair import repair_history
from limner.agent.untrusted import is_untrusted
from limner.errors import InputInvalid
from limner.storage.store import Row, Store, Transaction
from limner.wires.base import HANDLE_URL
from limner.wires.items import Item, first_text, image_urls

PAGE_ITEMS = 200
PREVIEW_CHARS = 200
MAX_NESTING = 100

_HANDLE = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


class SessionAbout(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a session beside its items.

    Attributes:
        id: its id.
        name: the name that a user gave it.
        preview: the start of the user's first message.
        cwd: its working folder when it was created.
        settings: JSON values that apply when it is opened again.
        created_ms: when it was created.
        updated_ms: when an item was last added.
        archived_ms: when it was archived; None if it is not.
        forked_from: the session that it started as a copy of; it may be deleted.
        items: how many items there are, which is also the seq of the next one.
        sends_from: the seq of the first item that a model is sent; earlier ones are compacted.
        read_untrusted_ms: when content from outside first came into it; None if it never did.
        spent_nano: what was paid for it, or may have been, by the ledger.
    """

    id: str
    name: str | None
    preview: str | None
    cwd: str
    settings: Mapping[str, Any]
    created_ms: int
    updated_ms: int
    archived_ms: int | None
    forked_from: str | None
    items: int
    sends_from: int
    read_untrusted_ms: int | None
    spent_nano: int

    @property
    def place(self) -> tuple[int, str]:
        """Its sort key among the sessions; the last used one comes first."""
        return self.updated_ms, self.id


class Appended(msgspec.Struct, frozen=True):
    """The seq of the first of the added items, and what was paid for the session by then."""

    first_seq: int
    spent_nano: int


class Addition:
    """Items that a transaction of the caller adds to a session; all or none.

    Attributes:
        items: the items.
        untrusted: content from outside comes into the session with them.
        spent_nano: what was paid for the session when they were added.
    """

    def __init__(
        self, items: Sequence[Item], *, untrusted: bool, add: Callable[[Transaction], Appended]
    ) -> None:
        self.items, self.untrusted, self._add = items, untrusted, add
        self.spent_nano = 0

    def write(self, tx: Transaction, *, cost_nano: int = 0) -> None:
        """Add them, before ``cost_nano`` is settled in this transaction; raises as `append`."""
        self.spent_nano = self._add(tx).spent_nano + cost_nano


class StoredItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item, its number in its session and when it was added."""

    seq: int
    created_ms: int
    item: dict[str, Any]


class Session:
    """One session. This object keeps no items and no pictures in memory.

    ``check_write`` raises if another process holds the session.
    """

    def __init__(
        self,
        session_id: str,
        *,
        store: Store,
        clock: Callable[[], datetime],
        check_write: Callable[[Transaction, str], None],
    ) -> None:
        self.id = session_id
        self._store, self._clock, self._check_write = store, clock, check_write

    async def about(self) -> SessionAbout:
        """What is known about it.

        Raises:
            InputInvalid: it was deleted (``NO_SUCH_SESSION``).
        """
        return await self._store.read(self._about)

    async def append(
        self, items: Sequence[Item], *, created_ms: Sequence[int] | None = None
    ) -> Appended:
        """Add items, all or none; they are on disk when this returns.

        Args:
            items: JSON objects, their pictures named by handle.
            created_ms: the time of each item; now if it is None.

        Raises:
            InputInvalid: an item is not JSON, or has a picture that is not a handle; or the
                session was deleted (``NO_SUCH_SESSION``).
            UserError: another process holds the session (``SESSION_IN_USE``).
            StorageError: the database cannot be written.
        """
        work = self._adding(items, created_ms=created_ms)
        return await self._store.write(work, shared=True)

    def addition(self, items: Sequence[Item], *, untrusted: bool = False) -> Addition:
        """Items for a transaction of the caller, which is shared: see `Store.write`.

        Args:
            items: as in `append`.
            untrusted: content from outside comes into the session with them.

        Raises:
            InputInvalid: as `append`.
        """
        work = self._adding(items, untrusted=untrusted)
        return Addition(items, untrusted=untrusted, add=work)

    async def add(self, addition: Addition) -> None:
        """Add items in a transaction of their own; raises as `append`."""
        await self._store.write(addition.write, shared=True)

    async def compact(
        self, items: Sequence[Item], *, created_ms: Sequence[int] | None = None
    ) -> Appended:
        """Add items that replace, for a model, all items before them.

        Raises as `append` does.
        """
        work = self._adding(items, created_ms=created_ms, is_compaction=True)
        return await self._store.write(work, shared=True)

    async def cut(self, from_seq: int) -> None:
        """Delete every item from a seq on. A model is then sent what it was sent before them.

        Raises as `append` does.
        """
        sends_from, compaction = 0, None
        async for stored in self.items():
            found = stored.item.get("compaction")
            if stored.seq < from_seq and found not in (None, compaction):
                sends_from, compaction = stored.seq, found

        def work(tx: Transaction) -> None:
            about = self._about(tx)
            self._check_write(tx, self.id)
            kept = about.sends_from if about.sends_from < from_seq else sends_from
            tx.run("item_cut", id=self.id, from_seq=from_seq)
            tx.run("item_cut_pictures", id=self.id, from_seq=from_seq)
            tx.run("session_cut", id=self.id, items=from_seq, sends_from=kept)

        await self._store.write(work)

    async def note_untrusted(self) -> None:
        """Record that content from outside came into it; the first time is stored.

        Raises:
            InputInvalid: it was deleted (``NO_SUCH_SESSION``).
        """
        now_ms = milliseconds(self._clock())
        await self._store.write(lambda tx: self._note_untrusted(tx, now_ms), shared=True)

    async def page(self, *, from_seq: int = 0, limit: int = PAGE_ITEMS) -> list[StoredItem]:
        """At most ``limit`` items, from a seq on."""
        return await self._store.read(lambda tx: self._page(tx, from_seq=from_seq, limit=limit))

    async def items(self, *, from_seq: int = 0) -> AsyncIterator[StoredItem]:
        """Every item from a seq on, read a page at a time."""
        while page := await self.page(from_seq=from_seq):
            for stored in page:
                yield stored
            if len(page) < PAGE_ITEMS:
                return
            from_seq = page[-1].seq + 1

    async def history(self, *, open_calls: Collection[str] = ()) -> list[Item]:
        """What a model is sent: the items since the last compaction, with an output for every call.

        Args:
            open_calls: the ids of calls that will get their outputs later.

        Raises:
            InputInvalid: the session was deleted (``NO_SUCH_SESSION``).
        """
        return (await self.load(open_calls=open_calls))[1]

    async def load(
        self, *, open_calls: Collection[str] = (), adding: Addition | None = None
    ) -> tuple[SessionAbout, list[Item]]:
        """What is known about it, and its `history`; one transaction if it is short.

        ``adding`` is added in that transaction; what is returned is the session before it. Raises
        as `append` if there is one.
        """

        def work(tx: Transaction) -> tuple[SessionAbout, list[StoredItem]]:
            about = self._about(tx)
            first = self._page(tx, from_seq=about.sends_from, limit=PAGE_ITEMS)
            if adding is not None:
                adding.write(tx)
            return about, first

        if adding is None:
            about, first = await self._store.read(work)
        else:
            about, first = await self._store.write(work, shared=True)
        sent = [stored.item for stored in first]
        if len(first) == PAGE_ITEMS:
            rest = self.items(from_seq=first[-1].seq + 1)
            sent += [stored.item async for stored in rest if stored.seq < about.items]
        return about, repair_history(sent, open_calls=open_calls)

    def _note_untrusted(self, tx: Transaction, now_ms: int) -> None:
        if not tx.run("session_note_untrusted", id=self.id, now_ms=now_ms):
            raise no_session(self.id)

    def _about(self, tx: Transaction) -> SessionAbout:
        row = tx.one("session_about", id=self.id)
        if row is None:
            raise no_session(self.id)
        return read_about(row)

    def _page(self, tx: Transaction, *, from_seq: int, limit: int) -> list[StoredItem]:
        rows = tx.all("item_page", session_id=self.id, from_seq=from_seq, limit=limit)
        # One text of many items is parsed faster than many texts.
        items = json.loads(f"[{','.join(row['item'] for row in rows)}]")
        return [
            StoredItem(seq=row["seq"], created_ms=row["created_ms"], item=item)
            for row, item in zip(rows, items, strict=True)
        ]

    def _adding(
        self,
        items: Sequence[Item],
        *,
        created_ms: Sequence[int] | None = None,
        is_compaction: bool = False,
        untrusted: bool = False,
    ) -> Callable[[Transaction], Appended]:
        texts = [encode_item(item) for item in items]
        preview = next(filter(None, map(_preview, items)), None)
        now_ms = milliseconds(self._clock())
        times = created_ms or [now_ms] * len(texts)
        # An imported session is sorted by its own times.
        last_ms = max(times, default=0)

        def work(tx: Transaction) -> Appended:
            if is_compaction:
                tx.run("session_compacted", id=self.id)
            grown = tx.one(
                "session_grow", id=self.id, count=len(texts), now_ms=last_ms, preview=preview
            )
            if grown is None:
                raise no_session(self.id)
            self._check_write(tx, self.id)
            if untrusted:
                self._note_untrusted(tx, now_ms)
            first_seq: int = grown["first_seq"]
            for seq, (text, made_ms) in enumerate(zip(texts, times, strict=True), start=first_seq):
                tx.run("item_add", session_id=self.id, seq=seq, created_ms=made_ms, item=text)
                for handle in set(_HANDLE.findall(text)):
                    tx.run("item_names", session_id=self.id, handle=handle, seq=seq)
            return Appended(first_seq, grown["spent_nano"])

        return work


def encode_item(item: Item) -> str:
    """An item as the text that is stored.

    Raises:
        InputInvalid: it is not JSON, too deep, or has a picture that is not a handle.
    """
    for url in image_urls(item):
        if not url.startswith(HANDLE_URL):
            raise InputInvalid(
                f"The picture {url[:40]!r}… is not a handle.",
                field="image_url",
                hint="Store pictures before the item that contains them.",
            )
    if is_too_deep(item):
        raise InputInvalid(f"An item is nested deeper than {MAX_NESTING} levels.", field="item")
    return encode_json(item)


def is_too_deep(value: object, *, levels: int = MAX_NESTING) -> bool:
    """Whether a JSON value is nested so deeply that parsing it again could fail."""
    if isinstance(value, dict):
        inside = list(cast("dict[str, object]", value).values())
    elif isinstance(value, list):
        inside = cast("list[object]", value)
    else:
        return False
    return levels == 0 or any(is_too_deep(one, levels=levels - 1) for one in inside)


def encode_json(value: Mapping[str, Any]) -> str:
    """An object as JSON text without lone surrogates.

    Raises:
        InputInvalid: it is not JSON.
    """
    try:
        # json, not msgspec: it keeps integers of any size and lone surrogates.
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text if _is_unicode(text) else json.dumps(value, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputInvalid(f"An item is not JSON: {error}", field="item") from error


def decode_item(text: str) -> dict[str, Any]:
    """The item in a stored text."""
    return json.loads(text)


def no_session(session_id: str) -> InputInvalid:
    """The error about a session that does not exist."""
    return InputInvalid(
        f"There is no session {session_id[:80]!r}.",
        field="session",
        code="NO_SUCH_SESSION",
        hint="limner sessions list shows them.",
    )


def read_about(row: Row) -> SessionAbout:
    """A row of the table of sessions as a `SessionAbout`."""
    return SessionAbout(**{**dict(row), "settings": json.loads(row["settings"])})


def milliseconds(moment: datetime) -> int:
    """A time as the store keeps it."""
    return int(moment.timestamp() * 1000)


def escape_surrogates(text: str) -> str:
    """A text that the store can keep: a lone surrogate becomes its escape."""
    return text.encode(errors="backslashreplace").decode()


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _preview(item: Item) -> str | None:
    if item.get("type") != "message" or item.get("role") != "user" or is_untrusted(item):
        return None
    text = " ".join(first_text(item).split())
    # Programs write such messages in the user's name: they do not show what the user wants.
    if not text or text.startswith(("<", "# AGENTS.md")):
        return None
    return escape_surrogates(text[:PREVIEW_CHARS])
