"""`initialize`: the name and capabilities of a client -> the name and platform of the server."""

from __future__ import annotations

import platform
import sys

from limner import __version__
from limner.frontends.appserver.dispatch import RpcCall
from limner.frontends.appserver.protocol.base import PROTOCOL_VERSION
from limner.frontends.appserver.protocol.handshake import (
    InitializeCapabilities,
    InitializeParams,
    InitializeResponse,
)
from limner.frontends.appserver.server import Host
from limner.net.jsonrpc import INVALID_REQUEST, RpcError

# Upstream sends the name of its client in an HTTP header, which cannot contain these.
_NOT_IN_A_HEADER = dict.fromkeys((*range(9), *range(10, 32), 127))
# The longest name and the longest version.
MAX_CLIENT_CHARS = 200
# More than there are notifications. The server keeps the names as long as the client stays.
MAX_OPTED_METHODS = 200
_PLATFORMS = {"darwin": "macos", "win32": "windows"}


async def initialize(host: Host, call: RpcCall, params: InitializeParams) -> InitializeResponse:
    """Note who the client is and what it supports."""
    client, capabilities = params.client_info, params.capabilities or InitializeCapabilities()
    if client.name.translate(_NOT_IN_A_HEADER) != client.name:
        raise RpcError(
            INVALID_REQUEST,
            f"Invalid clientInfo.name: '{client.name}'. Must be a valid HTTP header value.",
        )
    opted_out = capabilities.opt_out_notification_methods or ()
    opted_in = capabilities.opt_in_notification_methods or ()
    longest = max(map(len, (client.name, client.version, *opted_out, *opted_in)))
    if longest > MAX_CLIENT_CHARS or len(opted_out) + len(opted_in) > MAX_OPTED_METHODS:
        raise RpcError(
            INVALID_REQUEST,
            f"Invalid initialize: each name may have {MAX_CLIENT_CHARS} characters, and a "
            f"client may name {MAX_OPTED_METHODS} methods.",
        )
    call.connection.initialize(
        client.name,
        client.version,
        experimental=capabilities.experimental_api,
        opted_out=opted_out,
        opted_in=opted_in,
    )
    host.clients.add(call.connection)
    # A turn will follow: load what it needs while the client prepares it.
    host.warm_soon()
    return InitializeResponse(
        user_agent=user_agent(client.name, client.version),
        codex_home=str(host.settings.home),
        platform_family="windows" if sys.platform == "win32" else "unix",
        platform_os=_PLATFORMS.get(sys.platform, sys.platform),
    )


def user_agent(name: str, version: str) -> str:
    """The name of the server on behalf of a client; the first version is the protocol's."""
    system = f"{platform.system()} {platform.release()}; {platform.machine()}"
    client = f"{name}; {version.translate(_NOT_IN_A_HEADER)}"
    return f"{name}/{PROTOCOL_VERSION} ({system}) limner/{__version__} ({client})"
