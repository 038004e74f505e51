"""What the tools that draw have in common: arguments in, a set of pictures out as a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from limner.catalogue.images import Size
from limner.catalogue.sizes import parse_shape, parse_size
from limner.errors import NANO_PER_USD, CostSource, InputInvalid
from limner.tools.base import Outcome, Tool, ToolContext
from limner.tools.generation import ImageGenerator
from limner.tools.output_file import GeneratedImage
from limner.tools.picture_set import PictureSet, draw_all
from limner.tools.planning import MAX_SEED, Order

MAX_RESULT_CHARS = 1_000
MAX_COUNT = 10

DRAWING_PROPERTIES: Mapping[str, Any] = {
    "output_path": {
        "type": "string",
        "description": "File path to save the PNG. Default: a new file in limner's folder.",
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
        "description": "openai-dalle, openai-image, replicate-flux, illustrator and others, or "
        "auto.",
    },
    "model": {"type": "string", "description": "One model of the provider, by its id."},
    "seed": {"type": "integer", "minimum": 0, "maximum": MAX_SEED},
    "overwrite": {
        "type": "boolean",
        "default": False,
        "description": "Replace an existing file at output_path.",
    },
    "n": {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_COUNT,
        "default": 1,
        "description": "How many pictures; each is paid for.",
    },
    "background": {"type": "string", "enum": ["transparent", "opaque"]},
    "negative_prompt": {"type": "string", "description": "What should not be in the picture."},
}


def drawing_tool(
    name: str,
    description: str,
    schema: Mapping[str, Any],
    drawing: ImageGenerator,
    read: Callable[[Mapping[str, Any]], Order],
) -> Tool:
    """A tool that reads its arguments as an order and draws that."""

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        order = read(arguments)
        drawn = await draw_all(order, drawing, context)
        return Outcome(
            value=as_value(drawn),
            content=tuple(image.image for image in drawn.images),
            cost_nano=drawn.cost_nano,
            cost_source=source_of(drawn),
            untrusted=any(image.untrusted for image in drawn.images),
        )

    return Tool(
        name=name,
        description=description,
        schema=schema,
        run=run,
        toolset="image",
        max_result_chars=MAX_RESULT_CHARS,
        parts=lambda arguments: int(arguments.get("n", 1)),
        keeps_books=True,
    )


def read_common(
    arguments: Mapping[str, Any],
    *,
    default_provider: str,
    fallback: tuple[str, ...],
    default_size: Size | None,
) -> dict[str, Any]:
    """The fields of an order that every drawing tool has, from arguments that fit its schema.

    Raises:
        InputInvalid: the prompt is blank, or the size is no size.
    """
    prompt: str = arguments["prompt"]
    if not prompt.strip():
        raise InputInvalid("prompt is required and must not be blank", field="prompt")
    seed, text = arguments.get("seed"), arguments.get("size")
    shape = None if text is None else parse_shape(text)
    size = default_size if text is None else shape or parse_size(text)
    named = "provider" in arguments
    return {
        "prompt": prompt,
        "count": int(arguments.get("n", 1)),
        "output_path": arguments.get("output_path"),
        "size": size,
        "any_size": shape is not None,
        "quality": arguments.get("quality", "standard"),
        "provider": arguments.get("provider", default_provider),
        "fallback": () if named else fallback,
        "model": arguments.get("model"),
        "seed": None if seed is None else int(seed),  # 1.0 is a whole number in JSON
        "overwrite": arguments.get("overwrite", False),
        "background": arguments.get("background"),
        "negative_prompt": arguments.get("negative_prompt"),
    }


def as_value(drawn: PictureSet) -> dict[str, Any]:
    """The tool's answer: the five promised members of the first picture, then the extras.

    Of a set the cost is that of all of it, and each picture is listed with its own.
    """
    value = picture_value(drawn.images[0])
    if len(drawn.images) == 1 and not drawn.failures:
        return value
    value["cost_usd"] = drawn.cost_nano / NANO_PER_USD
    value["pictures"] = [
        {
            "path": str(image.path),
            "dimensions": image.dimensions._asdict(),
            "cost_usd": image.cost_usd,
            "image": image.image.handle,
        }
        for image in drawn.images
    ]
    if drawn.failures:
        value["failed"] = [
            {"code": error.code, "message": error.message, "cost_usd": error.cost_usd}
            for error in drawn.failures
        ]
    return value


def source_of(drawn: PictureSet) -> CostSource:
    """Where the cost of a set comes from: unknown where that of any part is."""
    sources = {part.cost_source for part in (*drawn.images, *drawn.failures) if part.cost_nano}
    return "unknown" if "unknown" in sources else drawn.images[0].cost_source


def picture_value(drawn: GeneratedImage) -> dict[str, Any]:
    """One picture as a tool answers with it."""
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
