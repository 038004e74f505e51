"""The rows of the method table -> the handlers that the dispatcher calls."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from limner.frontends.appserver.dispatch import RpcCall, RpcHandler
from limner.frontends.appserver.protocol import accounts, threads, turns
from limner.frontends.appserver.protocol.base import Method
from limner.frontends.appserver.v1.types import METHODS as V1_METHODS

if TYPE_CHECKING:
    from limner.frontends.appserver.server import Host

METHODS: Mapping[str, Method] = {**accounts.METHODS, **threads.METHODS, **turns.METHODS}
"""Every method of protocol v2. Each row is declared next to its types."""


def handlers(host: Host) -> Mapping[str, RpcHandler]:
    """The handler of every method, by the name of the method."""
    return {
        name: RpcHandler(
            serve=partial(_serve, host, row.handler),
            params=row.params,
            experimental=row.is_experimental,
            experimental_fields=row.experimental_fields,
            opening=not row.needs_initialize,
        )
        for name, row in {**METHODS, **V1_METHODS}.items()
    }


async def _serve(host: Host, handler: str, call: RpcCall, params: Any) -> object:
    """Import a handler and call it with the parameters that it has.

    It may have any of: `host`, `threads`, `call` and `params`. Handlers are imported at their
    first call, so that a client that only sends `initialize` gets a fast answer.
    """
    module, _, name = handler.partition(":")
    function = getattr(import_module(f"limner.frontends.appserver.{module}"), name)
    code = function.__code__
    wanted = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    given: dict[str, Any] = {"host": host, "call": call, "params": params}
    if "threads" in wanted:
        given["threads"] = host.threads
    return await function(**{name: given[name] for name in wanted})
