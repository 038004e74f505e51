"""Every provider with a network keeps the public contract."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from tests.servers.openai_server import OpenAIServer
from tests.servers.replicate_server import ReplicateServer
from tests.servers.wire import Gate, Reply, WireServer, bytes_reply, cut_short

from limner.providers import openai_dalle, openai_image, replicate_flux
from limner.providers.base import BUILT_IN, load
from limner.providers.replicate_flux import ReplicateFlux
from limner.testing import ProviderContract


class LocalStage:
    """The contract's stage on one of our servers; ``buying`` is the route of the paid request."""

    def __init__(self, server: WireServer, *, buying: str) -> None:
        self.base_url = f"{server.origin}/v1"
        self._server, self._buying = server, buying

    def draw(self, picture: bytes) -> None:
        self._server.picture = picture
        self._server.file = bytes_reply(picture)

    def answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self._server.always(self._buying, bytes_reply(body, status=status, headers=headers))

    def break_off(self, picture: bytes) -> None:
        self.draw(picture)
        whole = self._server.answer
        self._server.answer = lambda seen: cut_short(whole(seen))

    def say_nothing(self) -> None:
        self._server.always(self._buying, Reply(hold=Gate()))

    def bought(self) -> int:
        return len(self._server.sent(self._buying))


class TestOpenAIDalle(ProviderContract):
    spec = openai_dalle.SPEC

    @contextmanager
    def stage(self) -> Iterator[LocalStage]:
        with OpenAIServer(b"") as server:
            yield LocalStage(server, buying="generate")


class TestOpenAIImage(TestOpenAIDalle):
    spec = openai_image.SPEC


class TestReplicateFlux(ProviderContract):
    spec = replace(replicate_flux.SPEC, build=functools.partial(ReplicateFlux, call_off_s=0.5))

    @contextmanager
    def stage(self) -> Iterator[LocalStage]:
        with ReplicateServer(b"") as server:
            yield LocalStage(server, buying="create")


class TestReplicateFluxWithDataUrls(TestReplicateFlux):
    @contextmanager
    def stage(self) -> Iterator[LocalStage]:
        with ReplicateServer(b"") as server:
            server.delivery = "data"
            yield LocalStage(server, buying="create")


def test_every_built_in_provider_is_under_contract() -> None:
    under_contract = {TestOpenAIDalle.spec.name, TestOpenAIImage.spec.name}
    under_contract |= {TestReplicateFlux.spec.name}
    assert under_contract == set(BUILT_IN)
    assert {load(reference).name for reference in BUILT_IN.values()} == set(BUILT_IN)
