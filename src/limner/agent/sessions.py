"""A session's id, or the beginning of one -> the conversation; and all of them in their order."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from limner.agent.leases import Lease, Leases, refuse_elsewhere
from limner.agent.session import (
    Session,
    SessionAbout,
    milliseconds,
    no_session,
    read_about,
    whole_characters,
)
from limner.errors import InputInvalid
from limner.storage.store import Store, Transaction

PAGE_SESSIONS = 50
SESSION_EXISTS = "SESSION_EXISTS"
_EVERY_ITEM = 2**62


class Sessions:
    """Every conversation of one limner home. Making this value touches nothing."""

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
        """Begin a session.

        Args:
            cwd: the folder it works in.
            session_id: an id from elsewhere; a new one where it is left out.
            name: what a person calls it.
            settings: what holds for it, as JSON values.
            created_ms: when it was begun elsewhere; now where it is left out.

        Raises:
            InputInvalid: the id is taken (``SESSION_EXISTS``), or is not one.
        """
        begun_ms = milliseconds(self._clock()) if created_ms is None else created_ms
        given_id = new_id() if session_id is None else _checked(session_id)
        row = {
            "id": given_id,
            "created_ms": begun_ms,
            "cwd": whole_characters(cwd),
            "name": None if name is None else whole_characters(name),
            "settings": json.dumps(dict(settings or {})),
        }
        if not await self._store.write(lambda tx: tx.run("session_create", **row)):
            raise InputInvalid(
                f"There is a session {given_id!r} already.",
                field="session",
                code=SESSION_EXISTS,
                hint=f"limner sessions show {given_id} shows it; delete it first.",
                extras={"session": given_id},
            )
        return self._session(given_id)

    async def open(self, session_id: str) -> Session:
        """The session with an id, or the only one whose id begins so.

        Raises:
            InputInvalid: there is none (``NO_SUCH_SESSION``), or there are several.
        """
        found = await self._store.read(lambda tx: _find(tx, session_id))
        return self._session(found)

    async def hold(self, session_id: str) -> Lease:
        """Have a session for oneself, to take turns in it.

        Raises:
            UserError: another process has it, or another conversation (``SESSION_IN_USE``).
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
        """The sessions used last first; no item is read.

        Args:
            archived: those that were put away, instead of those in use.
            after: the `place` of the last one seen, to go on behind it.
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

    async def rename(self, session_id: str, name: str | None) -> None:
        """Give a session a name, or take it away.

        Raises:
            InputInvalid: there is no such session.
        """
        clean = None if name is None else whole_characters(name)
        await self._change("session_rename", session_id, name=clean)

    async def configure(self, session_id: str, settings: Mapping[str, Any]) -> None:
        """Put new settings in place of a session's old ones.

        Raises:
            InputInvalid: there is no such session.
        """
        text = json.dumps(dict(settings))
        await self._change("session_configure", session_id, settings=text)

    async def archive(self, session_id: str) -> None:
        """Put a session away: it is kept whole, and no longer listed.

        Raises:
            UserError: another process has it (``SESSION_IN_USE``).
            InputInvalid: there is no such session.
        """
        await self._put_away(session_id, archived_ms=milliseconds(self._clock()))

    async def unarchive(self, session_id: str) -> None:
        """Bring a session back that was put away; raises as `archive`."""
        await self._put_away(session_id, archived_ms=None)

    async def fork(self, session_id: str, *, before: int | None = None) -> Session:
        """A session that begins with the items of another, and goes its own way from there.

        It has read whatever the other one has, even in items that are left out.

        Args:
            session_id: the other one.
            before: the seq of the first item that is left out; none where it is left out.

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
        """Forget a session; what it cost stays in the ledger.

        Returns:
            The handles of the pictures it named, which may be garbage now.

        Raises:
            UserError: another process has it (``SESSION_IN_USE``).
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
        """Let others have every session that was held."""
        await self._leases.aclose()

    async def _put_away(self, session_id: str, *, archived_ms: int | None) -> None:
        def work(tx: Transaction) -> None:
            refuse_elsewhere(tx, session_id)
            if not tx.run("session_archive", id=session_id, archived_ms=archived_ms):
                raise no_session(session_id)

        await self._store.write(work)

    async def _change(self, query: str, session_id: str, **values: Any) -> None:
        def work(tx: Transaction) -> None:
            if not tx.run(query, id=session_id, **values):
                raise no_session(session_id)

        await self._store.write(work)

    def _session(self, session_id: str) -> Session:
        return Session(session_id, store=self._store, clock=self._clock)


def new_id() -> str:
    """An id that nothing else has, and that sorts by when it was made (a UUID of version 7)."""
    made_ms = time.time_ns() // 1_000_000
    version, variant = 0x7 << 76, 0b10 << 62
    chance = int.from_bytes(os.urandom(10)) & (0xFFF << 64 | (1 << 62) - 1)
    return str(uuid.UUID(int=made_ms << 80 | version | variant | chance))


def _find(tx: Transaction, prefix: str) -> str:
    found = [row["id"] for row in tx.all("session_find", prefix=prefix, limit=2)] if prefix else []
    if not found:
        raise no_session(prefix)
    # The id itself sorts before every longer one that begins with it.
    if len(found) > 1 and found[0] != prefix:
        raise InputInvalid(
            f"Several sessions begin with {prefix!r}.",
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
