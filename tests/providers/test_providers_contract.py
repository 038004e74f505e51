"""Every provider with a network keeps the public contract."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.providers.drawn import impatient
from tests.servers.stage import LocalStage

from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, ProviderCallbacks, Receipt
from limner.providers.openai import OpenAIImage
from limner.providers.replicate_flux import ReplicateFlux
from limner.providers.specs import BUILT_IN
from limner.testing import ProviderContract
from limner.testing.servers.openai_server import OpenAIServer
from limner.testing.servers.replicate_server import ReplicateServer

# The contract is about answers over a network; these have none.
LOCAL = {"diffusers"}


class TestOpenAIDalle(ProviderContract):
    spec = BUILT_IN["openai-dalle"]

    @contextmanager
    def stage(self) -> Iterator[LocalStage]:
        with OpenAIServer(b"") as server:
            yield LocalStage(server, buying="generate")


class TestOpenAICompatible(ProviderContract):
    spec = BUILT_IN["openai-compatible"]

    @contextmanager
    def stage(self) -> Iterator[LocalStage]:
        with OpenAIServer(b"") as server:
            yield LocalStage(server, buying=("generate", "edit"))


class TestOpenAIImage(TestOpenAICompatible):
    spec = BUILT_IN["openai-image"]

    def requests(self) -> dict[str, ImageRequest]:
        """With unfinished pictures on the way, too: the answer is a stream then."""
        requests = super().requests()
        shown = {
            f"{name} and showing": replace(request, partial_pictures=2)
            for name, request in requests.items()
        }
        return {**requests, **shown}


class TestReplicateFlux(ProviderContract):
    spec = replace(BUILT_IN["replicate-flux"], build=impatient(ReplicateFlux))
    can_find_jobs = True

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
    for file in Path(__file__).parent.glob("test_providers_*.py"):
        import_module(f"tests.providers.{file.stem}")
    under_contract = {kind.spec.name for kind in _kinds_of(ProviderContract)}
    assert set(BUILT_IN) - under_contract <= LOCAL


def _kinds_of(contract: type[ProviderContract]) -> Iterator[type[ProviderContract]]:
    for kind in contract.__subclasses__():
        if hasattr(kind, "spec"):
            yield kind
        yield from _kinds_of(kind)


@pytest.mark.parametrize("lost", [{"mask": None}, {"sources": ()}])
def test_the_contract_notices_a_picture_that_is_left_behind(lost: dict[str, Any]) -> None:
    class Forgetful(OpenAIImage):
        async def generate(
            self, request: ImageRequest, sink: Sink, desk: ProviderCallbacks
        ) -> Receipt:
            return await super().generate(replace(request, **lost), sink, desk)

    class ForgetfulContract(TestOpenAIImage):
        spec = replace(BUILT_IN["openai-image"], build=Forgetful)

    contract = ForgetfulContract()
    drawing, editing = (contract.requests()[work] for work in ("drawing", "editing"))
    contract.test_a_picture_arrives_whole_and_with_a_receipt(drawing)
    with pytest.raises(AssertionError):
        contract.test_a_picture_arrives_whole_and_with_a_receipt(editing)
