"""The passing of time, as a value: so that waiting can be tested without waiting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import msgspec


class Clock(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds since some moment, and a way to let them pass."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
