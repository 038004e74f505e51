"""The tools that draw: arguments -> an order -> a set of pictures -> the tool's answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from limner.errors import NANO_PER_USD, CostSource
from limner.tools.base import Outcome, Tool, ToolContext, ToolHints
from limner.tools.declaration import Dimensions, Handle, ToolDeclaration
from limner.tools.drawing_arguments import DrawingArguments, DrawingDefaults, order_for

# A quote does not draw.
if TYPE_CHECKING:
    from limner.tools.generation import ImageGenerator
    from limner.tools.output_file import GeneratedImage
    from limner.tools.picture_set import PictureSet

D = TypeVar("D", bound=DrawingArguments)

MAX_RESULT_CHARS = 1_000
# Every call draws, and may pay, again; with `overwrite` it replaces a file.
DRAWS = ToolHints(read_only=False, destructive=True, idempotent=False, open_world=True)


class DrawingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The value of a drawing tool: the first picture, and for a set all of them.

    The first five members are promised. What the provider says besides comes after these.
    """

    path: str
    dimensions: Dimensions
    cost_usd: float | None
    provider: str
    prompt_used: str
    cost_source: str
    model: str
    image: Handle
    pictures: list[dict[str, Any]] | UnsetType = UNSET
    failed: list[dict[str, Any]] | UnsetType = UNSET


def drawing_tool(
    declaration: ToolDeclaration[D], generator: ImageGenerator, defaults: DrawingDefaults
) -> Tool:
    """The tool of a declaration, which draws with ``generator``."""

    async def run(arguments: D, context: ToolContext) -> Outcome:
        from limner.tools.picture_set import draw_all  # noqa: PLC0415 - as above

        order = order_for(arguments, defaults)
        drawn = await draw_all(order, generator, context)
        return Outcome(
            value=as_value(drawn),
            content=tuple(image.image for image in drawn.images),
            cost_nano=drawn.cost_nano,
            cost_source=source_of(drawn),
            untrusted=drawn.untrusted,
        )

    async def quote(arguments: D, context: ToolContext) -> int:
        order = order_for(arguments, defaults)
        plan = await generator.planner.plan(order, context, today=generator.clock().date())
        return plan.cost_nano

    return declaration.tool(run, quote=quote, parts=lambda arguments: int(arguments.get("n", 1)))


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
        value["failed"] = failures_value(drawn)
    return value


def failures_value(drawn: PictureSet) -> list[dict[str, Any]]:
    """The pictures of a set that are missing, each with its reason."""
    return [
        {"code": error.code, "message": error.message, "cost_usd": error.cost_usd}
        for error in drawn.failures
    ]


def source_of(drawn: PictureSet) -> CostSource:
    """Where the cost of a set comes from: unknown where that of any part is."""
    sources = {part.cost_source for part in (*drawn.images, *drawn.failures) if part.cost_nano}
    return "unknown" if "unknown" in sources else drawn.images[0].cost_source


def picture_value(drawn: GeneratedImage) -> dict[str, Any]:
    """One picture as a tool answers with it."""
    answer = DrawingAnswer(
        path=str(drawn.path),
        dimensions=Dimensions(**drawn.dimensions._asdict()),
        cost_usd=drawn.cost_usd,
        provider=drawn.provider,
        prompt_used=drawn.prompt_used,
        cost_source=drawn.cost_source,
        model=drawn.model,
        image=drawn.image.handle,
    )
    return {**msgspec.to_builtins(answer), **drawn.extras}
