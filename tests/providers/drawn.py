"""One drawing and everything around it, for the tests of providers that work by jobs."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol, TypeVar

import pytest

from limner.net.clock import Clock
from limner.net.sink import Sink
from limner.pictures.request import (
    ImageRequest,
    ProviderCallbacks,
    Receipt,
    RemoteJob,
    SourceImage,
)
from limner.testing import FakeDesk, FakeSink


class JobsDrawer(Protocol):
    async def generate(
        self, request: ImageRequest, sink: Sink, callbacks: ProviderCallbacks
    ) -> Receipt: ...

    async def resume(
        self, job: RemoteJob, request: ImageRequest, sink: Sink, callbacks: ProviderCallbacks
    ) -> Receipt: ...


class Drawn:
    """A provider, and what it pours and tells."""

    def __init__(self, provider: JobsDrawer) -> None:
        self.provider = provider
        self.sink, self.desk = FakeSink(), FakeDesk()

    async def generate(self, request: ImageRequest) -> Receipt:
        return await self.provider.generate(request, self.sink, self.desk.callbacks)

    async def resume(self, job: RemoteJob, request: ImageRequest) -> Receipt:
        return await self.provider.resume(job, request, self.sink, self.desk.callbacks)

    async def give_up(self, request: ImageRequest, *, when: asyncio.Event) -> None:
        """Begin to draw, and cancel at some moment."""
        drawing = asyncio.ensure_future(self.generate(request))
        await when.wait()
        drawing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await drawing

    @property
    def data(self) -> bytes:
        return bytes(self.sink.data)


T = TypeVar("T")


def impatient(provider: type[T]) -> type[T]:
    """The provider with a short timeout for cancelling, so that tests need not wait."""
    hasty: Any = type(provider.__name__, (provider,), {"cancel_timeout_s": 0.5})
    return hasty


def source(data: bytes, *, mime: str = "image/png") -> SourceImage:
    """A picture to draw from."""
    return SourceImage(handle="0" * 64, mime=mime, width=640, height=480, data=data)


def stopped_clock() -> tuple[Clock, asyncio.Event]:
    """A clock on which the first pause never ends, and the event of its beginning."""
    waiting = asyncio.Event()

    async def never(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    return Clock(now=lambda: 0.0, sleep=never), waiting
