"""The tool `image_generate`: a prompt in, a PNG on disk and its facts out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from limner.providers.choice import AUTO
from limner.tools.base import Tool
from limner.tools.generation import ImageGenerator
from limner.tools.generation_tool import DRAWING_PROPERTIES, drawing_tool, read_common
from limner.tools.planning import DEFAULT_SIZE, Order

TOOL = "image_generate"

DESCRIPTION = (
    "Draw one picture from a text prompt and save it as a PNG. Returns the path, the real "
    "dimensions, the cost in dollars, the provider and the prompt it used. On a machine without "
    "an image model it draws vector art; then `svg` gives the best pictures: write an SVG "
    'document yourself, and place ready-made pictures in it with <asset name="robot" x="10" '
    'y="10" size="300"/>.'
)

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "prompt": {
            "type": "string",
            "description": "Text description of the image to generate.",
        },
        "output_path": DRAWING_PROPERTIES["output_path"],
        "size": {
            "type": "string",
            "default": "1024x1024",
            "description": "One of 512x512 (Flux only), 1024x1024, 1024x1792, 1792x1024; "
            "another WIDTHxHEIGHT the provider can draw; or a shape, as 16:9.",
        },
        "quality": DRAWING_PROPERTIES["quality"],
        "provider": DRAWING_PROPERTIES["provider"],
        "model": DRAWING_PROPERTIES["model"],
        "svg": {
            "type": "string",
            "description": "An SVG document to render instead of asking an image model; the "
            "prompt then only describes it.",
        },
        **DRAWING_PROPERTIES,
    },
    "required": ["prompt"],
}


def image_generate(
    drawing: ImageGenerator, *, default_provider: str, fallback: tuple[str, ...] = ()
) -> Tool:
    """The tool, drawing through ``drawing``."""

    def read(arguments: Mapping[str, Any]) -> Order:
        return read_order(arguments, default_provider=default_provider, fallback=fallback)

    return drawing_tool(TOOL, DESCRIPTION, SCHEMA, drawing, read)


def read_order(
    arguments: Mapping[str, Any], *, default_provider: str, fallback: tuple[str, ...] = ()
) -> Order:
    """The order in arguments that satisfy the schema.

    Raises:
        InputInvalid: the prompt is blank, or the size is no size.
    """
    # A model or a document decides who draws; the setting is for calls that leave it open.
    chosen = "model" in arguments or "svg" in arguments
    return Order(
        **read_common(
            arguments,
            default_provider=AUTO if chosen else default_provider,
            fallback=() if chosen else fallback,
            default_size=DEFAULT_SIZE,
        ),
        tool=TOOL,
        svg=arguments.get("svg"),
    )
