"""A session -> the lease of the one conversation that may run turns in it, until it is released.

Reading, listing and exporting need no lease. A lease ends with its process: at once if the process
ran here, else when its heartbeat has stopped (`storage.owners`). A process that was suspended for
so long may lose a session; it finds out before it writes to the session.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from weakref import WeakValueDictionary

from limner import metrics
from limner.agent.session import no_session
from limner.errors import StorageError, UserError
from limner.storage.owners import is_alive, is_this_process, owner_in
from limner.storage.store import Row, Store, Transaction

SESSION_IN_USE = "SESSION_IN_USE"


class Lease:
    """The right to run turns in a session; it ends when this object is dropped."""

    def __init__(self, session_id: str, *, release: Callable[[Lease], Awaitable[None]]) -> None:
        self.session_id = session_id
        self._release = release

    async def release(self) -> None:
        """Release the session for other conversations."""
        await self._release(self)


class Leases:
    """The leases that one program holds. Creating this object does no I/O."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # Only the store's thread changes it, together with the rows.
        self._held: WeakValueDictionary[str, Lease] = WeakValueDictionary()
        self._is_used = self._is_closed = False

    async def take(self, session_id: str) -> Lease:
        """Take the lease of a session.

        Raises:
            UserError: another conversation holds it (``SESSION_IN_USE``).
            InputInvalid: there is no such session.
        """
        lease = Lease(session_id, release=self._release)
        await self._store.write(lambda tx: self._take(tx, lease))
        return lease

    @property
    def held_count(self) -> int:
        """How many sessions the conversations of this program hold."""
        return len(self._held)

    def holds(self, session_id: str) -> bool:
        """Whether a conversation of this program holds a session."""
        return session_id in self._held

    def check_write(self, tx: Transaction, session_id: str) -> None:
        """Check that this program may write to a session: it holds it, or no other process does.

        Raises:
            UserError: another process holds it, or took it over (``SESSION_IN_USE``).
        """
        row = tx.one("lease_of", session_id=session_id)
        if self.holds(session_id):
            if row is None or row["holder"] != self._store.owner.id:
                raise _lost(session_id)
        elif row is not None:
            _refuse_another(row)

    async def aclose(self) -> None:
        """Release all leases."""

        def work(tx: Transaction) -> None:
            self._held.clear()
            tx.run("leases_end", holder=self._store.owner.id)

        if self._is_used and not self._is_closed:
            with suppress(StorageError):  # the end of the process releases it as well
                await self._store.write(work)
        self._is_closed = True

    def _take(self, tx: Transaction, lease: Lease) -> None:
        self._is_used = True
        row = tx.one("lease_of", session_id=lease.session_id)
        if row is not None and _is_held(row):
            raise _in_use(row)
        me = self._store.owner.claim(tx)
        _IN_PROCESS[self._store.owner.id] = self
        taken = tx.run(
            "lease_take",
            session_id=lease.session_id,
            holder=self._store.owner.id,
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
                tx.run("lease_end", session_id=lease.session_id, holder=self._store.owner.id)

        if not self._is_closed:
            with suppress(StorageError):  # the end of the process releases it as well
                await self._store.write(work)


# All programs of this process: the process id does not say which of them holds a session.
_IN_PROCESS: WeakValueDictionary[str, Leases] = WeakValueDictionary()


def _count_held() -> int:
    return sum(leases.held_count for leases in tuple(_IN_PROCESS.values()))


metrics.SESSIONS.measure = _count_held


def refuse_elsewhere(tx: Transaction, session_id: str) -> None:
    """Check that no other process holds a session; a lease of this process is fine.

    Raises:
        UserError: another process holds it (``SESSION_IN_USE``).
    """
    row = tx.one("lease_of", session_id=session_id)
    if row is not None:
        _refuse_another(row)


def _refuse_another(row: Row) -> None:
    if not _is_here(row) and _is_held(row):
        raise _in_use(row)


def _is_here(row: Row) -> bool:
    owner = owner_in(row)
    return owner is not None and is_this_process(owner)


def _is_held(row: Row) -> bool:
    if _is_here(row):
        leases = _IN_PROCESS.get(row["holder"])
        return leases is not None and leases.holds(row["session_id"])
    owner = owner_in(row)
    if owner is None or (owner.beat_ms is None and sys.platform == "win32"):
        # Without a heartbeat Windows does not say which process is gone, and a crash must not lock
        # a session forever.
        return False
    return is_alive(owner)


def _lost(session_id: str) -> UserError:
    return UserError(
        f"This process was suspended for so long that it lost the session {session_id}.",
        code=SESSION_IN_USE,
        hint=f"Open the session again, or continue in a copy: limner sessions fork {session_id}",
        retryable=True,
        extras={"session": session_id},
    )


def _in_use(row: Row) -> UserError:
    session_id, pid = row["session_id"], row["pid"]
    facts = {"session": session_id, "pid": pid}
    if _is_here(row):
        return UserError(
            f"The session {session_id} is open in this program already.",
            code=SESSION_IN_USE,
            hint="Use the conversation that holds it, or close that first.",
            retryable=True,
            extras=facts,
        )
    return UserError(
        f"The session {session_id} is in use by process {pid}.",
        code=SESSION_IN_USE,
        hint=f"Close it there, or continue in a copy: limner sessions fork {session_id}",
        retryable=True,
        extras=facts,
    )
