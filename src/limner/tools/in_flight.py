"""Calls in flight -> a close that waits for them: a request that was sent may be charged."""

from __future__ import annotations

import asyncio
import concurrent.futures
import errno
import hashlib
import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from limner.errors import OutputExists
from limner.storage.temp_file import make_folder

if sys.platform != "win32":
    import fcntl
if TYPE_CHECKING:
    from concurrent.futures import Future

CHECK_S = 0.1
# A loop that does not run may run again, but a call in it cannot end while this close waits.
STOPPED_LOOP_S = 1.0
# The paths that calls of this process will write.
_TARGETS: set[Path] = set()


class InFlight:
    """The calls of one program that are running, in any number of event loops.

    ``lock_file`` is a file of the home, in which each path that a call will write has one byte. A
    process locks the byte, so that other processes leave the path alone. The system unlocks it if
    the process dies.
    """

    def __init__(self, lock_file: Path) -> None:
        self._lock_file = lock_file
        self._calls: dict[Future[None], asyncio.AbstractEventLoop] = {}
        self._closed = False

    @contextmanager
    def track(self) -> Generator[None]:
        """Make `aclose` wait for what happens inside.

        Raises:
            RuntimeError: it is closed.
        """
        done: Future[None] = concurrent.futures.Future()
        done.set_running_or_notify_cancel()  # a waiter that gives up must not cancel it
        self._calls[done] = asyncio.get_running_loop()
        try:
            self.check_open()
            yield
        finally:
            self._calls.pop(done, None)
            done.set_result(None)

    @contextmanager
    def writing(self, target: Path | None, *, overwrite: bool = False) -> Generator[None]:
        """Hold the path of a call's file; None or a folder for a new name, which is always free.

        Raises:
            OutputExists: another call will write it, of any process with this home; or the file
                has been written since the path was checked.
        """
        if target is None or target.is_dir():
            yield
            return
        if target in _TARGETS or not _lock(self._lock_file, target):
            raise OutputExists(
                f"{target} is being drawn by another call; nothing was sent",
                hint="Choose another path, or ask for several pictures in one call.",
            )
        _TARGETS.add(target)
        try:
            if not overwrite and os.path.lexists(target):
                raise OutputExists(f"{str(target)!r} is there now; nothing was sent")
            yield
        finally:
            _TARGETS.discard(target)
            _unlock(self._lock_file, target)

    def check_open(self) -> None:
        """Raise RuntimeError if it is closed; called once more before anything is sent."""
        if self._closed:
            raise RuntimeError("this Limner is closed")

    async def aclose(self) -> None:
        """Refuse new requests, and wait for those that were sent.

        A call whose event loop is gone cannot end: it is left behind. Its row in the ledger stays,
        and a later process concludes it.
        """
        self._closed = True
        ran = dict.fromkeys(self._calls, time.monotonic())
        while waiting := [
            call for call, loop in [*self._calls.items()] if _may_end(call, loop, ran)
        ]:
            await asyncio.wait(map(asyncio.wrap_future, waiting), timeout=CHECK_S)


def _may_end(
    call: Future[None], loop: asyncio.AbstractEventLoop, ran: dict[Future[None], float]
) -> bool:
    """Whether a call may still end; ``ran`` is when its event loop was last seen running."""
    now = time.monotonic()
    if loop.is_running():
        ran[call] = now
    return not loop.is_closed() and now - ran.setdefault(call, now) < STOPPED_LOOP_S


@cache
def _open_lock_file(lock_file: Path) -> int:
    """The file, open until the process ends: to close it would unlock the bytes of all calls."""
    make_folder(lock_file.parent)
    return os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o600)


def _byte_of(target: Path) -> int:
    digest = hashlib.sha256(os.fsencode(target)).digest()
    return int.from_bytes(digest[:7])


def _lock(lock_file: Path, target: Path) -> bool:
    """Lock a path; False if another process has it. A system without locks refuses none."""
    if sys.platform == "win32":
        return True
    try:
        fd = _open_lock_file(lock_file)
    except OSError:
        return True  # the home cannot be written: the next step says so
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte_of(target))
    except OSError as error:
        return error.errno not in (errno.EACCES, errno.EAGAIN)
    return True


def _unlock(lock_file: Path, target: Path) -> None:
    if sys.platform != "win32":
        with suppress(OSError):
            fcntl.lockf(_open_lock_file(lock_file), fcntl.LOCK_UN, 1, _byte_of(target))
