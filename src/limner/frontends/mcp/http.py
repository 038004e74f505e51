"""Streamable HTTP -> the MCP server: checks hosts, origins and tokens, and limits sizes.

Every program on this machine may call the server, but no web page may: Host and Origin must name
this machine. Callers on other machines need a token. Bodies, connections and sessions are limited.
"""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

import msgspec
import uvicorn
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from limner.errors import UserError
from limner.frontends.mcp.server import McpFrontend
from limner.frontends.mcp.tokens import SharedSecret, SignedTokens

PATH = "/mcp"
MAX_BODY_BYTES = 8 * 1024 * 1024
MAX_CONNECTIONS = 512
GRACE_S = 5
BACKLOG = 1024
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - the user chose it, and it requires a token


class OAuth(msgspec.Struct, frozen=True, kw_only=True):
    """The issuer that signs tokens, the address they are for, and the issuer's keys."""

    issuer: str
    resource: str
    keys: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """The address to listen on, and the authentication of callers.

    Attributes:
        host: an address or host name of this machine.
        port: 0 means any free port.
        token: a secret that callers must send.
        oauth: the issuer whose tokens callers must send.
        names: more host names of this machine.
    """

    host: str
    port: int
    token: str | None = field(default=None, repr=False)
    oauth: OAuth | None = None
    names: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.token is not None and self.oauth is not None:
            raise UserError("give a token or an issuer, not both")
        if not (is_loopback(self.host) or self.token or self.oauth):
            raise UserError(
                f"{self.host} can be reached from other machines, so clients need a token",
                hint="Set LIMNER_MCP_TOKEN, or use --token-file, or --oauth-issuer with its keys.",
            )


def is_loopback(host: str) -> bool:
    """Whether an address can be reached only from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


async def serve(server: Server[McpFrontend], listening: HttpOptions) -> None:
    """Serve clients until the process receives a signal to stop.

    Raises:
        UserError: the address is in use, or does not belong to this machine.
    """
    bound = _bind(listening)
    port = bound.getsockname()[1]
    config = uvicorn.Config(
        build_app(server, listening, port=port),
        log_level="warning",
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=GRACE_S,
        server_header=False,
        ws="none",
    )
    # The socket listens already: a program that waits for this line can connect.
    sys.stderr.write(f"limner mcp: http://{_in_url(listening.host)}:{port}{PATH}\n")
    sys.stderr.flush()
    await uvicorn.Server(config).serve(sockets=[bound])


def build_app(server: Server[McpFrontend], listening: HttpOptions, *, port: int) -> ASGIApp:
    """Return the server as an ASGI application."""
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MAX_BODY_BYTES,
        transport_security=_names(listening, port),
        auth=_settings(listening, port),
        token_verifier=_verifier(listening),
    )

    async def close_after_too_large_body(scope: Scope, receive: Receive, send: Send) -> None:
        async def answer(message: Message) -> None:
            if message.get("status") == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                # Otherwise the server would read the rest of the body for nothing.
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        await app(scope, receive, answer)

    return close_after_too_large_body


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


def _verifier(listening: HttpOptions) -> TokenVerifier | None:
    if listening.token is not None:
        return SharedSecret(listening.token)
    if (oauth := listening.oauth) is not None:
        return SignedTokens(issuer=oauth.issuer, resource=oauth.resource, keys=oauth.keys)
    return None


def _settings(listening: HttpOptions, port: int) -> AuthSettings | None:
    if (oauth := listening.oauth) is not None:
        return AuthSettings(
            issuer_url=AnyHttpUrl(oauth.issuer),
            resource_server_url=AnyHttpUrl(oauth.resource),
            validate_token_resource=False,  # the verifier has checked the audience
        )
    if listening.token is not None:
        here = AnyHttpUrl(f"http://{_in_url(listening.host)}:{port}")
        return AuthSettings(issuer_url=here, resource_server_url=None)
    return None


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
