"""The tool `image_fit`: a picture and a model in, the picture as that model gets it and its price.

It is for agents that send pictures to models themselves, and want to know what a look will cost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from limner.catalogue.vision import vision_model
from limner.content import Picture
from limner.pictures.fitting import FittedImage, Fitting
from limner.tools.base import Outcome, Tool, ToolContext
from limner.tools.regions import read_region, region_schema
from limner.tools.sources import SourceLoader
from limner.wires.base import HANDLE_URL

TOOL = "image_fit"
MAX_RESULT_CHARS = 2_000

DESCRIPTION = (
    "Make a picture file ready for a vision model, free of charge: returns the picture as the "
    "model should get it, the tokens and dollars a look at it takes, and how its pixels map to "
    "those of the original. Give `region` for a part at full detail."
)

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "image": {
            "type": "string",
            "description": "A file path, or the handle that came with a picture.",
        },
        "model": {
            "type": "string",
            "description": "The model it is for, as provider/id, such as openai/gpt-5.5.",
        },
        "region": region_schema("Only this part, in pixels of the original."),
        "page": {"type": "integer", "minimum": 1, "description": "The page of a document."},
    },
    "required": ["image"],
}


def image_fit(sourcing: SourceLoader, fitting: Fitting) -> Tool:
    """The tool, fitting pictures that ``sourcing`` finds."""

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        name = arguments.get("model")
        model = None if name is None else vision_model(name)
        picture = await sourcing.take(arguments["image"].removeprefix(HANDLE_URL), context)
        fitted = await fitting.fit(
            picture,
            model=model,
            region=read_region(arguments),
            page=int(arguments.get("page", 1)),
        )
        shown = _as_picture(fitted)
        return Outcome(value=_as_value(fitted, shown, of=picture), content=(shown,))

    return Tool(
        name=TOOL,
        description=DESCRIPTION,
        schema=SCHEMA,
        run=run,
        toolset="image",
        max_result_chars=MAX_RESULT_CHARS,
    )


def _as_picture(fitted: FittedImage) -> Picture:
    return Picture(
        handle=hashlib.sha256(fitted.data).hexdigest(),
        mime=fitted.mime,
        width=fitted.width,
        height=fitted.height,
        size_bytes=len(fitted.data),
    )


def _as_value(fitted: FittedImage, shown: Picture, *, of: Picture) -> dict[str, Any]:
    fit = fitted.fit
    return {
        "image": shown.handle,
        "mime": shown.mime,
        "dimensions": {"width": shown.width, "height": shown.height},
        "bytes": shown.size_bytes,
        "original": {
            "image": of.handle,
            "width": fit.original_width,
            "height": fit.original_height,
        },
        "part": {
            "x": fit.part.x,
            "y": fit.part.y,
            "width": fit.part.width,
            "height": fit.part.height,
        },
        "scale": {"x": fit.scale_x, "y": fit.scale_y},
        "model": fitted.model,
        "tokens": fitted.tokens,
        "tokens_exact": fitted.tokens_exact,
        "cost_usd": fitted.cost_usd,
    }
