"""A transport <-> a JSON-RPC peer: requests and notifications in both directions, within bounds."""

from __future__ import annotations

import asyncio
import itertools
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, Protocol, TypeAlias, TypeVar
from weakref import WeakSet

from msgspec import Raw

from limner.content import format_bytes
from limner.net.jsonrpc import (
    HEAD_BYTES,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    OVERLOADED,
    Data,
    ErrorResponse,
    InvalidMessage,
    MessageHead,
    Notification,
    OversizedMessage,
    RequestId,
    Response,
    RpcError,
    RpcRequest,
    encode_error,
    encode_notification,
    encode_request,
    encode_response,
    glance,
    parse,
)
from limner.net.redaction import redact

# The other side may be a few pictures behind. If it is further behind, it has stopped reading.
MAX_UNSENT_BYTES = 256 * 1024 * 1024

Log: TypeAlias = Callable[[str], None]
# Receives how many bytes more or fewer a peer holds.
Meter: TypeAlias = Callable[[int], None]


class Transport(Protocol):
    """Carries encoded messages to the other side and back."""

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send the messages in this order; return when they are no longer held here.

        Raises:
            OSError: the other side is gone.
        """
        ...

    async def receive(self) -> Data | MessageHead | None:
        """Wait for the next message; None is the end."""
        ...

    def abort(self) -> None:
        """End the connection at once; unsent messages are lost and `receive` returns None."""
        ...


class PendingRequest:
    """A request that waits for a response from any of the peers that it was sent to."""

    def __init__(
        self, request_id: int, method: str, params: object, forget: Callable[[], None]
    ) -> None:
        self.id, self.method, self.params = request_id, method, params
        self._message = encode_request(request_id, method, params)
        self._recipients: WeakSet[Peer] = WeakSet()
        self._outcome: asyncio.Future[Response | ErrorResponse | None] = (
            asyncio.get_running_loop().create_future()
        )
        self._outcome.add_done_callback(lambda _: forget())

    def send_to(self, peer: Peer, *, translated: tuple[str, object] | None = None) -> None:
        """Send it to a peer, once, under the same id as to every other.

        A peer that speaks another protocol gets it ``translated``: the method and params there.
        """
        if peer not in self._recipients and not self._outcome.done():
            self._recipients.add(peer)
            message = self._message
            peer.post(message if translated is None else encode_request(self.id, *translated))

    def was_sent_to(self, peer: Peer) -> bool:
        """Whether that peer may respond to it."""
        return peer in self._recipients

    def settle(self, outcome: Response | ErrorResponse | None) -> None:
        """Accept a response; None means that no response will come."""
        if not self._outcome.done():
            self._outcome.set_result(outcome)

    async def result(self, *, timeout_s: float | None = None) -> Raw:
        """Wait for the result, once. Later responses are ignored.

        Raises:
            RpcError: the response is an error.
            TimeoutError: no response came in time.
            ConnectionError: no peer is left that could respond.
        """
        try:
            async with asyncio.timeout(timeout_s):
                outcome = await self._outcome
        finally:
            self._outcome.cancel()
        if outcome is None:
            raise ConnectionError("the other side left before it answered")
        if isinstance(outcome, ErrorResponse):
            raise outcome.error
        return outcome.result


class PendingRequests:
    """The requests that wait for a response, for one peer or several. Their ids count from 0."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._ids = itertools.count()
        self._open: dict[RequestId, PendingRequest] = {}

    def open(self, method: str, params: object) -> PendingRequest:
        """Make a request that is not sent to any peer yet."""
        request_id = next(self._ids)
        request = PendingRequest(request_id, method, params, lambda: self._forget(request_id))
        self._open[request_id] = request
        return request

    def settle(self, peer: Peer | None, response: Response | ErrorResponse) -> None:
        """Give a response to its request, if that was sent to this peer.

        None is any of the peers: over HTTP a response comes by a connection of its own.
        """
        request = self._open.get(response.id)
        if request is None or (peer is not None and not request.was_sent_to(peer)):
            self._log(f"an answer to {response.id!r:.80}, which is not expected, is ignored")
        else:
            request.settle(response)

    def _forget(self, request_id: int) -> None:
        self._open.pop(request_id, None)


