"""The tool `image_edit`: pictures and words in, a new picture on disk and its facts out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from limner.providers.choice import AUTO
from limner.tools.base import Tool
from limner.tools.generation import ImageGenerator
from limner.tools.generation_tool import DRAWING_PROPERTIES, drawing_tool, read_common
from limner.tools.planning import Order
from limner.tools.regions import read_region, region_schema

TOOL = "image_edit"
MAX_REFERENCES = 15

DESCRIPTION = (
    "Change a picture, or draw a new one from pictures: say in `prompt` what to change and what "
    "to keep. `mask` or `region` limits the change to a part; `references` are further pictures "
    "to take from, such as a style, a face or a product. Saves a PNG and returns its path, "
    "dimensions and cost. The original stays as it is."
)

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "image": {
            "type": "string",
            "description": "The picture to change: a file path, or the handle that came with it.",
        },
        "prompt": {"type": "string", "description": "What to change, and what to keep."},
        "references": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": MAX_REFERENCES,
            "description": "More pictures to take from: paths or handles.",
        },
        "mask": {
            "type": "string",
            "description": "A picture of the same size, transparent or white where it may change.",
        },
        "region": region_schema("The part that may change, in pixels of the picture."),
        **DRAWING_PROPERTIES,
        "size": {
            "type": "string",
            "description": "WIDTHxHEIGHT or a shape as 16:9; by default the shape of the picture.",
        },
    },
    "required": ["image", "prompt"],
}


def image_edit(
    drawing: ImageGenerator, *, default_provider: str, fallback: tuple[str, ...]
) -> Tool:
    """The tool, drawing through ``drawing``."""

    def read(arguments: Mapping[str, Any]) -> Order:
        return read_edit(arguments, default_provider=default_provider, fallback=fallback)

    return drawing_tool(TOOL, DESCRIPTION, SCHEMA, drawing, read)


def read_edit(
    arguments: Mapping[str, Any], *, default_provider: str, fallback: tuple[str, ...] = ()
) -> Order:
    """The order in arguments that satisfy the schema.

    Raises:
        InputInvalid: the prompt is blank, or the size is no size.
    """
    chosen = "model" in arguments
    return Order(
        **read_common(
            arguments,
            default_provider=AUTO if chosen else default_provider,
            fallback=() if chosen else fallback,
            default_size=None,
        ),
        tool=TOOL,
        sources=(arguments["image"], *arguments.get("references", ())),
        mask=arguments.get("mask"),
        region=read_region(arguments),
    )
