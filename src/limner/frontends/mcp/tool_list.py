"""What a client is told of each tool: schemas in and out, hints, in an order that never changes.

The schemas are the tools' own. What comes out has no picture in it: those are content blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import mcp_types as types

from limner.frontends.mcp import image_fit, image_job, spend
from limner.tools import image_edit, image_generate, image_recall, inspect_image
from limner.tools.inspection import TOOL as INSPECT
from limner.wires.base import HANDLE_URL

RECALL_DESCRIPTION = (
    "Look again at a picture that a tool here made or found: give its handle, and the picture "
    "comes back. Free of charge."
)

_TEXT: Mapping[str, Any] = {"type": "string"}
_USD: Mapping[str, Any] = {"type": ["number", "null"]}
_SIZE: Mapping[str, Any] = {
    "type": "object",
    "properties": {"width": {"type": "integer"}, "height": {"type": "integer"}},
}
_HANDLE: Mapping[str, Any] = {"type": "string", "description": "The handle of the picture."}
# A call that takes long answers with these instead.
_JOB: Mapping[str, Any] = {
    "job": {"type": "string", "description": "The call goes on; image_job has its result."},
    "status": _TEXT,
}
_DRAWN: Mapping[str, Any] = {
    "path": _TEXT,
    "dimensions": _SIZE,
    "cost_usd": _USD,
    "provider": _TEXT,
    "prompt_used": _TEXT,
    "cost_source": _TEXT,
    "model": _TEXT,
    "image": _HANDLE,
    "pictures": {"type": "array", "items": {"type": "object"}},
    "failed": {"type": "array", "items": {"type": "object"}},
    **_JOB,
}
_SPENT: Mapping[str, Any] = {
    "total_usd": _USD,
    "today_usd": _USD,
    "session_usd": _USD,
    "unknown_usd": _USD,
    "in_flight_usd": _USD,
    "by_model": {"type": "array", "items": {"type": "object"}},
    "budget": {"type": "object"},
}


class _Offer(NamedTuple):
    name: str
    title: str
    description: str
    schema: Mapping[str, Any]
    answers: Mapping[str, Any]
    hints: Mapping[str, bool]


def _hints(
    *, reads: bool, open_world: bool, same_again: bool, may_replace: bool
) -> dict[str, bool]:
    return {
        "readOnlyHint": reads,
        "destructiveHint": may_replace,
        "idempotentHint": same_again,
        "openWorldHint": open_world,
    }


# With `overwrite` a drawing tool replaces a file; every call of it draws, and may pay, anew.
_DRAWS = _hints(reads=False, open_world=True, same_again=False, may_replace=True)
_LOOKS = _hints(reads=True, open_world=True, same_again=False, may_replace=False)
_READS = _hints(reads=True, open_world=False, same_again=True, may_replace=False)
_STOPS = _hints(reads=False, open_world=True, same_again=True, may_replace=True)

_OFFERS = (
    _Offer(
        image_generate.TOOL,
        "Draw a picture",
        image_generate.DESCRIPTION,
        image_generate.SCHEMA,
        _DRAWN,
        _DRAWS,
    ),
    _Offer(
        image_edit.TOOL,
        "Change a picture",
        image_edit.DESCRIPTION,
        image_edit.SCHEMA,
        _DRAWN,
        _DRAWS,
    ),
    _Offer(
        INSPECT,
        "Ask about a picture",
        inspect_image.DESCRIPTION,
        inspect_image.SCHEMA,
        {"text": _TEXT, "details": {"type": "object"}, **_JOB},
        _LOOKS,
    ),
    _Offer(
        image_fit.TOOL,
        "Make a picture ready for a model",
        image_fit.DESCRIPTION,
        image_fit.SCHEMA,
        {
            "image": _HANDLE,
            "mime": _TEXT,
            "dimensions": _SIZE,
            "bytes": {"type": "integer"},
            "original": {"type": "object"},
            "part": {"type": "object"},
            "scale": {"type": "object"},
            "model": {"type": ["string", "null"]},
            "tokens": {"type": ["integer", "null"]},
            "tokens_exact": {"type": "boolean"},
            "cost_usd": _USD,
        },
        _READS,
    ),
    _Offer(
        image_job.TOOL,
        "What became of a slow call",
        image_job.DESCRIPTION,
        image_job.SCHEMA,
        {**_DRAWN, "tool": _TEXT, "elapsed_s": {"type": "number"}, "message": _TEXT},
        _STOPS,
    ),
    _Offer(
        image_recall.TOOL,
        "Look at a picture again",
        RECALL_DESCRIPTION,
        image_recall.SCHEMA,
        {"image": _HANDLE, "mime": _TEXT, "dimensions": _SIZE},
        _READS,
    ),
    _Offer(
        spend.TOOL,
        "What was spent",
        spend.DESCRIPTION,
        spend.SCHEMA,
        _SPENT,
        _READS,
    ),
)


@cache
def offered() -> Mapping[str, types.Tool]:
    """Every tool by its name, in the order of the list."""
    return {offer.name: _as_tool(offer) for offer in _OFFERS}


def schema_of(name: str) -> Mapping[str, Any] | None:
    """What a tool takes; None for one that is not here."""
    tool = offered().get(name)
    return None if tool is None else tool.input_schema


def templates() -> list[types.ResourceTemplate]:
    """Where pictures are to be had in full."""
    return [
        types.ResourceTemplate(
            uri_template=f"{HANDLE_URL}{{handle}}",
            name="picture",
            title="A picture, as it was received",
            description="The handle is in the result of the tool that made or found the picture.",
        ),
        types.ResourceTemplate(
            uri_template=f"{HANDLE_URL}{{handle}}{{?width}}",
            name="picture-of-width",
            title="A picture, at most that many pixels wide",
        ),
    ]


def _as_tool(offer: _Offer) -> types.Tool:
    return types.Tool(
        name=offer.name,
        title=offer.title,
        description=offer.description,
        input_schema=dict(offer.schema),
        output_schema={"type": "object", "properties": dict(offer.answers)},
        annotations=types.ToolAnnotations.model_validate({"title": offer.title, **offer.hints}),
    )
