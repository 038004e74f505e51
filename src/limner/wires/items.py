"""An item -> its parts, wherever the item keeps them; and the item again with other parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from limner.content import Content, Picture, Text
from limner.wires.base import HANDLE_URL
from limner.wires.item_views import handle_of

Item = Mapping[str, Any]


def as_written(item: Item) -> dict[str, Any]:
    """The item in the form that is kept and sent: an output is a string or an array.

    The schema's ``{body, success}`` becomes that, with ``success`` beside it.
    """
    output: object = item.get("output")
    if item.get("type") != "function_call_output" or not isinstance(output, dict):
        return dict(item)
    beside = dict(cast("dict[str, Any]", output))
    body = beside.pop("body", None)
    return {**beside, **item, "output": body}


def text(words: str) -> dict[str, Any]:
    """Words, as a part of a message or an output."""
    return {"type": "input_text", "text": words}


def picture(handle: str, *, detail: str | None = None) -> dict[str, Any]:
    """A picture, as a part of a message or an output."""
    part = {"type": "input_image", "image_url": f"{HANDLE_URL}{handle}"}
    return part if detail is None else {**part, "detail": detail}


def parts_of(content: Sequence[Content]) -> list[dict[str, Any]]:
    """Content as the parts of a message or an output."""
    return [text(one.text) if isinstance(one, Text) else picture(one.handle) for one in content]


def message(role: str, *parts: Item, phase: str | None = None) -> dict[str, Any]:
    """Somebody speaks; an assistant's words are of the kind ``output_text``."""
    said = [dict(part) for part in parts]
    if role == "assistant":
        said = [
            {**part, "type": "output_text"} if part.get("type") == "input_text" else part
            for part in said
        ]
    item: dict[str, Any] = {"type": "message", "role": role, "content": said}
    return item if phase is None else {**item, "phase": phase}


def function_call(*, call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """A model calls a tool; ``arguments`` is JSON."""
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def function_call_output(
    *, call_id: str, parts: Sequence[Item], success: bool | None = None
) -> dict[str, Any]:
    """What a tool gave back; a single text is written as a plain string."""
    is_text = len(parts) == 1 and parts[0].get("type") == "input_text"
    output: Any = parts[0]["text"] if is_text else [dict(part) for part in parts]
    item: dict[str, Any] = {"type": "function_call_output", "call_id": call_id, "output": output}
    return item if success is None else {**item, "success": success}


def image_urls(item: Item) -> list[str]:
    """The addresses of all pictures in an item, in their order."""
    return [
        part["image_url"]
        for part in _raw_parts(item)
        if part.get("type") == "input_image" and isinstance(part.get("image_url"), str)
    ]


def with_images(item: Item, swaps: Mapping[str, Item]) -> dict[str, Any]:
    """The item with each picture whose address is among ``swaps`` replaced by that part.

    What the part does not say, such as ``detail``, stays if it is a picture too.
    """
    kept = as_written(item)
    for field in ("content", "output"):
        if isinstance(kept.get(field), list):
            kept[field] = [_swapped(part, swaps) for part in cast("list[Any]", kept[field])]
    return kept


def _swapped(part: Any, swaps: Mapping[str, Item]) -> Any:
    if not isinstance(part, dict):
        return part
    old = cast("dict[str, Any]", part)
    url = old.get("image_url")
    if old.get("type") != "input_image" or not isinstance(url, str) or url not in swaps:
        return old
    new = swaps[url]
    return {**old, **new} if new.get("type") == "input_image" else dict(new)


def _raw_parts(item: Item) -> Iterator[dict[str, Any]]:
    kept = as_written(item)
    for field in ("content", "output"):
        found: object = kept.get(field)
        for part in cast("list[object]", found) if isinstance(found, list) else ():
            if isinstance(part, dict):
                yield cast("dict[str, Any]", part)


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
            kept[field] = _swapped_parts(kept[field], swap)
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


def _swapped_parts(value: object, swap: Callable[[Part], Part]) -> object:
    if isinstance(value, list):
        return [
            swap(cast("Part", part)) if isinstance(part, dict) else part
            for part in cast("list[object]", value)
        ]
    if isinstance(value, dict) and "body" in value:
        payload = cast("dict[str, object]", value)
        return {**payload, "body": _swapped_parts(payload["body"], swap)}
    return cast("object", value)


Shown = tuple[Picture, Path | None]
"""A picture, and the file it comes from where it has one."""


def said(words: str, pictures: Sequence[Shown] = ()) -> dict[str, Any]:
    """What a user says: first the pictures, each with the name of its file, then the words."""
    parts: list[dict[str, Any]] = []
    for number, (shown, path) in enumerate(pictures, start=1):
        parts += _tagged(shown, path, number)
    if words or not parts:
        parts.append(text(words))
    return message("user", *parts)


def _tagged(shown: Picture, path: Path | None, number: int) -> list[dict[str, Any]]:
    """A picture between tags that say where it is, so that a model can name it to a tool."""
    if path is None:
        return [picture(shown.handle)]
    opening, closing = PICTURE_TAGS
    named = f'{opening}[Image #{number}] path="{path}">'
    return [text(named), picture(shown.handle), text(closing)]
