"""Streamable HTTP -> the MCP server: checks hosts, origins and tokens.

Callers need a token, because every user of this machine can connect. No web page may call the
server: Host and Origin must name this machine.
"""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import msgspec
import uvicorn
from msgspec.structs import replace

from limner.errors import UserError
from limner.frontends import server_token
from limner.frontends.connection_guard import LIMITS, ConnectionGuard, allow_many_files
from limner.frontends.http_listener import bind, guarded_protocol, host_names, in_url
from limner.frontends.mcp.http_app import PATH, HttpAccess, McpApp
from limner.frontends.mcp.server import McpServer
from limner.frontends.mcp.tokens import SharedSecret, SignedTokens, Verifier
from limner.frontends.server_token import ServerToken, TokenOptions
from limner.storage.home import Home

TOKEN_NAME = "mcp"  # noqa: S105 - the name of the file, not a secret
# A message that starts a session is short, and the server keeps it as long as the session.
MCP_LIMITS = replace(LIMITS, opening_bytes=64 * 1024)
GRACE_S = 5


class OAuth(msgspec.Struct, frozen=True, kw_only=True):
    """The issuer that signs tokens, the address they are for, and the issuer's keys.

    A token must have each of the ``scopes``.
    """

    issuer: str
    resource: str
    keys: str
    scopes: Sequence[str] = ()


class HttpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The address to listen on, and the authentication of callers.

    Attributes:
        host: an address or host name of this machine.
        port: 0 means any free port.
        token: the secret that callers must send.
        oauth: the issuer whose tokens callers must send instead.
        names: more host names of this machine.
    """

    host: str
    port: int
    token: TokenOptions = TokenOptions()
    oauth: OAuth | None = None
    names: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.oauth is not None and self.token != TokenOptions():
            raise UserError("give a token or an issuer, not both")


async def serve(server: McpServer, listening: HttpOptions, *, home: Home) -> None:
    """Serve clients until the process receives a signal to stop.

    Raises:
        UserError: the address is in use, does not belong to this machine, or needs a token.
        StorageError: the token cannot be stored.
    """
    # The default would end the process before the file of the token is removed.
    signal.signal(signal.SIGTERM, _exit)
    allow_many_files()
    with (
        bind(listening.host, listening.port) as bound,
        _token(listening, bound, home=home) as token,
    ):
        port = bound.getsockname()[1]
        app = McpApp(server, access=_access(listening, token, port=port), limits=MCP_LIMITS)
        config = uvicorn.Config(
            app,
            http=guarded_protocol(ConnectionGuard(MCP_LIMITS)),
            log_level="warning",
            limit_concurrency=MCP_LIMITS.connections + MCP_LIMITS.newcomers,
            timeout_graceful_shutdown=GRACE_S,
            server_header=False,
            lifespan="off",
            ws="none",
        )
        # The socket listens already: a program that waits for this line can connect.
        sys.stderr.write(f"limner mcp: http://{in_url(listening.host)}:{port}{PATH}\n")
        if (line := server_token.describe(token)) is not None:
            sys.stderr.write(f"limner mcp: {line}\n")
        sys.stderr.flush()
        try:
            await uvicorn.Server(config).serve(sockets=[bound])
        finally:
            await app.sessions.aclose()


def _token(
    listening: HttpOptions, bound: socket.socket, *, home: Home
) -> AbstractContextManager[ServerToken | None]:
    if listening.oauth is not None:
        return nullcontext()  # the issuer makes the tokens
    host, port = listening.host.strip("[]"), bound.getsockname()[1]
    return server_token.open_token(
        listening.token, home=home, server=TOKEN_NAME, host=host, port=port
    )


def _access(listening: HttpOptions, token: ServerToken | None, *, port: int) -> HttpAccess:
    hosts = host_names(listening.host, port, names=listening.names)
    if (oauth := listening.oauth) is None:
        verifier: Verifier | None = None if token is None else SharedSecret(token)
        return HttpAccess(hosts=hosts, verifier=verifier)
    resource = urlsplit(oauth.resource)
    path = f"/.well-known/oauth-protected-resource{resource.path.rstrip('/')}"
    metadata: dict[str, Any] = {
        "resource": oauth.resource,
        "authorization_servers": [oauth.issuer],
        "bearer_methods_supported": ["header"],
    }
    if oauth.scopes:
        metadata["scopes_supported"] = [*oauth.scopes]
    return HttpAccess(
        hosts=hosts,
        verifier=SignedTokens(issuer=oauth.issuer, resource=oauth.resource, keys=oauth.keys),
        scopes=frozenset(oauth.scopes),
        metadata=metadata,
        metadata_url=f"{resource.scheme}://{resource.netloc}{path}",
    )


def _exit(_: int, __: FrameType | None) -> None:
    sys.exit(0)
