"""Servers and connections for the provider tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

import pytest
from tests.servers.samples import KEY, PICTURE

from limner.net.http import Http
from limner.pictures.request import ImageRequest
from limner.providers.base import Connection
from limner.testing import FakeClock
from limner.testing.servers.openai_server import OpenAIServer
from limner.testing.servers.replicate_server import ReplicateServer


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    with OpenAIServer(PICTURE) as server:
        yield server


@pytest.fixture
def replicate_server() -> Iterator[ReplicateServer]:
    with ReplicateServer(PICTURE) as server:
        yield server


@pytest.fixture
def time() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def connect(time: FakeClock) -> AsyncIterator[Callable[..., Connection]]:
    """Build a connection to a base URL."""
    http = Http()

    def build(base_url: str, **rest: Any) -> Connection:
        async def illustrate(request: ImageRequest) -> tuple[bytes, Mapping[str, Any], None]:
            return b"drawn here", {"matched": ["fox"]}, None

        fields = {"key": KEY, "illustrate": illustrate, "clock": time.clock} | rest
        return Connection(http=http.client(), base_url=base_url, **fields)

    yield build
    await http.aclose()
