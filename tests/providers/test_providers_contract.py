"""Every provider with a network keeps the public contract."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, ProviderCallbacks, Receipt
from limner.providers.openai import OpenAIImage
from limner.providers.specs import BUILT_IN
from limner.testing import ProviderContract
from limner.testing.servers.openai_server import OpenAIServer
from limner.testing.servers.replicate_server import ReplicateServer
from limner.testing.stage import LocalStage

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
    spec = BUILT_IN["replicate-flux"]
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


@pytest.mark.parametrize(
    ("lost", "what"), [({"mask": None}, "the mask"), ({"sources": ()}, "source picture 1")]
)
def test_the_contract_names_a_picture_that_is_left_out(lost: dict[str, Any], what: str) -> None:
    class Forgetful(OpenAIImage):
        async def generate(
            self, request: ImageRequest, sink: Sink, callbacks: ProviderCallbacks
        ) -> Receipt:
            return await super().generate(replace(request, **lost), sink, callbacks)

    class ForgetfulContract(TestOpenAIImage):
        spec = replace(BUILT_IN["openai-image"], build=Forgetful)

    contract = ForgetfulContract()
    drawing, editing = (contract.requests()[work] for work in ("drawing", "editing"))
    contract.test_a_picture_arrives_whole_and_with_a_receipt(drawing)
    with pytest.raises(AssertionError, match=f"checked:  {what} in the requests"):
        contract.test_a_picture_arrives_whole_and_with_a_receipt(editing)
