"""A conversation and a model -> the prompt for that model: its pictures fitted, within a budget.

History keeps every picture. A request carries the pictures that the model takes, that its service
has not refused and that the budget has room for. A note replaces each of the others. Only pictures
that are sent are loaded.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.agent.picture_budget import (
    MAX_PICTURES,
    Load,
    apply_budget,
    budget_for,
    warn_of_leaving,
)
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
    detail_for,
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
from limner.imaging.fit.request import FitRequest, scale_into
from limner.models.registry import KnownModel
from limner.pictures.fitting import Fitting, conversation_request
from limner.pictures.lineage import picture_from_row
from limner.storage.store import Store
from limner.tools.built_in.image_recall import IMAGE_RECALL
from limner.wires.base import ModelPicture, Prompt
from limner.wires.content_parts import AudioClip
from limner.wires.items import Item, first_text

# What the process keeps in memory for the next request, of all its conversations together.
MAX_KEPT_BYTES = 32_000_000

# A decoder that is made once: every request reads the lineage of every picture.
_LINEAGE = msgspec.json.Decoder(dict[str, Any])

# The handle of a picture, and how it is fitted; None if it is sent unchanged.
_Key = tuple[str, FitRequest | None]


class BuiltPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt that can be sent.

    Attributes:
        prompt: what is sent.
        sent: the handles of its pictures, each once, oldest first.
        unproven: those of them that the model's service has not accepted before.
        picture_tokens: the tokens of all its pictures.
        clips: its audio clips.
        warnings: a sentence for the user about pictures that are left out to save room.
    """

    prompt: Prompt
    sent: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()
    picture_tokens: int = 0
    clips: Sequence[AudioClip] = ()
    warnings: Sequence[str] = ()


