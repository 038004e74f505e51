"""A request -> untrusted bytes in a sink, and a receipt: the protocol of every provider.

A provider draws and does nothing else. It does not verify, store, price or log, and it does not
retry a paid request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec

from limner.catalogue.images import ImageModel
from limner.catalogue.prices import Free
from limner.content import Discreet
from limner.net.clock import Clock
from limner.net.redaction import drop_userinfo
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, ProviderCallbacks, Receipt, RemoteJob
from limner.settings import ServiceSettings

if TYPE_CHECKING:
    from limner.net.failures import Vendor
    from limner.net.http import HttpClient
    from limner.net.service import Service
    from limner.wires.base import ModelRequest
else:
    # A quote asks no service: the HTTP library is loaded for the first request.
    HttpClient = object

# A program on the user's own GPU costs nothing, but a picture requested twice is drawn twice.
MAY_STILL_DRAW = "it may be drawing all the same, and was not asked again"


class Provider(Protocol):
    """A service that draws one picture per call."""

    async def generate(
        self, request: ImageRequest, sink: Sink, callbacks: ProviderCallbacks, /
    ) -> Receipt:
        """Draw one picture and write its bytes to the sink.

        Raises:
            ProviderError: the service failed. ``may_be_billed`` says if the caller may have to pay.
            BadProviderImage: the service answered without a picture.
            asyncio.CancelledError: the caller cancelled; the provider cancelled the remote job.
        """
        ...


@runtime_checkable
class Resumable(Protocol):
    """A provider whose jobs have ids, so that a later process can fetch their pictures."""

    async def find(self, request: ImageRequest, *, since_ms: int) -> Sequence[RemoteJob] | None:
        """The jobs that may be that of a request whose id did not arrive, the likeliest first.

        Returns None if the service cannot be asked. ``since_ms`` is when the request was sent, by
        the local clock.
        """
        ...

    async def resume(
        self, job: RemoteJob, request: ImageRequest, sink: Sink, callbacks: ProviderCallbacks, /
    ) -> Receipt:
        """Wait for a job that was started earlier and fetch its picture; raises as generate."""
        ...


@runtime_checkable
class Batchable(Protocol):
    """A provider whose requests the vendor takes in batches too.

    Attributes:
        service: the vendor's HTTP API.
        batch_api: the vendor's batch API.
    """

    service: Service
    batch_api: str

    def batch_request(self, request: ImageRequest) -> ModelRequest:
        """The request for the vendor's batch API."""
        ...

    async def read_batched(
        self, answer: Mapping[str, Any], request: ImageRequest, model: ImageModel, sink: Sink
    ) -> Receipt:
        """Read a response of the batch API, whose picture is in the sink; raises as generate.

        ``model`` has the price of the batch.
        """
        ...


Illustrate = Callable[
    [ImageRequest], Awaitable[tuple[bytes, Mapping[str, object], Mapping[str, object] | None]]
]
"""Draws a request: a PNG, facts about it, and the scene that is kept for later edits."""


class Connection(Discreet, frozen=True, kw_only=True):
    """What a provider is built from, in the event loop that will use it.

    ``illustrate`` is the embedded illustrator. ``base_url`` has no slash at its end. ``timeout_s``
    limits each request as a whole. ``variables`` holds the environment variables that the spec
    names and that are set.
    """

    unshown = ("base_url", "key", "variables")

    http: HttpClient
    base_url: str
    key: str
    illustrate: Illustrate
    clock: Clock = msgspec.field(default_factory=Clock)
    timeout_s: float = ServiceSettings().timeout_s
    variables: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])


class ProviderSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a service that limner knows without connecting to it.

    Attributes:
        name: what users call it.
        key_env: the variable that holds its key; None if it needs no key.
        base_url_env: the variable that overrides its address.
        base_url: its address.
        models: its models; the first is the default.
        build: makes the provider.
        title: how messages name the service; empty is its name.
        account_url: where the user sees requests and bills; None if the base URL is that place.
        other_model: the row for a model of any other name; None if the service has no others.
        named_only: `auto` never chooses it, because it works only after the user sets it up.
        key_optional: the key is sent if it is set, and not required.
        variables: other environment variables that it reads.
        models_are_folders: a model may be a local folder, which the reach must allow.
    """

    name: str
    key_env: str | None
    base_url_env: str | None
    base_url: str
    models: tuple[ImageModel, ...]
    build: Callable[[Connection], Provider]
    title: str = ""
    account_url: str | None = None
    other_model: ImageModel | None = None
    named_only: bool = False
    key_optional: bool = False
    variables: tuple[str, ...] = ()
    models_are_folders: bool = False

    def vendor(self, connection: Connection) -> Vendor:
        """What error messages say about the service."""
        from limner.net.failures import MAY_BE_BILLED, Vendor  # noqa: PLC0415 - as above

        draws_for_free = isinstance(self.models[0].price, Free)
        return Vendor(
            provider=self.name,
            title=self.title or self.name,
            key_env=self.key_env,
            base_url_env=self.base_url_env or "the base URL",
            account_url=self.account_url or drop_userinfo(connection.base_url),
            unknown_outcome=MAY_STILL_DRAW if draws_for_free else MAY_BE_BILLED,
        )

    def key(self, key_of: Callable[[str], str | None]) -> str | None:
        """The key to use: empty if none is needed, None if it is missing."""
        if self.key_env is None:
            return ""
        return key_of(self.key_env) or ("" if self.key_optional else None)

    def model(self, name: str) -> ImageModel | None:
        """A model by the vendor's id, with or without the provider's name before it."""
        bare = name.removeprefix(f"{self.name}/")
        for row in self.models:
            if row.id == bare:
                return row
        other = self.other_model
        return None if other is None else msgspec.structs.replace(other, id=bare, title=bare)
