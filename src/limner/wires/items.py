"""The items that limner makes itself, and the form in which items that arrive are kept.

A picture in an item is named by its handle. What arrives with its bytes inside is swapped at the
door: `image_urls` finds the addresses, `with_images` puts handles or words in their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from limner.content import Content, Text
from limner.wires.base import HANDLE_URL

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
