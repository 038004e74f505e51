"""A target -> a connection that comes back: if it is lost it is opened again, within bounds."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from limner import __version__
from limner.errors import LimnerError
from limner.frontends.remote.transports import SERVER_GONE, ServerTransport, Target
from limner.json_shapes import as_object
from limner.net.clock import Clock
from limner.net.jsonrpc import INVALID_PARAMS, Notification, RpcError
from limner.net.jsonrpc_peer import (
    IncomingCall,
    Peer,
    PendingRequests,
    RequestServer,
    overloaded_error,
)
from limner.net.redaction import redact

# limner's own server reports with it what a turn has cost.
SPEND = "thread/spend/updated"

Params = Mapping[str, Any]
Request = Callable[[str, Params], Awaitable[Mapping[str, Any]]]

SERVER_REFUSED = "SERVER_REFUSED"
REQUEST_TIMEOUT_S = 120.0
MAX_UNANSWERED = 256
FLUSH_TIMEOUT_S = 1.0
# A server that dies this often in this time does not recover.
MAX_LOSSES = 5
LOSSES_WITHIN_S = 60.0
# Half a minute in all: long enough for a server that the user restarts.
MAX_ATTEMPTS = 12
FIRST_PAUSE_S = 0.1
MAX_PAUSE_S = 5.0

_SHOWN_CHARS = 1_000

logger = logging.getLogger("limner.frontends.remote")


class ConnectionOwner(Protocol):
    """The user of a connection."""

    def on_notification(self, method: str, params: Params) -> None:
        """Handle a notification of the server; this must not wait."""
        ...

    async def on_request(self, method: str, params: Params) -> Any:
        """Return the result of a request of the server; several run at once.

        Raises:
            RpcError: the response is this error.
        """
        ...

    async def on_reconnect(self, reason: str, request: Request) -> None:
        """Continue over the new connection; other requests wait until this is done."""
        ...

    def on_lost(self, error: LimnerError) -> None:
        """The connection will not come back."""
        ...


class ServerPeer:
    """One connection to a server, until it is lost."""

    def __init__(self, transport: ServerTransport, owner: ConnectionOwner) -> None:
        self._transport, self._owner = transport, owner
        self._server = RequestServer(
            self._serve,
            log=logger.warning,
            max_unanswered=MAX_UNANSWERED,
            overloaded=overloaded_error("Client"),
        )
        self._peer = Peer(
            transport,
            server=self._server,
            pending=PendingRequests(logger.debug),
            on_notification=self._on_notification,
            log=logger.warning,
        )
        self._end_reason: str | None = None
        self._running = asyncio.create_task(self._run())

    async def request(
        self, method: str, params: Params, *, timeout_s: float = REQUEST_TIMEOUT_S
    ) -> Mapping[str, Any]:
        """Send a request to the server; returns its result.

        Raises:
            LimnerError: SERVER_REFUSED with the server's message; SERVER_GONE if the connection
                ends first or no response comes in time.
        """
        try:
            return _decode(await self._peer.request(method, params, timeout_s=timeout_s))
        except RpcError as error:
            raise _refused(error) from None
        except TimeoutError:
            reason = f"the server did not answer {method} in {timeout_s:g} s"
            raise server_gone(reason) from None
        except ConnectionError:
            raise server_gone(await self.wait_ended()) from None

    def notify(self, method: str) -> None:
        """Send the server a notification."""
        self._peer.notify(method)

    async def wait_ended(self) -> str:
        """Wait until the connection has ended; returns why it did."""
        await asyncio.wait({self._running})
        return self._end_reason or "the connection was closed"

    async def aclose(self) -> None:
        """Send what waits, then close the connection and cancel the requests of the server."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_TIMEOUT_S):
                await self._peer.flush()
        await self._transport.aclose()
        self._running.cancel()
        await asyncio.wait({self._running})
        await self._server.aclose()
        self._peer.close()

    async def _run(self) -> None:
        try:
            await self._peer.run()
            self._end_reason = await self._transport.end_reason()
        finally:
            self._peer.close()

    def _on_notification(self, notification: Notification) -> None:
        try:
            params = _decode(notification.params)
        except LimnerError as error:
            logger.warning("The notification %s is dropped: %s", notification.method, error)
        else:
            self._owner.on_notification(notification.method, params)

    async def _serve(self, call: IncomingCall[Peer]) -> Any:
        try:
            params = _decode(call.request.params)
        except LimnerError as error:
            raise RpcError(INVALID_PARAMS, error.message) from error
        return await self._owner.on_request(call.method, params)


