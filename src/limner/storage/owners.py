"""A process -> the owner of its calls and sessions, with a lease that a heartbeat keeps alive.

The process table decides at once whether an owner of the same boot and the same PID namespace
lives. A process id alone is not an identity, because the system reuses it: the start time belongs
to it. In another container, on another host and on systems without start times the heartbeat
decides: an owner that missed it for `EXPIRES_S` has ended.
"""

from __future__ import annotations

import os
import platform
import sys
import threading
import time
import weakref
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from limner.errors import StorageError

if TYPE_CHECKING:
    from limner.storage.store import Row, Store, Transaction

UNKNOWN = "unknown"
BEAT_S = 10.0
EXPIRES_S = 60.0
FRESH_MS = 1000
# Owners that ended and held nothing are deleted together, because each write is synced to disk.
_MANY_ENDED = 32

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")
# Fields of /proc/<pid>/stat, counted from the state, the first one after the command's name.
_STATE, _START_TICKS = 0, 19
_ENDED = {"Z", "X", "x"}


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """A process; what the system does not say is "unknown".

    An owner that an older version of limner wrote has no host, no namespace and no heartbeat.
    ``beat_ms`` is the time of the last heartbeat and ``now_ms`` the present, both by the clock of
    the database; ``beat_up_ms`` is the time of the last heartbeat since the boot.
    """

    pid: int
    start: str
    boot: str
    host: str | None = None
    namespace: str | None = None
    beat_ms: int | None = None
    beat_up_ms: int | None = None
    now_ms: int | None = None


def this_process() -> Owner:
    """The identity of the running process."""
    return _process(os.getpid())


# Each paid call needs it. After a fork, the value of the parent is not the one of this id.
@lru_cache(maxsize=1)
def _process(pid: int) -> Owner:
    return Owner(
        pid=pid,
        start=_start_of(pid) or UNKNOWN,
        boot=_boot_id(),
        host=platform.node(),
        namespace=_namespace(),
    )


def is_this_process(owner: Owner) -> bool:
    """Whether an owner is the running process."""
    here = this_process()
    if (owner.pid, owner.start, owner.boot) != (here.pid, here.start, here.boot):
        return False
    return owner.host is None or (owner.host, owner.namespace) == (here.host, here.namespace)


def is_alive(owner: Owner) -> bool:
    """Whether this exact process is running, as far as one can tell from here."""
    boot = _boot_id()
    has_same_table = owner.boot == boot and owner.namespace in (None, _namespace())
    if owner.beat_ms is None or (has_same_table and boot != UNKNOWN):
        return has_same_table and owner.start == _start_of(owner.pid)
    if has_same_table and owner.host == platform.node() and not is_in_use(owner.pid):
        return False
    return _beats(owner, has_same_clock=owner.boot == boot != UNKNOWN)


def owner_in(row: Row) -> Owner | None:
    """The owner in a row of a query that joins ``owners``; None if it has ended and was deleted."""
    if row["owner"] is not None and row["host"] is None:
        return None
    return Owner(**{name: row[name] for name in Owner.__struct_fields__})


def has_live_owner(row: Row) -> bool:
    """Whether the owner in such a row lives."""
    owner = owner_in(row)
    return owner is not None and is_alive(owner)


def delete_ended(tx: Transaction) -> None:
    """Delete the owners that have ended, once there are many; what they hold was concluded."""
    rows = tx.all("owners_all")
    if len(rows) < _MANY_ENDED:
        return
    for row in rows:
        owner = owner_in(row)
        if owner is not None and not is_alive(owner):
            tx.run("leases_end", holder=row["owner"])
            tx.run("owner_delete", id=row["owner"])


class Ownership:
    """The owner that one open database is for the rows it writes.

    `claim` is called in each transaction that writes such a row. From then on a thread renews the
    lease until the database has no row of this owner left.
    """

    def __init__(self, store: Store) -> None:
        self.id = os.urandom(8).hex()
        # A weak reference: the heartbeat must not keep a store open that its program has dropped.
        self._store = weakref.ref(store)
        self._stop = threading.Event()
        self._starting = threading.Lock()
        # `renew` runs alone, so that no call can begin while it finds that nothing is held.
        self._is_beating = False

    def claim(self, tx: Transaction) -> Owner:
        """Note that this process is alive and holds something; return its identity."""
        # A heartbeat of this second is enough: all calls of a process write one row, and would
        # wait for each other.
        if tx.one("owner_beats", id=self.id, within_ms=FRESH_MS) is None:
            self._beat(tx)
        with self._starting:
            if not self._is_beating:
                beating = (self._store, self._stop)
                threading.Thread(
                    target=_keep_beating, args=beating, name="limner-lease", daemon=True
                ).start()
                self._is_beating = True
        return this_process()

    def stop(self) -> None:
        """End the heartbeat."""
        self._stop.set()

    def renew(self, tx: Transaction) -> bool:
        """Renew the lease; return whether something is still held."""
        self._is_beating = tx.one("owner_holds", id=self.id) is not None
        if self._is_beating:
            self._beat(tx)
        return self._is_beating

    def _beat(self, tx: Transaction) -> None:
        me = this_process()
        tx.run("owner_beat", id=self.id, **msgspec.structs.asdict(replace(me, beat_up_ms=_up_ms())))


def _keep_beating(of: weakref.ref[Store], stop: threading.Event) -> None:
    while not stop.wait(BEAT_S):
        if (store := of()) is None:
            return
        try:
            if not store.submit_write(store.owner.renew).result():
                return
        except StorageError:
            pass  # the next heartbeat tries again
        except RuntimeError:  # the store is closed
            return
        del store


def _beats(owner: Owner, *, has_same_clock: bool) -> bool:
    """Whether the last heartbeat is recent, by the clock that both processes read."""
    if has_same_clock and owner.beat_up_ms is not None:
        age_ms = _up_ms() - owner.beat_up_ms
    else:
        age_ms = (owner.now_ms or 0) - (owner.beat_ms or 0)
    return age_ms <= EXPIRES_S * 1000


def _up_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return UNKNOWN


def _namespace() -> str:
    try:
        return str(_NAMESPACE.readlink())
    except OSError:
        return UNKNOWN


def _start_of(pid: int) -> str | None:
    """When the process started; "unknown" if the system does not say, None if it has ended."""
    if _boot_id() == UNKNOWN:
        return UNKNOWN if is_in_use(pid) else None
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command's name may contain spaces and brackets; the last bracket ends it.
    fields = stat.rpartition(")")[2].split()
    return None if fields[_STATE] in _ENDED else fields[_START_TICKS]


def is_in_use(pid: int) -> bool:
    """Whether a process has this id; True if the system does not say."""
    if sys.platform == "win32":
        # On Windows signal 0 is Ctrl-C: it would stop the process.
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
