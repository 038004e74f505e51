"""A conversation -> the slots of its pictures, and its items with a note in each unsent slot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, cast

import msgspec

from limner.agent.audio import NO_ROOM, count_unsent, parse_clip
from limner.agent.untrusted import is_untrusted
from limner.catalogue.sizes import Size
from limner.catalogue.vision import VisionModel, largest_useful
from limner.content import Picture
from limner.errors import InputInvalid
from limner.storage.blobs import is_handle
from limner.tools.built_in.image_recall import IMAGE_RECALL
from limner.wires.content_parts import NO_AUDIO, AudioClip, audio_note
from limner.wires.item_views import Unknown, handle_of, parts
from limner.wires.items import (
    Item,
    Part,
    first_text,
    has_only_text,
    is_audio,
    is_image,
    is_text,
    iter_parts,
    map_parts,
)

MAX_CAPTION_CHARS = 80
SHORT_HANDLE_CHARS = 12

BLOCKED = "not sent: images.block_images is set"
NO_IMAGES = "not sent: this model takes no pictures"
REFUSED = "not sent: the model's service refused it"
NOT_STORED = "not sent: it is not stored here"
UNFIT = "not sent: it could not be made ready for this model"
LEFT_OUT = "no longer sent, to save room"
TOO_MANY = "not sent: the model takes no more pictures in one request"
RECALLABLE = f"{LEFT_OUT}; ask {IMAGE_RECALL.name} for it"

# Brackets would end the note that contains the caption.
_CLEAN = str.maketrans({"[": "(", "]": ")"})
_OUTPUTS = ("function_call_output", "custom_tool_call_output")


class KnownPicture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture that is stored here, and whether the model's service accepted or refused it."""

    picture: Picture
    lineage: Mapping[str, Any]
    is_quarantined: bool
    is_accepted: bool


class PictureSlot(msgspec.Struct, frozen=True, kw_only=True):
    """One occurrence of a picture.

    Attributes:
        item: the index of its item.
        handle: empty if the URL of the picture is not a handle.
        detail: the detail that was asked for, if any.
        why: why it is not sent.
    """

    item: int
    handle: str
    detail: str | None = None
    why: str | None = None

    @property
    def is_shown(self) -> bool:
        """Whether the picture itself is sent in this slot."""
        return self.why is None


class HistoryMedia(msgspec.Struct, frozen=True, kw_only=True):
    """The pictures and the audio clips of a conversation, oldest first."""

    slots: Sequence[PictureSlot]
    clips: Sequence[AudioClip]


def find_media(items: Iterable[Item]) -> HistoryMedia:
    """Collect every picture and every audio clip of a conversation."""
    slots: list[PictureSlot] = []
    clips: list[AudioClip] = []
    for number, item in enumerate(items):
        if has_only_text(item):
            continue
        for part in iter_parts(item):
            if is_image(part):
                slots.append(
                    PictureSlot(item=number, handle=_handle(part), detail=part.get("detail"))
                )
            elif is_audio(part) and (clip := parse_clip(part)) is not None:
                clips.append(clip)
    return HistoryMedia(slots=slots, clips=clips)


def caption(
    lineage: Mapping[str, Any] | None, *, answer: str | None = None, item_text: str = ""
) -> str | None:
    """A short line about a picture, or None if nothing is known about it.

    Args:
        lineage: what was recorded when the picture was stored, if it was.
        answer: what a model said about it.
        item_text: the text of its item.
    """
    prompt, file = (None if lineage is None else lineage.get(k) for k in ("prompt", "file"))
    name = PurePath(file).name if isinstance(file, str) else None
    candidates = (prompt, answer, name, item_text)
    return next((line for text in candidates if (line := _one_line(text))), None)


def inspection_answers(items: Iterable[Item]) -> dict[str, str]:
    """What `inspect_image` answered in a conversation, by the handle of its picture.

    The first answer stays: a caption that changes would change the start of every request.
    Untrusted outputs are left out, because captions are outside of the tags that mark untrusted
    text.
    """
    found: dict[str, str] = {}
    for item in items:
        if item.get("type") in _OUTPUTS and not is_untrusted(item):
            output: object = item.get("output")
            answer = _parse_inspection(output if isinstance(output, str) else first_text(item))
            if answer is not None:
                found.setdefault(*answer)
    return found


def render_items(
    items: Sequence[Item],
    slots: Sequence[PictureSlot],
    clips: Sequence[AudioClip],
    *,
    known: Mapping[str, KnownPicture],
    model: VisionModel,
) -> tuple[list[Item], Sequence[AudioClip]]:
    """The items as a model is sent them, and the audio clips that are left in them.

    A note replaces each picture that is not shown, and each of the oldest audio clips if there is
    no room for all. A note also replaces a part that no service understands. History keeps all of
    them.
    """
    unsent = count_unsent(clips, takes_audio=model.takes_audio)
    renderer = _Renderer(items, slots, known, model, unsent)
    return [item if has_only_text(item) else renderer.render(item) for item in items], clips[
        unsent:
    ]


