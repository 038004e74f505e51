"""An item -> its parts, wherever the item keeps them; and the item again with other parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from limner.wires.items import Item, as_written
from limner.wires.views import handle_of

Part = Mapping[str, Any]

IMAGE = "input_image"
# How the words begin that stand before and after a picture from a file.
PICTURE_TAGS = ("<image name=", "</image>")
_FIELDS = ("content", "output")


def with_parts(item: Item, swap: Callable[[Part], Part]) -> dict[str, Any]:
    """The item as it is written, each part that is an object passed through ``swap`` in order."""
    kept = as_written(item)
    for field in _FIELDS:
        if field in kept:
            kept[field] = _swapped(kept[field], swap)
    return kept


def image_parts(item: Item) -> list[Part]:
    """The parts of an item that are pictures, in their order."""
    found: list[Part] = []

    def look(part: Part) -> Part:
        if is_image(part):
            found.append(part)
        return part

    with_parts(item, look)
    return found


def handles_in(item: Item) -> list[str]:
    """The handles of an item's pictures, in their order."""
    named = [handle_of(str(part.get("image_url"))) for part in image_parts(item)]
    return [handle for handle in named if handle]


def is_image(part: Part) -> bool:
    """Whether a part is a picture."""
    return part.get("type") == IMAGE


def first_words(item: Item) -> str:
    """The first words in an item that are not blank, nor say which file a picture is; or none."""
    found: list[str] = []

    def look(part: Part) -> Part:
        words: object = part.get("text")
        if isinstance(words, str) and words.strip() and not words.startswith(PICTURE_TAGS):
            found.append(words)
        return part

    with_parts(item, look)
    return found[0] if found else ""


def _swapped(value: object, swap: Callable[[Part], Part]) -> object:
    if isinstance(value, list):
        return [
            swap(cast("Part", part)) if isinstance(part, dict) else part
            for part in cast("list[object]", value)
        ]
    if isinstance(value, dict) and "body" in value:
        payload = cast("dict[str, object]", value)
        return {**payload, "body": _swapped(payload["body"], swap)}
    return cast("object", value)
