"""The methods that clients can call: the table that `dispatch` serves from."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from limner import __version__
from limner.doors.appserver.dispatch import Call, Method
from limner.doors.appserver.rpc import INVALID_REQUEST, RpcError

if TYPE_CHECKING:
    from limner.doors.appserver.serve import Host

# What clients compare to decide what they may send.
PROTOCOL_VERSION = "0.166.0"
# What an HTTP header cannot carry: there upstream puts the name of its client.
_NOT_IN_A_HEADER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_PLATFORMS = {"darwin": "macos", "win32": "windows"}


class ClientInfo(msgspec.Struct, frozen=True):
    """Who a client says it is."""

    name: str
    version: str
    title: str | None = None


class Capabilities(msgspec.Struct, frozen=True, rename="camel"):
    """What a client can deal with."""

    experimental_api: bool = False
    opt_out_notification_methods: tuple[str, ...] | None = None


class InitializeParams(msgspec.Struct, frozen=True, rename="camel"):
    """A client introduces itself."""

    client_info: ClientInfo
    capabilities: Capabilities | None = None


def methods(host: Host) -> Mapping[str, Method]:
    """Every method of a server, by its name."""
    return {
        "initialize": Method(
            serve=partial(_initialize, host), params=InitializeParams, opening=True
        ),
    }


async def _initialize(host: Host, call: Call, params: InitializeParams) -> dict[str, str]:
    client, can = params.client_info, params.capabilities or Capabilities()
    if _NOT_IN_A_HEADER.search(client.name):
        raise RpcError(
            INVALID_REQUEST,
            f"Invalid clientInfo.name: '{client.name}'. Must be a valid HTTP header value.",
        )
    call.connection.greet(
        client.name,
        client.version,
        experimental=can.experimental_api,
        unwanted=can.opt_out_notification_methods or (),
    )
    return {
        "userAgent": user_agent(client.name, client.version),
        "codexHome": str(host.settings.home),
        "platformFamily": "windows" if sys.platform == "win32" else "unix",
        "platformOs": _PLATFORMS.get(sys.platform, sys.platform),
    }


def user_agent(name: str, version: str) -> str:
    """How the server calls itself on behalf of a client; the first version is the protocol's."""
    system = f"{platform.system()} {platform.release()}; {platform.machine()}"
    client = f"{name}; {_NOT_IN_A_HEADER.sub('', version)}"
    return f"{name}/{PROTOCOL_VERSION} ({system}) limner/{__version__} ({client})"
