"""Fakes of what limner passes to a provider: a clock without waiting, a sink and callbacks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from limner.errors import ImageTooLarge
from limner.net.clock import Clock
from limner.pictures.request import Progress, ProviderCallbacks, RemoteJob


class FakeClock:
    """A clock that advances only by sleeping, without waiting; ``slept`` has every sleep."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.slept.append(seconds)
        self.now_s += seconds
        await asyncio.sleep(0)

    @property
    def clock(self) -> Clock:
        """The clock to build a `Connection` with."""
        return Clock(now=lambda: self.now_s, sleep=self.sleep)


class FakeSink:
    """A sink that stores its bytes, up to a limit."""

    def __init__(self, *, max_bytes: int = 64 * 1024 * 1024) -> None:
        self.data = bytearray()
        self._max_bytes = max_bytes

    def write(self, data: bytes | memoryview) -> None:
        """Take the next bytes.

        Raises:
            ImageTooLarge: over the limit.
        """
        self.data += data
        if len(self.data) > self._max_bytes:
            raise ImageTooLarge(f"more than {self._max_bytes} bytes")


@dataclass(slots=True)
class FakeDesk:
    """Records the callbacks of a provider."""

    jobs: list[RemoteJob] = field(default_factory=list[RemoteJob])
    progress: list[Progress] = field(default_factory=list[Progress])
    withdrawn: int = 0

    @property
    def callbacks(self) -> ProviderCallbacks:
        """The callbacks to pass to a provider."""
        return ProviderCallbacks(
            journal=self._journal, progress=self.progress.append, withdraw=self._withdraw
        )

    async def _journal(self, job: RemoteJob) -> None:
        self.jobs.append(job)

    def _withdraw(self) -> None:
        self.withdrawn += 1
