"""The notifications and requests of a thread -> its subscribers, also those that join later."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol

from limner.frontends.appserver.connection import ClientConnection, Clients, broadcast
from limner.frontends.appserver.protocol.notifications import FOR_EVERYONE, METHOD_OF, Notice
from limner.net.jsonrpc_peer import PendingRequest
from limner.wires.items import Item


class Subscriber(Protocol):
    """A subscriber that speaks another protocol."""

    def notify(self, notice: Notice) -> None:
        """Send a notification."""
        ...

    def send_item(self, item: Item, *, turn_id: str) -> None:
        """Send an item that was stored in a turn."""
        ...

    def request(self, request: PendingRequest) -> None:
        """Send a request of the server."""
        ...


class Subscribers:
    """The clients that subscribe to one thread, and the requests that any of them may answer.

    Every client hears that a thread started, changed its status or its name, was archived or
    deleted: it may show a list of threads. Everything else goes to the subscribers alone.

    A client that joins during a turn first gets the history. Until `release` its notifications
    are held back, so that they follow the history and none is lost.
    """

    def __init__(self, everyone: Clients) -> None:
        self._everyone = everyone
        self._held: dict[ClientConnection, list[Notice]] = {}
        self._clients: set[ClientConnection] = set()
        self._on_leave: dict[ClientConnection, Callable[[], None]] = {}
        self._foreign: dict[str, Subscriber] = {}
        self._pending: dict[int, PendingRequest] = {}

    def __len__(self) -> int:
        return len(self._held) + len(self._clients) + len(self._foreign)

    def __contains__(self, client: ClientConnection) -> bool:
        return client in self._clients or client in self._held

    def hold(self, client: ClientConnection, *, on_leave: Callable[[], None]) -> None:
        """Add a client; its notifications are held back until `release`."""
        self._on_leave[client] = on_leave
        if client.closed:
            self.leave(client)
        else:
            self._held[client] = []

    def release(self, client: ClientConnection) -> None:
        """Send a client the notifications that were held back, and the pending requests."""
        held = self._held.pop(client, None)
        if held is None:
            return  # it has left, or was not held
        self._clients.add(client)
        for notice in held:
            client.notify(METHOD_OF[type(notice)], notice)
        for request in self._pending.values():
            request.send_to(client)

    def leave(self, client: ClientConnection) -> None:
        """Remove a client."""
        self._held.pop(client, None)
        self._clients.discard(client)
        self._on_leave.pop(client, lambda: None)()

    def leave_all(self) -> None:
        """Remove every client."""
        for client in tuple(self._on_leave):
            self.leave(client)

    def add_foreign(self, name: str, subscriber: Subscriber) -> None:
        """Add a subscriber of another protocol under a name, and send it the pending requests."""
        self._foreign[name] = subscriber
        for request in self._pending.values():
            subscriber.request(request)

    def remove_foreign(self, name: str) -> bool:
        """Remove a subscriber of another protocol; False if there is none of that name."""
        return self._foreign.pop(name, None) is not None

    def notify(self, notice: Notice) -> None:
        """Send a notification to every subscriber."""
        for held in self._held.values():
            held.append(notice)
        broadcast(self._clients, METHOD_OF[type(notice)], notice)
        if isinstance(notice, FOR_EVERYONE):
            self._everyone.notify(notice, without=[*self._clients, *self._held])
        for subscriber in tuple(self._foreign.values()):
            subscriber.notify(notice)

    def send_item(self, item: Item, *, turn_id: str) -> None:
        """Send a stored item to the subscribers of the other protocol."""
        for subscriber in tuple(self._foreign.values()):
            subscriber.send_item(item, turn_id=turn_id)

    @contextmanager
    def requested(self, request: PendingRequest) -> Generator[None]:
        """Send a request to every subscriber, and to those that join while it is pending."""
        self._pending[request.id] = request
        try:
            for client in tuple(self._clients):  # a client that is cut off leaves at once
                request.send_to(client)
            for subscriber in tuple(self._foreign.values()):
                subscriber.request(request)
            yield
        finally:
            del self._pending[request.id]
