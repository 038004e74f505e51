"""The tool `image_render`: the text of a chart, a page or an SVG document in, a PNG out."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from limner.tools.base import Outcome, Tool, ToolContext, ToolHints
from limner.tools.built_in import ToolParts
from limner.tools.declaration import Dimensions, Handle, ToolDeclaration
from limner.tools.output_file import GeneratedImage
from limner.tools.rendering import RenderArguments

MAX_RESULT_CHARS = 12_000


class RenderAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The value of `image_render`: the picture and notes for the author, or the help."""

    path: str | UnsetType = UNSET
    dimensions: Dimensions | UnsetType = UNSET
    source_format: str | UnsetType = UNSET
    image: Handle | UnsetType = UNSET
    notes: list[str] | UnsetType = UNSET
    help: str | UnsetType = UNSET


IMAGE_RENDER = ToolDeclaration(
    name=RenderArguments.tool,
    title="Render a chart, diagram or page",
    description="Draw a source as an exact picture, offline and free, for anything "
    "with exact words or numbers. The source is SVG (also <asset name=…/> and <scene name=…/>), "
    "DOT, Mermaid, Vega-Lite, Typst, or JSON such as "
    '{"type":"bar","title":"Sales","labels":["Q1","Q2"],"values":[12,18]}. Types: bar '
    "(stacked, horizontal), line, area, pie, scatter (points [[x,y]]), with "
    '"series":[{"name":"A","values":[1,2]}] for more rows; table (columns, rows); diagram '
    '(edges [["a","b","label"]]); sequence (messages [["a","b","text"]]); timeline (events '
    '[["1969","Moon landing"]]); steps; qr (data, caption). A page is '
    '{"type":"page","size":"1024x1024","theme":"light|dark|warm|forest|blueprint",'
    '"background":"#123456","children":[…]} '
    "of these and of text (text, size small|body|heading|title|huge, align), asset (its "
    "name), row, column, card (title, children), button, field, checkbox, "
    "toggle, metric (label, value), list (items), badge, divider. `help` has the details.",
    arguments=RenderArguments,
    answer=RenderAnswer,
    hints=ToolHints(read_only=False, destructive=True, idempotent=False, open_world=False),
    max_result_chars=MAX_RESULT_CHARS,
    keeps_books=True,
)


def build(parts: ToolParts) -> Tool:
    """Build the tool."""

    async def run(arguments: RenderArguments, context: ToolContext) -> Outcome:
        if arguments.help is not None:
            from limner.rendering.help import help_text  # noqa: PLC0415 - only help needs it

            return Outcome(value={"help": help_text(arguments.help)})
        drawn = await parts.renderer.render(arguments, context)
        return Outcome(value=as_value(drawn), content=(drawn.image,), untrusted=drawn.untrusted)

    return IMAGE_RENDER.tool(run)


def as_value(drawn: GeneratedImage) -> dict[str, Any]:
    """The answer of the tool, and what `limner render --json` prints."""
    answer = RenderAnswer(
        path=str(drawn.path),
        dimensions=Dimensions(**drawn.dimensions._asdict()),
        image=drawn.image.handle,
    )
    return {**msgspec.to_builtins(answer), **drawn.extras}
