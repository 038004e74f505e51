"""HTTP requests -> the endpoints and the page of the studio, after every check.

Each response forbids the browser everything but what the page needs from this server. Pictures
are sent only as the type that a worker decoded, and no browser guesses another.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from importlib.resources import files
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers, QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from limner.errors import (
    Denied,
    ImageError,
    LimnerError,
    NotFound,
    ProviderError,
    UnexpectedError,
    UserError,
)
from limner.frontends.studio.access import StudioAccess
from limner.frontends.studio.api import ENDPOINTS
from limner.frontends.studio.conversation_socket import PATH, StudioConversations
from limner.frontends.studio.endpoints import (
    Endpoint,
    EventAnswer,
    FileAnswer,
    StudioParts,
    describe,
)
from limner.net.redaction import redact
from limner.pictures.take import MAX_PICTURE_BYTES

logger = logging.getLogger("limner")

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",
        "connect-src 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
NO_STORE = {"cache-control": "no-store"}
# The bytes of a handle never change.
FOR_EVER = {"cache-control": "private, max-age=31536000, immutable"}
MAX_JSON_BYTES = 8 * 1024 * 1024
STATIC = files("limner.frontends.studio") / "static"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# The first class that an error belongs to decides.
STATUSES: tuple[tuple[type[LimnerError], HTTPStatus], ...] = (
    (NotFound, HTTPStatus.NOT_FOUND),
    (UserError, HTTPStatus.BAD_REQUEST),
    (Denied, HTTPStatus.FORBIDDEN),
    (ImageError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (ProviderError, HTTPStatus.FAILED_DEPENDENCY),
    (UnexpectedError, HTTPStatus.INTERNAL_SERVER_ERROR),
)


class StudioApp:
    """The ASGI application."""

    def __init__(
        self, parts: StudioParts, access: StudioAccess, conversations: StudioConversations
    ) -> None:
        self._access = access
        routes = [Route(one.path, _serve(one, parts), methods=[one.method]) for one in ENDPOINTS]
        pages = [
            Route("/api/openapi.json", _description, methods=["GET"]),
            Route("/", _page("index.html"), methods=["GET"]),
            Route("/static/{path:path}", _static, methods=["GET"]),
            WebSocketRoute(PATH, conversations.serve),
        ]
        self._inner: ASGIApp = Starlette(
            routes=[*routes, *pages], exception_handlers={404: _no_such_page, 405: _no_such_page}
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, if its sender may ask."""
        if scope["type"] == "lifespan":
            return
        refused = self._check(scope)
        app = self._inner if refused is None else refused

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [
                    *message["headers"],
                    *(one for one in more if one[0] not in own),
                ]
            await send(message)

        await app(scope, receive, send_with_headers)

    def _check(self, scope: Scope) -> Response | None:
        headers, access = Headers(scope=scope), self._access
        status = access.refusal_of_names(headers)
        if status is not None:
            return _refused(status, "This server does not serve other names or other pages.")
        query = QueryParams(scope["query_string"])
        if scope["path"] == "/" and "token" in query:
            cookie = access.accept(query["token"])
            if cookie is not None:
                return RedirectResponse("/", 303, {"set-cookie": cookie, **NO_STORE})
            if access.has_cookie(headers):
                return RedirectResponse("/", 303, NO_STORE)
        # A page can open a web socket to any server, so it must be our page.
        status = access.refusal(scope.get("method", "CONNECT"), headers)
        if status is None:
            return None
        if scope["path"] == "/":
            return _file("welcome.html", status=status)
        return _refused(status, "Open the address that `limner studio` printed.")


def _serve(endpoint: Endpoint, parts: StudioParts) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        try:
            most = MAX_PICTURE_BYTES if endpoint.takes_bytes else MAX_JSON_BYTES
            body = await _body(request, most) if endpoint.takes_body else b""
            if body is None:
                return _refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The body is too long.")
            query = dict(request.query_params)
            if endpoint.answer is EventAnswer and "last-event-id" in request.headers:
                query["last_event_id"] = request.headers["last-event-id"]
            asked = endpoint.decode(request.path_params, query, body)
            return _answer(await endpoint.handler(parts, asked))
        except LimnerError as error:
            return _failure(error)
        except ClientDisconnect:
            return Response(status_code=HTTPStatus.BAD_REQUEST)
        except Exception as bug:
            # The outermost loop: one request that fails must not end the server.
            logger.exception("The studio failed to serve %s", endpoint.path)
            return _failure(UnexpectedError(redact(f"{type(bug).__name__}: {bug}")))

    return serve


async def _body(request: Request, max_bytes: int) -> bytes | None:
    """The body of a request; None if it is too long."""
    found = bytearray()
    async for part in request.stream():
        found += part
        if len(found) > max_bytes:
            return None
    return bytes(found)


def _answer(found: Any) -> Response:
    if isinstance(found, EventAnswer):
        headers = {"cache-control": "no-store, no-transform", "x-accel-buffering": "no"}
        return StreamingResponse(found.events, media_type="text/event-stream", headers=headers)
    if not isinstance(found, FileAnswer):
        return Response(msgspec.json.encode(found), 200, NO_STORE, "application/json")
    headers = dict(FOR_EVER if found.is_fixed else NO_STORE)
    # A picture is no page: if it is opened alone, nothing in it may run.
    headers["content-security-policy"] = "default-src 'none'; sandbox"
    if found.name is not None:
        headers["content-disposition"] = f'attachment; filename="{found.name}"'
    return Response(found.data, 200, headers, found.mime)


def _failure(error: LimnerError) -> Response:
    is_kind = (status for kind, status in STATUSES if isinstance(error, kind))
    status = next(is_kind, HTTPStatus.CONFLICT)
    return _json_error(status, error.as_json())


def _refused(status: HTTPStatus, message: str) -> Response:
    error = LimnerError(message, code=status.name)
    return _json_error(status, error.as_json())


def _json_error(status: HTTPStatus, error: Mapping[str, object]) -> Response:
    body = msgspec.json.encode({"error": error})
    return Response(body, status, NO_STORE, "application/json")


async def _no_such_page(_: Request, error: Exception) -> Response:
    status = HTTPStatus(getattr(error, "status_code", 404))
    return _refused(status, "There is no such page.")


async def _description(_: Request) -> Response:
    return Response(msgspec.json.encode(describe(ENDPOINTS)), 200, NO_STORE, "application/json")


def _page(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def serve(_: Request) -> Response:
        return _file(name)

    return serve


async def _static(request: Request) -> Response:
    path = request.path_params["path"]
    if path not in STATIC_FILES:
        return _refused(HTTPStatus.NOT_FOUND, "There is no such page.")
    return _file(path)


def _file(name: str, *, status: int = 200) -> Response:
    kind = TYPES["." + name.rpartition(".")[2]]
    # A new version of limner must not meet the scripts of an older one.
    headers = {"cache-control": "no-cache"}
    return Response((STATIC / name).read_bytes(), status, headers, kind)


def _names(folder: Any, before: str = "") -> frozenset[str]:
    found: set[str] = set()
    for entry in folder.iterdir():
        if entry.is_dir():
            found |= _names(entry, f"{before}{entry.name}/")
        elif "." + entry.name.rpartition(".")[2] in TYPES:
            found.add(before + entry.name)
    return frozenset(found)


STATIC_FILES = _names(STATIC)
"""What may be asked for; no other path is ever joined to a folder."""
