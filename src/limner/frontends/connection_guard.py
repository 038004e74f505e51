"""The connections of one server -> which of them stay: limits on number, time and memory.

A connection is a newcomer until it has sent its first whole request or has introduced itself.
Newcomers have a deadline, and are counted apart: if there are too many, the oldest is dropped. So
silent connections cannot keep other clients out. All connections together may hold a number of
bytes: if they hold more, the connection that holds the most is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import msgspec

from limner import metrics


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a server allows its clients.

    Attributes:
        newcomers: connections without a whole first request.
        connections: all others.
        head_s: the time for the head of a request, and for the handshake of a web socket.
        request_s: the time for the rest: a body, or the message `initialize`.
        opening_bytes: the longest message of a client that has not introduced itself.
        body_bytes: the longest HTTP body after that.
        held_bytes: what all connections together may hold: unfinished messages, requests that
            are being served, and messages that the client has not read.
        sessions: sessions over HTTP; if there are more, the one that was idle longest ends.
        session_idle_s: a session without a request for this time ends.
    """

    newcomers: int = 256
    connections: int = 1024
    head_s: float = 10.0
    request_s: float = 60.0
    opening_bytes: int = 1024 * 1024
    body_bytes: int = 8 * 1024 * 1024
    held_bytes: int = 512 * 1024 * 1024
    sessions: int = 256
    session_idle_s: float = 1800.0


LIMITS = ServerLimits()


class GuardedConnection:
    """One connection of a server. ``drop`` closes it at once."""

    def __init__(self, guard: ConnectionGuard, drop: Callable[[], None]) -> None:
        self._guard, self.drop = guard, drop
        self._seconds: float | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self.held_bytes = 0

    def expect(self, seconds: float) -> None:
        """Drop the connection after this time, unless it settles. The same time is set once."""
        if self._seconds != seconds:
            self._stop_clock()
            self._seconds = seconds
            self._deadline = asyncio.get_running_loop().call_later(seconds, self.drop)

    def settle(self) -> None:
        """What was expected has arrived: the connection is no newcomer."""
        self._stop_clock()
        self._guard.accept(self)

    def hold(self, change: int) -> None:
        """Count more or fewer bytes."""
        self._guard.hold(self, change)

    def leave(self) -> None:
        """The connection has ended."""
        self._stop_clock()
        self._guard.remove(self)

    def _stop_clock(self) -> None:
        self._seconds = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class ConnectionGuard:
    """The connections of one server."""

    def __init__(self, limits: ServerLimits) -> None:
        self.limits = limits
        self.held_bytes = 0
        # In the order in which they came.
        self._newcomers: dict[GuardedConnection, None] = {}
        self._accepted: set[GuardedConnection] = set()

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another connection that is no newcomer."""
        return len(self._accepted) >= self.limits.connections

    def admit(self, drop: Callable[[], None]) -> GuardedConnection:
        """Take in a newcomer, and expect the head of its first request."""
        while len(self._newcomers) >= self.limits.newcomers:
            oldest = next(iter(self._newcomers))
            oldest.leave()
            oldest.drop()
        connection = GuardedConnection(self, drop)
        self._newcomers[connection] = None
        metrics.CONNECTIONS.add()
        connection.expect(self.limits.head_s)
        return connection

    def accept(self, connection: GuardedConnection) -> None:
        """Count a connection among the others."""
        if connection in self._newcomers:
            del self._newcomers[connection]
            self._accepted.add(connection)

    def hold(self, connection: GuardedConnection, change: int) -> None:
        """Count the bytes of a connection, unless it was dropped."""
        if connection not in self._accepted and connection not in self._newcomers:
            return
        connection.held_bytes += change
        self.held_bytes += change
        while self.held_bytes > self.limits.held_bytes:
            largest = max((*self._accepted, *self._newcomers), key=lambda one: one.held_bytes)
            largest.leave()
            largest.drop()

    def remove(self, connection: GuardedConnection) -> None:
        """Forget a connection and its bytes."""
        if connection in self._newcomers or connection in self._accepted:
            metrics.CONNECTIONS.add(-1)
        self._newcomers.pop(connection, None)
        self._accepted.discard(connection)
        self.held_bytes -= connection.held_bytes
        connection.held_bytes = 0


def allow_many_files() -> None:
    """Raise the limit of open files: every connection is one."""
    try:
        import resource  # noqa: PLC0415 - not on Windows, which has no such limit
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
