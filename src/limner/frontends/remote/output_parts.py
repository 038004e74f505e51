"""Pictures of this program -> what an app-server is sent of them: fitted, as data URLs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from limner.agent.call_items import output_of
from limner.agent.untrusted import quoted
from limner.client import Limner
from limner.content import Picture
from limner.errors import ImageError, StorageError
from limner.pictures.placeholders import reason_of
from limner.tools.base import ToolResult
from limner.wires import codex_content
from limner.wires import items as made
from limner.wires.base import ModelPicture
from limner.wires.content_parts import encode_base64

Image = Path | bytes | Picture

BLOCKED = "the setting images.block_images keeps pictures from models"


class OutputParts:
    """Makes pictures ready for a server's model, whichever that is.

    Args:
        lim: whose pictures they are; asked for when the first one is there.
        is_local: whether the server can read the files that are here.
    """

    def __init__(self, lim: Callable[[], Limner], *, is_local: bool) -> None:
        self._lim, self._is_local = lim, is_local

    async def user_input(self, text: str, images: Sequence[Image]) -> list[dict[str, Any]]:
        """Words and pictures as the input of a turn; the pictures come first.

        Raises:
            ImageError: bytes are no picture.
            ReachDenied, StorageError: a file cannot be read.
        """
        shown = await asyncio.gather(*map(self._input, images))
        return [*shown, *([{"type": "text", "text": text}] if text else [])]

    async def answer(self, result: ToolResult, *, verbatim: bool) -> dict[str, Any]:
        """What a tool gave back, as the answer to the call.

        A stranger's words are marked as such, unless they are to reach the model ``verbatim``.
        """
        call = made.function_call(call_id=result.call_id, name=result.name, arguments="{}")
        (item,) = quoted([output_of(call, result, verbatim=verbatim)])
        output = item["output"]
        parts = [made.text_part(output)] if isinstance(output, str) else output
        pictures = [one for one in result.content if isinstance(one, Picture)]
        sights, left_out = await self._sights(pictures)
        items = codex_content.write(parts, sights, omitted=left_out)
        return {"contentItems": items, "success": result.ok}

    async def _input(self, image: Image) -> dict[str, Any]:
        if isinstance(image, Path) and self._is_local:
            return {"type": "localImage", "path": str(image.absolute())}
        sight = await self._sight(await self._taken(image))
        return {"type": "image", "url": f"data:{sight.mime};base64,{encode_base64(sight)}"}

    async def _taken(self, image: Image) -> Picture:
        if isinstance(image, Picture):
            return image
        lim = self._lim()
        if isinstance(image, Path):
            return await lim.take(image)
        with lim.pictures.sink() as sink:
            await asyncio.to_thread(sink.write, image)
            return await lim.pictures.take(sink, lineage={"from": "user"})

    async def _sights(
        self, pictures: Iterable[Picture]
    ) -> tuple[dict[str, ModelPicture], dict[str, str]]:
        """The pictures that can be shown, and why the others cannot."""
        sights: dict[str, ModelPicture] = {}
        left_out: dict[str, str] = {}
        for picture in pictures:
            if self._lim().settings.images.block_images:
                left_out[picture.handle] = BLOCKED
                continue
            try:
                sights[picture.handle] = await self._sight(picture)
            except (ImageError, StorageError) as error:
                left_out[picture.handle] = reason_of(error)
        return sights, left_out

    async def _sight(self, picture: Picture) -> ModelPicture:
        # One picture in one piece: who wants to see more of it asks for a region.
        fitting = replace(self._lim().fitting, tile="off")
        fitted = await fitting.fit(picture, model=None)
        return ModelPicture(mime=fitted.mime, data=fitted.data)
