"""HTTP connections of uvicorn -> the guard of their server, which limits them."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from limner.frontends.connection_guard import ConnectionGuard, GuardedConnection


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
        if self.conn.their_state is h11.IDLE:
            self.guarded.expect(self.guard.limits.head_s)
        elif self.conn.their_state is h11.SEND_BODY:
            self.guarded.expect(self.guard.limits.request_s)
        else:
            self.guarded.settle()

    def on_response_complete(self) -> None:
        """Report that the request is done."""
        self.guarded.hold(-self.guarded.held_bytes)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report that it left."""
        self.guarded.leave()
        super().connection_lost(exc)
