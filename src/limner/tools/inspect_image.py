"""The tool `inspect_image`: a local picture and a question in, a model's answer in words out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from limner.content import Text
from limner.errors import InputInvalid
from limner.tools.base import Outcome, Tool, ToolContext
from limner.tools.inspection import TOOL, Inspection, Inspector, InspectRequest
from limner.tools.regions import read_region, region_schema

MAX_RESULT_CHARS = 40_000
MAX_PATHS = 20
# So that a model that takes too long is told as such, and not as a tool that does.
SPARE_S = 30.0

DESCRIPTION = (
    "Look at a picture file with a vision model and answer a question about it. Use it to read "
    "text in screenshots, describe photos, check a user interface, compare pictures. The answer "
    "keeps what is visible apart from what is inferred. Ask one specific question. To read small "
    "text, give `region` in pixels of the original: it is looked at in full detail."
)

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "path": {
            "type": "string",
            "description": "Path of the image file; a relative one is relative to the working "
            "folder. The handle of a picture works too.",
        },
        "question": {"type": "string", "description": "What to find out about the picture."},
        "paths": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": MAX_PATHS - 1,
            "description": "More image files to look at together with the first.",
        },
        "region": region_schema("Only this part, in pixels of the original."),
        "schema": {
            "type": "object",
            "description": "A JSON schema that the answer has to follow.",
        },
    },
    "required": ["path", "question"],
}


def inspect_image(looking: Inspector) -> Tool:
    """The tool, looking through ``looking``."""

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        seen = await looking.look(read_inquiry(arguments), context)
        return Outcome(
            value=as_value(seen),
            content=(Text(seen.text),),
            cost_nano=seen.cost_nano,
            cost_source=seen.cost_source,
            untrusted=seen.untrusted,
        )

    return Tool(
        name=TOOL,
        description=DESCRIPTION,
        schema=SCHEMA,
        run=run,
        toolset="image",
        max_result_chars=MAX_RESULT_CHARS,
        timeout_s=looking.timeout_s + SPARE_S,
        keeps_books=True,
    )


def read_inquiry(arguments: Mapping[str, Any], *, model: str | None = None) -> InspectRequest:
    """The inquiry in arguments that satisfy the schema.

    Raises:
        InputInvalid: the path or the question is blank.
    """
    for name in ("path", "question"):
        if not arguments[name].strip():
            raise InputInvalid(f"{name} is required and must not be blank", field=name)
    return InspectRequest(
        paths=(arguments["path"], *arguments.get("paths", ())),
        question=arguments["question"],
        region=read_region(arguments),
        schema=arguments.get("schema"),
        model=model,
    )


def as_value(seen: Inspection) -> dict[str, Any]:
    """The tool's answer."""
    return {
        "text": seen.text,
        "details": {
            **seen.details,
            "cost_usd": seen.cost_usd,
            "cost_source": seen.cost_source,
        },
    }
