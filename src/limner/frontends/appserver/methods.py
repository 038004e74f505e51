"""The methods that clients can call: the table that `dispatch` serves from."""

from __future__ import annotations

import asyncio
import platform
import re
import sys
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from limner import __version__
from limner.frontends.appserver.dispatch import RpcCall, RpcHandler
from limner.frontends.appserver.protocol.accounts import (
    InitializeCapabilities,
    InitializeParams,
    InitializeResponse,
)
from limner.frontends.appserver.protocol.base import PROTOCOL_VERSION
from limner.frontends.appserver.protocol.methods import METHODS
from limner.frontends.appserver.rpc import INVALID_REQUEST, RpcError

if TYPE_CHECKING:
    from limner.frontends.appserver.server import Host

# Who serves what. Loaded when first called: a client may only want to say hello.
SERVED: Mapping[str, str] = {
    "thread/start": "thread_opener:start",
    "thread/resume": "thread_opener:resume",
    "thread/fork": "thread_opener:fork",
    "thread/list": "thread_methods:list_threads",
    "thread/loaded/list": "thread_methods:loaded_list",
    "thread/read": "thread_methods:read",
    "thread/turns/list": "thread_methods:turns_list",
    "thread/items/list": "thread_methods:items_list",
    "thread/archive": "thread_methods:archive",
    "thread/unarchive": "thread_methods:unarchive",
    "thread/delete": "thread_methods:delete",
    "thread/name/set": "thread_methods:set_name",
    "thread/compact/start": "thread_methods:compact",
    "thread/inject_items": "thread_methods:inject_items",
    "thread/unsubscribe": "thread_methods:unsubscribe",
    "thread/tools/set": "thread_methods:tools_set",
    "thread/goal/set": "account_methods:goal_set",
    "thread/goal/get": "account_methods:goal_get",
    "thread/goal/clear": "account_methods:goal_clear",
    "turn/start": "turn_methods:start",
    "turn/steer": "turn_methods:steer",
    "turn/interrupt": "turn_methods:interrupt",
    "model/list": "account_methods:model_list",
    "account/read": "account_methods:account_read",
    "account/login/start": "account_methods:login_start",
    "account/login/cancel": "account_methods:login_cancel",
    "account/logout": "account_methods:logout",
    "account/rateLimits/read": "account_methods:rate_limits_read",
    "config/read": "account_methods:config_read",
}

# The methods of the first protocol, which read their params themselves.
FIRST: tuple[str, ...] = (
    "newConversation",
    "resumeConversation",
    "forkConversation",
    "listConversations",
    "archiveConversation",
    "sendUserMessage",
    "sendUserTurn",
    "interruptConversation",
    "addConversationListener",
    "removeConversationListener",
)

# What an HTTP header cannot carry: there upstream puts the name of its client.
_NOT_IN_A_HEADER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
WARM_AFTER_S = 0.05
_PLATFORMS = {"darwin": "macos", "win32": "windows"}


def methods(host: Host) -> Mapping[str, RpcHandler]:
    """Every method of a server, by its name."""
    greeting = RpcHandler(serve=partial(_initialize, host), params=InitializeParams, opening=True)
    return {
        "initialize": greeting,
        **{
            name: RpcHandler(serve=partial(_serve, host, where), params=METHODS[name].params)
            for name, where in SERVED.items()
        },
        **dict.fromkeys(
            FIRST, RpcHandler(serve=partial(_serve, host, "v1.methods:serve"), params=msgspec.Raw)
        ),
    }


async def _serve(host: Host, where: str, call: RpcCall, params: Any) -> object:
    module, _, name = where.partition(":")
    serve = getattr(import_module(f"limner.frontends.appserver.{module}"), name)
    return await serve(host.threads, call, params)


async def _initialize(host: Host, call: RpcCall, params: InitializeParams) -> InitializeResponse:
    client, can = params.client_info, params.capabilities or InitializeCapabilities()
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
    # Whoever says hello means to talk: what a turn needs is loaded while they think.
    asyncio.get_running_loop().call_later(WARM_AFTER_S, host.warm)
    return InitializeResponse(
        user_agent=user_agent(client.name, client.version),
        codex_home=str(host.settings.home),
        platform_family="windows" if sys.platform == "win32" else "unix",
        platform_os=_PLATFORMS.get(sys.platform, sys.platform),
    )


def user_agent(name: str, version: str) -> str:
    """How the server calls itself on behalf of a client; the first version is the protocol's."""
    system = f"{platform.system()} {platform.release()}; {platform.machine()}"
    client = f"{name}; {_NOT_IN_A_HEADER.sub('', version)}"
    return f"{name}/{PROTOCOL_VERSION} ({system}) limner/{__version__} ({client})"
