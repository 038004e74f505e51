"""An edit request to the illustrator -> the changed picture: from its scene, its source or pixels.

The illustrator has no model that paints. It draws a picture of its own again from what was kept,
and crops, turns or blurs any picture.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.catalogue.images import Size
from limner.content import Picture
from limner.errors import UserError
from limner.illustrator.draw import Illustration, draw, redraw
from limner.illustrator.layout import KeptDrawing, decode_kept
from limner.illustrator.page_edits import edit_source
from limner.imaging.pool import Imaging
from limner.models.offline.phrases import SHAPING
from limner.models.offline.transforms import read_transform
from limner.pictures.labels import read_label
from limner.pictures.lineage import Lineage, PictureRecord
from limner.pictures.request import ImageRequest
from limner.pictures.take import Pictures
from limner.providers.choice import CANNOT, MAIN_KEYS
from limner.tools.rendering import Compile
from limner.tools.transformation import TransformArguments, transform_request

Facts = Mapping[str, object]
Edited = tuple[bytes, Facts, Facts | None]
"""A picture, facts about it, and the scene to keep."""

_UNDO = re.compile(r"\W*(?:please )?(?:undo|go back|revert|rückgängig)\b.{0,40}", re.I | re.S)
_CLAUSE = re.compile(r"\s*(?:,(?=\s*[a-z])|;|\.\s|\band\b|\bthen\b)+\s*", re.IGNORECASE)
_GREY = re.compile(r"\bblack (?:and|&) white\b", re.IGNORECASE)
# The steps that change what the illustrator drew as a whole; its scene says nothing about them.
_FRAMING = frozenset({"crop", "rotate", "flip"})
ON_ANY_PICTURE = (
    "Without a key the illustrator crops, rotates, flips, resizes, greys, blurs or cuts out any "
    "picture"
)


class DrawingEditor(msgspec.Struct, frozen=True, kw_only=True):
    """Changes pictures without a model."""

    pictures: Pictures
    imaging: Imaging
    compile: Compile

    async def edit(self, request: ImageRequest) -> Edited:
        """Change the picture of a request as its words say.

        Raises:
            InputInvalid: the words name something that is not in the picture, or no known change.
            UserError: the illustrator cannot do that to this picture.
        """
        family = await self.pictures.family(request.sources[0].handle)
        if family is None:
            raise _cannot()
        if _UNDO.fullmatch(request.prompt):
            return await self._undo(family)
        kept = await self._kept(family)
        words, steps = _split_steps(request, is_drawn=kept is not None)
        if not words:
            return await self._transform(request, await self._original(family), steps), {}, None
        if kept is None:
            raise _cannot()
        drawing = await self._redraw(kept, replace(request, prompt=words))
        png = await self.imaging.render_svg(
            drawing.svg,
            width=request.width,
            height=request.height,
            assets=drawing.assets,
            squares=drawing.squares,
        )
        if steps:
            return await self._transform(request, png, steps), drawing.facts, None
        return png, drawing.facts, drawing.kept and msgspec.to_builtins(drawing.kept)

    async def _undo(self, family: Lineage) -> Edited:
        """The picture that this one was made from."""
        record = _version(family)
        before = [*record.drawn_from, *([record.parent] if record.parent else [])]
        if not before:
            raise UserError("There is no earlier version of this picture.", code=CANNOT)
        parent = await self.pictures.recall(before[0])
        found = await self.pictures.family(parent.handle)
        scene: Any = None if found is None else found.record.lineage.get("scene")
        return await self.pictures.original(parent), {"changes": ["undone"]}, scene

    async def _original(self, family: Lineage) -> bytes:
        return await self.pictures.original(family.record.picture)

    async def _transform(
        self, request: ImageRequest, data: bytes, steps: Mapping[str, Any]
    ) -> bytes:
        source = request.sources[0]
        original = Picture(
            handle=source.handle,
            mime="image/png",
            width=request.width,
            height=request.height,
            size_bytes=len(data),
        )
        arguments = msgspec.convert({"image": source.handle, **steps}, TransformArguments)
        made = transform_request(arguments, original)
        return (await self.imaging.transform(lambda: data, made))[1]

    async def _kept(self, family: Lineage) -> KeptDrawing | None:
        """What was kept with a picture: here, or in the label of a file from elsewhere."""
        record = _version(family)
        scene = record.lineage.get("scene")
        if scene is not None:
            return decode_kept(msgspec.json.encode(scene))
        path = await asyncio.to_thread(self.pictures.checked_path, record.picture)
        with path.open("rb") as file:
            labelled = await asyncio.to_thread(read_label, file)
        return decode_kept(labelled[0].scene.encode()) if labelled and labelled[0].scene else None

    async def _redraw(self, kept: KeptDrawing, request: ImageRequest) -> Illustration:
        size = Size(request.width, request.height)
        if not kept.source:
            shape = SHAPING.fullmatch(request.prompt.lower().strip(" .!"))
            # The size of the request says it already.
            words = "" if shape and not shape["scale"] else request.prompt
            return await asyncio.to_thread(redraw, kept, words, **size._asdict())
        source, changes = edit_source(kept.source, request.prompt)
        compiled = await self.compile(source, None, size)
        drawn = await asyncio.to_thread(
            draw, prompt="", svg=compiled.svg, width=size.width, height=size.height, seed=None
        )
        facts = {**drawn.facts, "changes": list(changes), "notes": list(compiled.notes)}
        return replace(drawn, facts=facts, kept=replace(kept, source=source))


def _version(family: Lineage) -> PictureRecord:
    """The picture that this is another format or fit of; a transformed one is a version itself."""
    known = {one.picture.handle: one for one in family.ancestors}
    record = family.record
    while record.parent in known and record.lineage.get("made") != "transform":
        record = known.pop(record.parent)
    return record


def _split_steps(request: ImageRequest, *, is_drawn: bool) -> tuple[str, dict[str, Any]]:
    """The words about what is drawn, and the steps on pixels that the other words ask for."""
    steps: dict[str, Any] = {}
    rest: list[str] = []
    for clause in _CLAUSE.split(_GREY.sub("grey", request.prompt.strip())):
        found = read_transform(clause.lower().strip(" .!?"), (request.width, request.height))
        if found is None or (is_drawn and not found.keys() <= _FRAMING):
            rest.append(clause)
        else:
            steps |= found
    return (", ".join(filter(None, rest)) if steps else request.prompt), steps


def _cannot() -> UserError:
    return UserError(
        "The illustrator did not draw this picture, so it cannot change what is in it.",
        code=CANNOT,
        hint=f"{ON_ANY_PICTURE}: say that, or set {MAIN_KEYS[0]} for a model that changes any "
        "picture.",
    )
