"""Servers, and ways to reach them, for the tests of the network."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from tests.servers.samples import KEY, PICTURE

from limner.net.clock import Clock
from limner.net.http import Http
from limner.net.service import DEFAULT_TIMEOUT_S
from limner.testing import FakeClock
from limner.testing.servers.openai_server import OpenAIServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A way to reach a service."""

    http: httpx2.AsyncClient
    base_url: str
    clock: Clock
    key: str = KEY
    timeout_s: float = DEFAULT_TIMEOUT_S


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    with OpenAIServer(PICTURE) as server:
        yield server


@pytest.fixture
def time() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def connect(time: FakeClock) -> AsyncIterator[Callable[..., Reached]]:
    """Build a way to reach a base URL."""
    http = Http()

    def build(base_url: str, **rest: Any) -> Reached:
        how: dict[str, Any] = {"clock": time.clock, **rest}
        return Reached(http=http.client(), base_url=base_url, **how)

    yield build
    await http.aclose()
