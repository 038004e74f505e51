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

import msgspec
import uvicorn
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from msgspec.structs import replace
from pydantic import AnyHttpUrl
from starlette.types import ASGIApp

from limner.errors import UserError
from limner.frontends import server_token
from limner.frontends.connection_guard import LIMITS, ConnectionGuard, allow_many_files
from limner.frontends.mcp.http_guard import GuardedApp, guarded_protocol
from limner.frontends.mcp.server import McpFrontend
from limner.frontends.mcp.tokens import SharedSecret, SignedTokens
from limner.frontends.server_token import ServerToken, TokenOptions, is_loopback
from limner.storage.home import Home

PATH = "/mcp"
TOKEN_NAME = "mcp"  # noqa: S105 - the name of the file, not a secret
# A message that starts a session is short, and the server keeps it as long as the session.
MCP_LIMITS = replace(LIMITS, opening_bytes=64 * 1024)
GRACE_S = 5
BACKLOG = 1024
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - the user chose it, and it requires a token


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


async def serve(server: Server[McpFrontend], listening: HttpOptions, *, home: Home) -> None:
    """Serve clients until the process receives a signal to stop.

    Raises:
        UserError: the address is in use, does not belong to this machine, or needs a token.
        StorageError: the token cannot be stored.
    """
    # The default would end the process before the file of the token is removed.
    signal.signal(signal.SIGTERM, _exit)
    allow_many_files()
    with _bind(listening) as bound, _token(listening, bound, home=home) as token:
        port = bound.getsockname()[1]
        config = uvicorn.Config(
            build_app(server, listening, token, port=port),
            http=guarded_protocol(ConnectionGuard(MCP_LIMITS)),
            log_level="warning",
            limit_concurrency=MCP_LIMITS.connections + MCP_LIMITS.newcomers,
            timeout_graceful_shutdown=GRACE_S,
            server_header=False,
            ws="none",
        )
        # The socket listens already: a program that waits for this line can connect.
        sys.stderr.write(f"limner mcp: http://{_in_url(listening.host)}:{port}{PATH}\n")
        if (line := server_token.describe(token)) is not None:
            sys.stderr.write(f"limner mcp: {line}\n")
        sys.stderr.flush()
        await uvicorn.Server(config).serve(sockets=[bound])


def build_app(
    server: Server[McpFrontend], listening: HttpOptions, token: ServerToken | None, *, port: int
) -> ASGIApp:
    """Return the server as an ASGI application."""
    verifier = _verifier(listening, token)
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MCP_LIMITS.body_bytes,
        session_idle_timeout=MCP_LIMITS.session_idle_s,
        # Our own limit holds before: it ends idle sessions, and this one refuses new sessions.
        max_sessions=2 * MCP_LIMITS.sessions,
        transport_security=_names(listening, port),
        auth=_settings(listening, token, port),
        token_verifier=verifier,
    )
    return GuardedApp(
        app,
        sessions=server.session_manager,
        limits=MCP_LIMITS,
        has_tokens=verifier is not None,
    )


def _token(
    listening: HttpOptions, bound: socket.socket, *, home: Home
) -> AbstractContextManager[ServerToken | None]:
    if listening.oauth is not None:
        return nullcontext()  # the issuer makes the tokens
    host, port = listening.host.strip("[]"), bound.getsockname()[1]
    return server_token.open_token(
        listening.token, home=home, server=TOKEN_NAME, host=host, port=port
    )


def _names(listening: HttpOptions, port: int) -> TransportSecuritySettings:
    host = listening.host.strip("[]")
    local = _LOOPBACK if is_loopback(host) or host in _EVERYWHERE else ()
    hosts = [f"{name}:{port}" for name in {*local, _in_url(host)}]
    for name in listening.names:
        hosts += [name, f"{name}:{port}"]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=hosts,
        allowed_origins=[f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts],
    )


def _verifier(listening: HttpOptions, token: ServerToken | None) -> TokenVerifier | None:
    if token is not None:
        return SharedSecret(token)
    if (oauth := listening.oauth) is not None:
        return SignedTokens(issuer=oauth.issuer, resource=oauth.resource, keys=oauth.keys)
    return None


def _settings(listening: HttpOptions, token: ServerToken | None, port: int) -> AuthSettings | None:
    if (oauth := listening.oauth) is not None:
        return AuthSettings(
            issuer_url=AnyHttpUrl(oauth.issuer),
            resource_server_url=AnyHttpUrl(oauth.resource),
            required_scopes=[*oauth.scopes] or None,
            validate_token_resource=False,  # the verifier has checked the audience
        )
    if token is not None:
        here = AnyHttpUrl(f"http://{_in_url(listening.host)}:{port}")
        return AuthSettings(issuer_url=here, resource_server_url=None)
    return None


def _exit(_: int, __: FrameType | None) -> None:
    sys.exit(0)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _bind(listening: HttpOptions) -> socket.socket:
    host = listening.host.strip("[]")
    try:
        found = socket.getaddrinfo(host, listening.port, type=socket.SOCK_STREAM)
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
            f"cannot listen on {listening.host}:{listening.port}: {error.strerror}",
            hint="Choose another port, or 0 for any free port.",
        ) from error
    return bound
