"""A conversation and a model -> the prompt that model is sent: its pictures fitted, within bounds.

History keeps every picture. A request carries those that the model can see, that its service has
not refused and that the budget has room for; words stand in the place of the others. Only what is
sent is loaded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.agent.audio import audible
from limner.agent.picture_budget import Load, PictureBudget, budget_for, leaving
from limner.agent.picture_slots import (
    BLOCKED,
    GONE,
    LEFT,
    NO_EYES,
    RECALLABLE,
    REFUSED,
    UNFIT,
    KnownPicture,
    PictureSlot,
    answers,
    caption,
    places_in,
    written,
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
from limner.tools.image_recall import IMAGE_RECALL
from limner.wires.base import ModelPicture, Prompt
from limner.wires.items import Item, first_words


class BuiltPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt that can be sent.

    ``sent`` are the pictures in it by handle, each once, oldest first: what its service refuses is
    told to the quarantine in these terms, and what it accepts for the first time is among those
    that are ``unproven``. ``picture_tokens`` is what looking at all of them takes.
    """

    prompt: Prompt
    sent: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()
    picture_tokens: int = 0


class PromptBuilder(msgspec.Struct, frozen=True, kw_only=True):
    """Makes conversations ready to be sent, as the settings `images.*` say."""

    store: Store
    fitting: Fitting
    block_images: bool
    auto_resize: bool

    async def ready(self, prompt: Prompt, model: KnownModel) -> BuiltPrompt:
        """The prompt with its pictures, for a model.

        Args:
            prompt: the whole conversation; pictures in its items are named by handle.
            model: who is asked.

        Raises:
            StorageError: the database cannot be read.
        """
        places = places_in(prompt.items)
        known = await self._known(places, model.name)
        places = [self._ruled_out(place, known, model) for place in places]
        sights: dict[str, ModelPicture] = {}
        loads: dict[str, Load] = {}
        if any(place.is_shown for place in places):
            budget = budget_for(model.facts)
            left = (
                RECALLABLE if any(tool.name == IMAGE_RECALL.name for tool in prompt.tools) else LEFT
            )
            loads = {h: self._expected(one.picture, model.facts) for h, one in known.items()}
            places = _bounded(places, loads, budget, left)
            sights = await self._sights(places, known, model.facts, budget)
            places = [_unless_unfit(place, sights) for place in places]
            loads |= {h: loads[h]._replace(size_bytes=len(s.data)) for h, s in sights.items()}
            places = _bounded(places, loads, budget, left)
        sent = tuple(dict.fromkeys(place.handle for place in places if place.is_shown))
        return BuiltPrompt(
            prompt=replace(
                prompt,
                items=audible(
                    written(prompt.items, places, known, model.facts),
                    takes_audio=model.takes_audio,
                ),
                pictures={handle: sights[handle] for handle in sent},
                takes_images=model.takes_images,
                takes_audio=model.takes_audio,
            ),
            sent=sent,
            unproven=tuple(handle for handle in sent if not known[handle].is_accepted),
            picture_tokens=sum(
                loads[place.handle].tokens or UNKNOWN_TOKENS for place in places if place.is_shown
            ),
        )

    async def captions(self, items: Sequence[Item], model: str) -> dict[str, str | None]:
        """A few words for each picture of a conversation, by handle, where any are known.

        Raises:
            StorageError: the database cannot be read.
        """
        places, told = places_in(items), answers(items)
        known = await self._known(places, model)
        return {
            place.handle: caption(
                known[place.handle].lineage if place.handle in known else None,
                answer=told.get(place.handle),
                beside="" if is_untrusted(items[place.item]) else first_words(items[place.item]),
            )
            for place in places
            if place.handle
        }

    def _ruled_out(
        self, place: PictureSlot, known: Mapping[str, KnownPicture], model: KnownModel
    ) -> PictureSlot:
        """The place, with the reason where its picture cannot be sent whatever room there is."""
        one, why = known.get(place.handle), None
        if self.block_images:
            why = BLOCKED
        elif not model.takes_images:
            why = NO_EYES
        elif one is None:
            why = GONE
        elif one.is_quarantined:
            why = REFUSED
        return place if why is None else replace(place, why=why)

    async def _known(self, places: Sequence[PictureSlot], model: str) -> dict[str, KnownPicture]:
        if not places:
            return {}
        wanted = msgspec.json.encode(sorted({place.handle for place in places})).decode()
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

    def _expected(self, picture: Picture, model: VisionModel) -> Load:
        """What a picture will take up, as far as that is certain before it is made ready.

        Its bytes are not, unless it goes as it is; but loading no more pictures than may be sent
        is soon done.
        """
        size = Size(picture.width, picture.height)
        if self._goes_as_it_is(picture, model):
            return Load(1, picture.size_bytes, _tokens(model, size))
        request = request_for(size, mode=self.fitting.mode, model=model)
        shrink = max(1.0, size.width / request.max_width, size.height / request.max_height)
        fitted = Size(max(1, int(size.width / shrink)), max(1, int(size.height / shrink)))
        return Load(1, 0, _tokens(model, fitted))

    async def _sights(
        self,
        places: Iterable[PictureSlot],
        known: Mapping[str, KnownPicture],
        model: VisionModel,
        budget: PictureBudget,
    ) -> dict[str, ModelPicture]:
        """The pictures to be sent, except those that cannot be made ready."""
        shown = dict.fromkeys(place.handle for place in places if place.is_shown)
        found = await asyncio.gather(
            *(self._sight(known[handle].picture, model, budget) for handle in shown)
        )
        return {h: sight for h, sight in zip(shown, found, strict=True) if sight is not None}

    async def _sight(
        self, picture: Picture, model: VisionModel, budget: PictureBudget
    ) -> ModelPicture | None:
        try:
            if self._goes_as_it_is(picture, model):
                data = await self.fitting.pictures.original(picture)
                return ModelPicture(mime=picture.mime, data=data)
            # By the most that may ever be in a request, so that a picture looks the same in each.
            fitted = await self.fitting.fit(
                picture,
                model=model,
                images_in_request=budget.pictures,
                in_conversation=True,
            )
        except (ImageError, StorageError):
            return None
        return ModelPicture(mime=fitted.mime, data=fitted.data)

    def _goes_as_it_is(self, picture: Picture, model: VisionModel) -> bool:
        """Whether the settings want a picture untouched, and the model takes it so."""
        if self.auto_resize or picture.mime not in model.formats:
            return False
        limits = limits_for(model, images_in_request=budget_for(model).pictures)
        edge, most_bytes = limits.max_edge, limits.max_image_bytes
        return (edge is None or max(picture.width, picture.height) <= edge) and (
            most_bytes is None or picture.size_bytes <= most_bytes
        )


def _bounded(
    places: Iterable[PictureSlot], loads: Mapping[str, Load], budget: PictureBudget, why: str
) -> list[PictureSlot]:
    """The places, with that reason in the oldest of those that there is no room for."""
    kept = list(places)
    shown = [number for number, place in enumerate(kept) if place.is_shown]
    by_item = [
        [loads[kept[number].handle] for number in group]
        for _, group in groupby(shown, key=lambda number: kept[number].item)
    ]
    for number in shown[: leaving(by_item, budget)]:
        kept[number] = replace(kept[number], why=why)
    return kept


def _unless_unfit(place: PictureSlot, sights: Mapping[str, ModelPicture]) -> PictureSlot:
    is_unfit = place.is_shown and place.handle not in sights
    return replace(place, why=UNFIT) if is_unfit else place


def _tokens(model: VisionModel, size: Size) -> int:
    """What looking at a picture takes, as far as anybody says."""
    try:
        look = tokens(model, size)
    except ImageError:
        return 0
    return 0 if look is None else look.tokens


def _lineage(text: str | None) -> dict[str, Any]:
    return {} if text is None else msgspec.json.decode(text, type=dict[str, Any])
