"""A clock the test sets."""

from __future__ import annotations

from datetime import UTC, datetime


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 15, 12, 0, 0, 500_000, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now
