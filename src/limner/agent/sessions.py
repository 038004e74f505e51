"""An id, or the start of one -> the session; and all sessions, the last used one first."""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from limner.agent.leases import Lease, Leases, refuse_elsewhere
from limner.agent.session import (
    Session,
    SessionAbout,
    decode_item,
    escape_surrogates,
    milliseconds,
    no_session,
    read_about,
)
from limner.errors import InputInvalid
from limner.storage.store import Store, Transaction
from limner.wires.items import Item, iter_parts

PAGE_SESSIONS = 50
SESSION_EXISTS = "SESSION_EXISTS"
MAX_SEARCHED = 5_000
SNIPPET_CHARS = 100
_EVERY_ITEM = 2**62


class Sessions:
    """All sessions of one limner home. Creating this object does no I/O."""

    def __init__(self, *, store: Store, clock: Callable[[], datetime]) -> None:
        self._store, self._clock = store, clock
        self._leases = Leases(store)

    async def create(
        self,
        *,
        cwd: str,
        session_id: str | None = None,
        name: str | None = None,
        settings: Mapping[str, Any] | None = None,
        created_ms: int | None = None,
    ) -> Session:
        """Create a session.

        Args:
            cwd: its working folder.
            session_id: an id from elsewhere; a new one if it is None.
            name: the name that a user gave it.
            settings: JSON values that apply when it is opened again.
            created_ms: when it was created elsewhere; now if it is None.

        Raises:
            InputInvalid: the id is taken (``SESSION_EXISTS``), or is not a UUID.
        """
        created_ms = milliseconds(self._clock()) if created_ms is None else created_ms
        given_id = new_id() if session_id is None else _checked(session_id)
        row = {
            "id": given_id,
            "created_ms": created_ms,
            "cwd": escape_surrogates(cwd),
            "name": None if name is None else escape_surrogates(name),
            "settings": _as_text(settings or {}),
        }
        if not await self._store.write(lambda tx: tx.run("session_create", **row), shared=True):
            raise InputInvalid(
                f"There is a session {given_id!r} already.",
                field="session",
                code=SESSION_EXISTS,
                hint=f"limner sessions show {given_id} shows it; delete it first.",
                extras={"session": given_id},
            )
        return self._session(given_id)

    async def open(self, session_id: str) -> Session:
        """The session with an id, or the only one whose id starts with it.

        Raises:
            InputInvalid: there is none (``NO_SUCH_SESSION``), or there are several.
        """
        found = await self._store.read(lambda tx: _find(tx, session_id))
        return self._session(found)

    async def search(self, term: str) -> dict[str, str]:
        """The sessions whose items have a text, and the first text that has it, by id."""
        # Stored items are JSON, so the term is looked for as JSON writes it.
        written = json.dumps(term, ensure_ascii=False)[1:-1]
        for special in ("\\", "%", "_"):
            written = written.replace(special, f"\\{special}")
        rows = await self._store.read(
            lambda tx: tx.all("item_search", pattern=f"%{written}%", limit=MAX_SEARCHED)
        )
        found: dict[str, str] = {}
        for row in rows:
            if row["session_id"] not in found:
                text = _excerpt(decode_item(row["item"]), term)
                if text is not None:
                    found[row["session_id"]] = text
        return found

    async def hold(self, session_id: str) -> Lease:
        """Take the lease of a session, to run turns in it.

        Raises:
            UserError: another process or conversation holds it (``SESSION_IN_USE``).
            InputInvalid: there is no such session.
        """
        return await self._leases.take(session_id)

    async def list(
        self,
        *,
        archived: bool = False,
        after: tuple[int, str] | None = None,
        limit: int = PAGE_SESSIONS,
    ) -> list[SessionAbout]:
        """The sessions, the last used one first; no items are read.

        Args:
            archived: the archived ones, instead of the others.
            after: the `place` of the last one of the page before.
            limit: how many at most.
        """
        after_ms, after_id = after or (None, None)
        rows = await self._store.read(
            lambda tx: tx.all(
                "session_list",
                archived=archived,
                after_ms=after_ms,
                after_id=after_id,
                limit=limit,
            )
        )
        return [read_about(row) for row in rows]

    async def known(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids that are ids of sessions."""
        return await self._store.read(
            lambda tx: {one for one in ids if tx.one("session_about", id=one) is not None}
        )

    async def rename(self, session_id: str, name: str | None) -> None:
        """Set or remove the name of a session.

        Raises:
            InputInvalid: there is no such session.
        """
        clean = None if name is None else escape_surrogates(name)
        await self._change("session_rename", session_id, name=clean)

    async def configure(self, session_id: str, settings: Mapping[str, Any]) -> None:
        """Replace the settings of a session.

        Raises:
            InputInvalid: there is no such session.
        """
        await self._change("session_configure", session_id, settings=_as_text(settings))

    async def archive(self, session_id: str) -> None:
        """Archive a session: it keeps everything, and is no longer listed.

        Raises:
            UserError: another process holds it (``SESSION_IN_USE``).
            InputInvalid: there is no such session.
        """
        await self._set_archived(session_id, archived_ms=milliseconds(self._clock()))

    async def unarchive(self, session_id: str) -> None:
        """List an archived session again; raises as `archive`."""
        await self._set_archived(session_id, archived_ms=None)

    async def fork(self, session_id: str, *, before: int | None = None) -> Session:
        """Create a session that starts with the items of another.

        It counts as having read untrusted content if the other one has, even in items that are
        left out.

        Args:
            session_id: the other one.
            before: the seq of the first item that is left out; None copies all.

        Raises:
            InputInvalid: there is no such session.
        """
        fork_id = new_id()
        now_ms = milliseconds(self._clock())
        copied = {
            "id": fork_id,
            "source": session_id,
            "before": _EVERY_ITEM if before is None else max(before, 0),
        }

        def work(tx: Transaction) -> None:
            if not tx.run("session_fork", **copied, now_ms=now_ms):
                raise no_session(session_id)
            tx.run("item_fork", **copied)
            tx.run("item_names_fork", **copied)

        await self._store.write(work)
        return self._session(fork_id)

    async def delete(self, session_id: str) -> tuple[str, ...]:
        """Delete a session; its costs stay in the ledger.

        Returns:
            The handles of its pictures, which may be garbage now.

        Raises:
            UserError: another process holds it (``SESSION_IN_USE``).
            InputInvalid: there is no such session.
        """

        def work(tx: Transaction) -> tuple[str, ...]:
            refuse_elsewhere(tx, session_id)
            named = tuple(row["handle"] for row in tx.all("session_pictures", id=session_id))
            if not tx.run("session_delete", id=session_id):
                raise no_session(session_id)
            return named

        return await self._store.write(work)

    async def aclose(self) -> None:
        """Release all leases."""
        await self._leases.aclose()

    async def _set_archived(self, session_id: str, *, archived_ms: int | None) -> None:
        def work(tx: Transaction) -> None:
            refuse_elsewhere(tx, session_id)
            if not tx.run("session_archive", id=session_id, archived_ms=archived_ms):
                raise no_session(session_id)

        await self._store.write(work)

    async def _change(self, query: str, session_id: str, **values: Any) -> None:
        def work(tx: Transaction) -> None:
            if not tx.run(query, id=session_id, **values):
                raise no_session(session_id)

        await self._store.write(work, shared=True)

    def _session(self, session_id: str) -> Session:
        return Session(
            session_id, store=self._store, clock=self._clock, check_write=self._leases.check_write
        )


def new_id() -> str:
    """A new id that sorts by its time (a UUID of version 7)."""
    made_ms = time.time_ns() // 1_000_000
    version, variant = 0x7 << 76, 0b10 << 62
    random = int.from_bytes(os.urandom(10)) & (0xFFF << 64 | (1 << 62) - 1)
    return str(uuid.UUID(int=made_ms << 80 | version | variant | random))


def _as_text(settings: Mapping[str, Any]) -> str:
    try:
        return msgspec.json.encode(dict(settings)).decode()
    except (UnicodeEncodeError, OverflowError):
        # It is loaded for this alone: lone surrogates, and integers of any size.
        return json.dumps(dict(settings))


def _excerpt(item: Item, term: str) -> str | None:
    """The part of a text of an item that has a term; None if it is not in a text."""
    output: object = item.get("output")
    texts = [output] if isinstance(output, str) else [part.get("text") for part in iter_parts(item)]
    for text in texts:
        at = text.casefold().find(term.casefold()) if isinstance(text, str) else -1
        if isinstance(text, str) and at >= 0:
            return " ".join(text[max(0, at - SNIPPET_CHARS) : at + SNIPPET_CHARS].split())
    return None


def _find(tx: Transaction, prefix: str) -> str:
    span = {"prefix": prefix, "end": prefix + chr(sys.maxunicode)}
    found = [row["id"] for row in tx.all("session_find", **span, limit=2)] if prefix else []
    if not found:
        raise no_session(prefix)
    # The id itself sorts before every longer one that starts with it.
    if len(found) > 1 and found[0] != prefix:
        raise InputInvalid(
            f"Several sessions start with {prefix!r}.",
            field="session",
            hint="Give more of the id: limner sessions list shows them.",
        )
    return found[0]


def _checked(session_id: str) -> str:
    try:
        return str(uuid.UUID(session_id))
    except ValueError:
        raise InputInvalid(
            f"{session_id[:80]!r} is not the id of a session.",
            field="session",
            hint="An id is a UUID, such as 01890a5d-ac96-774b-bcce-b302099a8057.",
        ) from None
