"""HTTP connections and requests -> the MCP application, within the limits of a server.

The connections report to the guard of their server. A connection whose caller shows no valid token
is closed after its first response. Sessions are counted: if there are too many, the one that was
idle longest ends, and its client starts another.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from http import HTTPStatus
from typing import Any

import h11
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from limner.frontends.connection_guard import ConnectionGuard, GuardedConnection, ServerLimits


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


class GuardedApp:
    """The ASGI application with limits on its callers.

    Args:
        app: the application.
        sessions: has the sessions of the application.
        limits: the limits.
        has_tokens: callers must show a token.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        sessions: StreamableHTTPSessionManager,
        limits: ServerLimits,
        has_tokens: bool,
    ) -> None:
        self._app, self._manager, self._limits = app, sessions, limits
        self._has_tokens = has_tokens
        self._opening_app = RequestBodyLimitMiddleware(app, limits.opening_bytes)
        # The caller of each session; the session that was used last is the last.
        self._sessions: dict[str, Any] = {}
        self._in_use: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        session = headers.get(MCP_SESSION_ID_HEADER)
        version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
        is_opening = session is None and (version is None or version in HANDSHAKE_PROTOCOL_VERSIONS)
        unused = dict(scope)  # the application adds to the scope of a request

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                if self._must_close(message["status"], scope):
                    message["headers"] = [*message["headers"], (b"connection", b"close")]
                if is_opening and message["status"] < HTTPStatus.BAD_REQUEST:
                    opened = Headers(raw=message["headers"]).get(MCP_SESSION_ID_HEADER)
                    await self._note(opened, scope.get("user"), unused)
            await send(message)

        self._in_use[session or ""] += 1
        if session in self._sessions:
            self._sessions[session] = self._sessions.pop(session)
        try:
            await (self._opening_app if is_opening else self._app)(scope, receive, answer)
        finally:
            self._in_use -= Counter({session or "": 1})
            if scope["method"] == "DELETE":
                self._sessions.pop(session or "", None)

    def _must_close(self, status: int, scope: Scope) -> bool:
        if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            # Otherwise the server would read the rest of the body for nothing.
            return True
        return self._has_tokens and not isinstance(scope.get("user"), AuthenticatedUser)

    async def _note(self, opened: str | None, user: Any, scope: Scope) -> None:
        """Note a new session, and end the one that was idle longest if there are too many."""
        if opened is None:
            return
        self._sessions[opened] = user
        if len(self._sessions) <= self._limits.sessions:
            return
        idle = next((session for session in self._sessions if not self._in_use[session]), opened)
        if idle == opened:
            return
        owner = self._sessions.pop(idle)
        headers = [header for header in scope["headers"] if header[0] == b"host"]
        headers.append((MCP_SESSION_ID_HEADER.encode(), idle.encode()))
        request = {**scope, "method": "DELETE", "headers": headers, "user": owner}
        await self._manager.handle_request(request, _receive_nothing, _send_nothing)


async def _receive_nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _send_nothing(_: Message) -> None:
    """The server itself ends the session: no caller waits for the response."""
