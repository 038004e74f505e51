"""What is asked of a provider, and what it answers: the values both sides share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from limner.errors import CostSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRequest:
    """One picture to draw. Sizes and qualities are already known to fit the model."""

    prompt: str
    model: str
    width: int
    height: int
    quality: str = "standard"
    seed: int | None = None
    svg: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What the provider said about a picture whose bytes are in the sink.

    ``cost_nano`` is None where the provider does not say and the catalogue's price holds.
    ``extras`` are facts for the caller (matched words, a seed), all JSON values.
    """

    prompt_used: str
    cost_nano: int | None = None
    cost_source: CostSource = "table"
    extras: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Sink(Protocol):
    """Where a provider pours the untrusted bytes of one picture, as they arrive."""

    def write(self, data: bytes | memoryview) -> None:
        """Take the next bytes.

        Raises:
            ImageTooLarge: more bytes than a picture may have.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """How a provider finds its own work again: an id it gave, and the address to ask."""

    remote_id: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One line about slow work, for the person waiting."""

    message: str
    elapsed_s: float
    fraction: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What a provider may tell its caller while it works.

    ``journal`` must be awaited as soon as a job has an id and before waiting for it: from then
    on a crash loses nothing. ``progress`` may be called as often as there is news. ``withdraw``
    is called when the provider has confirmed that a cancelled job will not be charged.
    """

    journal: Callable[[Job], Awaitable[None]]
    progress: Callable[[Progress], None]
    withdraw: Callable[[], None]
