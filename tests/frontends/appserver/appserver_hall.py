"""The threads of a server, and a client beside them, without a wire in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tests.acceptance.conftest import Studio

from limner.frontends.appserver.dispatch import Dispatcher, RpcCall
from limner.frontends.appserver.subscribers import Clients
from limner.frontends.appserver.threads import ThreadTable
from limner.net.jsonrpc import RpcRequest
from limner.net.jsonrpc_peer import PendingRequests


class Recording:
    """A wire whose other end remembers."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []

    async def send(self, messages: Sequence[bytes]) -> None:
        self.messages += messages

    async def receive(self) -> None:
        pass

    def abort(self) -> None:
        pass


class Hall:
    """Threads, and a client that has introduced itself."""

    def __init__(self, studio: Studio, **how: float) -> None:
        self.pending = PendingRequests(print)
        self.lim = studio.open()
        self.clients = Clients()
        self.threads = ThreadTable(
            self.lim, pending=self.pending, log=print, clients=self.clients, **how
        )
        self.wire = Recording()
        self.client = Dispatcher({}, pending=self.pending, log=print).connect(self.wire)
        self.client.initialize("c", "1", experimental=True, opted_out=())
        self.clients.add(self.client)

    def call(self, method: str) -> RpcCall:
        """A request of the client."""
        return RpcCall(self.client, RpcRequest(1, method))

    async def aclose(self) -> None:
        await self.threads.aclose()
        await self.lim.aclose()


async def rest() -> None:
    """Let everything happen that is due."""
    for _ in range(20):
        await asyncio.sleep(0)


async def until(is_so: Callable[[], bool]) -> None:
    """Let things happen until something is so."""
    while not is_so():
        await rest()
