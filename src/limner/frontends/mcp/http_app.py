"""HTTP requests -> the MCP server: Streamable HTTP, and the checks of host, origin and token.

A response is one JSON document if it comes soon, else a stream of events. Since 2025-11-25 a client
that loses the stream can fetch the rest of it with the id of the last event.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import re
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeAlias, cast

import msgspec

from limner.frontends.connection_guard import ServerLimits
from limner.frontends.http_listener import refusal_of_names
from limner.frontends.mcp import protocol
from limner.frontends.mcp.http_sessions import HttpSession, HttpSessions, MessageStream
from limner.frontends.mcp.server import McpServer, decode_params
from limner.frontends.mcp.stdio import split_batch
from limner.frontends.mcp.tokens import AccessToken, Verifier
from limner.net import jsonrpc
from limner.net.jsonrpc import Notification, RpcError, RpcRequest

PATH = "/mcp"
JSON, EVENTS = "application/json", "text/event-stream"
# A response that takes longer is a stream: errors with a status of their own come sooner.
COMMIT_S = 1.0
PING_S = 15.0
RETRY_MS = 1000
SESSION, VERSION, METHOD, NAME = (
    "mcp-session-id",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
)
_ROUTING = (VERSION, METHOD, NAME)
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_ENCODED = re.compile(r"=\?base64\?(.*)\?=")
_STATUS = {
    protocol.PARSE_ERROR: 400,
    protocol.HEADER_MISMATCH: 400,
    protocol.MISSING_CAPABILITY: 400,
    protocol.UNSUPPORTED_VERSION: 400,
    jsonrpc.INVALID_REQUEST: 400,
    jsonrpc.INVALID_PARAMS: 400,
    jsonrpc.METHOD_NOT_FOUND: 404,
}

_EVENT_HEADERS = {
    "content-type": EVENTS,
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}

Scope: TypeAlias = Mapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
Send: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[None]]


class Refused(Exception):
    """A request that gets an HTTP error; ``error`` is the JSON-RPC error in the body."""

    def __init__(
        self,
        status: int,
        error: RpcError | None = None,
        *,
        request_id: jsonrpc.RequestId | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status)
        self.status, self.error, self.request_id = status, error, request_id
        self.headers = headers or {}


class HttpAccess(msgspec.Struct, frozen=True, kw_only=True):
    """Who may call the server.

    Attributes:
        hosts: the names of this machine, as in the header Host.
        verifier: checks the token of a caller; None if callers need none.
        scopes: a token must have each of them.
        metadata: the OAuth metadata of the server, if an issuer makes the tokens.
        metadata_url: the public address of the metadata.
    """

    hosts: frozenset[str]
    verifier: Verifier | None = None
    scopes: frozenset[str] = frozenset()
    metadata: Mapping[str, Any] | None = None
    metadata_url: str = ""

    def check_names(self, exchange: Exchange) -> None:
        """Refuse a web page of another machine, and a request that was sent to another name."""
        refusal = refusal_of_names(
            self.hosts, host=exchange.header("host"), origin=exchange.header("origin")
        )
        if refusal is not None:
            raise Refused(refusal)

    async def caller(self, exchange: Exchange) -> str:
        """Return the name of the caller.

        Raises:
            Refused: the caller has no token, or a wrong one.
        """
        if self.verifier is None:
            return ""
        given = exchange.headers("authorization")
        scheme, _, text = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        token: AccessToken | None = None
        if scheme.lower() == "bearer":
            token = await self.verifier.verify_token(text.strip())
        if token is None:
            raise self._challenge(HTTPStatus.UNAUTHORIZED, "invalid_token")
        if not self.scopes <= {*token.scopes}:
            raise self._challenge(HTTPStatus.FORBIDDEN, "insufficient_scope")
        return f"{token.client_id}/{token.subject}"

    def _challenge(self, status: HTTPStatus, error: str) -> Refused:
        said = f'Bearer error="{error}"'
        if self.scopes:
            said += f', scope="{" ".join(sorted(self.scopes))}"'
        if self.metadata_url:
            said += f', resource_metadata="{self.metadata_url}"'
        return Refused(status, headers={"www-authenticate": said})


class Exchange:
    """One HTTP request and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self._headers = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        ]
        self._receive, self._send = receive, send
        self.must_close = False

    def headers(self, name: str) -> list[str]:
        """Return every value of a header."""
        return [value for key, value in self._headers if key == name]

    def header(self, name: str) -> str | None:
        """Return the first value of a header."""
        return next(iter(self.headers(name)), None)

    def accepts(self, kind: str) -> bool:
        """Whether the client takes a response of this type."""
        wanted = ",".join(self.headers("accept"))
        kinds = {one.partition(";")[0].strip().lower() for one in wanted.split(",")}
        return bool({kind, kind.partition("/")[0] + "/*", "*/*"} & kinds)

    async def body(self, max_bytes: int) -> bytes:
        """Return the body of the request.

        Raises:
            Refused: it is too long. The server does not read the rest of it.
        """
        said = self.header("content-length") or "0"
        found = bytearray()
        is_whole = said.isdecimal() and int(said) > max_bytes
        while not is_whole:
            event = await self._receive()
            if event["type"] == "http.disconnect":
                raise ConnectionResetError
            found += event.get("body", b"")
            is_whole = not event.get("more_body", False) or len(found) > max_bytes
        if len(found) > max_bytes or (said.isdecimal() and int(said) > max_bytes):
            self.must_close = True
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return bytes(found)

    async def gone(self) -> None:
        """Wait until the client disconnects."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the head of the response."""
        sent = {**headers, **({"connection": "close"} if self.must_close else {})}
        encoded = [(name.encode(), value.encode("latin-1")) for name, value in sent.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": encoded})

    async def write(self, body: bytes, *, is_last: bool = False) -> None:
        """Send a part of the body."""
        await self._send({"type": "http.response.body", "body": body, "more_body": not is_last})

    async def respond(
        self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a whole response."""
        kind = {"content-type": JSON} if body else {}
        length = {"content-length": str(len(body))}
        await self.start(status, {**kind, **length, **(headers or {})})
        await self.write(body, is_last=True)


class McpApp:
    """The ASGI application.

    Args:
        server: serves the requests.
        access: who may call.
        limits: the limits on bodies and sessions.
    """

    def __init__(self, server: McpServer, *, access: HttpAccess, limits: ServerLimits) -> None:
        self._access, self._limits = access, limits
        self.sessions = HttpSessions(server, limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        if scope["type"] != "http":
            return
        exchange = Exchange(scope, receive, send)
        # A connection without a valid token is closed, so that it holds nothing here.
        exchange.must_close = self._access.verifier is not None
        with contextlib.suppress(ConnectionResetError):
            try:
                await self._serve(exchange)
            except Refused as refused:
                error = refused.error
                body = b"" if error is None else _error(refused.request_id, error)
                await exchange.respond(refused.status, body, refused.headers)

    async def _serve(self, exchange: Exchange) -> None:
        if self._access.metadata is not None and exchange.path.startswith("/.well-known/"):
            await exchange.respond(HTTPStatus.OK, msgspec.json.encode(self._access.metadata))
            return
        if exchange.path != PATH:
            raise Refused(HTTPStatus.NOT_FOUND)
        self._access.check_names(exchange)
        owner = await self._access.caller(exchange)
        exchange.must_close = False
        if exchange.method == "POST":
            await self._post(exchange, owner)
        elif exchange.method == "GET":
            await self._resume(exchange, self._session(exchange, owner))
        elif exchange.method == "DELETE":
            self.sessions.end(self._session(exchange, owner))
            await exchange.respond(HTTPStatus.OK)
        else:
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, headers={"allow": "GET, POST, DELETE"})

    def _session(self, exchange: Exchange, owner: str) -> HttpSession:
        session_id = exchange.header(SESSION)
        if session_id is None:
            raise Refused(
                400, RpcError(jsonrpc.INVALID_REQUEST, f"The header {SESSION} is missing.")
            )
        session = self.sessions.find(session_id, owner)
        if session is None:
            raise Refused(404, RpcError(jsonrpc.INVALID_REQUEST, "There is no such session."))
        return session

    async def _post(self, exchange: Exchange, owner: str) -> None:
        version = exchange.header(VERSION)
        is_stateless = version is not None and version not in protocol.SESSION_REVISIONS
        is_opening = not is_stateless and exchange.header(SESSION) is None
        limits = self._limits
        data = await exchange.body(limits.opening_bytes if is_opening else limits.body_bytes)
        kind = (exchange.header("content-type") or "").partition(";")[0].strip().lower()
        if kind != JSON:
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        if not (exchange.accepts(JSON) and exchange.accepts(EVENTS)):
            raise Refused(HTTPStatus.NOT_ACCEPTABLE)
        if is_stateless:
            await self._post_alone(exchange, _parse(data))
        elif is_opening:
            await self._open_session(exchange, _parse(data), owner)
        else:
            await self._post_in_session(exchange, self._session(exchange, owner), data)

    async def _post_alone(self, exchange: Exchange, message: jsonrpc.Message) -> None:
        """Serve a request that stands alone."""
        if isinstance(message, Notification):
            # No request is left to which it could belong.
            try:
                protocol.check_version(exchange.header(VERSION) or "")
            except RpcError as error:
                raise Refused(400, error) from error
            await exchange.respond(HTTPStatus.ACCEPTED)
            return
        if not isinstance(message, RpcRequest):
            raise Refused(400, RpcError(jsonrpc.INVALID_REQUEST, "The body must be one request."))
        try:
            _check_headers(exchange, message)
        except RpcError as error:
            status = _STATUS.get(error.code, 400)
            raise Refused(status, error, request_id=message.id) from error
        stream = await self.sessions.open(HttpSession(), [message])
        await self._answer(exchange, stream)

    async def _open_session(self, exchange: Exchange, message: jsonrpc.Message, owner: str) -> None:
        if not isinstance(message, RpcRequest) or message.method != "initialize":
            reason = f"The header {SESSION} is missing."
            raise Refused(400, RpcError(jsonrpc.INVALID_REQUEST, reason))
        session = self.sessions.add(owner)
        stream = await self.sessions.open(session, [message])
        await self._answer(exchange, stream, {SESSION: session.id})
        if session.client is None:
            self.sessions.end(session)

    async def _post_in_session(self, exchange: Exchange, session: HttpSession, data: bytes) -> None:
        is_batch = data.lstrip()[:1] == b"[" and session.takes_batches
        messages = [_parse(one) for one in (split_batch(data) if is_batch else [data])]
        requests = [one for one in messages if isinstance(one, RpcRequest)]
        for message in messages:
            if isinstance(message, Notification):
                self.sessions.notice(session, message)
            elif isinstance(message, jsonrpc.Response | jsonrpc.ErrorResponse):
                session.pending.settle(None, message)
        if not requests:
            await exchange.respond(HTTPStatus.ACCEPTED)
            return
        await self._answer(exchange, await self.sessions.open(session, requests))

    async def _resume(self, exchange: Exchange, session: HttpSession) -> None:
        """Send the rest of a stream. The server sends nothing else by itself."""
        stream_id, _, number = (exchange.header("last-event-id") or "").rpartition(".")
        stream = session.streams.get(stream_id)
        if stream is None or not number.isdecimal():
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, headers={"allow": "POST, DELETE"})
        with stream.reading():
            await _Reader(exchange, stream, start=int(number)).send_events({})

    async def _answer(
        self, exchange: Exchange, stream: MessageStream, headers: Mapping[str, str] | None = None
    ) -> None:
        with stream.reading():
            await _Reader(exchange, stream).send(headers or {})


class _Reader:
    """Sends a stream to the client of one HTTP request."""

    def __init__(self, exchange: Exchange, stream: MessageStream, *, start: int = 0) -> None:
        self._exchange, self._stream, self._at = exchange, stream, start
        self._gone = asyncio.ensure_future(exchange.gone())
        self._waiting: asyncio.Future[bytes | None] | None = None

    async def send(self, headers: Mapping[str, str]) -> None:
        """Send one JSON document if that is all and comes soon, else events."""
        try:
            message = await self._next(COMMIT_S)
        except TimeoutError:
            await self.send_events(headers)
            return
        found = None if message is None else jsonrpc.parse(message)
        if message is None:
            await self._exchange.respond(HTTPStatus.ACCEPTED, b"", headers)
        elif isinstance(found, jsonrpc.Response | jsonrpc.ErrorResponse) and self._is_single():
            await self._exchange.respond(self._status(found), message, headers)
        else:
            self._at = 0
            await self.send_events(headers)

    async def send_events(self, headers: Mapping[str, str]) -> None:
        """Send every message as an event, until the last response."""
        exchange, can_resume = self._exchange, self._stream.session.can_resume
        await exchange.start(HTTPStatus.OK, {**_EVENT_HEADERS, **headers})
        if can_resume:
            await exchange.write(f"{self._id()}retry: {RETRY_MS}\ndata: \n\n".encode())
        while True:
            try:
                message = await self._next(PING_S)
            except TimeoutError:
                await exchange.write(b": ping\n\n")
                continue
            if message is None:
                break
            name = f"event: message\n{self._id() if can_resume else ''}data: ".encode()
            await exchange.write(b"".join([name, message, b"\n\n"]))
        await exchange.write(b"", is_last=True)

    async def _next(self, timeout_s: float) -> bytes | None:
        if self._waiting is None:
            self._waiting = asyncio.ensure_future(self._stream.message(self._at))
        await asyncio.wait(
            {self._waiting, self._gone}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
        )
        if self._waiting.done():
            message, self._waiting = self._waiting.result(), None
            self._at += 1
            if message is None:
                self._gone.cancel()
            return message
        if self._gone.done():
            self._waiting.cancel()
            raise ConnectionResetError
        raise TimeoutError

    def _id(self) -> str:
        """The line with the number of the next message, from which a client can read on."""
        return f"id: {self._stream.id}.{self._at}\n"

    def _is_single(self) -> bool:
        return len(self._stream.tasks) == 1

    def _status(self, found: jsonrpc.Message) -> int:
        # In a session only the connection has a status.
        if isinstance(found, jsonrpc.ErrorResponse) and not self._stream.session.id:
            return _STATUS.get(found.error.code, 200)
        return 200


def _parse(data: jsonrpc.Data) -> jsonrpc.Message:
    found = jsonrpc.parse(data)
    if not isinstance(found, jsonrpc.InvalidMessage):
        return found
    try:
        msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise Refused(400, RpcError(protocol.PARSE_ERROR, "Parse error")) from None
    raise Refused(400, RpcError(jsonrpc.INVALID_REQUEST, f"Invalid request: {found.reason}"))


def _check_headers(exchange: Exchange, request: RpcRequest) -> None:
    """Check that the headers say the same as the body.

    Raises:
        RpcError: they do not, or the body lacks what they would repeat.
    """
    params = decode_params(request.params)
    for name in _ROUTING:
        if len(exchange.headers(name)) > 1:
            raise RpcError(protocol.HEADER_MISMATCH, f"The header {name} appears more than once.")
    meta = protocol.meta_of(params)
    if not {protocol.VERSION_KEY, protocol.CAPABILITIES_KEY} <= meta.keys():
        protocol.stateless_client(params)  # raises the error that names the missing field
    wanted: dict[str, Any] = {VERSION: meta[protocol.VERSION_KEY], METHOD: request.method}
    if (key := _NAMED_BY.get(request.method)) is not None and params.get(key) is not None:
        wanted[NAME] = params[key]
    if request.method.startswith("tasks/") and exchange.header(NAME) is not None:
        wanted[NAME] = params.get("taskId")  # not every client sends it
    for name, value in wanted.items():
        if _decoded(exchange.header(name)) != value:
            reason = f"The header {name} does not match the body."
            raise RpcError(protocol.HEADER_MISMATCH, reason)
    protocol.stateless_client(params)


def _decoded(value: str | None) -> str | None:
    """The value of a header, which is base64 if it has characters that a header cannot have."""
    found = None if value is None else _ENCODED.fullmatch(value)
    if found is None:
        return value
    try:
        decoded = base64.b64decode(found[1], validate=True)
        is_canonical = base64.b64encode(decoded).decode() == found[1]
        return decoded.decode() if is_canonical else None
    except (binascii.Error, UnicodeDecodeError):
        return None


def _error(request_id: jsonrpc.RequestId | None, error: RpcError) -> bytes:
    body = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = cast("Any", error.data)
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": body})
