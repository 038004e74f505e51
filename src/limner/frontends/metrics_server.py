"""An address -> a server of its own for the metrics of this process, with a token.

It is apart from the servers for clients: who may draw does not have to see what others spend.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from limner import metrics
from limner.errors import MissingExtra
from limner.frontends import server_token
from limner.frontends.connection_guard import LIMITS, ConnectionGuard
from limner.frontends.metrics_option import PATH, TOKEN_VARIABLE, MetricsAddress
from limner.frontends.server_token import ServerToken, TokenOptions
from limner.storage.home import Home

if TYPE_CHECKING:
    import uvicorn

TOKEN_NAME = "metrics"  # noqa: S105 - the name of the file, not a secret
PLAIN = "text/plain; charset=utf-8"


@asynccontextmanager
async def serve_metrics(address: MetricsAddress, *, home: Home) -> AsyncGenerator[None]:
    """Serve the metrics while the block runs.

    Raises:
        MissingExtra: the HTTP server is not installed.
        UserError: the address is in use, or does not belong to this machine.
        StorageError: the token cannot be stored.
    """
    if find_spec("uvicorn") is None:
        raise MissingExtra(
            "--metrics needs a package that is not installed",
            hint="Install it: pip install 'limner[team]'",
        )
    listener = import_module("limner.frontends.http_listener")
    host, port = address[0].strip("[]"), address[1]
    options = TokenOptions.read(file=None, variable=TOKEN_VARIABLE, env=os.environ, is_off=False)
    with listener.bind(host, port) as bound:
        port = bound.getsockname()[1]
        opened = server_token.open_token(
            options, home=home, server=TOKEN_NAME, host=host, port=port
        )
        with opened as token:
            assert token is not None
            server = _server(token, listener.guarded_protocol(ConnectionGuard(LIMITS)))
            serving = asyncio.create_task(server.serve(sockets=[bound]))
            # The socket listens already: a program that waits for this line can connect.
            lines = [f"metrics at http://{listener.in_url(host)}:{port}{PATH}"]
            lines += filter(None, [server_token.describe(token)])
            sys.stderr.write("".join(f"limner: {line}\n" for line in lines))
            sys.stderr.flush()
            try:
                yield
            finally:
                server.should_exit = True
                await serving


def _server(token: ServerToken, protocol: Any) -> uvicorn.Server:
    import uvicorn  # noqa: PLC0415 - an extra

    class QuietServer(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Generator[None]:
            """Leave the signals to the command that serves."""
            yield

    config = uvicorn.Config(
        MetricsApp(token),
        http=protocol,
        log_level="warning",
        limit_concurrency=LIMITS.connections + LIMITS.newcomers,
        timeout_graceful_shutdown=1,
        server_header=False,
        lifespan="off",
        ws="none",
    )
    return QuietServer(config)


class MetricsApp:
    """The ASGI application: one path, for programs with the token."""

    def __init__(self, token: ServerToken) -> None:
        self._token = token

    async def __call__(
        self,
        scope: Mapping[str, Any],
        receive: Callable[[], Awaitable[Mapping[str, Any]]],
        send: Callable[[Mapping[str, Any]], Awaitable[None]],
    ) -> None:
        """Answer one request; its body is not read."""
        del receive
        status, text = self._answer(scope)
        headers = {
            "content-type": metrics.CONTENT_TYPE if status is HTTPStatus.OK else PLAIN,
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
        }
        if status is HTTPStatus.UNAUTHORIZED:
            headers["www-authenticate"] = "Bearer"
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": text.encode()})

    def _answer(self, scope: Mapping[str, Any]) -> tuple[HTTPStatus, str]:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if any(name == b"origin" for name, _ in headers):
            return HTTPStatus.FORBIDDEN, "Web pages are not served here.\n"
        given = [value.decode("latin-1") for name, value in headers if name == b"authorization"]
        if not self._token.authorizes(given):
            return HTTPStatus.UNAUTHORIZED, "A bearer token is needed.\n"
        if scope["path"] != PATH:
            return HTTPStatus.NOT_FOUND, f"There is only {PATH}.\n"
        if scope["method"] != "GET":
            return HTTPStatus.METHOD_NOT_ALLOWED, "Use GET.\n"
        return HTTPStatus.OK, metrics.render(metrics.FAMILIES)
