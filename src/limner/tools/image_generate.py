"""The tool `image_generate`: a prompt in, a PNG on disk and its facts out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from limner.catalogue.images import parse_size
from limner.errors import InputInvalid
from limner.money.spending import told_cost
from limner.providers.choose import AUTO
from limner.tools.base import Outcome, Tool, ToolContext
from limner.tools.drawing import TOOL, Drawing
from limner.tools.landing import GeneratedImage
from limner.tools.ordering import MAX_SEED, Order

MAX_RESULT_CHARS = 1_000

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
        "output_path": {
            "type": "string",
            "description": "File path to save the PNG. Default: a new file in limner's folder.",
        },
        "size": {
            "type": "string",
            "default": "1024x1024",
            "description": "One of 512x512 (Flux only), 1024x1024, 1024x1792, 1792x1024; "
            "or another WIDTHxHEIGHT the provider can draw.",
        },
        "quality": {
            "type": "string",
            "enum": ["standard", "hd"],
            "default": "standard",
            "description": "standard or hd.",
        },
        "provider": {
            "type": "string",
            "default": "auto",
            "description": "openai-dalle, openai-image, replicate-flux, illustrator, or auto.",
        },
        "model": {"type": "string", "description": "One model of the provider, by its id."},
        "svg": {
            "type": "string",
            "description": "An SVG document to render instead of asking an image model; the "
            "prompt then only describes it.",
        },
        "seed": {"type": "integer", "minimum": 0, "maximum": MAX_SEED},
        "overwrite": {
            "type": "boolean",
            "default": False,
            "description": "Replace an existing file at output_path.",
        },
    },
    "required": ["prompt"],
}


def image_generate(drawing: Drawing, *, default_provider: str) -> Tool:
    """The tool, drawing through ``drawing``."""

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        order = read_order(arguments, default_provider=default_provider)
        try:
            drawn = await drawing.draw(order, context)
        except asyncio.CancelledError as stop:
            # The registry knows that it cancelled; it must also learn what that cost.
            if (told := told_cost(stop)) is not None:
                raise told from stop
            raise
        return Outcome(
            value=as_value(drawn),
            content=(drawn.image,),
            cost_nano=drawn.cost_nano,
            cost_source=drawn.cost_source,
        )

    return Tool(
        name=TOOL,
        description=DESCRIPTION,
        schema=SCHEMA,
        run=run,
        toolset="image",
        max_result_chars=MAX_RESULT_CHARS,
    )


def read_order(arguments: Mapping[str, Any], *, default_provider: str) -> Order:
    """The order in arguments that satisfy the schema.

    Raises:
        InputInvalid: the prompt is blank, or the size is no size.
    """
    prompt: str = arguments["prompt"]
    if not prompt.strip():
        raise InputInvalid("prompt is required and must not be blank", field="prompt")
    seed = arguments.get("seed")
    # A model or a document decides who draws; the setting is for calls that leave it open.
    chosen = "model" in arguments or "svg" in arguments
    return Order(
        prompt=prompt,
        output_path=arguments.get("output_path"),
        size=parse_size(arguments.get("size", "1024x1024")),
        quality=arguments.get("quality", "standard"),
        provider=arguments.get("provider", AUTO if chosen else default_provider),
        model=arguments.get("model"),
        svg=arguments.get("svg"),
        seed=None if seed is None else int(seed),  # 1.0 is a whole number in JSON
        overwrite=arguments.get("overwrite", False),
    )


def as_value(drawn: GeneratedImage) -> dict[str, Any]:
    """The tool's answer: the five promised members in their order, then the extras."""
    return {
        "path": str(drawn.path),
        "dimensions": drawn.dimensions._asdict(),
        "cost_usd": drawn.cost_usd,
        "provider": drawn.provider,
        "prompt_used": drawn.prompt_used,
        "cost_source": drawn.cost_source,
        "model": drawn.model,
        "image": drawn.image.handle,
        **drawn.extras,
    }
