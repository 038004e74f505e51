"""The studio in this process, on a real socket, and a client with its cookie."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2

from limner import Limner
from limner.frontends.connection_guard import LIMITS, ServerLimits
from limner.frontends.http_listener import bind
from limner.frontends.studio.server import HOST, StudioOptions, open_server


@dataclass(frozen=True, kw_only=True)
class RunningStudio:
    """A studio that listens. ``http`` has no cookie until `enter`."""

    lim: Limner
    url: str
    http: httpx2.AsyncClient

    @property
    def origin(self) -> str:
        return self.url.partition("/?")[0]

    @property
    def token(self) -> str:
        """What programs send."""
        (file,) = self.lim.home.tokens.glob("studio-127*")
        return file.read_text()

    async def enter(self) -> None:
        """Exchange the secret of the address for a cookie."""
        answer = await self.http.get(self.url)
        assert answer.status_code == 303


@asynccontextmanager
async def running(
    lim: Limner, *, enters: bool = True, port: int = 0, limits: ServerLimits = LIMITS
) -> AsyncGenerator[RunningStudio]:
    """A studio on a free port, until the block ends."""
    bound = bind(HOST, port)
    async with open_server(lim, bound, StudioOptions(), limits=limits) as (server, url):
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        origin = url.partition("/?")[0]
        try:
            async with httpx2.AsyncClient(base_url=origin, timeout=60) as http:
                http.headers["origin"] = origin
                studio = RunningStudio(lim=lim, url=url, http=http)
                if enters:
                    await studio.enter()
                yield studio
        finally:
            server.should_exit = True
            await serving
