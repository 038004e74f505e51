"""A clock as a value -> waiting that tests can do without real time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import msgspec


async def _sleep(delay_s: float) -> None:
    # Not `asyncio.sleep` itself as the default: a program that does not wait needs no `asyncio`.
    await asyncio.sleep(delay_s)


class Clock(msgspec.Struct, frozen=True, kw_only=True):
    """A monotonic time in seconds, and a sleep."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = _sleep
