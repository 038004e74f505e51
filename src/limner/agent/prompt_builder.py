"""A conversation and a model -> the prompt for that model: its pictures fitted, within a budget.

History keeps every picture. A request carries the pictures that the model takes, that its service
has not refused and that the budget has room for. A note replaces each of the others. Only pictures
that are sent are loaded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.agent.picture_slots import (
    BLOCKED,
    LEFT_OUT,
    NO_IMAGES,
    NOT_STORED,
    RECALLABLE,
    REFUSED,
    UNFIT,
    KnownPicture,
    PictureSlot,
    caption,
    find_media,
    inspection_answers,
    render_items,
)
from limner.agent.untrusted import is_untrusted
from limner.catalogue.sizes import Size
from limner.catalogue.tokens import UNKNOWN_TOKENS
from limner.catalogue.vision import VisionModel, limits_for, tokens
from limner.content import Picture
from limner.errors import ImageError, StorageError
from limner.models.registry import KnownModel
from limner.pictures.fitting import Fitting, request_for
from limner.storage.store import Store
from limner.tools.built_in.image_recall import IMAGE_RECALL
from limner.wires.base import ModelPicture, Prompt
from limner.wires.content_parts import AudioClip
from limner.wires.items import Item, first_text

MAX_PICTURES = 20
MAX_BYTES = 16_000_000


class Load(msgspec.Struct, frozen=True):
    """What pictures use of a request: their number, their bytes, their tokens."""

    pictures: int = 0
    size_bytes: int = 0
    tokens: int = 0

    def __add__(self, other: Load) -> Load:
        """The sum."""
        return Load(
            self.pictures + other.pictures,
            self.size_bytes + other.size_bytes,
            self.tokens + other.tokens,
        )

    def __sub__(self, other: Load) -> Load:
        """The difference."""
        return Load(
            self.pictures - other.pictures,
            self.size_bytes - other.size_bytes,
            self.tokens - other.tokens,
        )


class PictureBudget(msgspec.Struct, frozen=True, kw_only=True):
    """The most that the pictures of one request may use; ``tokens`` None is without limit."""

    pictures: int = MAX_PICTURES
    size_bytes: int = MAX_BYTES
    tokens: int | None = None

    def holds(self, load: Load) -> bool:
        """Whether a load is within the budget."""
        return (
            load.pictures <= self.pictures
            and load.size_bytes <= self.size_bytes
            and (self.tokens is None or load.tokens <= self.tokens)
        )

    @property
    def half(self) -> PictureBudget:
        """The budget that is left full when pictures leave."""
        return PictureBudget(
            pictures=self.pictures // 2,
            size_bytes=self.size_bytes // 2,
            tokens=None if self.tokens is None else self.tokens // 2,
        )


class BuiltPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt that can be sent.

    Attributes:
        prompt: what is sent.
        sent: the handles of its pictures, each once, oldest first.
        unproven: those of them that the model's service has not accepted before.
        picture_tokens: the tokens of all its pictures.
        clips: its audio clips.
    """

    prompt: Prompt
    sent: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()
    picture_tokens: int = 0
    clips: Sequence[AudioClip] = ()


