"""The rows of the method table -> the handlers that the dispatcher calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from limner.frontends.appserver.dispatch import RpcCall, RpcHandler
from limner.frontends.appserver.protocol import accounts, config, startup, threads, turns
from limner.frontends.appserver.protocol.base import Method

if TYPE_CHECKING:
    from limner.frontends.appserver.server import Host

METHODS: Mapping[str, Method] = {
    **accounts.METHODS,
    **config.METHODS,
    **threads.METHODS,
    **turns.METHODS,
    **startup.METHODS,
}
"""Every method of protocol v2. Each row is declared next to its types."""


class Handlers(Mapping[str, RpcHandler]):
    """The handler of every method, by the name of the method.

    The types of protocol v1 are imported when a client calls a method that v2 does not have.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._v2 = {name: self._handler(row) for name, row in METHODS.items()}

    @cached_property
    def _v1(self) -> dict[str, RpcHandler]:
        rows = import_module("limner.frontends.appserver.v1.types").METHODS
        return {name: self._handler(row) for name, row in rows.items()}

    def _handler(self, row: Method) -> RpcHandler:
        return RpcHandler(
            serve=partial(_serve, self._host, row),
            params=row.params,
            experimental=row.is_experimental,
            experimental_fields=row.experimental_fields,
            opening=not row.needs_initialize,
        )

    def __getitem__(self, name: str) -> RpcHandler:
        return self._v2[name] if name in self._v2 else self._v1[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._v2
        yield from self._v1

    def __len__(self) -> int:
        return len(self._v2) + len(self._v1)


async def _serve(host: Host, row: Method, call: RpcCall, params: Any) -> object:
    """Import a handler and call it with the parameters that it has.

    It may have any of: `host`, `threads`, `call` and `params`. Handlers are imported at their
    first call, so that a client that only sends `initialize` gets a fast answer.
    """
    if row.answer is not None:
        return row.answer
    module, _, name = row.handler.partition(":")
    if module.startswith("v1."):
        call.connection.is_first_protocol = True
    function = getattr(import_module(f"limner.frontends.appserver.{module}"), name)
    code = function.__code__
    wanted = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    given: dict[str, Any] = {"host": host, "call": call, "params": params}
    if "threads" in wanted:
        given["threads"] = host.threads
    return await function(**{name: given[name] for name in wanted})
