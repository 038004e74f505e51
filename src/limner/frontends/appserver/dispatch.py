"""A client's request -> the method that serves it, and its result back to the client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from limner.errors import InputInvalid, LimnerError
from limner.frontends.appserver.connection import ClientConnection
from limner.frontends.appserver.protocol.params import decode_params, experimental_use
from limner.net.jsonrpc import INVALID_REQUEST, RpcError, RpcRequest
from limner.net.jsonrpc_lines import DescriptorTransport
from limner.net.jsonrpc_peer import (
    IncomingCall,
    Log,
    Meter,
    PendingRequests,
    RequestServer,
    Transport,
    overloaded_error,
)

MAX_UNANSWERED = 128
LAST_ANSWERS_S = 1.0
MAX_LISTED_METHODS = 24
MAX_SHOWN_CHARS = 200

RpcCall: TypeAlias = IncomingCall[ClientConnection]
Serve = Callable[[RpcCall, Any], Awaitable[object]]


class RpcHandler(msgspec.Struct, frozen=True, kw_only=True):
    """What serves one method.

    Attributes:
        serve: gets the call and its params, and returns the result, unless it responds itself.
        params: the type of the params; None if the method takes none.
        experimental: only for clients that asked for what may still change.
        experimental_fields: the members of its params that only those clients may use.
        opening: may come before the client has sent `initialize`.
    """

    serve: Serve
    params: Any = None
    experimental: bool = False
    experimental_fields: frozenset[str] = frozenset()
    opening: bool = False


class Dispatcher(RequestServer):
    """Serves the requests of every client by one table of methods.

    Args:
        methods: the table.
        pending: the requests that the clients are sent; their responses go there.
        log: receives the failures that are not sent to a client.
    """

    def __init__(
        self, methods: Mapping[str, RpcHandler], *, pending: PendingRequests, log: Log
    ) -> None:
        # Official clients retry when they see these data.
        overloaded = overloaded_error("Server", {"codexErrorInfo": "server_overloaded"})
        super().__init__(
            self._run_method, log=log, max_unanswered=MAX_UNANSWERED, overloaded=overloaded
        )
        self._methods, self.pending = methods, pending

    def connect(
        self,
        transport: Transport,
        *,
        meter: Meter | None = None,
        on_initialize: Callable[[], None] | None = None,
    ) -> ClientConnection:
        """Accept a client."""
        return ClientConnection(
            transport,
            server=self,
            pending=self.pending,
            log=self._log,
            meter=meter,
            on_initialize=on_initialize,
        )

    async def _run_method(self, call: RpcCall) -> object:
        request = call.request
        method = self._methods.get(request.method)
        if method is None:
            raise self._unknown(request.method)
        params = None if method.params is None else _params(method.params, request)
        if not method.opening:
            call.connection.require_initialized()
        used = request.method if method.experimental else None
        used = used or experimental_use(request.method, request.params, method.experimental_fields)
        if used is not None:
            call.connection.require_experimental(used)
        try:
            return await method.serve(call, params)
        except LimnerError as failure:
            raise RpcError(INVALID_REQUEST, failure.message, failure.as_json()) from failure

    def _unknown(self, method: str) -> RpcError:
        known = [f"`{name}`" for name in self._methods]
        if len(known) > MAX_LISTED_METHODS:
            known[MAX_LISTED_METHODS:] = ["…"]
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


async def serve_stdio(dispatcher: Dispatcher, *, source: int, target: int) -> None:
    """Serve one client on two file descriptors until it closes its end.

    Raises:
        LimnerError: the client had to be cut off.
    """
    connection = dispatcher.connect(DescriptorTransport(source, target))
    try:
        await connection.run()
        # A client that sends requests and closes (`printf … | limner app-server`) wants answers.
        await _at_most(LAST_ANSWERS_S, dispatcher.settled())
    finally:
        await dispatcher.aclose()
        await _at_most(LAST_ANSWERS_S, connection.flush())
        connection.close()
    if connection.failure is not None:
        raise LimnerError(f"The client was cut off: {connection.failure}.")


async def _at_most(seconds: float, work: Awaitable[None]) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await work
