"""Text, pictures and audio -> the items of a conversation; an item -> its parts, and other parts.

An item keeps its parts in one of two fields. Code that only looks at parts iterates over them;
code that replaces parts maps them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from limner.content import Content, Picture, Text
from limner.wires.base import HANDLE_URL
from limner.wires.item_views import handle_of

Item = Mapping[str, Any]
Part = Mapping[str, Any]

PictureWithPath = tuple[Picture, Path | None]
"""A picture of a user's message, and the file that it comes from if there is one."""

# The text before and after a picture that comes from a file.
PICTURE_TAGS = ("<image name=", "</image>")

_TEXT, _IMAGE, _AUDIO = "input_text", "input_image", "input_audio"
TEXTS = (_TEXT, "output_text")
_PART_FIELDS = ("content", "output")
_BARE_BASE64 = "data:;base64,"

GENERATED = "image_generation_call"
"""The item of a picture that a service drew by itself: its ``result`` is base64 alone."""

OUTPUT_KINDS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
"""The kind of a tool call, and the kind of its output."""


# --- making items ---


def text_part(text: str) -> dict[str, Any]:
    """Text, as a part of a message or an output."""
    return {"type": _TEXT, "text": text}


def image_part(handle: str, *, detail: str | None = None) -> dict[str, Any]:
    """A picture, as a part of a message or an output."""
    part = {"type": _IMAGE, "image_url": f"{HANDLE_URL}{handle}"}
    return part if detail is None else {**part, "detail": detail}


def audio_part(url: str) -> dict[str, Any]:
    """An audio clip, as a part of a message or an output."""
    return {"type": _AUDIO, "audio_url": url}


def to_parts(content: Sequence[Content]) -> list[dict[str, Any]]:
    """Content as the parts of a message or an output."""
    return [
        text_part(one.text) if isinstance(one, Text) else image_part(one.handle) for one in content
    ]


def message(role: str, *parts: Part, phase: str | None = None) -> dict[str, Any]:
    """A message; the text of an assistant is of the kind ``output_text``."""
    content = [dict(part) for part in parts]
    if role == "assistant":
        content = [
            {**part, "type": "output_text"} if part.get("type") == _TEXT else part
            for part in content
        ]
    item: dict[str, Any] = {"type": "message", "role": role, "content": content}
    return item if phase is None else {**item, "phase": phase}


def user_message(text: str, pictures: Sequence[PictureWithPath] = ()) -> dict[str, Any]:
    """A user's message: first the pictures, each with the name of its file, then the text."""
    parts: list[dict[str, Any]] = []
    for number, (picture, path) in enumerate(pictures, start=1):
        parts += _tagged_picture(picture, path, number)
    if text or not parts:
        parts.append(text_part(text))
    return message("user", *parts)


def _tagged_picture(picture: Picture, path: Path | None, number: int) -> list[dict[str, Any]]:
    """A picture between tags that name its file, so that a model can pass the name to a tool."""
    if path is None:
        return [image_part(picture.handle)]
    opening, closing = PICTURE_TAGS
    tag = f'{opening}[Image #{number}] path="{path}">'
    return [text_part(tag), image_part(picture.handle), text_part(closing)]


