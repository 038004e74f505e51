"""MCP's content blocks <-> the parts of an output."""

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
from limner.wires.incoming_media import Incoming, Omitted, RawAudio, parse_picture
from limner.wires.item_views import ContentPart, InputAudio, parts
from limner.wires.items import Item


def write(
    content: Sequence[Item], pictures: Mapping[str, ModelPicture], *, omitted: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The parts of an output as the ``content`` of a result.

    Raises:
        InputInvalid: a part cannot be sent, or a picture is not loaded.
    """
    writer = PartWriter(pictures, omitted=omitted, takes=PartSupport())
    return [block for part in parts(content) for block in _blocks(part, writer)]


def read(content: Sequence[Any]) -> list[Incoming]:
    """The content of a result; a block that limner does not take states why.

    Raises:
        InputInvalid: a value is not a content block.
    """
    return [_parse(block) for block in content]


def _blocks(part: ContentPart, writer: PartWriter) -> list[dict[str, Any]]:
    if isinstance(part, InputAudio) and part.audio_url is not None:
        kind, comma, data = part.audio_url.partition(";base64,")
        if comma:
            return [{"type": "audio", "data": data, "mimeType": kind.removeprefix("data:")}]
    return [_block(written) for written in writer.write([part])]


def _block(part: Part) -> dict[str, Any]:
    if not isinstance(part, PlacedPicture):
        return {"type": "text", "text": join_text([part])}
    return {
        "type": "image",
        "data": encode_base64(part.image.data),
        "mimeType": part.image.mime,
    }


class _Resource(msgspec.Struct, rename="camel"):
    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


class _Block(msgspec.Struct, rename="camel"):
    type: str
    text: str = ""
    data: str = ""
    mime_type: str = ""
    uri: str = ""
    name: str = ""
    resource: _Resource | None = None


def _parse(value: Any) -> Incoming:
    try:
        block = msgspec.convert(value, _Block)
    except msgspec.ValidationError as problem:
        raise InputInvalid(f"A content block is invalid: {problem}"[:300]) from problem
    match block.type:
        case "text":
            return block.text
        case "image":
            return parse_picture(f"data:{block.mime_type};base64,{block.data}")
        case "audio":
            return RawAudio(url=f"data:{block.mime_type};base64,{block.data}")
        case "resource_link":
            return f"{block.name}: {block.uri}"
        case "resource" if block.resource is not None:
            return _embedded(block.resource)
        case _:
            return Omitted(why=f"a content block of the kind {block.type[:80]!r}")


def _embedded(resource: _Resource) -> Incoming:
    if resource.text is not None:
        return resource.text
    mime = resource.mime_type or ""
    if resource.blob is not None and mime.startswith("image/"):
        return parse_picture(f"data:{mime};base64,{resource.blob}")
    return Omitted(why=f"the resource {resource.uri[:80]!r} is {mime[:80] or 'of no known type'}")
