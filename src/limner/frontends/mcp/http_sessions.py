"""Sessions over HTTP, and what the server sends in answer to one post -> a stream of messages."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from limner.frontends.connection_guard import ServerLimits
from limner.frontends.mcp.protocol import WITH_MODES
from limner.frontends.mcp.server import McpServer, McpSession
from limner.frontends.mcp.stdio import MAX_UNANSWERED, log, with_version
from limner.net.jsonrpc import Data, MessageHead, Notification, RpcRequest
from limner.net.jsonrpc_peer import (
    IncomingCall,
    Peer,
    PendingRequests,
    RequestServer,
    overloaded_error,
)

# How long the server waits for a client that lost its connection, and can come back for the rest.
RESUME_S = 60.0


class HttpSession(McpSession):
    """A session over HTTP, or one request that stands alone; ``owner`` is the caller's name."""

    def __init__(self, session_id: str = "", *, owner: str = "") -> None:
        super().__init__(session_id)
        self.owner = owner
        self.takes_initialize = bool(session_id)
        self.pending = PendingRequests(log)
        self.streams: dict[str, MessageStream] = {}
        self.used_s = asyncio.get_running_loop().time()

    @property
    def can_resume(self) -> bool:
        """Whether the client of a lost connection can fetch the rest of a stream."""
        return self.client is not None and self.client.revision >= WITH_MODES


class MessageStream:
    """What the server sends for the requests of one post: questions, progress and responses."""

    def __init__(self, session: HttpSession, requests: RequestServer) -> None:
        self.id = secrets.token_urlsafe(12)
        self.session = session
        self.peer = StreamPeer(self, requests)
        self.tasks: set[asyncio.Task[object]] = set()
        self._messages: list[bytes] = []
        self._is_done = False
        self._changed, self._is_read = asyncio.Event(), asyncio.Event()
        self._settling: asyncio.Task[None] | None = None
        self._expiry: asyncio.TimerHandle | None = None

    async def send(self, messages: Sequence[bytes]) -> None:
        """Keep messages for the reader."""
        self._messages += map(with_version, messages)
        self._changed.set()

    async def receive(self) -> Data | MessageHead | None:
        """Return the end: messages of the client come in posts of their own."""
        return None

    def abort(self) -> None:
        """End after the messages that are there."""
        self._is_done = True
        self._changed.set()

    async def message(self, number: int) -> bytes | None:
        """Wait for the message with a number, counted from 0; None if there are no more."""
        while len(self._messages) <= number:
            if self._is_done:
                return None
            self._changed.clear()
            await self._changed.wait()
        return self._messages[number]

    @contextmanager
    def reading(self) -> Generator[None]:
        """A client reads the stream. If it leaves before the end, the calls are abandoned."""
        if self._expiry is not None:
            self._expiry.cancel()
        self._is_read.set()
        try:
            yield
        except BaseException:
            self._is_read.clear()
            loop = asyncio.get_running_loop()
            wait_s = RESUME_S if self.session.can_resume else 0
            self._expiry = loop.call_later(wait_s, self.abandon)
            raise
        self.session.streams.pop(self.id, None)

    async def connected(self) -> None:
        """Wait until a client reads: a result that no client receives is not delivered."""
        await self._is_read.wait()

    def abandon(self) -> None:
        """Cancel the requests; calls that may be paid for go on."""
        self.session.streams.pop(self.id, None)
        for task in self.tasks:
            task.cancel()

    def settle(self) -> None:
        """End the stream once every request has its response."""
        self._settling = asyncio.get_running_loop().create_task(self._settle())

    async def _settle(self) -> None:
        await asyncio.sleep(0)  # the response is posted now
        await self.peer.flush()
        if not self.peer.unanswered:
            self.abort()


class StreamPeer(Peer):
    """The client at the end of a stream."""

    def __init__(self, stream: MessageStream, requests: RequestServer) -> None:
        super().__init__(stream, server=requests, pending=stream.session.pending, log=log)
        self.stream = stream


class HttpSessions:
    """The sessions of one server. If there are too many, the one that was idle longest ends."""

    def __init__(self, server: McpServer, limits: ServerLimits) -> None:
        self._server, self._limits = server, limits
        self._sessions: dict[str, HttpSession] = {}
        self._requests = RequestServer(
            self._serve,
            log=log,
            max_unanswered=MAX_UNANSWERED,
            overloaded=overloaded_error("Server"),
        )

    def find(self, session_id: str, owner: str) -> HttpSession | None:
        """Return the session of a caller, and note that it is used."""
        self._end_idle()
        session = self._sessions.get(session_id)
        if session is None or session.owner != owner:
            return None
        session.used_s = asyncio.get_running_loop().time()
        self._sessions[session_id] = self._sessions.pop(session_id)
        return session

    def add(self, owner: str) -> HttpSession:
        """Start a session."""
        self._end_idle()
        session = HttpSession(secrets.token_urlsafe(24), owner=owner)
        if len(self._sessions) >= self._limits.sessions:
            idle = (one for one in self._sessions.values() if not one.running)
            self.end(next(idle, next(iter(self._sessions.values()))))
        self._sessions[session.id] = session
        return session

    def end(self, session: HttpSession) -> None:
        """End a session; calls that may be paid for go on."""
        self._sessions.pop(session.id, None)
        for stream in [*session.streams.values()]:
            stream.abandon()

    async def open(self, session: HttpSession, requests: Sequence[RpcRequest]) -> MessageStream:
        """Start to serve the requests of one post."""
        stream = MessageStream(session, self._requests)
        session.streams[stream.id] = stream
        for request in requests:
            await self._requests.start(stream.peer, request)
        return stream

    def notice(self, session: HttpSession, notification: Notification) -> None:
        """Handle a notification of a client."""
        self._server.notice(notification, session=session, peer=None)

    async def aclose(self) -> None:
        """Cancel the requests that are being served, and wait for calls that may be paid for."""
        await self._requests.aclose()
        await self._server.aclose()

    async def _serve(self, call: IncomingCall[StreamPeer]) -> object:
        stream, task = call.connection.stream, asyncio.current_task()
        assert task is not None, "a request is served in a task"
        stream.tasks.add(task)
        try:
            return await self._server.serve(
                call.request,
                session=stream.session,
                peer=call.connection,
                connected=stream.connected,
            )
        finally:
            stream.settle()

    def _end_idle(self) -> None:
        oldest_s = asyncio.get_running_loop().time() - self._limits.session_idle_s
        for session in [*self._sessions.values()]:
            if session.used_s > oldest_s:
                break  # they are in the order of their last use
            if not session.running:
                self.end(session)
