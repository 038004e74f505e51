"""A pause before another attempt -> the callers that learn of it, and words for the user."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from math import ceil

from limner.errors import ProviderError, ProviderRateLimited

OnWait = Callable[[ProviderError, float], None]
_on_wait: ContextVar[OnWait | None] = ContextVar("on_wait", default=None)


@contextmanager
def waits_reported(on_wait: OnWait) -> Generator[None]:
    """Call ``on_wait`` with the error and the seconds before each pause of the block.

    If the block is inside of another one, both learn of the pause.
    """
    outer = _on_wait.get()

    def report(error: ProviderError, wait_s: float) -> None:
        on_wait(error, wait_s)
        if outer is not None:
            outer(error, wait_s)

    token = _on_wait.set(report)
    try:
        yield
    finally:
        _on_wait.reset(token)


def wait_text(error: ProviderError, wait_s: float) -> str:
    """A pause before another attempt, in words for the user."""
    service = error.extras.get("provider", "The service")
    limited = isinstance(error, ProviderRateLimited)
    problem = "limits the rate of requests" if limited else "cannot be reached"
    return f"{service} {problem}; limner asks again in {ceil(wait_s)} s"


def report_wait(error: ProviderError, wait_s: float) -> None:
    """Tell the blocks around the caller of a pause."""
    if (on_wait := _on_wait.get()) is not None:
        on_wait(error, wait_s)