class Peer:
    """One side of a connection. Everything it sends goes through one queue, in order.

    Args:
        transport: carries the messages.
        server: runs the requests that arrive.
        pending: the requests that are sent; several peers can share them.
        on_notification: receives each notification in order, and must not wait.
        log: receives the failures that are not sent to the other side.
        meter: counts the bytes of unsent messages and of requests that are being served.

    Attributes:
        closed: nothing is sent or received any more.
        unanswered: how many requests of the other side wait for a response.
        failure: why this side cut the connection, if it did.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        server: RequestServer,
        pending: PendingRequests,
        log: Log,
        on_notification: Callable[[Notification], None] | None = None,
        meter: Meter | None = None,
    ) -> None:
        self.meter: Meter = _count_nothing if meter is None else meter
        self._transport, self._server, self._pending = transport, server, pending
        self._log, self._on_notification = log, on_notification
        self._outbox: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._sending: asyncio.Task[None] | None = None
        self._close_callbacks: dict[object, Callable[[], None]] = {}
        self.closed = False
        self.unanswered = 0
        self.failure: str | None = None

    async def run(self) -> None:
        """Receive messages until the other side ends or the connection is cut."""
        while (message := await self._transport.receive()) is not None:
            await self.receive(message)

    async def receive(self, data: Data | MessageHead) -> None:
        """Handle one message. Requests start in the order they come, and run side by side."""
        if isinstance(data, MessageHead):
            self._refuse(data.head, f"longer than {data.max_bytes:,} bytes")
            return
        match parse(data):
            case RpcRequest() as request:
                await self._server.start(self, request)
            case Response() | ErrorResponse() as response:
                self._pending.settle(self, response)
            case Notification() as notification:
                if self._on_notification is not None:
                    self._on_notification(notification)
            case OversizedMessage(reason):
                self._refuse(bytes(data[:HEAD_BYTES]), reason)
            case InvalidMessage(reason):
                self._log(f"a message is dropped: {reason}")

    async def request(self, method: str, params: object, *, timeout_s: float | None = None) -> Raw:
        """Send a request to this peer and wait for the result.

        Raises:
            RpcError: the response is an error.
            TimeoutError: no response came in time.
            ConnectionError: the connection ended first.
        """
        request = self._pending.open(method, params)
        undo = self.on_close(lambda: request.settle(None))
        try:
            request.send_to(self)
            return await request.result(timeout_s=timeout_s)
        finally:
            undo()

    def notify(self, method: str, params: object = None) -> None:
        """Send a notification."""
        self.post(encode_notification(method, params))

    def post(self, message: bytes) -> None:
        """Send an encoded message after those that wait.

        If the other side leaves too much unread, the connection is cut before the memory is full.
        """
        if self.closed:
            return
        if self._unsent_bytes > MAX_UNSENT_BYTES:
            self.failure = f"it has left {format_bytes(self._unsent_bytes)} unread"
            self._log(f"the other side is cut off: {self.failure}")
            self.close()
            return
        self._outbox.append(message)
        self._unsent_bytes += len(message)
        self.meter(len(message))
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def flush(self) -> None:
        """Wait until everything is sent, or the other side is gone."""
        if self._sending is not None and not self.closed:
            await asyncio.shield(self._sending)

    def on_close(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back at the end, or at once if this is closed; returns how to undo that."""
        if self.closed:
            callback()
            return lambda: None
        key = object()
        self._close_callbacks[key] = callback
        return lambda: self._close_callbacks.pop(key, None) and None

    def close(self) -> None:
        """End at once: unsent messages are lost, and pending requests fail."""
        if self.closed:
            return
        self.closed = True
        self._outbox.clear()
        self._transport.abort()
        callbacks, self._close_callbacks = self._close_callbacks, {}
        for callback in callbacks.values():
            callback()

    def _refuse(self, head: bytes, reason: str) -> None:
        """Answer a message that is not decoded by its first bytes, so that no side waits for it."""
        error = RpcError(INVALID_REQUEST, f"Invalid request: {reason}")
        match glance(head):
            case RpcRequest(request_id):
                self.post(encode_error(request_id, error))
            case Response(request_id):
                self._pending.settle(self, ErrorResponse(request_id, error))
            case None:
                self._log(f"a message is dropped: {reason}")

    async def _send(self) -> None:
        # A task only while there is something to send: a thousand idle clients cost none.
        try:
            while self._outbox:
                messages = [*self._outbox]
                self._outbox.clear()
                await self._transport.send(messages)
                sent_bytes = sum(map(len, messages))
                self._unsent_bytes -= sent_bytes
                self.meter(-sent_bytes)
        except OSError:
            self.close()
        finally:
            self._sending = None


