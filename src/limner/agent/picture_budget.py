"""The pictures of a conversation and a model -> which of them leave the request, and a warning.

Pictures that the model has seen leave to save room. A picture that it has not seen yet leaves only
if the service would refuse the request.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, groupby

import msgspec
from msgspec.structs import replace

from limner.agent.picture_slots import (
    LEFT_OUT,
    RECALLABLE,
    SHORT_HANDLE_CHARS,
    TOO_MANY,
    PictureSlot,
)
from limner.catalogue.vision import VisionModel
from limner.wires.items import Item

MAX_PICTURES = 20
MAX_BYTES = 16_000_000
# For a service that states no limit. A request is built in memory.
MOST_BYTES = 64_000_000


class Load(msgspec.Struct, frozen=True):
    """What one picture uses of a request."""

    handle: str
    size_bytes: int = 0
    tokens: int = 0


class PictureBudget(msgspec.Struct, frozen=True, kw_only=True):
    """The most that pictures may use before the oldest leave; copies of one count as one.

    ``tokens`` None is without limit.
    """

    pictures: int = MAX_PICTURES
    size_bytes: int = MAX_BYTES
    tokens: int | None = None

    @property
    def half(self) -> PictureBudget:
        """The budget that is left full when pictures leave."""
        return PictureBudget(
            pictures=self.pictures // 2,
            size_bytes=self.size_bytes // 2,
            tokens=None if self.tokens is None else self.tokens // 2,
        )


class ServiceLimit(msgspec.Struct, frozen=True, kw_only=True):
    """What a service refuses to take in one request; it counts every copy of a picture."""

    pictures: int | None = None
    size_bytes: int = MOST_BYTES


class _Request:
    """The pictures of one request, oldest first, and what they use."""

    def __init__(self) -> None:
        self.loads: deque[Load] = deque()
        self._copies: Counter[str] = Counter()
        self._size_bytes = self._tokens = 0

    def add(self, load: Load) -> None:
        self.loads.append(load)
        self._copies[load.handle] += 1
        self._size_bytes += load.size_bytes
        self._tokens += load.tokens

    def drop_oldest(self) -> None:
        load = self.loads.popleft()
        self._copies[load.handle] -= 1
        if not self._copies[load.handle]:
            del self._copies[load.handle]
        self._size_bytes -= load.size_bytes
        self._tokens -= load.tokens

    def is_within(self, budget: PictureBudget) -> bool:
        return (
            len(self._copies) <= budget.pictures
            and self._size_bytes <= budget.size_bytes
            and (budget.tokens is None or self._tokens <= budget.tokens)
        )

    def is_accepted(self, limit: ServiceLimit) -> bool:
        return self._size_bytes <= limit.size_bytes and (
            limit.pictures is None or len(self.loads) <= limit.pictures
        )


def budget_for(model: VisionModel) -> PictureBudget:
    """The budget of a model: the defaults, or less if the model takes less."""
    limit = limit_for(model)
    return PictureBudget(
        pictures=min(MAX_PICTURES, limit.pictures or MAX_PICTURES),
        size_bytes=min(MAX_BYTES, limit.size_bytes),
        tokens=None if model.context_tokens is None else model.context_tokens // 2,
    )


def limit_for(model: VisionModel) -> ServiceLimit:
    """What the service of a model takes at most."""
    limits = model.limits
    # Base64 makes four bytes of three, and the text of the conversation needs room as well.
    room = MOST_BYTES if limits.max_request_bytes is None else limits.max_request_bytes // 2
    return ServiceLimit(pictures=limits.max_images, size_bytes=min(MOST_BYTES, room))


def apply_budget(
    slots: Iterable[PictureSlot],
    items: Sequence[Item],
    loads: Mapping[str, Load],
    model: VisionModel,
    why: str,
) -> list[PictureSlot]:
    """The slots, with the reason in those that leave: ``why`` if the model has seen them."""
    kept = list(slots)
    shown = [number for number, slot in enumerate(kept) if slot.is_shown]
    answers = _count_model_items(items)
    rounds = [
        [loads[kept[number].handle] for number in group]
        for _, group in groupby(shown, key=lambda number: answers[kept[number].item])
    ]
    leaving = find_leaving(rounds, budget_for(model), limit_for(model))
    for number, was_seen in zip(shown, leaving, strict=False):
        kept[number] = replace(kept[number], why=why if was_seen else TOO_MANY)
    return kept


def find_leaving(
    rounds: Iterable[Sequence[Load]], budget: PictureBudget, limit: ServiceLimit
) -> list[bool]:
    """The oldest pictures that leave a request: for each, whether the model has seen it.

    A service caches the start of a request, and charges less for it the next time. If pictures left
    one by one, that start would change in every turn. So when the budget is used up, the oldest
    leave until half of it is free, and then none for a long while. Only the conversation decides
    which ones leave, so that the next request of a longer conversation starts the same.

    Args:
        rounds: the pictures that arrived between one answer of the model and the next.
        budget: what may be sent before pictures that the model has seen leave.
        limit: what the service takes.
    """
    request, leaving = _Request(), list[bool]()
    for arrived in rounds:
        for load in arrived:
            request.add(load)
        if not request.is_within(budget):
            while len(request.loads) > len(arrived) and not request.is_within(budget.half):
                request.drop_oldest()
                leaving.append(True)
        while not request.is_accepted(limit):
            leaving.append(len(request.loads) > len(arrived))
            request.drop_oldest()
    return leaving


def warn_of_leaving(slots: Iterable[PictureSlot], model: str) -> list[str]:
    """A sentence for the user about the pictures that leave, and one about those never sent.

    A sentence names its newest picture, so that it differs each time that more leave.
    """
    reasons = {
        (LEFT_OUT, RECALLABLE): "to save room",
        (TOO_MANY,): "because its service takes no more in one request",
    }
    warnings: list[str] = []
    kept = list(slots)
    for whys, reason in reasons.items():
        handles = list(dict.fromkeys(slot.handle for slot in kept if slot.why in whys))
        if handles:
            what = "1 picture" if len(handles) == 1 else f"{len(handles)} pictures"
            warnings.append(
                f"{model} is not sent {what} of this conversation, up to "
                f"{handles[-1][:SHORT_HANDLE_CHARS]}, {reason}. The history keeps all."
            )
    return warnings


def _count_model_items(items: Sequence[Item]) -> list[int]:
    """For each item, how many items of the model come before it."""
    return list(accumulate(map(_is_from_model, items)))


def _is_from_model(item: Item) -> bool:
    kind: object = item.get("type")
    if kind == "message":
        return item.get("role") == "assistant"
    return not str(kind).endswith("_output")
