"""A target -> a connection that comes back: a dropped link is opened again, within bounds."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from limner import __version__
from limner.errors import LimnerError
from limner.frontends.remote.rpc import Params, Peer, gone
from limner.frontends.remote.transports import Target
from limner.net.clock import Clock

# A server that dies this often in this time will not live; starting it again would only go on.
MAX_LOSSES = 5
LOSSES_WITHIN_S = 60.0
# Half a minute in all: long enough for a server that somebody starts again.
MAX_ATTEMPTS = 12
FIRST_PAUSE_S = 0.1
MAX_PAUSE_S = 5.0

logger = logging.getLogger("limner")


class ConnectionOwner(Protocol):
    """Who uses a connection."""

    def hear(self, method: str, params: Params) -> None:
        """Take a notice of the server."""
        ...

    async def answer(self, method: str, params: Params) -> Any:
        """Answer a request of the server."""
        ...

    async def revive(self, reason: str, request: Request) -> None:
        """Take up again what the lost link carried; others' requests wait until that is done."""
        ...

    def bury(self, error: LimnerError) -> None:
        """The connection will not come back."""
        ...


Request = Callable[[str, Params], Awaitable[Mapping[str, Any]]]


class ServerConnection:
    """A link to a server that has been greeted, replaced by a new one where it is lost.

    Args:
        target: where the server is.
        owner: whose connection it is.
        name: what the server is told about this client.
        clock: how pauses between attempts pass.
    """

    def __init__(
        self,
        target: Target,
        owner: ConnectionOwner,
        *,
        name: str = "limner",
        clock: Clock | None = None,
    ) -> None:
        self._target, self._owner, self._name = target, owner, name
        self._clock = clock or Clock()
        self._peer: Peer | None = None
        self._ready = asyncio.Event()
        self._broken: LimnerError | None = None
        self._losses: deque[float] = deque(maxlen=MAX_LOSSES)
        self._keeping: asyncio.Task[None] | None = None
        self.server: Mapping[str, Any] = {}

    async def open(self) -> None:
        """Connect for the first time; a failure is not tried again.

        Raises:
            LimnerError: the server cannot be started or reached, or does not take us.
        """
        self._peer = await self._greeted()
        self._ready.set()
        self._keeping = asyncio.create_task(self._keep(self._peer))

    async def ready(self) -> None:
        """Wait while the link is being opened again."""
        await self._ready.wait()

    async def request(self, method: str, params: Params) -> Mapping[str, Any]:
        """Ask for something; waits where the link is just being opened again.

        Raises:
            LimnerError: SERVER_REFUSED, or SERVER_GONE.
        """
        await self.ready()
        if self._broken is not None:
            raise self._broken
        if self._peer is None:
            raise gone("the connection is closed")
        return await self._peer.request(method, params)

    async def aclose(self) -> None:
        """Part from the server."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        peer, self._peer = self._peer, None
        self._ready.set()
        if peer is not None:
            await peer.aclose()

    async def _greeted(self) -> Peer:
        peer = Peer(await self._target.open(), hear=self._owner.hear, answer=self._owner.answer)
        try:
            info = {"name": self._name, "title": None, "version": __version__}
            # Tools of a client are an experiment that has to be asked for.
            capabilities = {"experimentalApi": True}
            self.server = await peer.request(
                "initialize", {"clientInfo": info, "capabilities": capabilities}
            )
            await peer.notify("initialized")
        except BaseException:
            await peer.aclose()
            raise
        return peer

    async def _keep(self, peer: Peer) -> None:
        """Replace the link each time it is lost, until that makes no sense any more."""
        try:
            while True:
                reason = await peer.ended()
                self._ready.clear()
                self._peer = None
                logger.warning("The link to the app-server is lost: %s", reason)
                await peer.aclose()
                self._peer = peer = await self._again(reason)
                self._ready.set()
        except LimnerError as error:
            self._give_up(error)
        except Exception as error:
            # The outermost frame: whoever waits for the link must not wait for ever.
            logger.exception("The link to the app-server cannot be kept.")
            self._give_up(gone(f"{type(error).__name__} here"))

    def _give_up(self, error: LimnerError) -> None:
        self._broken = error
        self._owner.bury(error)
        self._ready.set()

    async def _again(self, reason: str) -> Peer:
        now = self._clock.now()
        self._losses.append(now)
        if len(self._losses) == MAX_LOSSES and now - self._losses[0] < LOSSES_WITHIN_S:
            raise gone(f"it was lost {MAX_LOSSES} times in a row, the last time because {reason}")
        pause_s = FIRST_PAUSE_S
        for _ in range(MAX_ATTEMPTS - 1):
            with contextlib.suppress(LimnerError):
                return await self._revived(reason)
            await self._clock.sleep(pause_s)
            pause_s = min(pause_s * 2, MAX_PAUSE_S)
        return await self._revived(reason)

    async def _revived(self, reason: str) -> Peer:
        peer = await self._greeted()
        try:
            await self._owner.revive(reason, peer.request)
        except BaseException:
            await peer.aclose()
            raise
        return peer
