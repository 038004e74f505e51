"""A tool's result -> the result of an MCP call: the tool's JSON as text, then the pictures.

A picture is an image block, so that no client counts it as text, and of a size that every model
accepts. Its handle and its path, which name the original, are in the text.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from limner.content import Picture
from limner.errors import ImageError, LimnerError, StorageError
from limner.frontends.mcp.offers import offered
from limner.frontends.mcp.protocol import ConnectedClient
from limner.frontends.mcp.quirks import quirks_of
from limner.imaging.fit import FitRequest
from limner.pictures.placeholders import BLOCKED, reason_of
from limner.pictures.take import Pictures
from limner.settings.values import PictureForm
from limner.tools.base import ToolResult
from limner.tools.image_fit import IMAGE_FIT
from limner.wires import items, mcp_content
from limner.wires.base import ModelPicture

# The size that models look at; more pixels cost tokens, and no model sees them.
MAX_EDGE = 1568
# All pictures of a result together.
MAX_BYTES = 500 * 1024
# A larger PNG is sent in another form; the engine keeps PNG for a transparent picture.
SMALL_BYTES = 32 * 1024


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """Encodes results with the pictures of one home.

    Attributes:
        pictures: the pictures of the home.
        block_images: no model may see a picture.
        form: the setting; None means what is best for the client.
    """

    pictures: Pictures
    block_images: bool
    form: PictureForm | None = None

    async def write(self, result: ToolResult, client: ConnectedClient) -> dict[str, Any]:
        """Encode the result of a call; a note replaces a picture that cannot be shown."""
        if not result.value:
            return as_result({"error": result.error_json}, is_error=True)
        shown = [part for part in result.content if isinstance(part, Picture)]
        return as_result(
            json.loads(result.value),
            text=result.value,
            more=await self._blocks(result, shown, client),
            is_error=not result.ok,
            is_structured=client.takes_structure
            and "outputSchema" in offered().get(result.name, ()),
        )

    async def _blocks(
        self, result: ToolResult, shown: Sequence[Picture], client: ConnectedClient
    ) -> list[dict[str, Any]]:
        quirks = quirks_of(client.name)
        form = self.form or quirks.pictures
        if form == "none":
            return []
        if form == "path":
            # The text of a tool that wrote a file has its path.
            unnamed: Sequence[Picture] = () if '"path":' in result.value else shown
            files = [await asyncio.to_thread(self.pictures.local_path, one) for one in unnamed]
            return [{"type": "text", "text": f"The picture is in the file {one}"} for one in files]
        encoded: dict[str, ModelPicture] = {}
        omitted: dict[str, str] = {}
        for one in shown:
            if self.block_images:
                omitted[one.handle] = BLOCKED
                continue
            try:
                if result.name == IMAGE_FIT.name:
                    # It has just been made for the model that the caller named.
                    data = await self.pictures.original(one)
                    encoded[one.handle] = ModelPicture(mime=one.mime, data=data)
                else:
                    encoded[one.handle] = await self._fitted(one, quirks.formats, among=len(shown))
            except (ImageError, StorageError) as error:
                omitted[one.handle] = reason_of(error)
        parts = [items.image_part(one.handle) for one in shown]
        return mcp_content.write(parts, encoded, omitted=omitted)

    async def _fitted(
        self, picture: Picture, formats: tuple[str, ...], *, among: int
    ) -> ModelPicture:
        if picture.size_bytes > SMALL_BYTES:
            # A tenth of the bytes, and what a model sees is the same.
            formats = tuple(kind for kind in formats if kind != "image/png")
        request = FitRequest(
            max_width=MAX_EDGE,
            max_height=MAX_EDGE,
            max_bytes=MAX_BYTES // among,
            formats=formats,
        )
        fitted, data = await self.pictures.give(picture, request)
        return ModelPicture(mime=fitted.mime, data=data)


def as_result(
    value: Mapping[str, Any],
    *,
    text: str | None = None,
    more: Sequence[Mapping[str, Any]] = (),
    is_error: bool = False,
    is_structured: bool = False,
) -> dict[str, Any]:
    """Encode a value as the result of a call: as text, and as structured content if it is so."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":")) if text is None else text
    return {
        "content": [{"type": "text", "text": written}, *more],
        **({"structuredContent": value} if is_structured else {}),
        "isError": is_error,
    }


def failure(error: LimnerError) -> dict[str, Any]:
    """Encode an error outside of any tool like the error of a tool."""
    return as_result({"error": error.as_json()}, is_error=True)
