"""The places of pictures in a conversation, and the words that stand in those not shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, cast

import msgspec

from limner.agent.untrusted import is_untrusted
from limner.catalogue.sizes import Size
from limner.catalogue.vision import VisionModel, tokens
from limner.content import Picture
from limner.errors import ImageTooLarge, InputInvalid
from limner.storage.blobs import is_handle
from limner.tools.image_recall import IMAGE_RECALL
from limner.wires.item_views import Unknown, handle_of, parts
from limner.wires.items import Item, Part, first_words, image_parts, is_image, with_parts

MAX_CAPTION_CHARS = 80
# Brackets would end the note that a caption stands in.
_CLEAN = str.maketrans({"[": "(", "]": ")"})
_OUTPUTS = ("function_call_output", "custom_tool_call_output")


def caption(
    lineage: Mapping[str, Any] | None, *, answer: str | None = None, beside: str = ""
) -> str | None:
    """A few words for a picture, or None where nothing is known of it.

    Args:
        lineage: what was written down when it came in, if it did.
        answer: what a model said about it.
        beside: the words of the item it is in.
    """
    prompt, file = (None if lineage is None else lineage.get(k) for k in ("prompt", "file"))
    named = PurePath(file).name if isinstance(file, str) else None
    known = (prompt, answer, named, beside)
    return next((line for words in known if (line := _one_line(words))), None)


def answers(items: Iterable[Item]) -> dict[str, str]:
    """What `inspect_image` answered in a conversation, by the handle it was asked about.

    The first answer stays: a caption that changed would change what requests begin with. What a
    stranger may have written into a picture is left out, since captions stand outside of all tags.
    """
    found: dict[str, str] = {}
    for item in items:
        if item.get("type") in _OUTPUTS and not is_untrusted(item):
            output: object = item.get("output")
            told = _inspection(output if isinstance(output, str) else first_words(item))
            if told is not None:
                found.setdefault(*told)
    return found


def _inspection(output: str) -> tuple[str, str] | None:
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


def _one_line(words: object) -> str | None:
    """The first line that says something, printable and of bounded length."""
    if not isinstance(words, str):
        return None
    line = words.strip().partition("\n")[0].translate(_CLEAN)
    shown = " ".join("".join(c if c.isprintable() else " " for c in line).split())
    if len(shown) > MAX_CAPTION_CHARS:
        shown = f"{shown[: MAX_CAPTION_CHARS - 1].rstrip()}…"
    return shown or None


SHORT_HANDLE_CHARS = 12

BLOCKED = "not sent: images.block_images is set"
NO_EYES = "not sent: this model takes no pictures"
REFUSED = "not sent: the model's service refused it"
GONE = "not sent: it is not stored here"
UNFIT = "not sent: it could not be made ready for this model"
LEFT = "no longer sent, to save room"
RECALLABLE = f"{LEFT}; ask {IMAGE_RECALL.name} for it"


class KnownPicture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture that is stored here, and what its model's service made of it."""

    picture: Picture
    lineage: Mapping[str, Any]
    is_quarantined: bool
    is_accepted: bool


class PictureSlot(msgspec.Struct, frozen=True, kw_only=True):
    """One place of a picture: the number of its item, its handle, and why it is not shown there.

    Where the picture is named by anything but a handle, that is empty.
    """

    item: int
    handle: str
    why: str | None = None

    @property
    def is_shown(self) -> bool:
        """Whether the picture itself is sent there."""
        return self.why is None


def places_in(items: Iterable[Item]) -> list[PictureSlot]:
    """Every place of a picture, in order."""
    return [
        PictureSlot(item=number, handle=_handle(part))
        for number, item in enumerate(items)
        for part in image_parts(item)
    ]


def written(
    items: Sequence[Item],
    places: Iterable[PictureSlot],
    known: Mapping[str, KnownPicture],
    model: VisionModel,
) -> list[dict[str, Any]]:
    """The items as a model is sent them: pictures where they are shown, words where they are not.

    Parts that no service could make sense of are replaced by words too: history keeps them.
    """
    following, told = iter(places), answers(items)

    def rewritten(item: Item) -> dict[str, Any]:
        words = "output_text" if item.get("role") == "assistant" else "input_text"

        def swap(part: Part) -> Part:
            if not is_image(part):
                return part if _is_sendable(part) else _unsendable(part, words)
            place = next(following)
            one = known.get(place.handle)
            if one is not None and place.is_shown:
                return _with_known_detail(part, one.picture, model)
            line = caption(
                None if one is None else one.lineage,
                answer=told.get(place.handle),
                beside=first_words(item),
            )
            return {"type": words, "text": _note(place, line)}

        return with_parts(item, swap)

    return [rewritten(item) for item in items]


def _note(place: PictureSlot, line: str | None) -> str:
    name = f"picture {place.handle[:SHORT_HANDLE_CHARS]}".rstrip()
    return f"[{name}{'' if line is None else f': {line}'}; {place.why}]"


def _handle(part: Part) -> str:
    found = handle_of(str(part.get("image_url"))) or ""
    return found if is_handle(found) else ""


def _is_sendable(part: Part) -> bool:
    try:
        (view,) = parts([part])
    except InputInvalid:
        return False
    return not isinstance(view, Unknown)


def _unsendable(part: Part, words: str) -> Part:
    return {
        "type": words,
        "text": f"[a part of the kind {str(part.get('type'))[:40]!r} is left out]",
    }


def _with_known_detail(part: Part, picture: Picture, model: VisionModel) -> Part:
    """The part without a detail that the model does not have: its service would refuse that."""
    detail = part.get("detail")
    try:
        known = isinstance(detail, str) and tokens(
            model, Size(picture.width, picture.height), detail
        )
    except ImageTooLarge:  # of the original; what is sent is smaller
        known = True
    except InputInvalid:
        known = None
    return part if known else {key: value for key, value in part.items() if key != "detail"}
