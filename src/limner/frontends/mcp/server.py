"""Requests of MCP clients -> responses, in every revision.

Heavy modules load with the first call, so that the server starts fast.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import msgspec
from msgspec import Raw

from limner import __version__
from limner.errors import LimnerError
from limner.frontends.mcp import protocol
from limner.frontends.mcp.offers import templates_for, tools_for
from limner.frontends.mcp.protocol import ConnectedClient
from limner.net.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Notification,
    RequestId,
    RpcError,
    RpcRequest,
)
from limner.net.jsonrpc_peer import Peer

if TYPE_CHECKING:
    from limner.frontends.mcp.request_handler import RequestHandler

INSTRUCTIONS = (
    "limner draws pictures, changes them and answers questions about them. Results carry the "
    "picture itself, its path and its handle; the handle names it in later calls. A slow call "
    "returns a job: image_job returns its picture. Costs are in dollars; spend shows them."
)
SERVER_INFO = {"name": "limner", "title": "limner", "version": __version__}
REQUEST_HANDLER = "limner.frontends.mcp.request_handler"
ROOTS_TIMEOUT_S = 5.0
_HOUR = {"ttlMs": 3_600_000, "cacheScope": "public"}
_UNCACHED = {"ttlMs": 0, "cacheScope": "private"}
_CAPABILITIES: Mapping[str, Any] = {
    "resources": {"listChanged": False, "subscribe": False},
    "tools": {"listChanged": False},
}


class McpSession:
    """What the server knows of one client: of a connection, or of a session over HTTP.

    Attributes:
        id: the id of the session over HTTP; empty for a connection.
        takes_initialize: a request can start the session.
        client: the client, after `initialize`.
        running: the tasks that work on its requests, by the ids of the requests.
    """

    takes_initialize = True

    def __init__(self, session_id: str = "") -> None:
        self.id = session_id
        self.client: ConnectedClient | None = None
        self.running: dict[RequestId, asyncio.Task[Any]] = {}
        self._roots: asyncio.Task[list[str]] | None = None

    @property
    def takes_batches(self) -> bool:
        """Whether the client may send several messages in one array."""
        return self.client is not None and self.client.revision == protocol.WITH_BATCHES

    def ask_roots(self, peer: Peer) -> None:
        """Start to ask the client for the URIs of its folders, if it names any."""
        if self.client is not None and self.client.names_roots:
            self._roots = asyncio.get_running_loop().create_task(_roots(peer))

    async def roots(self, peer: Peer, *, wait: bool) -> list[str]:
        """Return the URIs of the client's folders.

        A client may never answer. So it is asked once, and only a call with a path waits for it.
        """
        if self._roots is None:
            self.ask_roots(peer)
        if self._roots is None or not (wait or self._roots.done()):
            return []
        return await asyncio.shield(self._roots)


class McpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request, with the client that sent it and the way back to that client.

    Attributes:
        method: what the client asks for.
        params: the decoded params.
        client: the client.
        session: the session that the request belongs to.
        peer: the way back.
        connected: waits until the client can receive the result.
        arrived_s: the time on the clock of the event loop.
    """

    method: str
    params: Mapping[str, Any]
    client: ConnectedClient
    session: McpSession
    peer: Peer
    connected: Callable[[], Awaitable[None]]
    arrived_s: float

    def text(self, name: str) -> str:
        """Return a required text from the params.

        Raises:
            RpcError: it is missing, or not a text.
        """
        value = self.params.get(name)
        if not isinstance(value, str):
            raise RpcError(INVALID_PARAMS, f"params.{name} must be a string")
        return value


async def _at_once() -> None:
    """The client of a connection receives everything that is sent."""


class McpServer:
    """Serves the clients of any transport. The first call creates the request handler.

    Args:
        env: contains settings, keys and base URLs.
        cwd: the folder in which the server was started.
        folders: more folders that calls may use; None means those that the client names.
    """

    def __init__(
        self, *, env: Mapping[str, str], cwd: Path, folders: tuple[Path, ...] | None = None
    ) -> None:
        self._env, self._cwd, self._folders = env, cwd, folders
        self._handler: RequestHandler | None = None
        self._loading = asyncio.Lock()

    async def serve(
        self,
        request: RpcRequest,
        *,
        session: McpSession,
        peer: Peer,
        connected: Callable[[], Awaitable[None]] = _at_once,
    ) -> dict[str, Any]:
        """Return the result of a request.

        Args:
            request: the request.
            session: the session that it belongs to.
            peer: the client that sent it.
            connected: waits until the client can receive the result.

        Raises:
            RpcError: the request is wrong, or the settings are.
        """
        task = asyncio.current_task()
        assert task is not None, "a request is served in a task"
        session.running[request.id] = task
        try:
            return await self._serve(request, session, peer, connected)
        finally:
            if session.running.get(request.id) is task:
                del session.running[request.id]

    def notice(self, notification: Notification, *, session: McpSession, peer: Peer | None) -> None:
        """Handle a notification of a client, after the requests that came before it."""
        if notification.method in ("notifications/initialized", "notifications/roots/list_changed"):
            if self._folders is None and peer is not None:
                session.ask_roots(peer)
        elif notification.method == "notifications/cancelled":
            with suppress(RpcError):
                cancelled = decode_params(notification.params).get("requestId")
                if isinstance(cancelled, str | int) and cancelled in session.running:
                    session.running[cancelled].cancel()

    async def aclose(self) -> None:
        """Wait for calls that may be paid for, and close."""
        if self._handler is not None:
            await self._handler.aclose()

    async def _serve(
        self,
        given: RpcRequest,
        session: McpSession,
        peer: Peer,
        connected: Callable[[], Awaitable[None]],
    ) -> dict[str, Any]:
        params, method = decode_params(given.params), given.method
        arrived_s = asyncio.get_running_loop().time()
        if method == "initialize" and session.takes_initialize:
            session.client = protocol.opening_client(params)
            return _greeting(session.client)
        is_new = session.client is None and method in _ONLY_STATELESS
        is_stateless = is_new or protocol.is_stateless(params)
        client = protocol.stateless_client(params) if is_stateless else session.client
        serve = (_STATELESS_METHODS if is_stateless else _SESSION_METHODS).get(method)
        if serve is None:
            raise RpcError(METHOD_NOT_FOUND, "Method not found", method)
        if client is None:
            if method != "ping":
                raise RpcError(INVALID_REQUEST, "The first request must be initialize.")
            return {}
        request = McpRequest(
            method=method,
            params=params,
            client=client,
            session=session,
            peer=peer,
            connected=connected,
            arrived_s=arrived_s,
        )
        return _complete(await serve(self, request), client)

    async def handler(self) -> RequestHandler:
        """Return the request handler, created on first use.

        Raises:
            RpcError: the settings are wrong; the message says how.
        """
        async with self._loading:
            if self._handler is None:
                # In a thread: the server goes on to answer requests that need no tool.
                module = await asyncio.to_thread(import_module, REQUEST_HANDLER)
                try:
                    self._handler = module.RequestHandler(
                        env=self._env, cwd=self._cwd, folders=self._folders
                    )
                except LimnerError as error:
                    said = " ".join(filter(None, (error.message, error.hint)))
                    raise RpcError(INTERNAL_ERROR, said, error.as_json()) from error
            return cast("RequestHandler", self._handler)


