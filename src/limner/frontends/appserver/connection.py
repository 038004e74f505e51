"""The clients of the server: what each supports, what it is sent, and when it is gone."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from limner.frontends.appserver.protocol.base import OUR_NOTIFICATIONS
from limner.net.jsonrpc import INVALID_REQUEST, RpcError, encode_notification
from limner.net.jsonrpc_peer import Log, Meter, Peer, PendingRequests, RequestServer, Transport

if TYPE_CHECKING:
    from limner.frontends.appserver.protocol.notifications import Notice


class ClientConnection(Peer):
    """A client of the app-server. ``on_initialize`` is called once, with `initialize`.

    Attributes:
        client: its name and version, once it has sent `initialize`.
        experimental: it asked for methods and fields that may still change.
        is_first_protocol: it has called a method of the first protocol, whose clients know none
            of the notifications of the second.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        server: RequestServer,
        pending: PendingRequests,
        log: Log,
        meter: Meter | None = None,
        on_initialize: Callable[[], None] | None = None,
    ) -> None:
        # Notifications are ignored, `initialized` too: after `initialize` a client is served.
        super().__init__(transport, server=server, pending=pending, log=log, meter=meter)
        self._on_initialize = on_initialize
        self._opted_out: frozenset[str] = frozenset()
        self._opted_in: frozenset[str] = frozenset()
        self.client: tuple[str, str] | None = None
        self.experimental = False
        self.is_first_protocol = False

    def initialize(
        self,
        name: str,
        version: str,
        *,
        experimental: bool,
        opted_out: Iterable[str],
        opted_in: Iterable[str] = (),
    ) -> None:
        """Serve this client from now on.

        It gets no notification that it has opted out of. It gets a notification that only limner
        has if it has opted in: a program that knows a fixed list of names may fail on another one.

        Raises:
            RpcError: this was done before.
        """
        if self.client is not None:
            raise RpcError(INVALID_REQUEST, "Already initialized")
        self.client = (name, version)
        self.experimental = experimental
        self._opted_out, self._opted_in = frozenset(opted_out), frozenset(opted_in)
        if self._on_initialize is not None:
            self._on_initialize()

    def require_initialized(self) -> None:
        """Check that the client has sent `initialize`.

        Raises:
            RpcError: it has not.
        """
        if self.client is None:
            raise RpcError(INVALID_REQUEST, "Not initialized")

    def require_experimental(self, feature: str) -> None:
        """Check that the client asked for what may still change, to use a method or a field.

        Raises:
            RpcError: it did not.
        """
        if not self.experimental:
            raise RpcError(INVALID_REQUEST, f"{feature} requires experimentalApi capability")

    def notify(self, method: str, params: object = None) -> None:
        """Send the client a notification, unless it has opted out of it."""
        broadcast([self], method, params)

    def wants(self, method: str) -> bool:
        """Whether the client gets this notification."""
        is_wanted = method not in self._opted_out
        if method in OUR_NOTIFICATIONS:
            is_wanted = method in self._opted_in
        return self.client is not None and is_wanted and not self.closed


def broadcast(connections: Iterable[ClientConnection], method: str, params: object) -> None:
    """Send several clients the same notification, encoded once, and only if any client wants it."""
    if wanting := [connection for connection in connections if connection.wants(method)]:
        message = encode_notification(method, params, emittedAtMs=time.time_ns() // 1_000_000)
        for connection in wanting:
            connection.post(message)


class Clients:
    """Every client that has sent `initialize` and is still connected."""

    def __init__(self) -> None:
        self._clients: set[ClientConnection] = set()

    def add(self, client: ClientConnection) -> None:
        """Add a client until it is gone."""
        self._clients.add(client)
        client.on_close(lambda: self._clients.discard(client))

    @property
    def are_waiting(self) -> bool:
        """Whether one of them waits for a response."""
        return any(client.unanswered for client in self._clients)

    def notify(self, notice: Notice, *, without: Collection[ClientConnection] = ()) -> None:
        """Send a notification to every client of the second protocol except for some."""
        # `initialize` does without the types of all notifications.
        from limner.frontends.appserver.protocol.notifications import METHOD_OF  # noqa: PLC0415

        others = self._clients.difference(without)
        wanting = [client for client in others if not client.is_first_protocol]
        broadcast(wanting, METHOD_OF[type(notice)], notice)
