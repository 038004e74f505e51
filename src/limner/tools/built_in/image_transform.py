"""The tool `image_transform`: crop, scale, turn, mark, blur, cut out or compress a picture."""

from __future__ import annotations

from typing import Any

import msgspec

from limner.tools.base import Outcome, Tool, ToolContext, ToolHints
from limner.tools.built_in import ToolParts
from limner.tools.declaration import Dimensions, Handle, ToolDeclaration
from limner.tools.transformation import TransformArguments, TransformedImage

MAX_RESULT_CHARS = 2_000


class TransformAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The value of `image_transform`."""

    path: str
    dimensions: Dimensions
    bytes: int
    image: Handle
    original: str
    notes: list[str]


IMAGE_TRANSFORM = ToolDeclaration(
    name="image_transform",
    title="Crop, scale, mark or convert a picture",
    description="Make a new picture from one, exactly and free of charge: crop, rotate, flip, "
    "resize, pad, make it grey, make a flat background transparent (cut_out), make parts "
    "unreadable (blur), draw boxes, arrows and numbered points (marks), convert, compress to a "
    "size (max_bytes). Steps happen in this order: blur, marks, crop, rotate, flip, grey, cut_out, "
    "resize, pad. All positions are pixels of the original, which does not change.",
    arguments=TransformArguments,
    answer=TransformAnswer,
    hints=ToolHints(read_only=False, destructive=True, idempotent=False, open_world=False),
    max_result_chars=MAX_RESULT_CHARS,
)


def build(parts: ToolParts) -> Tool:
    """Build the tool."""

    async def run(arguments: TransformArguments, context: ToolContext) -> Outcome:
        made = await parts.transformer.transform(arguments, context)
        return Outcome(value=as_value(made), content=(made.image,), untrusted=made.untrusted)

    return IMAGE_TRANSFORM.tool(run)


def as_value(made: TransformedImage) -> dict[str, Any]:
    """The answer of the tool, and what `limner transform --json` prints."""
    answer = TransformAnswer(
        path=str(made.path),
        dimensions=Dimensions(width=made.image.width, height=made.image.height),
        bytes=made.image.size_bytes,
        image=made.image.handle,
        original=made.original.handle,
        notes=list(made.notes),
    )
    return msgspec.to_builtins(answer)
