"""A path or a handle -> a picture for a model: checked, fitted, ready to be sent."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.catalogue.sizes import Size
from limner.catalogue.vision import VisionModel, tokens
from limner.content import Picture, format_bytes
from limner.errors import CorruptImage, ImageTooLarge, UnrecognizedImage
from limner.imaging.fit import FitRequest, Region
from limner.imaging.formats import BY_NAME, HEAD_BYTES, Format, sniff
from limner.imaging.limits import DEFAULT_LIMITS, limits_for
from limner.pictures.fitting import FittedImage, Fitting
from limner.pictures.take import MAX_PICTURE_BYTES, Pictures
from limner.storage.files import open_plain
from limner.storage.os_errors import disk_errors
from limner.tools.base import ToolContext
from limner.tools.file_lookup import find_file
from limner.tools.handles import Handles
from limner.wires.base import ModelPicture

MAX_INPUT_BYTES = 20 * 1024 * 1024
UNDECODABLE = "The picture could not be decoded, so it was sent as it is."
# What limner itself looks at is never made smaller or less sharp.
WITHOUT_LOSS = FitRequest(
    mode="fast",
    max_width=16_384,
    max_height=16_384,
    max_bytes=MAX_PICTURE_BYTES,
    formats=("image/png",),
)
ANIMATED = "An animation: only its first frame was sent."


def max_input_bytes(max_megapixels: int) -> int:
    """The most bytes of a file that is inspected, for the setting `images.max_megapixels`."""
    limits = limits_for(max_megapixels)
    is_raised = limits.max_large_pixels > limits.max_pixels
    return limits.max_file_bytes if is_raised else MAX_INPUT_BYTES


class LoadedPicture(msgspec.Struct, frozen=True, kw_only=True):
    """One picture as a model gets it, and its tiles.

    Attributes:
        path: the file it came from, or its handle if the caller gave that.
        handle: the picture in the file.
        model_pictures: what is sent, the whole picture first.
        fits: how the pixels of each of them map to the original's; empty if it was not fitted.
        tokens: the tokens of all of them; None if they are not known.
        note: what the caller should know about it.
    """

    path: Path
    handle: str
    model_pictures: tuple[ModelPicture, ...]
    fits: tuple[FittedImage, ...] = ()
    tokens: int | None = None
    note: str | None = None

    @property
    def details(self) -> dict[str, Any]:
        """What a tool result says about it."""
        details: dict[str, Any] = {
            "imagePath": str(self.path),
            "mimeType": self.model_pictures[0].mime,
            "image": self.handle,
        }
        if self.fits:
            details |= _geometry(self.fits[0])
        if len(self.fits) > 1:
            details["tiles"] = [_geometry(tile) for tile in self.fits[1:]]
        return details if self.note is None else details | {"note": self.note}


class PictureLoader(msgspec.Struct, frozen=True, kw_only=True):
    """Reads picture files for models, as the settings `images.*` say."""

    pictures: Pictures
    handles: Handles
    fitting: Fitting
    accept: tuple[str, ...]
    auto_resize: bool
    max_bytes: int = MAX_INPUT_BYTES

    async def load(
        self,
        text: str,
        context: ToolContext,
        *,
        model: VisionModel,
        region: Region | None,
        images_in_request: int,
        as_it_is: bool,
    ) -> LoadedPicture:
        """Read a picture file for a model.

        Args:
            text: the path as the caller wrote it, or a handle.
            context: the caller, and what it may read.
            model: the formats that it reads, and its limits.
            region: only this part of the picture.
            images_in_request: how many pictures go with it, this one included.
            as_it_is: the model wants the file itself if it can read it.

        Raises:
            ReachDenied: the caller may not read the path.
            StorageError: there is no such file, or it cannot be read.
            UnrecognizedImage: its first bytes are not those of an accepted format.
            ImageTooLarge: it has too many bytes or pixels.
            CorruptImage: a region was asked for, of a picture that cannot be decoded.
        """
        picture = await self.handles.find(text, session_id=context.session_id)
        path = find_file(text, context) if picture is None else Path(picture.handle)
        if picture is None:
            form = await asyncio.to_thread(self._check, path)
            try:
                picture = await self.pictures.take_file(path)
            except CorruptImage:
                if region is not None or path.stat().st_size > MAX_INPUT_BYTES:
                    raise
                return await _undecoded(path, form)
        # No worker decodes a large picture as a whole, and no service accepts it.
        is_large = picture.width * picture.height > DEFAULT_LIMITS.max_pixels
        whole_file = (as_it_is or not self.auto_resize) and not is_large
        if whole_file and region is None and picture.mime in model.formats:
            return await self._whole(path, picture, model)
        fitted = None
        if as_it_is and region is not None:
            fitted = await self._without_loss(picture, region, is_large=is_large)
        if fitted is None:
            fitted = await self.fitting.fit(
                picture, model=model, region=region, images_in_request=images_in_request
            )
        return _fitted(path, picture, fitted, is_large=is_large)

    async def _without_loss(
        self, picture: Picture, region: Region, *, is_large: bool
    ) -> FittedImage | None:
        """A region at full detail; None if a large picture can only be read at less."""
        try:
            fit, data = await self.pictures.give(picture, replace(WITHOUT_LOSS, region=region))
        except ImageTooLarge:
            if is_large:
                return None
            raise
        return FittedImage(data=data, fit=fit)

    async def _whole(self, path: Path, picture: Picture, model: VisionModel) -> LoadedPicture:
        data = await self.pictures.original(picture)
        look = tokens(model, Size(picture.width, picture.height))
        return LoadedPicture(
            path=path,
            handle=picture.handle,
            model_pictures=(ModelPicture(mime=picture.mime, data=data),),
            tokens=None if look is None else look.tokens,
        )

    def _check(self, path: Path) -> Format:
        """The format of a file by its first bytes, if that and its length are accepted."""
        with open_plain(path) as file, disk_errors(doing="read", path=path):
            form = sniff(file.read(HEAD_BYTES))
            size_bytes = os.fstat(file.fileno()).st_size
        if form is None or form.name not in self.accept:
            raise UnrecognizedImage(
                f"inspect_image only supports {_listed(self.accept)} files detected by file "
                "content.",
                hint=None if form is None else f"{path.name} is {form.label}.",
            )
        if size_bytes > self.max_bytes:
            raise ImageTooLarge(
                f"Image file too large: {format_bytes(size_bytes)} exceeds "
                f"{format_bytes(self.max_bytes)} limit."
            )
        return form


def _fitted(path: Path, picture: Picture, fitted: FittedImage, *, is_large: bool) -> LoadedPicture:
    fits = (fitted, *fitted.tiles)
    note = ANIMATED if fitted.fit.animated and not fitted.fit.untouched else None
    if is_large:
        size, part = f"{picture.width}x{picture.height}", fitted.fit.part
        shown = f"{fitted.width}x{fitted.height}"
        note = f"Of {size} pixels, {part.width}x{part.height} were sent as {shown}."
    counts = [fit.tokens for fit in fits]
    return LoadedPicture(
        path=path,
        handle=picture.handle,
        model_pictures=tuple(ModelPicture(mime=fit.mime, data=fit.data) for fit in fits),
        fits=fits,
        tokens=None if None in counts else sum(count or 0 for count in counts),
        note=note,
    )


async def _undecoded(path: Path, form: Format) -> LoadedPicture:
    """The file as it is: the model may be able to read it."""

    def read() -> bytes:
        with open_plain(path) as file, disk_errors(doing="read", path=path):
            return file.read(MAX_INPUT_BYTES)

    data = await asyncio.to_thread(read)
    return LoadedPicture(
        path=path,
        handle=hashlib.sha256(data).hexdigest(),
        model_pictures=(ModelPicture(mime=form.mime, data=data),),
        note=UNDECODABLE,
    )


def _geometry(image: FittedImage) -> Mapping[str, Any]:
    fit = image.fit
    return {
        "width": fit.width,
        "height": fit.height,
        "part": {
            "x": fit.part.x,
            "y": fit.part.y,
            "width": fit.part.width,
            "height": fit.part.height,
        },
        "scale": {"x": fit.scale_x, "y": fit.scale_y},
    }


def _listed(names: tuple[str, ...]) -> str:
    """``PNG, JPEG, GIF, and WEBP``, as the specification has it."""
    titles = [BY_NAME[name].title.upper() for name in names]
    return f"{', '.join(titles[:-1])}, and {titles[-1]}"
