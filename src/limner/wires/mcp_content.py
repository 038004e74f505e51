"""MCP's content blocks <-> the parts of an output: what tools of that protocol give back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from limner.errors import InputInvalid
from limner.wires.base import ModelPicture
from limner.wires.content_parts import (
    Part,
    PartSupport,
    PartWriter,
    PlacedPicture,
    encode_base64,
    join_text,
)
from limner.wires.incoming_media import Incoming, Omitted, RawAudio, picture_of
from limner.wires.item_views import ContentPart, InputAudio, parts
from limner.wires.items import Item


def write(
    content: Sequence[Item], pictures: Mapping[str, ModelPicture], *, omitted: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The parts of an output as the ``content`` of a result.

    Raises:
        InputInvalid: a part has no place, or a picture is not there.
    """
    writer = PartWriter(pictures, omitted=omitted, takes=PartSupport())
    return [block for part in parts(content) for block in _blocks(part, writer)]


def read(content: Sequence[Any]) -> list[Incoming]:
    """What is in the ``content`` of a result; a block that cannot be taken says why.

    Raises:
        InputInvalid: something is no content block.
    """
    return [_incoming(block) for block in content]


def _blocks(part: ContentPart, writer: PartWriter) -> list[dict[str, Any]]:
    if isinstance(part, InputAudio) and part.audio_url is not None:
        kind, comma, data = part.audio_url.partition(";base64,")
        if comma:
            return [{"type": "audio", "data": data, "mimeType": kind.removeprefix("data:")}]
    return [_block(placed) for placed in writer.write([part])]


def _block(part: Part) -> dict[str, Any]:
    if not isinstance(part, PlacedPicture):
        return {"type": "text", "text": join_text([part])}
    return {"type": "image", "data": encode_base64(part.image), "mimeType": part.image.mime}


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


def _incoming(found: Any) -> Incoming:
    try:
        block = msgspec.convert(found, _Block)
    except msgspec.ValidationError as problem:
        raise InputInvalid(f"A content block is not one: {problem}"[:300]) from problem
    match block.type:
        case "text":
            return block.text
        case "image":
            return picture_of(f"data:{block.mime_type};base64,{block.data}")
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
        return picture_of(f"data:{mime};base64,{resource.blob}")
    return Omitted(why=f"the resource {resource.uri[:80]!r} is {mime[:80] or 'of no known type'}")