class ServerConnection:
    """A connection to a server that is initialized, and replaced by a new one if it is lost.

    Args:
        target: where the server is.
        owner: the user of the connection.
        name: the name of this client, for the server.
        clock: how the pauses between attempts pass.
    """

    def __init__(
        self,
        target: Target,
        owner: ConnectionOwner,
        *,
        name: str = "limner",
        clock: Clock | None = None,
    ) -> None:
        self._target, self._owner, self._name = target, owner, name
        self._clock = clock or Clock()
        self._peer: ServerPeer | None = None
        self._ready = asyncio.Event()
        self._lost: LimnerError | None = None
        self._losses: deque[float] = deque(maxlen=MAX_LOSSES)
        self._keeping: asyncio.Task[None] | None = None
        self.server: Mapping[str, Any] = {}

    async def open(self) -> None:
        """Connect for the first time; a failure is not retried.

        Raises:
            LimnerError: the server cannot be started or reached, or refuses this client.
        """
        self._peer = await self._connect()
        self._ready.set()
        self._keeping = asyncio.create_task(self._keep(self._peer))

    async def ready(self) -> None:
        """Wait while the connection is being opened again."""
        await self._ready.wait()

    async def request(self, method: str, params: Params) -> Mapping[str, Any]:
        """Send a request; waits while the connection is being opened again.

        Raises:
            LimnerError: SERVER_REFUSED, or SERVER_GONE.
        """
        await self.ready()
        if self._lost is not None:
            raise self._lost
        if self._peer is None:
            raise server_gone("the connection is closed")
        return await self._peer.request(method, params)

    async def aclose(self) -> None:
        """Close the connection."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        peer, self._peer = self._peer, None
        self._ready.set()
        if peer is not None:
            await peer.aclose()

    async def _connect(self) -> ServerPeer:
        peer = ServerPeer(await self._target.open(), self._owner)
        try:
            info = {"name": self._name, "title": None, "version": __version__}
            # A client has to ask for tools of its own, and for the costs that limner reports.
            capabilities = {"experimentalApi": True, "optInNotificationMethods": [SPEND]}
            self.server = await peer.request(
                "initialize", {"clientInfo": info, "capabilities": capabilities}
            )
            peer.notify("initialized")
        except BaseException:
            await peer.aclose()
            raise
        return peer

    async def _keep(self, peer: ServerPeer) -> None:
        """Replace the connection each time it is lost, until that is hopeless."""
        try:
            while True:
                reason = await peer.wait_ended()
                self._ready.clear()
                self._peer = None
                logger.warning("The link to the app-server is lost: %s", reason)
                await peer.aclose()
                self._peer = peer = await self._reconnect(reason)
                self._ready.set()
        except LimnerError as error:
            self._give_up(error)
        except Exception as error:
            # The outermost frame: callers that wait for the connection must not wait for ever.
            logger.exception("The connection to the app-server cannot be kept.")
            self._give_up(server_gone(f"{type(error).__name__} here"))

    def _give_up(self, error: LimnerError) -> None:
        self._lost = error
        self._owner.on_lost(error)
        self._ready.set()

    async def _reconnect(self, reason: str) -> ServerPeer:
        now = self._clock.now()
        self._losses.append(now)
        if len(self._losses) == MAX_LOSSES and now - self._losses[0] < LOSSES_WITHIN_S:
            raise server_gone(
                f"it was lost {MAX_LOSSES} times in a row, the last time because {reason}"
            )
        pause_s = FIRST_PAUSE_S
        for _ in range(MAX_ATTEMPTS - 1):
            with contextlib.suppress(LimnerError):
                return await self._connect_again(reason)
            await self._clock.sleep(pause_s)
            pause_s = min(pause_s * 2, MAX_PAUSE_S)
        return await self._connect_again(reason)

    async def _connect_again(self, reason: str) -> ServerPeer:
        peer = await self._connect()
        try:
            await self._owner.on_reconnect(reason, peer.request)
        except BaseException:
            await peer.aclose()
            raise
        return peer


def server_gone(reason: str) -> LimnerError:
    """The error of a caller that needs a server which is not there."""
    return LimnerError(f"The app-server is gone: {reason}", code=SERVER_GONE, retryable=True)


def _refused(error: RpcError) -> LimnerError:
    message = redact(error.message)[:_SHOWN_CHARS] or "it gave no reason"
    data: object = error.data
    if isinstance(data, Raw):
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            data = msgspec.json.decode(data)
    extras = {"rpc_code": error.code, "data": data}
    return LimnerError(f"The app-server refused: {message}", code=SERVER_REFUSED, extras=extras)


def _decode(raw: Raw | None) -> Mapping[str, Any]:
    """Decode an object; any other value counts as an empty one."""
    if raw is None:
        return {}
    try:
        return as_object(msgspec.json.decode(raw))
    except (msgspec.DecodeError, RecursionError) as error:
        raise LimnerError(f"The server's JSON cannot be decoded: {error}") from None
