"""A request -> untrusted bytes in a sink, and a receipt: the protocol and the table of services.

A provider draws and does nothing else: it does not verify, store, price, retry a paid request or
log. A new one is a module here and a line in ``BUILT_IN``, or a package that names a
``ProviderSpec`` under the entry-point group ``limner.providers``.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Protocol, cast, runtime_checkable

import httpx2
import msgspec

from limner.catalogue.images import ImageModel
from limner.net.clock import Clock
from limner.net.redaction import redact
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, ProviderCallbacks, Receipt, RemoteJob

# The order is the order of preference of `auto`; the embedded provider comes after all others.
BUILT_IN = {
    "openai-dalle": "limner.providers.openai_dalle:SPEC",
    "openai-image": "limner.providers.openai_image:SPEC",
    "replicate-flux": "limner.providers.replicate_flux:SPEC",
    "gemini-image": "limner.providers.gemini_image:SPEC",
    "bfl-flux": "limner.providers.bfl_flux:SPEC",
    "fal": "limner.providers.fal:SPEC",
    "openrouter": "limner.providers.openrouter:SPEC",
    "replicate": "limner.providers.replicate:SPEC",
    "openai-compatible": "limner.providers.openai_compatible:SPEC",
    "sd-webui": "limner.providers.sd_webui:SPEC",
    "comfyui": "limner.providers.comfyui:SPEC",
    "diffusers": "limner.providers.diffusers:SPEC",
}
EMBEDDED = {"illustrator": "limner.providers.illustrator:SPEC"}
ENTRY_POINT_GROUP = "limner.providers"

logger = logging.getLogger("limner")


class Provider(Protocol):
    """A service that draws one picture a call."""

    async def generate(self, request: ImageRequest, sink: Sink, desk: ProviderCallbacks) -> Receipt:
        """Draw, pouring the bytes into the sink.

        Raises:
            ProviderError: the service failed; ``may_be_billed`` says whether money is at stake.
            BadProviderImage: it answered, but with no picture.
            asyncio.CancelledError: the caller gave up; the job was cancelled at the service.
        """
        ...


@runtime_checkable
class Resumable(Protocol):
    """A provider whose work has an id and can be asked for again after a crash or time-out."""

    async def find(self, request: ImageRequest, *, since_ms: int) -> RemoteJob | None:
        """The job of a request that was sent but whose id never arrived, or None."""
        ...

    async def resume(
        self, job: RemoteJob, request: ImageRequest, sink: Sink, desk: ProviderCallbacks
    ) -> Receipt:
        """Wait for a job that was started earlier and fetch its picture; raises as generate."""
        ...


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider is built from, in the event loop it will be used in.

    ``illustrate`` is the embedded illustrator: a request in, a PNG and facts about it out.
    ``base_url`` has no slash at its end. ``variables`` are those of the spec that are set.
    """

    http: httpx2.AsyncClient
    base_url: str
    key: str
    illustrate: Callable[[ImageRequest], Awaitable[tuple[bytes, Mapping[str, Any]]]]
    clock: Clock = msgspec.field(default_factory=Clock)
    variables: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])


class ProviderSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a service, known without connecting to it.

    Attributes:
        name: how people name it.
        key_env: the variable of its key; None for a service that needs none.
        base_url_env: the variable that sets another address.
        base_url: its address.
        models: what it draws with; the first is the default.
        build: makes it ready to draw.
        other_model: what holds for a model of any other name, where the service has such.
        named_only: `auto` does not choose it, as where it is nobody's unless they set it up.
        key_optional: the key is sent where it is set, and not missed where it is not.
        variables: further variables that it reads.
        models_are_folders: a model may be a folder on this machine, which reach has to allow.
    """

    name: str
    key_env: str | None
    base_url_env: str | None
    base_url: str
    models: tuple[ImageModel, ...]
    build: Callable[[Connection], Provider]
    other_model: ImageModel | None = None
    named_only: bool = False
    key_optional: bool = False
    variables: tuple[str, ...] = ()
    models_are_folders: bool = False

    def key(self, key_of: Callable[[str], str | None]) -> str | None:
        """The key to use, empty where none is needed; None where it is missing."""
        if self.key_env is None:
            return ""
        return key_of(self.key_env) or ("" if self.key_optional else None)

    def model(self, name: str) -> ImageModel | None:
        """A model by the vendor's id, alone or behind the provider's name."""
        bare = name.removeprefix(f"{self.name}/")
        for row in self.models:
            if row.id == bare:
                return row
        other = self.other_model
        return None if other is None else msgspec.structs.replace(other, id=bare, title=bare)


def load(reference: str) -> ProviderSpec:
    """The spec that a ``"module:attribute"`` line of the table names."""
    module, _, attribute = reference.partition(":")
    return cast("ProviderSpec", getattr(import_module(module), attribute))


def all_specs(*, embedded: bool) -> dict[str, ProviderSpec]:
    """Every provider by name, in the order `auto` tries them."""
    specs = {name: load(reference) for name, reference in BUILT_IN.items()}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            spec = cast("ProviderSpec", entry.load())
            specs.setdefault(spec.name, spec)
        except Exception as error:
            # A stranger's package that is broken must not take everything else with it.
            logger.warning("The provider %r cannot be loaded: %s", entry.name, redact(repr(error)))
    if embedded:
        specs |= {name: load(reference) for name, reference in EMBEDDED.items()}
    return specs
