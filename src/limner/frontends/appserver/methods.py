"""The rows of the method table -> the handlers that the dispatcher calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from limner.frontends.appserver.dispatch import RpcCall, RpcHandler
from limner.frontends.appserver.protocol.base import Method

if TYPE_CHECKING:
    from limner.frontends.appserver.server import Host


class MethodTable(Mapping[str, Method]):
    """The rows of several modules of this package.

    A module is imported when a method is in none of those before it, so that a client that only
    sends `initialize` gets a fast answer.
    """

    def __init__(self, *modules: str) -> None:
        self._modules = modules

    def __getitem__(self, name: str) -> Method:
        for rows in self._tables():
            if name in rows:
                return rows[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        for rows in self._tables():
            yield from rows

    def __len__(self) -> int:
        return sum(map(len, self._tables()))

    def _tables(self) -> Iterator[Mapping[str, Method]]:
        for module in self._modules:
            yield import_module(f"limner.frontends.appserver.{module}").METHODS


METHODS: Mapping[str, Method] = MethodTable(
    "protocol.handshake",
    "protocol.accounts",
    "protocol.threads",
    "protocol.turns",
    "protocol.config",
    "protocol.startup",
)
"""Every method of protocol v2. Each row is declared next to its types."""

_V1_METHODS = MethodTable("v1.types")
"""Every method of protocol v1. A method of both has the row of v2."""


class Handlers(Mapping[str, RpcHandler]):
    """The handler of every method, by the name of the method."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._used: dict[str, RpcHandler] = {}

    def __getitem__(self, name: str) -> RpcHandler:
        if name not in self._used:
            row = METHODS[name] if name in METHODS else _V1_METHODS[name]
            self._used[name] = self._handler(row)
        return self._used[name]

    def _handler(self, row: Method) -> RpcHandler:
        return RpcHandler(
            serve=partial(_serve, self._host, row),
            params=row.params,
            experimental=row.is_experimental,
            experimental_fields=row.experimental_fields,
            opening=not row.needs_initialize,
        )

    def __iter__(self) -> Iterator[str]:
        yield from METHODS
        yield from _V1_METHODS

    def __len__(self) -> int:
        return len(METHODS) + len(_V1_METHODS)


async def _serve(host: Host, row: Method, call: RpcCall, params: Any) -> object:
    """Import a handler and call it with the parameters that it has.

    It may have any of: `host`, `threads`, `call` and `params`. Handlers are imported at their
    first call, as the rows are.
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