def function_call(*, call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """A model's call of a tool; ``arguments`` is JSON."""
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def function_call_output(
    *, call_id: str, parts: Sequence[Part], success: bool | None = None
) -> dict[str, Any]:
    """The output of a tool; a single text is written as a plain string."""
    is_text = len(parts) == 1 and parts[0].get("type") == _TEXT
    output: Any = parts[0]["text"] if is_text else [dict(part) for part in parts]
    item: dict[str, Any] = {"type": "function_call_output", "call_id": call_id, "output": output}
    return item if success is None else {**item, "success": success}


# --- walking through the parts of an item ---


def flatten_output(item: Item) -> dict[str, Any]:
    """The item in the form that is stored and sent: its output is a string or an array.

    The ``{body, success}`` of the protocol's schema becomes its body, with ``success`` beside it.
    """
    output: object = item.get("output")
    if item.get("type") != "function_call_output" or not isinstance(output, dict):
        return dict(item)
    payload = dict(cast("dict[str, Any]", output))
    body = payload.pop("body", None)
    return {**payload, **item, "output": body}


def _generated_part(item: Item) -> Part | None:
    """The picture that a service drew by itself; its item has base64 alone, or a handle."""
    if item.get("type") != GENERATED:
        return None
    result: object = item.get("result")
    if not isinstance(result, str) or not result:
        return None
    is_url = handle_of(result) is not None
    return {"type": _IMAGE, "image_url": result if is_url else f"{_BARE_BASE64}{result}"}


def iter_parts(item: Item) -> Iterator[Part]:
    """The parts of an item that are objects, in order; a generated picture is one."""
    flat = flatten_output(item) if isinstance(item.get("output"), dict) else item
    if (picture := _generated_part(item)) is not None:
        yield picture
    for field in _PART_FIELDS:
        value: object = flat.get(field)
        while isinstance(value, dict):
            value = cast("dict[str, object]", value).get("body")
        if isinstance(value, list):
            for part in cast("list[object]", value):
                if isinstance(part, dict):
                    yield cast("Part", part)


def has_only_text(item: Item) -> bool:
    """Whether an item has no part but plain text, as most items of a long conversation.

    Such an item has no media, and `map_parts` would return an equal one.
    """
    if item.get("type") == GENERATED:
        return False
    for field in _PART_FIELDS:
        value: object = item.get(field)
        if value is None or isinstance(value, str):
            continue
        if not isinstance(value, list) or not all(map(is_text, cast("list[object]", value))):
            return False
    return True


def is_text(part: object) -> bool:
    """Whether a part is plain text."""
    if not isinstance(part, dict):
        return False
    found = cast("Part", part)
    return found.get("type") in TEXTS and isinstance(found.get("text"), str)


def map_parts(item: Item, fn: Callable[[Part], Part]) -> dict[str, Any]:
    """The item in its stored form, with ``fn(part)`` in place of each part of `iter_parts`."""
    flat = flatten_output(item)
    for field in _PART_FIELDS:
        if field in flat:
            flat[field] = _map_value(flat[field], fn)
    if (picture := _generated_part(item)) is not None:
        new = fn(picture)
        url = str(new.get("image_url", ""))
        flat["result"] = url if handle_of(url) is not None else url.partition(",")[2]
        if not is_image(new):
            flat["note"] = new.get("text")
    return flat


def _map_value(value: object, fn: Callable[[Part], Part]) -> object:
    if isinstance(value, list):
        return [
            fn(cast("Part", part)) if isinstance(part, dict) else part
            for part in cast("list[object]", value)
        ]
    if isinstance(value, dict) and "body" in value:
        payload = cast("dict[str, object]", value)
        return {**payload, "body": _map_value(payload["body"], fn)}
    return cast("object", value)


def is_call(item: Item) -> bool:
    """Whether an item is a model's call of a tool."""
    return item.get("type") in OUTPUT_KINDS


def is_image(part: Part) -> bool:
    """Whether a part is a picture; a file at OpenAI, which only OpenAI can read, is none."""
    is_file = isinstance(part.get("file_id"), str) and not part.get("image_url")
    return part.get("type") == _IMAGE and not is_file


def is_audio(part: Part) -> bool:
    """Whether a part is an audio clip."""
    return part.get("type") == _AUDIO


def image_parts(item: Item) -> list[Part]:
    """The pictures of an item, in order."""
    return [part for part in iter_parts(item) if is_image(part)]


def image_urls(item: Item) -> list[str]:
    """The URLs of an item's pictures, in order."""
    urls = (part.get("image_url") for part in image_parts(item))
    return [url for url in urls if isinstance(url, str)]


def image_handles(item: Item) -> list[str]:
    """The handles of an item's pictures, in order."""
    return [handle for url in image_urls(item) if (handle := handle_of(url))]


def first_text(item: Item) -> str:
    """The first text of an item that is neither blank nor a picture's tag; else an empty one."""
    texts = (part.get("text") for part in iter_parts(item))
    return next(
        (
            text
            for text in texts
            if isinstance(text, str) and text.strip() and not text.startswith(PICTURE_TAGS)
        ),
        "",
    )


def replace_images(item: Item, replacements: Mapping[str, Part]) -> dict[str, Any]:
    """The item with other parts in place of the pictures whose URLs are in ``replacements``.

    A picture that replaces a picture keeps the old fields that it does not set, such as ``detail``.
    """

    def replace(part: Part) -> Part:
        url: object = part.get("image_url")
        if not is_image(part) or not isinstance(url, str) or url not in replacements:
            return part
        new = replacements[url]
        return {**part, **new} if is_image(new) else dict(new)

    return map_parts(item, replace)
