"""Codex's content items of dynamic tools <-> the parts of an output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from limner.base64_text import encode_base64
from limner.errors import InputInvalid
from limner.wires.base import ModelPicture
from limner.wires.content_parts import (
    Part,
    PartSupport,
    PartWriter,
    PlacedPicture,
    join_text,
)
from limner.wires.incoming_media import Incoming, RawAudio, parse_picture
from limner.wires.item_views import ContentPart, InputAudio, parts
from limner.wires.items import Item


def write(
    content: Sequence[Item], pictures: Mapping[str, ModelPicture], *, omitted: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The parts of an output as ``contentItems``.

    Raises:
        InputInvalid: a part cannot be sent, or a picture is not loaded.
    """
    writer = PartWriter(pictures, omitted=omitted, takes=PartSupport())
    return [item for part in parts(content) for item in _items(part, writer)]


def read(content_items: Sequence[Any]) -> list[Incoming]:
    """The content of the ``contentItems`` of a response; an invalid picture states why.

    Raises:
        InputInvalid: an item is not of the three kinds.
    """
    return [_parse(item) for item in content_items]


def _items(part: ContentPart, writer: PartWriter) -> list[dict[str, Any]]:
    if isinstance(part, InputAudio) and part.audio_url is not None:
        return [{"type": "inputAudio", "audioUrl": part.audio_url}]
    return [_item(written) for written in writer.write([part])]


def _item(part: Part) -> dict[str, Any]:
    if not isinstance(part, PlacedPicture):
        return {"type": "inputText", "text": join_text([part])}
    url = f"data:{part.image.mime};base64,{encode_base64(part.image.data)}"
    return {"type": "inputImage", "imageUrl": url}


class _Text(msgspec.Struct, tag_field="type", tag="inputText"):
    text: str


class _Image(msgspec.Struct, tag_field="type", tag="inputImage", rename="camel"):
    image_url: str


class _Audio(msgspec.Struct, tag_field="type", tag="inputAudio", rename="camel"):
    audio_url: str


def _parse(value: Any) -> Incoming:
    try:
        item: _Text | _Image | _Audio = msgspec.convert(value, _Text | _Image | _Audio)
    except msgspec.ValidationError as problem:
        raise InputInvalid(
            f"A content item is invalid: {problem}"[:300],
            hint='Send {"type": "inputText", "text": …} or {"type": "inputImage", "imageUrl": …}.',
        ) from problem
    match item:
        case _Text():
            return item.text
        case _Image():
            return parse_picture(item.image_url)
        case _Audio():
            return RawAudio(url=item.audio_url)
