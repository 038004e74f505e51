"""The work that runs now: its session, batch, row and job -> fields of every log record about it.

A program that logs as JSON reads them when a record is written; see the guide to logging.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_fields: ContextVar[Mapping[str, str]] = ContextVar("log_fields")


def current_fields() -> Mapping[str, str]:
    """The fields of the running task: any of session, batch, row and job."""
    return _fields.get({})


@contextmanager
def log_fields(**more: str | None) -> Generator[None]:
    """Add fields to the records of the block; one that is None stays as it was."""
    known = {name: value for name, value in more.items() if value is not None}
    token = _fields.set({**current_fields(), **known})
    try:
        yield
    finally:
        _fields.reset(token)
