"""A paid request -> an announcement, right before its first byte leaves.

By then the request is built and the connection is open, so whatever fails earlier cost nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Announce = Callable[[], Awaitable[None]]
Trace = Callable[[str, Any], Awaitable[None]]

_announce: ContextVar[Announce | None] = ContextVar("announce", default=None)


@contextmanager
def announced(announce: Announce) -> Generator[None]:
    """Await ``announce`` before each paid request of the block; if it raises, nothing is sent."""
    token = _announce.set(announce)
    try:
        yield
    finally:
        _announce.reset(token)


def announcing_trace() -> Trace | None:
    """The trace of the HTTP client that makes the announcement; None if there is none to make."""
    announce = _announce.get()
    if announce is None:
        return None

    async def trace(event: str, _: Any) -> None:
        if event.endswith(".send_request_headers.started"):
            await announce()

    return trace
