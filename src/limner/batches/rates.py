"""Requests a minute -> when the next request may go, the same for all processes of a home.

A bucket is one number: the time from which the provider may be asked. Each request moves it by the
interval of the rate; a 429 response moves it behind the pause that the provider asks for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from limner.errors import InputInvalid, LimnerError
from limner.storage.store import Transaction

RATE_WAIT = "RATE_WAIT"
_UNITS_S = {"s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
_RATE = re.compile(r"([\w.-]+)=(\d{1,6})/([a-z]+)")
# A process that was late for a moment may catch up.
_CATCH_UP_US = 250_000


class RequestRate(msgspec.Struct, frozen=True, kw_only=True):
    """So many requests in so many seconds."""

    requests: int
    per_s: int

    @property
    def interval_us(self) -> int:
        """The time between two requests."""
        return self.per_s * 1_000_000 // self.requests


def parse_rates(texts: Sequence[str]) -> dict[str, RequestRate]:
    """Rates such as ``openai=50/min``, by the name of the provider.

    Raises:
        InputInvalid: one is written differently.
    """
    rates: dict[str, RequestRate] = {}
    for text in texts:
        found = _RATE.fullmatch(text.strip().lower())
        if found is None or found[3] not in _UNITS_S or int(found[2]) == 0:
            raise InputInvalid(f"{text!r} is not a rate; write it as openai=50/min", field="rate")
        rates[found[1]] = RequestRate(requests=int(found[2]), per_s=_UNITS_S[found[3]])
    return rates


def rate_of(provider: str, rates: Mapping[str, RequestRate]) -> RequestRate | None:
    """The rate of a provider; ``openai`` is also that of ``openai-image``."""
    names = (name for name in rates if provider == name or provider.startswith(f"{name}-"))
    return rates.get(max(names, key=len, default=""))


def take(tx: Transaction, bucket: str, *, rate: RequestRate | None, now_us: int) -> None:
    """Count one request, if the bucket admits it now.

    Raises:
        LimnerError: it does not (RATE_WAIT); ``extras["wait_s"]`` says for how long.
    """
    tx.lock(f"rate {bucket}")
    row = tx.one("rate_free", name=bucket)
    free_us = 0 if row is None else row["free_us"]
    if free_us > now_us:
        raise LimnerError(
            "The rate of requests is reached; nothing was sent.",
            code=RATE_WAIT,
            retryable=True,
            extras={"wait_s": (free_us - now_us) / 1e6},
        )
    if rate is not None:
        since_us = max(free_us, now_us - min(_CATCH_UP_US, rate.interval_us))
        tx.run("rate_set", name=bucket, free_us=since_us + rate.interval_us)


def empty(tx: Transaction, bucket: str, *, until_us: int) -> None:
    """Admit no request before a time: the provider said so."""
    tx.lock(f"rate {bucket}")
    row = tx.one("rate_free", name=bucket)
    if row is None or row["free_us"] < until_us:
        tx.run("rate_set", name=bucket, free_us=until_us)
