"""A session -> the lease of the one conversation that may take turns in it, until that lets go.

Reading, listing and exporting need none. What a process that died had is free at once.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from weakref import WeakValueDictionary

from limner.agent.session import no_session
from limner.errors import StorageError, UserError
from limner.storage.owners import Owner, is_alive, this_process
from limner.storage.store import Row, Store, Transaction

SESSION_IN_USE = "SESSION_IN_USE"


class Lease:
    """The right to take turns in a session; whoever drops this value has given it up."""

    def __init__(self, session_id: str, *, release: Callable[[Lease], Awaitable[None]]) -> None:
        self.session_id = session_id
        self._release = release

    async def release(self) -> None:
        """Let others have the session."""
        await self._release(self)


class Leases:
    """The sessions that one program has, and may have. Making this value touches nothing."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._holder = secrets.token_hex(8)
        # Changed on the store's thread alone, in step with the rows.
        self._held: WeakValueDictionary[str, Lease] = WeakValueDictionary()
        self._is_used = self._is_closed = False
        _HERE[self._holder] = self

    async def take(self, session_id: str) -> Lease:
        """Have a session.

        Raises:
            UserError: somebody else has it (``SESSION_IN_USE``).
            InputInvalid: there is no such session.
        """
        lease = Lease(session_id, release=self._release)
        await self._store.write(lambda tx: self._take(tx, lease))
        return lease

    def holds(self, session_id: str) -> bool:
        """Whether a conversation of this program has a session."""
        return session_id in self._held

    async def aclose(self) -> None:
        """Let go of all of them."""

        def work(tx: Transaction) -> None:
            self._held.clear()
            tx.run("leases_end", holder=self._holder)

        if self._is_used and not self._is_closed:
            with suppress(StorageError):  # the end of the process does as well
                await self._store.write(work)
        self._is_closed = True

    def _take(self, tx: Transaction, lease: Lease) -> None:
        self._is_used = True
        row = tx.one("lease_of", session_id=lease.session_id)
        if row is not None and _is_held(row):
            raise _in_use(row)
        me = this_process()
        taken = tx.run(
            "lease_take",
            session_id=lease.session_id,
            holder=self._holder,
            pid=me.pid,
            start=me.start,
            boot=me.boot,
        )
        if not taken:
            raise no_session(lease.session_id)
        self._held[lease.session_id] = lease

    async def _release(self, lease: Lease) -> None:
        def work(tx: Transaction) -> None:
            if self._held.get(lease.session_id) is lease:
                del self._held[lease.session_id]
                tx.run("lease_end", session_id=lease.session_id, holder=self._holder)

        if not self._is_closed:
            with suppress(StorageError):  # the end of the process does as well
                await self._store.write(work)


# A process cannot tell by its own number which of its programs still has a session.
_HERE: WeakValueDictionary[str, Leases] = WeakValueDictionary()


def refuse_elsewhere(tx: Transaction, session_id: str) -> None:
    """Insist that no other process has a session; this one knows what it does.

    Raises:
        UserError: one has (``SESSION_IN_USE``).
    """
    row = tx.one("lease_of", session_id=session_id)
    if row is not None and _owner(row) != this_process() and _is_held(row):
        raise _in_use(row)


def _is_held(row: Row) -> bool:
    if _owner(row) == this_process():
        leases = _HERE.get(row["holder"])
        return leases is not None and leases.holds(row["session_id"])
    # Windows does not say who is gone, and a crash must not close a session for good.
    return sys.platform != "win32" and is_alive(_owner(row))


def _owner(row: Row) -> Owner:
    return Owner(pid=row["owner_pid"], start=row["owner_start"], boot=row["owner_boot"])


def _in_use(row: Row) -> UserError:
    session_id, owner = row["session_id"], _owner(row)
    facts = {"session": session_id, "pid": owner.pid}
    if owner == this_process():
        return UserError(
            f"The session {session_id} is open in this program already.",
            code=SESSION_IN_USE,
            hint="Use the conversation that has it, or close that first.",
            retryable=True,
            extras=facts,
        )
    return UserError(
        f"The session {session_id} is in use by process {owner.pid}.",
        code=SESSION_IN_USE,
        hint=f"Close it there, or go on in a copy: limner sessions fork {session_id}",
        retryable=True,
        extras=facts,
    )
