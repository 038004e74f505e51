"""The tool `asset_search`: words in, the names of ready-made pictures out, and a sheet of them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from limner.tools.base import Outcome, Tool, ToolContext, ToolHints
from limner.tools.built_in import ToolParts
from limner.tools.declaration import Handle, ToolDeclaration
from limner.tools.rendering import RenderArguments

MAX_FOUND = 40
MAX_RESULT_CHARS = 4_000
_COLUMNS = 5
_CELL_WIDTH, _CELL_HEIGHT = 200, 190


class AssetSearchArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `asset_search`."""

    words: Annotated[str, Meta(description='What the picture should show, as "red fruit".')]
    limit: Annotated[int, Meta(description="How many at most.", ge=1, le=MAX_FOUND)] = 10


class AssetSearchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The value of `asset_search`: the names, the best first, and the sheet that shows them."""

    names: list[str]
    image: Handle | UnsetType = UNSET


ASSET_SEARCH = ToolDeclaration(
    name="asset_search",
    title="Find ready-made pictures",
    description="Find ready-made pictures and see them on one sheet, each with its name. Use a "
    'name as <asset name="…"/> in SVG or as {"type":"asset","name":"…"} in image_render. '
    "Everyday words find them. Offline and free.",
    arguments=AssetSearchArguments,
    answer=AssetSearchAnswer,
    # The sheet is a new file each time.
    hints=ToolHints(read_only=False, destructive=False, idempotent=False, open_world=False),
    max_result_chars=MAX_RESULT_CHARS,
    keeps_books=True,
)


def build(parts: ToolParts) -> Tool:
    """Build the tool."""

    async def run(arguments: AssetSearchArguments, context: ToolContext) -> Outcome:
        from limner.illustrator import assets  # noqa: PLC0415 - loaded on first use

        names = [found.name for found in assets.search(arguments.words, arguments.limit)]
        if not names:
            return Outcome(value=msgspec.to_builtins(AssetSearchAnswer(names=[])))
        sheet = RenderArguments(source=msgspec.json.encode(_sheet(names)).decode())
        drawn = await parts.renderer.render(sheet, context)
        answer = AssetSearchAnswer(names=names, image=drawn.image.handle)
        return Outcome(value=msgspec.to_builtins(answer), content=(drawn.image,))

    return ASSET_SEARCH.tool(run)


def _sheet(names: list[str]) -> dict[str, Any]:
    """A page that shows each picture with its name below it."""
    columns = min(_COLUMNS, len(names))
    cells: list[dict[str, Any]] = [
        {
            "type": "column",
            "align": "center",
            "gap": 6,
            "width": _CELL_WIDTH - 20,
            "children": [
                {"type": "asset", "name": name, "size": 110},
                {"type": "text", "text": name, "size": 15, "align": "center"},
            ],
        }
        for name in names
    ]
    rows = [cells[place : place + columns] for place in range(0, len(cells), columns)]
    children = [{"type": "row", "gap": 20, "grow": 1, "children": row} for row in rows]
    size = f"{_CELL_WIDTH * columns + 40}x{_CELL_HEIGHT * len(rows) + 40}"
    return {"type": "page", "size": size, "padding": 20, "gap": 0, "children": children}
