"""The request to an image provider, its receipt, and the callbacks while it works."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from limner.content import Discreet
from limner.errors import CostSource, JobTaken

MAX_SEED = 2**31 - 1

Quality = Literal["standard", "hd"]
Background = Literal["transparent", "opaque"]


class DrawingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller can ask of the model that draws: a new option is a field here.

    Each field is an argument of the drawing tools, a keyword in Python, a flag of the command line
    and a field of `ImageRequest`, so that a provider reads it as ``request.<name>``. A model gets
    an option only if its row in the catalogue says that it honours it; otherwise the call is
    refused before it costs anything. ``extra`` says how the flag differs from the field's name.
    """

    quality: Annotated[Quality, Meta(description="standard or hd.")] = "standard"
    seed: (
        Annotated[
            int,
            Meta(
                description="The same seed draws the same picture again, if the model has seeds.",
                ge=0,
                le=MAX_SEED,
                extra={"metavar": "N"},
            ),
        ]
        | None
    ) = None
    background: (
        Annotated[Background, Meta(description="transparent or opaque, if the model can.")] | None
    ) = None
    negative_prompt: (
        Annotated[
            str,
            Meta(
                description="What should not be in the picture.",
                extra={"flag": "--negative", "metavar": "WORDS"},
            ),
        ]
        | None
    ) = None


class SourceImage(Discreet, frozen=True, kw_only=True):
    """A source picture: verified, and fitted to the limits of the service.

    ``handle`` names the picture it was made from.
    """

    unshown = ("data",)

    handle: str
    mime: str
    width: int
    height: int
    data: bytes


class ImageRequest(DrawingOptions, frozen=True, kw_only=True):
    """One picture to draw. The options have been checked against the model before.

    Attributes:
        prompt: what to draw, or what to change.
        model: the vendor's id of the model.
        width: pixels across.
        height: pixels down.
        svg: a document to render instead.
        sources: pictures to draw from. The first is edited, the others are references.
        mask: a picture with the size of the first source; its bytes are a PNG. What may change is
            transparent, or white, as the `EditRule` of the model says.
        partial_pictures: how many unfinished pictures to send; they may cost money.
        vendor_fields: fields of the vendor's request, from options that the model's row names.
    """

    prompt: str
    model: str
    width: int
    height: int
    svg: str | None = None
    sources: tuple[SourceImage, ...] = ()
    mask: SourceImage | None = None
    partial_pictures: int = 0
    vendor_fields: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What the provider reports about a picture whose bytes are in the sink.

    ``cost_nano`` is None if the provider does not report a cost; then the price of the catalogue
    applies. ``extras`` are facts for the caller (matched words, a seed), all JSON values. ``scene``
    is what the provider needs to draw a changed version: it is kept with the picture.
    """

    prompt_used: str
    cost_nano: int | None = None
    cost_source: CostSource = "table"
    extras: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    scene: Mapping[str, object] | None = None


class RemoteJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job at a provider: its id, and the address that reports its status."""

    remote_id: str
    url: str


class Progress(Discreet, frozen=True, kw_only=True):
    """One line about a slow request, for the user.

    ``picture`` is an unfinished picture, as untrusted as the finished one.
    """

    unshown = ("picture",)

    message: str
    elapsed_s: float
    fraction: float | None = None
    picture: bytes | None = None


class ProviderCallbacks(msgspec.Struct, frozen=True, kw_only=True):
    """The callbacks of a provider's caller.

    ``journal`` must be awaited as soon as a job has an id, before the provider waits for it: then
    a crash cannot lose the job. It raises JobTaken if the job belongs to another request.
    ``progress`` may be called at any time. ``withdraw`` is called
    when the service has confirmed that it will not charge for a cancelled job.
    """

    journal: Callable[[RemoteJob], Awaitable[None]]
    progress: Callable[[Progress], None]
    withdraw: Callable[[], None]

    async def claim(self, found: Iterable[RemoteJob]) -> RemoteJob | None:
        """Journal the first of these jobs that belongs to no other request, and return it."""
        for job in found:
            try:
                await self.journal(job)
            except JobTaken:
                continue
            return job
        return None
