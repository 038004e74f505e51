"""Pictures of this program -> what an app-server gets of them: fitted, as data URLs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from limner.agent.call_items import output_item
from limner.agent.untrusted import fence_items
from limner.base64_text import encode_base64
from limner.client import Limner
from limner.content import Picture
from limner.errors import ImageError, StorageError
from limner.pictures.placeholders import BLOCKED, reason_of
from limner.tools.base import ToolResult
from limner.tools.image_input import ImageInput
from limner.wires import codex_content
from limner.wires import items as made
from limner.wires.base import ModelPicture
from limner.wires.items import Item


class OutputParts:
    """Prepares pictures for the model of a server.

    Args:
        lim: returns the owner of the pictures; called at the first picture.
        is_local: whether the server can read the files of this machine.
    """

    def __init__(self, lim: Callable[[], Limner], *, is_local: bool) -> None:
        self._lim, self._is_local = lim, is_local

    async def user_input(self, text: str, images: Sequence[ImageInput]) -> list[dict[str, Any]]:
        """Text and pictures as the input of a turn; the pictures come first.

        Raises:
            ImageError: bytes are not a picture.
            ReachDenied, StorageError: a file cannot be read.
        """
        pictures = await asyncio.gather(*map(self._image_input, images))
        return [*pictures, *([{"type": "text", "text": text}] if text else [])]

    async def respond(self, result: ToolResult, *, verbatim: bool) -> tuple[Item, dict[str, Any]]:
        """The output of a tool: as an item of a conversation, and as the response to the call.

        Text from outside is marked as untrusted, unless the model gets it ``verbatim``.
        """
        call = made.function_call(call_id=result.call_id, name=result.name, arguments="{}")
        (item,) = fence_items([output_item(call, result, verbatim=verbatim)])
        output = item["output"]
        parts = [made.text_part(output)] if isinstance(output, str) else output
        pictures = [one for one in result.content if isinstance(one, Picture)]
        fitted, omitted = await self._fit_all(pictures)
        content = codex_content.write(parts, fitted, omitted=omitted)
        return item, {"contentItems": content, "success": result.ok}

    async def _image_input(self, image: ImageInput) -> dict[str, Any]:
        if isinstance(image, Path) and self._is_local:
            return {"type": "localImage", "path": str(image.absolute())}
        fitted = await self._fit(await self._lim().take(image))
        url = f"data:{fitted.mime};base64,{encode_base64(fitted.data)}"
        return {"type": "image", "url": url}

    async def _fit_all(
        self, pictures: Iterable[Picture]
    ) -> tuple[dict[str, ModelPicture], dict[str, str]]:
        """The pictures that the model gets, and why it does not get the others."""
        fitted: dict[str, ModelPicture] = {}
        omitted: dict[str, str] = {}
        for picture in pictures:
            if self._lim().settings.images.block_images:
                omitted[picture.handle] = BLOCKED
                continue
            try:
                fitted[picture.handle] = await self._fit(picture)
            except (ImageError, StorageError) as error:
                omitted[picture.handle] = reason_of(error)
        return fitted, omitted

    async def _fit(self, picture: Picture) -> ModelPicture:
        # One picture in one piece: a model that wants to see more of it asks for a region.
        fitting = replace(self._lim().fitting, tile="off")
        fitted = await fitting.fit(picture, model=None)
        return ModelPicture(mime=fitted.mime, data=fitted.data)
