"""A tool's result -> the result of an MCP call: JSON, image blocks, links to the full pictures.

The text is only the tool's value. Pictures are sent only in image blocks, so that no client counts
them as text, and at a size that the model of every client accepts.
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

# The limits of the strictest model of today's clients, for a request with many pictures.
MAX_EDGE = 2000
MAX_BYTES = 3_750_000
# Every model accepts these formats, without animation.
FORMATS = ("image/png", "image/jpeg", "image/webp")
BLOCKED = "the setting images.block_images keeps pictures from models"
_FOR_BOTH: Mapping[str, Any] = {"audience": ["user", "assistant"]}


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """Encodes results with the pictures of one home; ``block_images`` leaves the pictures out."""

    pictures: Pictures
    block_images: bool

    async def write(self, result: ToolResult) -> types.CallToolResult:
        """Encode the result of a call; a note replaces a picture that cannot be shown."""
        if not result.value:
            return as_result({"error": result.error_json}, is_error=True)
        shown = [part for part in result.content if isinstance(part, Picture)]
        # `image_fit` has just made these pictures for a model: upright and in a format it accepts.
        unchanged_formats = FORMATS if result.name == IMAGE_FIT.name else ("image/png",)
        blocks = await self._blocks(shown, unchanged_formats)
        return as_result(
            json.loads(result.value),
            text=result.value,
            more=[*blocks, *map(_link, shown)],
            is_error=not result.ok,
        )

    async def _blocks(
        self, shown: Sequence[Picture], unchanged_formats: Collection[str]
    ) -> list[dict[str, Any]]:
        encoded: dict[str, ModelPicture] = {}
        omitted: dict[str, str] = {}
        for one in shown:
            if self.block_images:
                omitted[one.handle] = BLOCKED
                continue
            try:
                encoded[one.handle] = await self._encode_picture(
                    one, unchanged_formats, among=len(shown)
                )
            except (ImageError, StorageError) as error:
                omitted[one.handle] = reason_of(error)
        parts = [items.image_part(one.handle) for one in shown]
        blocks = mcp_content.write(parts, encoded, omitted=omitted)
        return [{**block, "annotations": _FOR_BOTH} for block in blocks]

    async def _encode_picture(
        self, picture: Picture, unchanged_formats: Collection[str], *, among: int
    ) -> ModelPicture:
        """Return the picture unchanged if every model accepts it, else a smaller one.

        A JPEG may have an EXIF orientation that some models ignore; a PNG is always upright.
        """
        most = MAX_BYTES // among
        edge = max(picture.width, picture.height)
        if picture.mime in unchanged_formats and edge <= MAX_EDGE and picture.size_bytes <= most:
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
    """Encode a value as the result of a call: as text and as structured content."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":")) if text is None else text
    return types.CallToolResult.model_validate(
        {
            "content": [{"type": "text", "text": written}, *more],
            "structuredContent": value,
            "isError": is_error,
        }
    )


def failure(error: LimnerError) -> types.CallToolResult:
    """Encode an error outside of any tool like the error of a tool."""
    return as_result({"error": error.as_json()}, is_error=True)


def _link(picture: Picture) -> dict[str, Any]:
    return {
        "type": "resource_link",
        "uri": f"{HANDLE_URL}{picture.handle}",
        "name": f"{picture.handle[:12]}.{picture.mime.rpartition('/')[2]}",
        "title": f"The full picture, {picture.width}x{picture.height}",
        "mimeType": picture.mime,
        "size": picture.size_bytes,
        "annotations": _FOR_BOTH,
    }
