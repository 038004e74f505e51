"""The pictures of a conversation, oldest first -> how many of them leave a request.

A service keeps what a request begins with, and charges less for it the next time. So pictures do
not leave one by one, which would change that beginning with every turn: when a limit is reached,
the oldest leave until half of it is free, and then none for a long while. What leaves is told by
the conversation alone, so that the next request of a longer one begins as this one does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from limner.catalogue.vision import VisionModel

MAX_PICTURES = 20
MAX_BYTES = 16_000_000


class Load(NamedTuple):
    """What pictures take up in a request: how many they are, their bytes, their tokens."""

    pictures: int = 0
    size_bytes: int = 0
    tokens: int = 0

    def plus(self, other: Load) -> Load:
        """Both together."""
        return Load(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def minus(self, other: Load) -> Load:
        """This without the other."""
        return Load(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


class PictureBudget(msgspec.Struct, frozen=True, kw_only=True):
    """The most that the pictures of one request may take up; ``tokens`` None is without limit."""

    pictures: int = MAX_PICTURES
    size_bytes: int = MAX_BYTES
    tokens: int | None = None

    def holds(self, load: Load) -> bool:
        """Whether that much may be sent."""
        return (
            load.pictures <= self.pictures
            and load.size_bytes <= self.size_bytes
            and (self.tokens is None or load.tokens <= self.tokens)
        )

    @property
    def half(self) -> PictureBudget:
        """What may be left when pictures leave."""
        return PictureBudget(
            pictures=self.pictures // 2,
            size_bytes=self.size_bytes // 2,
            tokens=None if self.tokens is None else self.tokens // 2,
        )


def budget_for(model: VisionModel) -> PictureBudget:
    """What a conversation may send to a model: the defaults, or less where the model takes less."""
    limits = model.limits
    # Base64 makes four bytes of three, and the words of the conversation need room as well.
    room = MAX_BYTES if limits.max_request_bytes is None else limits.max_request_bytes // 2
    return PictureBudget(
        pictures=min(MAX_PICTURES, limits.max_images or MAX_PICTURES),
        size_bytes=min(MAX_BYTES, room),
        tokens=None if model.context_tokens is None else model.context_tokens // 2,
    )


def count_leaving(items: Iterable[Sequence[Load]], budget: PictureBudget) -> int:
    """How many of the oldest pictures leave.

    Of the pictures that arrived last, in one item, only those leave that have to: they are what
    the conversation is about.

    Args:
        items: for each item of the conversation in order, what each of its pictures takes up.
        budget: what may be sent.
    """
    window: deque[Load] = deque()
    total, left = Load(), 0

    def drop() -> None:
        nonlocal total, left
        total, left = total.minus(window.popleft()), left + 1

    for item in items:
        window.extend(item)
        for picture in item:
            total = total.plus(picture)
        if budget.holds(total):
            continue
        while len(window) > len(item) and not budget.half.holds(total):
            drop()
        while not budget.holds(total):
            drop()
    return left