class PromptBuilder(msgspec.Struct, frozen=True, kw_only=True):
    """Builds the prompts of conversations, as the settings `images.*` say."""

    store: Store
    fitting: Fitting
    block_images: bool
    auto_resize: bool

    async def build(self, prompt: Prompt, model: KnownModel) -> BuiltPrompt:
        """Build the prompt for a model, with its pictures.

        Args:
            prompt: the whole conversation; its items name pictures by handle.
            model: the model that is asked.

        Raises:
            StorageError: the database cannot be read.
        """
        media = find_media(prompt.items)
        known = await self._load_known(media.slots, model.name)
        slots = [self._rule_out(slot, known, model) for slot in media.slots]
        images: dict[str, ModelPicture] = {}
        loads: dict[str, Load] = {}
        if any(slot.is_shown for slot in slots):
            budget = budget_for(model.facts)
            why = (
                RECALLABLE
                if any(tool.name == IMAGE_RECALL.name for tool in prompt.tools)
                else LEFT_OUT
            )
            loads = {h: self._expect_load(one.picture, model.facts) for h, one in known.items()}
            slots = _apply_budget(slots, loads, budget, why)
            images = await self._load_images(slots, known, model.facts, budget)
            slots = [_rule_out_unfit(slot, images) for slot in slots]
            loads |= {h: replace(loads[h], size_bytes=len(i.data)) for h, i in images.items()}
            slots = _apply_budget(slots, loads, budget, why)
        items, clips = render_items(
            prompt.items, slots, media.clips, known=known, model=model.facts
        )
        shown = [slot.handle for slot in slots if slot.is_shown]
        sent = tuple(dict.fromkeys(shown))
        return BuiltPrompt(
            prompt=replace(
                prompt,
                items=items,
                pictures={handle: images[handle] for handle in sent},
                takes_images=model.takes_images,
                takes_audio=model.takes_audio,
            ),
            sent=sent,
            unproven=tuple(handle for handle in sent if not known[handle].is_accepted),
            picture_tokens=sum(loads[handle].tokens or UNKNOWN_TOKENS for handle in shown),
            clips=tuple(clips),
        )

    async def captions(self, items: Sequence[Item], model: str) -> dict[str, str | None]:
        """A caption for each picture of a conversation, by handle; None if nothing is known.

        Raises:
            StorageError: the database cannot be read.
        """
        slots, answers = find_media(items).slots, inspection_answers(items)
        known = await self._load_known(slots, model)
        return {
            slot.handle: caption(
                known[slot.handle].lineage if slot.handle in known else None,
                answer=answers.get(slot.handle),
                item_text="" if is_untrusted(items[slot.item]) else first_text(items[slot.item]),
            )
            for slot in slots
            if slot.handle
        }

    def _rule_out(
        self, slot: PictureSlot, known: Mapping[str, KnownPicture], model: KnownModel
    ) -> PictureSlot:
        """The slot, with the reason if its picture cannot be sent at all."""
        found, why = known.get(slot.handle), None
        if self.block_images:
            why = BLOCKED
        elif not model.takes_images:
            why = NO_IMAGES
        elif found is None:
            why = NOT_STORED
        elif found.is_quarantined:
            why = REFUSED
        return slot if why is None else replace(slot, why=why)

    async def _load_known(
        self, slots: Sequence[PictureSlot], model: str
    ) -> dict[str, KnownPicture]:
        if not slots:
            return {}
        wanted = msgspec.json.encode(sorted({slot.handle for slot in slots})).decode()
        rows = await self.store.read(
            lambda tx: tx.all("conversation_pictures", handles=wanted, model=model)
        )
        fields = ("handle", "mime", "width", "height", "size_bytes")
        return {
            row["handle"]: KnownPicture(
                picture=Picture(**{name: row[name] for name in fields}),
                lineage=_lineage(row["parent_lineage"]) | _lineage(row["lineage"]),
                is_quarantined=row["state"] == "quarantined",
                is_accepted=row["state"] == "accepted",
            )
            for row in rows
        }

    def _expect_load(self, picture: Picture, model: VisionModel) -> Load:
        """What a picture will use at least, before it is fitted.

        Its bytes are only known if it is sent unchanged. That is enough: the budget of pictures
        and tokens bounds how many are loaded.
        """
        size = Size(picture.width, picture.height)
        if self._is_sent_unchanged(picture, model):
            return Load(1, picture.size_bytes, _tokens(model, size))
        request = request_for(size, mode=self.fitting.mode, model=model)
        shrink = max(1.0, size.width / request.max_width, size.height / request.max_height)
        fitted = Size(max(1, int(size.width / shrink)), max(1, int(size.height / shrink)))
        return Load(1, 0, _tokens(model, fitted))

    async def _load_images(
        self,
        slots: Iterable[PictureSlot],
        known: Mapping[str, KnownPicture],
        model: VisionModel,
        budget: PictureBudget,
    ) -> dict[str, ModelPicture]:
        """The pictures to be sent, except those that cannot be fitted."""
        shown = dict.fromkeys(slot.handle for slot in slots if slot.is_shown)
        found = await asyncio.gather(
            *(self._load_image(known[handle].picture, model, budget) for handle in shown)
        )
        return {h: image for h, image in zip(shown, found, strict=True) if image is not None}

    async def _load_image(
        self, picture: Picture, model: VisionModel, budget: PictureBudget
    ) -> ModelPicture | None:
        try:
            if self._is_sent_unchanged(picture, model):
                data = await self.fitting.pictures.original(picture)
                return ModelPicture(mime=picture.mime, data=data)
            # Fit for the largest request, so that a picture is the same in every request.
            fitted = await self.fitting.fit(
                picture,
                model=model,
                images_in_request=budget.pictures,
                in_conversation=True,
            )
        except (ImageError, StorageError):
            return None
        return ModelPicture(mime=fitted.mime, data=fitted.data)

    def _is_sent_unchanged(self, picture: Picture, model: VisionModel) -> bool:
        """Whether the settings want a picture unchanged, and the model takes it like that."""
        if self.auto_resize or picture.mime not in model.formats:
            return False
        limits = limits_for(model, images_in_request=budget_for(model).pictures)
        edge, most_bytes = limits.max_edge, limits.max_image_bytes
        return (edge is None or max(picture.width, picture.height) <= edge) and (
            most_bytes is None or picture.size_bytes <= most_bytes
        )