class KeptPictures:
    """The pictures of the last requests, ready to be sent: the next request repeats most of them.

    Which pictures may be sent is decided anew for every request; only their bytes are kept. Those
    that were used least recently leave first.
    """

    def __init__(self, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self._max_bytes, self._size_bytes = max_bytes, 0
        self._pictures: dict[_Key, ModelPicture] = {}
        self._lock = threading.Lock()  # one builder serves several event loops

    def find(self, key: _Key) -> ModelPicture | None:
        """The picture, if it is here."""
        with self._lock:
            if (found := self._pictures.pop(key, None)) is not None:
                self._pictures[key] = found
            return found

    def keep(self, key: _Key, picture: ModelPicture) -> ModelPicture:
        """The picture with its base64; it stays here if it is not too large."""
        encoded = picture.with_base64()
        with self._lock:
            if key not in self._pictures and _memory_bytes(encoded) <= self._max_bytes:
                self._pictures[key] = encoded
                self._size_bytes += _memory_bytes(encoded)
                while self._size_bytes > self._max_bytes:
                    oldest = next(iter(self._pictures))
                    self._size_bytes -= _memory_bytes(self._pictures.pop(oldest))
        return encoded


def _memory_bytes(picture: ModelPicture) -> int:
    return len(picture.data) + len(picture.quoted_base64)


class PromptBuilder(msgspec.Struct, frozen=True, kw_only=True):
    """Builds the prompts of conversations, as the settings `images.*` say."""

    store: Store
    fitting: Fitting
    block_images: bool
    auto_resize: bool
    kept: KeptPictures = msgspec.field(default_factory=KeptPictures)

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
            why = (
                RECALLABLE
                if any(tool.name == IMAGE_RECALL.name for tool in prompt.tools)
                else LEFT_OUT
            )
            loads = self._expect_loads(known, model.facts)
            slots = apply_budget(slots, prompt.items, loads, model.facts, why)
            images = await self._load_images(slots, known, model.facts)
            slots = [_rule_out_unfit(slot, images) for slot in slots]
            loads |= {h: replace(loads[h], size_bytes=len(i.data)) for h, i in images.items()}
            slots = apply_budget(slots, prompt.items, loads, model.facts, why)
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
            warnings=tuple(warn_of_leaving(slots, model.name)),
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
        return {
            row["handle"]: KnownPicture(
                picture=picture_from_row(row),
                lineage=_lineage(row["parent_lineage"]) | _lineage(row["lineage"]),
                is_quarantined=row["state"] == "quarantined",
                is_accepted=row["state"] == "accepted",
            )
            for row in rows
        }

    def _expect_loads(
        self, known: Mapping[str, KnownPicture], model: VisionModel
    ) -> dict[str, Load]:
        """What each picture will use at least, before it is fitted.

        Its bytes are only known if it is sent unchanged. That is enough: the budget of pictures
        and tokens bounds how many are loaded.
        """
        loads: dict[str, Load] = {}
        tokens: dict[tuple[Size, bool], int] = {}  # most pictures of a conversation have one size
        for handle, one in known.items():
            picture = one.picture
            is_unchanged = self._is_sent_unchanged(picture, model)
            key = Size(picture.width, picture.height), is_unchanged
            if key not in tokens:
                tokens[key] = _expect_tokens(model, *key)
            loads[handle] = Load(handle, picture.size_bytes if is_unchanged else 0, tokens[key])
        return loads

    async def _load_images(
        self, slots: Iterable[PictureSlot], known: Mapping[str, KnownPicture], model: VisionModel
    ) -> dict[str, ModelPicture]:
        """The pictures to be sent, except those that cannot be fitted."""
        details: dict[str, list[str]] = {}
        count = 0
        for slot in slots:
            if slot.is_shown:
                count += 1
                details.setdefault(slot.handle, []).append(detail_for(model, slot.detail))
        # Fit for the largest usual request, so that a picture is the same in every request.
        most = max(count, budget_for(model).pictures)
        images: dict[str, ModelPicture] = {}
        missing: list[tuple[Picture, FitRequest | None]] = []
        requests: dict[tuple[Size, str], FitRequest] = {}
        for handle, wanted in details.items():
            picture, request = known[handle].picture, None
            if not self._is_sent_unchanged(picture, model):
                size, detail = Size(picture.width, picture.height), _largest_detail(model, wanted)
                if (request := requests.get((size, detail))) is None:
                    request = requests[size, detail] = conversation_request(
                        size, model=model, detail=detail, images_in_request=most
                    )
            if (kept := self.kept.find((handle, request))) is not None:
                images[handle] = kept
            else:
                missing.append((picture, request))
        found = await asyncio.gather(*(self._load_image(*each) for each in missing))
        loaded = {picture.handle: image for (picture, _), image in zip(missing, found, strict=True)}
        return images | {handle: image for handle, image in loaded.items() if image is not None}

    async def _load_image(
        self, picture: Picture, request: FitRequest | None
    ) -> ModelPicture | None:
        try:
            mime = picture.mime
            if request is None:
                data = await self.fitting.pictures.original(picture)
            else:
                fitted, data = await self.fitting.pictures.give(picture, request)
                mime = fitted.mime
        except (ImageError, StorageError):
            return None
        return self.kept.keep((picture.handle, request), ModelPicture(mime=mime, data=data))

    def _is_sent_unchanged(self, picture: Picture, model: VisionModel) -> bool:
        """Whether the settings want a picture unchanged, and the model takes it like that."""
        if self.auto_resize or picture.mime not in model.formats:
            return False
        limits = limits_for(model, images_in_request=budget_for(model).pictures)
        edge, most_bytes = limits.max_edge, limits.max_image_bytes
        return (edge is None or max(picture.width, picture.height) <= edge) and (
            most_bytes is None or picture.size_bytes <= most_bytes
        )


def _largest_detail(model: VisionModel, details: Iterable[str]) -> str:
    """The detail to fit a picture for, if it is sent at several; ``low`` shrinks at the service."""
    wanted = {"high" if detail == "low" else detail for detail in details}
    found = next(detail for detail in ("original", "auto", *wanted) if detail in wanted)
    return detail_for(model, found)


def _expect_tokens(model: VisionModel, size: Size, is_unchanged: bool) -> int:
    if not is_unchanged:
        request = conversation_request(
            size, model=model, detail="auto", images_in_request=MAX_PICTURES
        )
        size = Size(*scale_into(size, request.max_width, request.max_height))
    return _tokens(model, size)


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
    return {} if text is None else _LINEAGE.decode(text)
