"""A host and a port -> a bound socket, the names that requests may use for it, and limits.

Every server over HTTP uses this. No web page of another machine may call it: Host and Origin must
name this machine.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from http import HTTPStatus

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from limner.errors import UserError
from limner.frontends.connection_guard import ConnectionGuard, GuardedConnection
from limner.frontends.server_token import is_loopback

BACKLOG = 1024
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - the user chose it, and it requires a token


def bind(host: str, port: int) -> socket.socket:
    """Listen; port 0 is any free port.

    Raises:
        UserError: the address is in use, or does not belong to this machine.
    """
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            bound.listen(BACKLOG)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        raise UserError(
            f"cannot listen on {host}:{port}: {error.strerror}",
            hint="Choose another port, or 0 for any free port.",
        ) from error
    return bound


def in_url(host: str) -> str:
    """A host as it stands in a URL."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def host_names(host: str, port: int, *, names: Iterable[str] = ()) -> frozenset[str]:
    """The values of the header Host that name this server; ``names`` are more names."""
    host = host.strip("[]")
    local = _LOOPBACK if is_loopback(host) or host in _EVERYWHERE else ()
    hosts = {f"{name}:{port}" for name in (*local, in_url(host))}
    return frozenset(hosts | {named for name in names for named in (name, f"{name}:{port}")})


def refusal_of_names(
    hosts: frozenset[str], *, host: str | None, origin: str | None
) -> HTTPStatus | None:
    """Why a request is refused: it was sent to another name, or a page of another origin sent it.

    None means that it is not refused.
    """
    if host not in hosts:
        return HTTPStatus.MISDIRECTED_REQUEST
    if origin is not None:
        scheme, _, name = origin.partition("://")
        if scheme not in ("http", "https") or name not in hosts:
            return HTTPStatus.FORBIDDEN
    return None


def guarded_protocol(connections: ConnectionGuard) -> type[H11Protocol]:
    """The protocol of the connections that report to a guard."""

    class OurProtocol(GuardedProtocol):
        guard = connections

    return OurProtocol


class GuardedProtocol(H11Protocol):
    """An HTTP connection that the guard of its server counts. A subclass names the guard."""

    guard: ConnectionGuard
    guarded: GuardedConnection

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Report that it came."""
        super().connection_made(transport)
        self.guarded = self.guard.admit(transport.abort)

    def data_received(self, data: bytes) -> None:
        """Report how much it holds, and how much of the request is still missing."""
        self.guarded.hold(len(data))
        super().data_received(data)
        if self.transport.get_protocol() is not self:
            return  # it is a web socket now
        if self.conn.their_state is h11.IDLE:
            self.guarded.expect(self.guard.limits.head_s)
        elif self.conn.their_state is h11.SEND_BODY:
            self.guarded.expect(self.guard.limits.request_s)
        else:
            self.guarded.settle()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Report that it left: the web socket counts itself."""
        self.guarded.leave()
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        """Report that the request is done."""
        self.guarded.hold(-self.guarded.held_bytes)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report that it left."""
        self.guarded.leave()
        super().connection_lost(exc)