def _apply_budget(
    slots: Iterable[PictureSlot], loads: Mapping[str, Load], budget: PictureBudget, why: str
) -> list[PictureSlot]:
    """The slots, with that reason in the oldest ones if there is no room for all."""
    kept = list(slots)
    shown = [number for number, slot in enumerate(kept) if slot.is_shown]
    by_item = [
        [loads[kept[number].handle] for number in group]
        for _, group in groupby(shown, key=lambda number: kept[number].item)
    ]
    for number in shown[: count_leaving(by_item, budget)]:
        kept[number] = replace(kept[number], why=why)
    return kept


def _rule_out_unfit(slot: PictureSlot, images: Mapping[str, ModelPicture]) -> PictureSlot:
    is_unfit = slot.is_shown and slot.handle not in images
    return replace(slot, why=UNFIT) if is_unfit else slot


def _tokens(model: VisionModel, size: Size) -> int:
    """The tokens of a picture; 0 if the service does not document them."""
    try:
        look = tokens(model, size)
    except ImageError:
        return 0
    return 0 if look is None else look.tokens


def _lineage(text: str | None) -> dict[str, Any]:
    return {} if text is None else msgspec.json.decode(text, type=dict[str, Any])


def budget_for(model: VisionModel) -> PictureBudget:
    """The budget of a model: the defaults, or less if the model takes less."""
    limits = model.limits
    # Base64 makes four bytes of three, and the text of the conversation needs room as well.
    room = MAX_BYTES if limits.max_request_bytes is None else limits.max_request_bytes // 2
    return PictureBudget(
        pictures=min(MAX_PICTURES, limits.max_images or MAX_PICTURES),
        size_bytes=min(MAX_BYTES, room),
        tokens=None if model.context_tokens is None else model.context_tokens // 2,
    )


def count_leaving(items: Iterable[Sequence[Load]], budget: PictureBudget) -> int:
    """How many of the oldest pictures leave a request.

    A service caches the start of a request, and charges less for it the next time. If pictures left
    one by one, that start would change in every turn. So when a limit is reached, the oldest leave
    until half of the budget is free, and then none for a long while. Only the conversation decides
    which ones leave, so that the next request of a longer conversation starts the same.

    Of the pictures of the last item, only those leave that have to: the conversation is about them.

    Args:
        items: for each item of the conversation in order, the load of each of its pictures.
        budget: what may be sent.
    """
    window: deque[Load] = deque()
    total, left = Load(), 0

    def drop() -> None:
        nonlocal total, left
        total, left = total - window.popleft(), left + 1

    for item in items:
        window.extend(item)
        for picture in item:
            total += picture
        if budget.holds(total):
            continue
        while len(window) > len(item) and not budget.half.holds(total):
            drop()
        while not budget.holds(total):
            drop()
    return left
