"""One client of the server: what it can, what it is sent, and when it is gone."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from msgspec import Raw

from limner.content import format_bytes
from limner.frontends.appserver.client_requests import ClientRequests
from limner.frontends.appserver.rpc import INVALID_REQUEST, RpcError, encode_notification

# A client may be a few pictures behind. One that is further behind has stopped reading.
MAX_BEHIND_BYTES = 256 * 1024 * 1024
MAX_UNANSWERED = 128


class MessageSender(Protocol):
    """What carries messages to a client."""

    async def send(self, messages: list[bytes]) -> None:
        """Send them in this order; return when they are no longer held here.

        Raises:
            OSError: the client is gone.
        """
        ...

    def cut(self) -> None:
        """End the connection at once, whatever is still to be sent."""
        ...


class ClientConnection:
    """A client. Everything it is sent goes through one queue, in the order it was produced.

    Attributes:
        client: its name and version, once it has introduced itself.
        experimental: it asked for what may still change.
        unanswered: how many of its requests are waiting for an answer.
        failure: why it was cut off, where it was.
    """

    def __init__(
        self, wire: MessageSender, *, asking: ClientRequests, log: Callable[[str], None]
    ) -> None:
        self._wire, self._asking, self._log = wire, asking, log
        self._outbox: deque[bytes] = deque()
        self._behind_bytes = 0
        self._sending: asyncio.Task[None] | None = None
        self._unwanted: frozenset[str] = frozenset()
        self._at_close: dict[object, Callable[[], None]] = {}
        self.client: tuple[str, str] | None = None
        self.experimental = False
        self.unanswered = 0
        self.closed = False
        self.failure: str | None = None

    def greet(
        self, name: str, version: str, *, experimental: bool, unwanted: Iterable[str]
    ) -> None:
        """Note who this is; from now on it is served. It gets no notification that is unwanted.

        Raises:
            RpcError: that was done before.
        """
        if self.client is not None:
            raise RpcError(INVALID_REQUEST, "Already initialized")
        self.client = (name, version)
        self.experimental = experimental
        self._unwanted = frozenset(unwanted)

    def require_greeting(self) -> None:
        """Insist on an introduction.

        Raises:
            RpcError: there was none.
        """
        if self.client is None:
            raise RpcError(INVALID_REQUEST, "Not initialized")

    def require_experimental(self, thing: str) -> None:
        """Insist that the client asked for what may still change, to use a method or a field.

        Raises:
            RpcError: it did not.
        """
        if not self.experimental:
            raise RpcError(INVALID_REQUEST, f"{thing} requires experimentalApi capability")

    def notify(self, method: str, params: object) -> None:
        """Tell the client something, unless it does not want to hear it."""
        broadcast([self], method, params)

    def wants(self, method: str) -> bool:
        """Whether the client is to be told this."""
        return self.client is not None and method not in self._unwanted and not self.closed

    async def request(self, method: str, params: object, *, timeout_s: float | None = None) -> Raw:
        """Ask this client, and nobody else, and wait for its answer.

        Raises:
            RpcError: it answered with an error.
            TimeoutError: it did not answer in time.
            ConnectionError: it is gone.
        """
        question = self._asking.open(method, params)
        forget = self.on_close(lambda: question.settle(None))
        try:
            question.send_to(self)
            return await question.answer(timeout_s=timeout_s)
        finally:
            forget()

    def post(self, message: bytes) -> None:
        """Send an encoded message after those that are waiting.

        A client that leaves too much unread is cut off, so that it cannot fill the memory.
        """
        if self.closed:
            return
        if self._behind_bytes > MAX_BEHIND_BYTES:
            self.failure = f"it has left {format_bytes(self._behind_bytes)} unread"
            self._log(f"a client is cut off: {self.failure}")
            self.close()
            return
        self._outbox.append(message)
        self._behind_bytes += len(message)
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def flushed(self) -> None:
        """Wait until everything was sent, or the client is gone."""
        if self._sending is not None and not self.closed:
            await asyncio.shield(self._sending)

    def on_close(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back when the client is gone, at once where it is already; returns the undoing."""
        if self.closed:
            callback()
            return lambda: None
        key = object()
        self._at_close[key] = callback
        return lambda: self._at_close.pop(key, None) and None

    def close(self) -> None:
        """End it: nothing more is sent, and those who wait for the client are told."""
        if self.closed:
            return
        self.closed = True
        self._outbox.clear()
        self._wire.cut()
        callbacks, self._at_close = self._at_close, {}
        for callback in callbacks.values():
            callback()

    async def _send(self) -> None:
        # A task only while there is something to send: a thousand idle clients cost none.
        try:
            while self._outbox:
                messages = [*self._outbox]
                self._outbox.clear()
                await self._wire.send(messages)
                self._behind_bytes -= sum(map(len, messages))
        except OSError:
            self.close()
        finally:
            self._sending = None


def broadcast(connections: Iterable[ClientConnection], method: str, params: object) -> None:
    """Tell several clients the same. It becomes JSON once, and only where anybody wants it."""
    if wanting := [connection for connection in connections if connection.wants(method)]:
        message = encode_notification(method, params)
        for connection in wanting:
            connection.post(message)