PeerT = TypeVar("PeerT", bound=Peer)


class IncomingCall(Generic[PeerT]):
    """A request of the other side that is being served.

    Attributes:
        connection: the peer that waits for the response.
        request: what it asks for.
        answered: the response is sent, or none will be.
    """

    def __init__(self, connection: PeerT, request: RpcRequest) -> None:
        self.connection, self.request = connection, request
        self.answered = False
        self._params_bytes = 0 if request.params is None else memoryview(request.params).nbytes
        connection.unanswered += 1
        connection.meter(self._params_bytes)

    @property
    def method(self) -> str:
        """The method that is called."""
        return self.request.method

    def answer(self, result: object) -> None:
        """Respond now and go on: messages that are sent from here on come after the response."""
        self._conclude(encode_response(self.request.id, result))

    def refuse(self, error: RpcError) -> None:
        """Respond with an error."""
        self._conclude(encode_error(self.request.id, error))

    def abandon(self) -> None:
        """End without a response."""
        if not self.answered:
            self.answered = True
            self.connection.unanswered -= 1
            self.connection.meter(-self._params_bytes)

    def _conclude(self, message: bytes) -> None:
        assert not self.answered, f"{self.method} is answered twice"
        self.abandon()
        self.connection.post(message)


class RequestServer:
    """Runs the requests of one peer or several, side by side.

    Args:
        serve: gets a call and returns its result, unless it responds itself; an `RpcError` is
            the response too.
        log: receives the failures that are not sent to the other side.
        max_unanswered: how many requests of one peer may wait for a response at once.
        overloaded: the response to more than that.
    """

    def __init__(
        self,
        serve: Callable[[IncomingCall[Any]], Awaitable[object]],
        *,
        log: Log,
        max_unanswered: int,
        overloaded: RpcError,
    ) -> None:
        self._serve, self._log = serve, log
        self._max_unanswered, self._overloaded = max_unanswered, overloaded
        self._running: set[asyncio.Task[None]] = set()

    async def start(self, peer: Peer, request: RpcRequest) -> None:
        """Start to serve a request, or refuse it if the peer has too many open ones."""
        if peer.unanswered >= self._max_unanswered:
            # Requests that wait for nothing are answered in one round of the event loop.
            await asyncio.sleep(0)
        if peer.unanswered >= self._max_unanswered:
            peer.post(encode_error(request.id, self._overloaded))
            return
        task = asyncio.get_running_loop().create_task(self._run(IncomingCall(peer, request)))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def settled(self) -> None:
        """Wait for the requests that are being served."""
        if self._running:
            await asyncio.wait(self._running)

    async def aclose(self) -> None:
        """Cancel the requests that are being served."""
        for task in self._running:
            task.cancel()
        await self.settled()

    async def _run(self, call: IncomingCall[Peer]) -> None:
        error: RpcError
        try:
            result = await self._serve(call)
            if not call.answered:
                call.answer(result)
            return
        except RpcError as refusal:
            error = refusal
        except Exception as bug:
            # The outermost frame of a request: this process and its other requests go on.
            self._log(f"{call.method} failed:\n{traceback.format_exc()}")
            error = RpcError(INTERNAL_ERROR, redact(f"Internal error: {type(bug).__name__}: {bug}"))
        except asyncio.CancelledError:
            call.abandon()
            raise
        if call.answered:
            self._log(f"{call.method} failed after its answer: {error.message}")
        else:
            call.refuse(error)


def _count_nothing(_: int) -> None:
    """The meter of a peer whose memory is not counted."""


def overloaded_error(side: str, data: object = None) -> RpcError:
    """The response to a request for which there is no room; ``side`` is Server or Client."""
    return RpcError(OVERLOADED, f"{side} overloaded; retry later.", data)
