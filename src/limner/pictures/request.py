"""What is asked of a provider, and what it answers: the values both sides share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

import msgspec

from limner.content import Discreet
from limner.errors import CostSource

Background = Literal["transparent", "opaque"]


class SourceImage(Discreet, frozen=True, kw_only=True):
    """A picture to draw from: verified, and fitted to what the service takes.

    ``handle`` names the picture it was made of.
    """

    unshown = ("data",)

    handle: str
    mime: str
    width: int
    height: int
    data: bytes


class ImageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One picture to draw. Everything it asks for is already known to fit the model.

    Attributes:
        prompt: what to draw, or what to change.
        model: the vendor's id of the model.
        width: pixels across.
        height: pixels down.
        quality: the tool's word; the catalogue has the vendor's.
        seed: for the same picture again.
        svg: a document to render instead.
        background: None leaves it to the model.
        negative_prompt: what should not be in the picture.
        sources: pictures to draw from. The first is the one to change, the others are references.
        mask: a PNG of the size of the first source, transparent where that may change.
        partial_pictures: how many unfinished pictures to show on the way; they may cost.
    """

    prompt: str
    model: str
    width: int
    height: int
    quality: str = "standard"
    seed: int | None = None
    svg: str | None = None
    background: Background | None = None
    negative_prompt: str | None = None
    sources: tuple[SourceImage, ...] = ()
    mask: SourceImage | None = None
    partial_pictures: int = 0


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What the provider said about a picture whose bytes are in the sink.

    ``cost_nano`` is None where the provider does not say and the catalogue's price holds.
    ``extras`` are facts for the caller (matched words, a seed), all JSON values.
    """

    prompt_used: str
    cost_nano: int | None = None
    cost_source: CostSource = "table"
    extras: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])


class RemoteJob(msgspec.Struct, frozen=True, kw_only=True):
    """How a provider finds its own work again: an id it gave, and the address to ask."""

    remote_id: str
    url: str


class Progress(Discreet, frozen=True, kw_only=True):
    """One line about slow work, for the person waiting.

    ``picture`` is an unfinished picture, as untrusted as the finished one.
    """

    unshown = ("picture",)

    message: str
    elapsed_s: float
    fraction: float | None = None
    picture: bytes | None = None


class ProviderCallbacks(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider may tell its caller while it works.

    ``journal`` must be awaited as soon as a job has an id and before waiting for it: from then
    on a crash loses nothing. ``progress`` may be called as often as there is news. ``withdraw``
    is called when the provider has confirmed that a cancelled job will not be charged.
    """

    journal: Callable[[RemoteJob], Awaitable[None]]
    progress: Callable[[Progress], None]
    withdraw: Callable[[], None]
