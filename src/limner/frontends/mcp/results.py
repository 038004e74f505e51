"""What a tool answered -> the result of an MCP call: its JSON, pictures to see, links to the whole.

The text is the tool's value and nothing else. Pictures travel in image blocks only, so that no
client counts one as text, and at a size that every model behind a client takes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import mcp_types as types
import msgspec

from limner.content import Picture
from limner.errors import ImageError, LimnerError, StorageError
from limner.imaging.fit import FitRequest
from limner.pictures.placeholders import reason_of
from limner.pictures.take import Pictures
from limner.tools.base import ToolResult
from limner.tools.image_fit import IMAGE_FIT
from limner.wires import items, mcp_content
from limner.wires.base import HANDLE_URL, ModelPicture

# What the strictest of the models behind today's clients takes, in a request with many pictures.
MAX_EDGE = 2000
MAX_BYTES = 3_750_000
# Every model reads these, and none of them moves.
FORMATS = ("image/png", "image/jpeg", "image/webp")
BLOCKED = "the setting images.block_images keeps pictures from models"
_FOR_BOTH: Mapping[str, Any] = {"audience": ["user", "assistant"]}


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """Writes results with the pictures of one home; with ``block_images`` a model sees none."""

    pictures: Pictures
    block_images: bool

    async def write(self, result: ToolResult) -> types.CallToolResult:
        """The result of a call; where a picture cannot be shown, it says so in its place."""
        if not result.value:
            return as_result({"error": error_json(result)}, is_error=True)
        shown = [part for part in result.content if isinstance(part, Picture)]
        # What the engine has just made for a model is upright and of a type that models read.
        as_they_are = FORMATS if result.name == IMAGE_FIT.name else ("image/png",)
        blocks = await self._blocks(shown, as_they_are)
        return as_result(
            json.loads(result.value),
            text=result.value,
            more=[*blocks, *map(_link, shown)],
            is_error=not result.ok,
        )

    async def _blocks(
        self, shown: Sequence[Picture], as_they_are: Collection[str]
    ) -> list[dict[str, Any]]:
        sights: dict[str, ModelPicture] = {}
        left_out: dict[str, str] = {}
        for one in shown:
            if self.block_images:
                left_out[one.handle] = BLOCKED
                continue
            try:
                sights[one.handle] = await self._sight(one, as_they_are, among=len(shown))
            except (ImageError, StorageError) as error:
                left_out[one.handle] = reason_of(error)
        parts = [items.image_part(one.handle) for one in shown]
        blocks = mcp_content.write(parts, sights, omitted=left_out)
        return [{**block, "annotations": _FOR_BOTH} for block in blocks]

    async def _sight(
        self, picture: Picture, as_they_are: Collection[str], *, among: int
    ) -> ModelPicture:
        """The picture as it is where every model takes that, else a smaller one.

        A PNG has no other way up than the one it has; a JPEG may, and not every model knows.
        """
        most = MAX_BYTES // among
        edge = max(picture.width, picture.height)
        if picture.mime in as_they_are and edge <= MAX_EDGE and picture.size_bytes <= most:
            return ModelPicture(mime=picture.mime, data=await self.pictures.original(picture))
        request = FitRequest(
            mode="fast",
            max_width=MAX_EDGE,
            max_height=MAX_EDGE,
            max_bytes=most,
            formats=FORMATS,
        )
        fitted, data = await self.pictures.give(picture, request)
        return ModelPicture(mime=fitted.mime, data=data)


def as_result(
    value: Mapping[str, Any],
    *,
    text: str | None = None,
    more: Sequence[Mapping[str, Any]] = (),
    is_error: bool = False,
) -> types.CallToolResult:
    """A value as the result of a call, in words and as the structure it is."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":")) if text is None else text
    return types.CallToolResult.model_validate(
        {
            "content": [{"type": "text", "text": written}, *more],
            "structuredContent": value,
            "isError": is_error,
        }
    )


def failure(error: LimnerError) -> types.CallToolResult:
    """An error outside of any tool, told as one of a tool is."""
    return as_result({"error": error.as_json()}, is_error=True)


def error_json(result: ToolResult) -> dict[str, Any]:
    """A failure as every door tells it."""
    named = {} if result.field is None else {"field": result.field}
    return {
        "code": result.domain_code,
        "message": result.error,
        "retryable": result.retryable,
        "billed": result.billed,
        "cost_usd": result.cost_usd,
        "hint": result.hint,
        **named,
        **result.extras,
    }


def _link(picture: Picture) -> dict[str, Any]:
    return {
        "type": "resource_link",
        "uri": f"{HANDLE_URL}{picture.handle}",
        "name": f"{picture.handle[:12]}.{picture.mime.rpartition('/')[2]}",
        "title": f"The whole picture, {picture.width}x{picture.height}",
        "mimeType": picture.mime,
        "size": picture.size_bytes,
        "annotations": _FOR_BOTH,
    }