class _Renderer:
    """Renders the items of one conversation, in order."""

    def __init__(
        self,
        items: Sequence[Item],
        slots: Sequence[PictureSlot],
        known: Mapping[str, KnownPicture],
        model: VisionModel,
        unsent_clips: int,
    ) -> None:
        self._slots, self._known, self._model = iter(slots), known, model
        self._unsent_clips = unsent_clips
        self._details: dict[str, str] = {}
        is_any_hidden = any(not slot.is_shown for slot in slots)
        self._answers = inspection_answers(items) if is_any_hidden else {}

    def render(self, item: Item) -> Item:
        if item.get("type") == "reasoning":
            return item  # its texts are of kinds that messages do not have
        kind = "output_text" if item.get("role") == "assistant" else "input_text"

        def render_part(part: Part) -> Part:
            if is_image(part):
                return self._render_image(part, item, kind)
            if is_audio(part) and self._unsent_clips and parse_clip(part) is not None:
                self._unsent_clips -= 1
                why = NO_ROOM if self._model.takes_audio else NO_AUDIO
                return {"type": kind, "text": audio_note(why)}
            return part if _is_sendable(part) else _unsendable_note(part, kind)

        return map_parts(item, render_part)

    def _render_image(self, part: Part, item: Item, kind: str) -> Part:
        slot = next(self._slots)
        found = self._known.get(slot.handle)
        if found is not None and slot.is_shown:
            return self._with_detail(part)
        line = caption(
            None if found is None else found.lineage,
            answer=self._answers.get(slot.handle),
            item_text=first_text(item),
        )
        return {
            "type": kind,
            "text": picture_note(slot.handle[:SHORT_HANDLE_CHARS], line, slot.why),
        }

    def _with_detail(self, part: Part) -> Part:
        """The part with the detail that its model gets, without one if that is the default."""
        asked = str(part.get("detail"))
        if asked not in self._details:
            self._details[asked] = detail_for(self._model, part.get("detail"))
        rest = {key: value for key, value in part.items() if key != "detail"}
        detail = self._details[asked]
        return rest if detail == "auto" else {**rest, "detail": detail}


def picture_note(handle: str, line: str | None, why: str | None) -> str:
    """The text that is sent in place of a picture: its handle, its caption, why it is not sent."""
    name = f"picture {handle}".rstrip()
    return f"[{name}{'' if line is None else f': {line}'}; {why}]"


def _parse_inspection(output: str) -> tuple[str, str] | None:
    """The handle and the answer in an output of `inspect_image`."""
    if not output.startswith('{"text":'):
        return None
    try:
        value = msgspec.json.decode(output, type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        return None
    details: object = value.get("details")
    if not isinstance(details, dict) or not isinstance(value["text"], str):
        return None
    handle = cast("dict[str, Any]", details).get("image")
    return (handle, value["text"]) if isinstance(handle, str) else None


def _one_line(text: object) -> str | None:
    """The first line that is not blank, printable and cut to a bounded length."""
    if not isinstance(text, str):
        return None
    line = text.strip().partition("\n")[0].translate(_CLEAN)
    if not line.isprintable():
        line = "".join(c if c.isprintable() else " " for c in line)
    shown = " ".join(line.split())
    if len(shown) > MAX_CAPTION_CHARS:
        shown = f"{shown[: MAX_CAPTION_CHARS - 1].rstrip()}…"
    return shown or None


def _handle(part: Part) -> str:
    found = handle_of(str(part.get("image_url"))) or ""
    return found if is_handle(found) else ""


def _is_sendable(part: Part) -> bool:
    if is_text(part):
        return True  # most parts; a long conversation has many
    try:
        (view,) = parts([part])
    except InputInvalid:
        return False
    return not isinstance(view, Unknown)


def _unsendable_note(part: Part, kind: str) -> Part:
    return {
        "type": kind,
        "text": f"[a part of the kind {str(part.get('type'))[:40]!r} is left out]",
    }


def detail_for(model: VisionModel, detail: object) -> str:
    """The detail to send, or ``auto``: a service refuses a detail that its model does not have.

    A model without a known rule gets what was asked for. ``original`` becomes ``high`` if the model
    has no better one.
    """
    if not isinstance(detail, str):
        return "auto"
    for wanted in (detail, "high") if detail == "original" else (detail,):
        try:
            largest_useful(model, Size(1, 1), wanted)
        except InputInvalid:
            continue
        return wanted
    return "auto"
