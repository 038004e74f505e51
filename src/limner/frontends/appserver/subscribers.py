"""What is told and asked in a thread -> the clients that listen, and those that come later."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol

from limner.frontends.appserver.connection import ClientConnection, broadcast
from limner.frontends.appserver.protocol.notifications import METHOD_OF, Notice
from limner.net.jsonrpc_peer import PendingRequest
from limner.wires.items import Item


class Subscriber(Protocol):
    """Somebody who hears of a thread in the words of another protocol."""

    def hear(self, notice: Notice) -> None:
        """Take what everybody is told."""
        ...

    def hear_item(self, item: Item, *, turn_id: str) -> None:
        """Take an item that was kept in a turn."""
        ...

    def ask(self, question: PendingRequest) -> None:
        """Take what everybody is asked."""
        ...


class Subscribers:
    """The clients that listen to one thread, and the questions that any of them may answer.

    A client that joins while a turn is running is first shown what there is. So it may be held:
    what is told meanwhile reaches it afterwards, and nothing is lost in between.
    """

    def __init__(self) -> None:
        self._held: dict[ClientConnection, list[Notice]] = {}
        self._listening: set[ClientConnection] = set()
        self._at_leave: dict[ClientConnection, Callable[[], None]] = {}
        self._attending: dict[str, Subscriber] = {}
        self._open: dict[int, PendingRequest] = {}

    def __len__(self) -> int:
        return len(self._held) + len(self._listening) + len(self._attending)

    def __contains__(self, client: ClientConnection) -> bool:
        return client in self._listening or client in self._held

    def hold(self, client: ClientConnection, *, at_leave: Callable[[], None]) -> None:
        """Let a client join; what it is told waits until `release`."""
        self._at_leave[client] = at_leave
        if client.closed:
            self.leave(client)
        else:
            self._held[client] = []

    def release(self, client: ClientConnection) -> None:
        """Tell a client what it missed, and ask it what has not been answered yet."""
        waiting = self._held.pop(client, None)
        if waiting is None:
            return  # it has left, or was not held
        self._listening.add(client)
        for notice in waiting:
            client.notify(METHOD_OF[type(notice)], notice)
        for question in self._open.values():
            question.send_to(client)

    def leave(self, client: ClientConnection) -> None:
        """Let a client go."""
        self._held.pop(client, None)
        self._listening.discard(client)
        self._at_leave.pop(client, lambda: None)()

    def disband(self) -> None:
        """Let every client go."""
        for client in tuple(self._at_leave):
            self.leave(client)

    def attend(self, name: str, listener: Subscriber) -> None:
        """Let somebody listen under a name, and ask them what has not been answered yet."""
        self._attending[name] = listener
        for question in self._open.values():
            listener.ask(question)

    def dismiss(self, name: str) -> bool:
        """Let whoever listens under a name go; whether there was anybody."""
        return self._attending.pop(name, None) is not None

    def tell(self, notice: Notice) -> None:
        """Tell everybody."""
        for waiting in self._held.values():
            waiting.append(notice)
        broadcast(self._listening, METHOD_OF[type(notice)], notice)
        for listener in tuple(self._attending.values()):
            listener.hear(notice)

    def show(self, item: Item, *, turn_id: str) -> None:
        """Show an item that was kept to those who may want to see them."""
        for listener in tuple(self._attending.values()):
            listener.hear_item(item, turn_id=turn_id)

    @contextmanager
    def asked(self, question: PendingRequest) -> Generator[None]:
        """Put a question to everybody, and to whoever comes while it is open."""
        self._open[question.id] = question
        try:
            for client in tuple(self._listening):  # one that is cut off leaves at once
                question.send_to(client)
            for listener in tuple(self._attending.values()):
                listener.ask(question)
            yield
        finally:
            del self._open[question.id]