def decode_params(params: Raw | None) -> dict[str, Any]:
    """Decode the params of a message.

    Raises:
        RpcError: they are not an object.
    """
    try:
        return {} if params is None else msgspec.json.decode(params, type=dict[str, Any])
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise RpcError(INVALID_PARAMS, "Invalid request parameters") from error


def _greeting(client: ConnectedClient) -> dict[str, Any]:
    named = SERVER_INFO
    if not client.takes_structure:
        named = {key: value for key, value in SERVER_INFO.items() if key != "title"}
    return {
        "protocolVersion": client.revision,
        "capabilities": _CAPABILITIES,
        "serverInfo": named,
        "instructions": INSTRUCTIONS,
    }


def _complete(result: dict[str, Any], client: ConnectedClient) -> dict[str, Any]:
    """Add what each result of a request that stands alone has."""
    if not client.is_stateless:
        return {key: value for key, value in result.items() if key not in _UNCACHED}
    return {"resultType": "complete", "_meta": {protocol.SERVER_KEY: SERVER_INFO}, **result}


async def _roots(peer: Peer) -> list[str]:
    with suppress(RpcError, TimeoutError, ConnectionError, msgspec.MsgspecError):
        raw = await peer.request("roots/list", {}, timeout_s=ROOTS_TIMEOUT_S)
        return [root.uri for root in msgspec.json.decode(raw, type=_Roots).roots]
    return []


class _Root(msgspec.Struct):
    uri: str


class _Roots(msgspec.Struct):
    roots: list[_Root]


async def _ping(_: McpServer, __: McpRequest) -> dict[str, Any]:
    return {}


async def _discover(_: McpServer, __: McpRequest) -> dict[str, Any]:
    return {
        "supportedVersions": [protocol.STATELESS],
        "capabilities": {**_CAPABILITIES, "extensions": {protocol.TASKS: {}}},
        "instructions": INSTRUCTIONS,
        **_UNCACHED,
    }


async def _list_tools(_: McpServer, request: McpRequest) -> dict[str, Any]:
    return {"tools": tools_for(request.client), **_HOUR}


async def _list_resources(_: McpServer, __: McpRequest) -> dict[str, Any]:
    # A client knows only the handles in its own results, so the server lists none.
    return {"resources": [], **_UNCACHED}


async def _list_templates(_: McpServer, request: McpRequest) -> dict[str, Any]:
    return {"resourceTemplates": templates_for(request.client), **_HOUR}


async def _read_resource(server: McpServer, request: McpRequest) -> dict[str, Any]:
    uri = request.text("uri")
    return {**await (await server.handler()).read(request, uri), **_UNCACHED}


async def _call_tool(server: McpServer, request: McpRequest) -> dict[str, Any]:
    name, arguments = request.text("name"), request.params.get("arguments")
    if arguments is not None and not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, "params.arguments must be an object")
    return await (await server.handler()).call(request, name, cast("Any", arguments) or {})


async def _task(server: McpServer, request: McpRequest) -> dict[str, Any]:
    if not request.client.takes_tasks:
        missing: dict[str, Any] = {"requiredCapabilities": {"extensions": {protocol.TASKS: {}}}}
        message = f"The client has not declared the extension {protocol.TASKS}."
        raise RpcError(protocol.MISSING_CAPABILITY, message, missing)
    return await (await server.handler()).task(request, request.text("taskId"))


_Serve: TypeAlias = Callable[[McpServer, McpRequest], Awaitable[dict[str, Any]]]
_BOTH: Mapping[str, _Serve] = {
    "tools/list": _list_tools,
    "tools/call": _call_tool,
    "resources/list": _list_resources,
    "resources/templates/list": _list_templates,
    "resources/read": _read_resource,
}
_SESSION_METHODS: Mapping[str, _Serve] = {"ping": _ping, **_BOTH}
_STATELESS_METHODS: Mapping[str, _Serve] = {
    "server/discover": _discover,
    "tasks/get": _task,
    "tasks/cancel": _task,
    "tasks/update": _task,
    **_BOTH,
}
_ONLY_STATELESS = _STATELESS_METHODS.keys() - _SESSION_METHODS.keys()
