"""A client's message -> whoever serves it, and what became of that back to the client."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from limner.errors import InputInvalid, LimnerError
from limner.frontends.appserver.client_requests import ClientRequests
from limner.frontends.appserver.connection import MAX_UNANSWERED, ClientConnection, MessageSender
from limner.frontends.appserver.line_reader import HEAD_BYTES
from limner.frontends.appserver.protocol.params import decode_params, experimental_use
from limner.frontends.appserver.rpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    MAX_MESSAGE_BYTES,
    OVERLOADED,
    Data,
    ErrorResponse,
    InvalidMessage,
    Notification,
    OversizedMessage,
    RequestId,
    Response,
    RpcError,
    RpcRequest,
    encode_error,
    encode_response,
    glance,
    parse,
)
from limner.net.redaction import redact

MAX_NAMED_METHODS = 24
MAX_SHOWN_CHARS = 200


class RpcCall:
    """A request that is being served.

    Attributes:
        connection: who wants the answer.
        method: what it wants.
    """

    def __init__(self, connection: ClientConnection, number: RequestId, method: str) -> None:
        self.connection, self.method = connection, method
        self._id = number
        self.answered = False
        connection.unanswered += 1

    def answer(self, result: object) -> None:
        """Answer now and go on: what is sent from here on comes after the answer."""
        self._conclude(encode_response(self._id, result))

    def refuse(self, error: RpcError) -> None:
        """Answer with an error."""
        self._conclude(encode_error(self._id, error))

    def abandon(self) -> None:
        """End without an answer."""
        if not self.answered:
            self.answered = True
            self.connection.unanswered -= 1

    def _conclude(self, message: bytes) -> None:
        assert not self.answered, f"{self.method} is answered twice"
        self.abandon()
        self.connection.post(message)


Serve = Callable[[RpcCall, Any], Awaitable[object]]


class RpcHandler(msgspec.Struct, frozen=True, kw_only=True):
    """What serves one method.

    Attributes:
        serve: gets the call and its params, and returns the answer, unless it gave it already.
        params: the type they are read as; None where the method takes none.
        experimental: only for clients that asked for what may still change.
        experimental_fields: the members of its params that only those clients may use.
        opening: may come before the client has introduced itself.
    """

    serve: Serve
    params: Any = None
    experimental: bool = False
    experimental_fields: frozenset[str] = frozenset()
    opening: bool = False


class Dispatcher:
    """Serves the messages of every client by one table of methods.

    Args:
        methods: the table.
        asking: the questions that clients are asked; their answers go there.
        log: hears what nobody is told.
    """

    def __init__(
        self,
        methods: Mapping[str, RpcHandler],
        *,
        asking: ClientRequests,
        log: Callable[[str], None],
    ) -> None:
        self._methods, self._log = methods, log
        self._running: set[asyncio.Task[None]] = set()
        self.asking = asking

    def connect(self, wire: MessageSender) -> ClientConnection:
        """Receive a client."""
        return ClientConnection(wire, asking=self.asking, log=self._log)

    async def receive(self, connection: ClientConnection, data: Data) -> None:
        """Take one message. Requests are begun in the order they come, and run side by side."""
        match parse(data):
            case RpcRequest() as request:
                await self._begin(connection, request)
            case Response() | ErrorResponse() as answer:
                self.asking.take(connection, answer)
            case Notification():
                # `initialized` too: as upstream, whoever was answered `initialize` is served.
                pass
            case OversizedMessage(reason):
                self._leave_unread(connection, bytes(data[:HEAD_BYTES]), reason)
            case InvalidMessage(reason):
                self._log(f"a message is dropped: {reason}")

    def receive_oversized(self, connection: ClientConnection, head: bytes) -> None:
        """Take the beginning of a message that is too long to be read."""
        self._leave_unread(connection, head, f"longer than {MAX_MESSAGE_BYTES:,} bytes")

    def _leave_unread(self, connection: ClientConnection, head: bytes, reason: str) -> None:
        """Refuse a message by its beginning, so that nobody waits for what was in it."""
        error = RpcError(INVALID_REQUEST, f"Invalid request: {reason}")
        match glance(head):
            case RpcRequest(number):
                connection.post(encode_error(number, error))
            case Response(number):
                self.asking.take(connection, ErrorResponse(number, error))
            case None:
                self._log(f"a message is dropped: {reason}")

    async def settled(self) -> None:
        """Wait for the requests that are being served."""
        if self._running:
            await asyncio.wait(self._running)

    async def aclose(self) -> None:
        """Stop serving."""
        for task in self._running:
            task.cancel()
        await self.settled()

    async def _begin(self, connection: ClientConnection, request: RpcRequest) -> None:
        if connection.unanswered >= MAX_UNANSWERED:
            # Those that wait for nothing are answered in one turn of the loop.
            await asyncio.sleep(0)
        if connection.unanswered >= MAX_UNANSWERED:
            connection.post(encode_error(request.id, overloaded()))
            return
        call = RpcCall(connection, request.id, request.method)
        task = asyncio.get_running_loop().create_task(self._serve(call, request))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _serve(self, call: RpcCall, request: RpcRequest) -> None:
        error: RpcError
        try:
            result = await self._run(call, request)
            if not call.answered:
                call.answer(result)
            return
        except RpcError as refusal:
            error = refusal
        except LimnerError as failure:
            error = RpcError(INVALID_REQUEST, failure.message, failure.as_json())
        except Exception as bug:
            # The outermost frame of a request: the server and its other clients go on.
            self._log(f"{call.method} failed:\n{traceback.format_exc()}")
            error = RpcError(INTERNAL_ERROR, redact(f"Internal error: {type(bug).__name__}: {bug}"))
        except asyncio.CancelledError:
            call.abandon()
            raise
        if call.answered:
            self._log(f"{call.method} failed after its answer: {error.message}")
        else:
            call.refuse(error)

    async def _run(self, call: RpcCall, request: RpcRequest) -> object:
        method = self._methods.get(request.method)
        if method is None:
            raise self._unknown(request.method)
        params = None if method.params is None else _params(method.params, request)
        if not method.opening:
            call.connection.require_greeting()
        used = request.method if method.experimental else None
        used = used or experimental_use(request.method, request.params, method.experimental_fields)
        if used is not None:
            call.connection.require_experimental(used)
        return await method.serve(call, params)

    def _unknown(self, method: str) -> RpcError:
        known = [f"`{name}`" for name in self._methods]
        if len(known) > MAX_NAMED_METHODS:
            known[MAX_NAMED_METHODS:] = ["…"]
        expected = ", ".join(known)
        return RpcError(
            INVALID_REQUEST,
            f"Invalid request: unknown variant `{method[:MAX_SHOWN_CHARS]}`, "
            f"expected one of {expected}",
        )


def _params(kind: Any, request: RpcRequest) -> Any:
    try:
        return decode_params(kind, request.params)
    except InputInvalid as error:
        raise RpcError(INVALID_REQUEST, error.message) from error


def overloaded() -> RpcError:
    """The refusal of a request that finds no room; the data are what official clients retry on."""
    data = {"codexErrorInfo": "server_overloaded"}
    return RpcError(OVERLOADED, "Server overloaded; retry later.", data)
