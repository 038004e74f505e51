"""The arguments of `image_transform` -> a new picture from a stored one, free of charge."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from limner.content import Picture
from limner.errors import InputInvalid
from limner.imaging.formats import BY_MIME, OutputFormat
from limner.imaging.transform import Flip, Mark, TransformRequest
from limner.tools.base import ToolContext
from limner.tools.declaration import ImageText, OutputPath, Overwrite
from limner.tools.in_flight import InFlight
from limner.tools.output_file import OutputWriter
from limner.tools.output_target import OutputTarget, OutputTargets, format_of
from limner.tools.regions import RegionArgument
from limner.tools.sources import SourceLoader

MAX_EDGE = 16_384
MAX_MARKS = 100
_SIZE = re.compile(r"\s*(\d{1,5})?\s*[xX]\s*(\d{1,5})?\s*")
_PERCENT = re.compile(r"\s*(\d{1,4}(?:\.\d{1,3})?)\s*%\s*")
_BYTES = re.compile(r"\s*(\d{1,9}(?:\.\d{1,3})?)\s*(k|m|kb|mb|b)?\s*", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "k": 1_000, "kb": 1_000, "m": 1_000_000, "mb": 1_000_000}


class TransformArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `image_transform`."""

    image: Annotated[
        ImageText, Meta(description="A file path, or the handle that came with a picture.")
    ]
    crop: (
        Annotated[RegionArgument, Meta(description="The part to keep, in pixels of the original.")]
        | None
    ) = None
    rotate: (
        Annotated[
            float,
            Meta(description="Degrees clockwise.", ge=-360, le=360, extra={"metavar": "DEGREES"}),
        ]
        | None
    ) = None
    flip: Annotated[Flip, Meta(description="horizontal or vertical.")] | None = None
    resize: (
        Annotated[
            str,
            Meta(
                description="WIDTHxHEIGHT; WIDTHx or xHEIGHT in proportion; or 50%.",
                extra={"metavar": "WxH"},
            ),
        ]
        | None
    ) = None
    pad: (
        Annotated[
            str,
            Meta(
                description="Pixels to add on each side, or the WIDTHxHEIGHT to pad to.",
                extra={"metavar": "PIXELS|WxH"},
            ),
        ]
        | None
    ) = None
    background: (
        Annotated[
            str,
            Meta(
                description="The colour of what is added. Default: transparent.",
                extra={"metavar": "COLOUR"},
            ),
        ]
        | None
    ) = None
    grey: Annotated[bool, Meta(description="Shades of grey instead of colours.")] = False
    cut_out: Annotated[
        bool, Meta(description="Make a flat or checkered background transparent.")
    ] = False
    blur: Annotated[
        tuple[RegionArgument, ...],
        Meta(description="Parts to make unreadable, in pixels of the original.", max_length=100),
    ] = ()
    marks: Annotated[
        tuple[Mark, ...],
        Meta(
            description="Boxes, arrows and numbered points to draw over it.",
            max_length=MAX_MARKS,
            extra={"flag": "--mark"},
        ),
    ] = ()
    max_bytes: (
        Annotated[
            str,
            Meta(
                description="Compress to at most this size, as 200kB or 1.5MB.",
                extra={"flag": "--max-size", "metavar": "SIZE"},
            ),
        ]
        | None
    ) = None
    output_format: (
        Annotated[
            OutputFormat,
            Meta(
                description="png, jpeg or webp. Default: by output_path, else as the original.",
                extra={"flag": "--format"},
            ),
        ]
        | None
    ) = None
    output_path: OutputPath | None = None
    overwrite: Overwrite = False


class TransformedImage(msgspec.Struct, frozen=True, kw_only=True):
    """A new picture in a file, and what the caller should know about it.

    It is ``untrusted`` if the original came from outside: its text may be in it.
    """

    path: Path
    image: Picture
    original: Picture
    notes: tuple[str, ...] = ()
    untrusted: bool = False


class PictureTransformer(msgspec.Struct, frozen=True, kw_only=True):
    """Makes new pictures from stored ones; nothing is paid."""

    sources: SourceLoader
    targets: OutputTargets
    output: OutputWriter
    in_flight: InFlight

    async def transform(
        self, arguments: TransformArguments, context: ToolContext
    ) -> TransformedImage:
        """Do what the arguments say, and save the result.

        Raises:
            InputInvalid: an argument cannot be understood, or there is nothing to do.
            LimnerError: the picture cannot be read, changed or saved.
        """
        steps = _steps(arguments)
        with self.in_flight.track():
            original = await self.sources.take(arguments.image, context)
            request = _request(arguments, steps, original)
            target = await self.targets.check(
                arguments.output_path, context, overwrite=arguments.overwrite
            )
            with self.in_flight.writing(target.path, overwrite=target.overwrite):
                return await self._make(original, request, target, context)

    async def _make(
        self,
        original: Picture,
        request: TransformRequest,
        target: OutputTarget,
        context: ToolContext,
    ) -> TransformedImage:
        pictures = self.sources.pictures
        untrusted = context.has_read_untrusted
        image, notes = await pictures.transform(original, request, untrusted=untrusted)
        content = await self.output.derived_bytes(image)
        if request.max_bytes is not None and content.size_bytes > request.max_bytes:
            # The label needs room too.
            room = request.max_bytes - (content.size_bytes - image.size_bytes)
            request = replace(request, max_bytes=max(room, 0))
            image, notes = await pictures.transform(original, request, untrusted=untrusted)
            content = await self.output.derived_bytes(image)
        path = await asyncio.to_thread(
            self.output.write,
            target.path,
            content,
            overwrite=target.overwrite,
            replaces=target.replaces,
        )
        return TransformedImage(
            path=path,
            image=image,
            original=original,
            notes=notes,
            untrusted=not await pictures.drawn_here([image.handle]),
        )


def transform_request(arguments: TransformArguments, original: Picture) -> TransformRequest:
    """The request to a worker for a picture.

    Raises:
        InputInvalid: an argument cannot be understood, or there is nothing to do.
    """
    return _request(arguments, _steps(arguments), original)


def _steps(arguments: TransformArguments) -> dict[str, Any]:
    """The fields of a request that need no look at the picture."""
    from limner.rendering.colours import parse_colour  # noqa: PLC0415 - loaded on first use

    steps: dict[str, Any] = {
        "crop": arguments.crop,
        "rotate": arguments.rotate or 0.0,
        "flip": arguments.flip,
        "grey": arguments.grey,
        "cut_out": arguments.cut_out,
        "blur": arguments.blur,
        **_resize(arguments.resize),
        **_pad(arguments.pad),
    }
    if arguments.max_bytes is not None:
        steps["max_bytes"] = _byte_count(arguments.max_bytes)
    if not (
        any(steps.values()) or arguments.marks or arguments.output_format or arguments.output_path
    ):
        raise InputInvalid(
            "there is nothing to do",
            hint="Give crop, resize, rotate, flip, pad, grey, cut_out, blur, marks, max_bytes or "
            "output_format.",
        )
    if arguments.background is not None:
        steps["background"] = parse_colour(arguments.background, field="background")
    return steps


def _request(
    arguments: TransformArguments, steps: Mapping[str, Any], original: Picture
) -> TransformRequest:
    from limner.rendering.marks import draw_marks  # noqa: PLC0415 - loaded on first use

    overlay = None
    if arguments.marks:
        overlay = draw_marks(arguments.marks, original.width, original.height)
    return TransformRequest(**steps, overlay=overlay, to=_format(arguments, original))


def _format(arguments: TransformArguments, original: Picture) -> OutputFormat:
    named = None if arguments.output_path is None else format_of(arguments.output_path)
    if arguments.output_format is not None:
        if named not in (None, arguments.output_format):
            raise InputInvalid(
                f"output_format is {arguments.output_format}, and output_path names a {named} file",
                field="output_format",
            )
        return arguments.output_format
    if named is not None:
        return named
    own = BY_MIME[original.mime].name
    lossy = "jpeg" if own == "jpeg" and not arguments.cut_out else "webp"
    return "png" if own not in ("jpeg", "webp") else lossy


def _resize(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    if percent := _PERCENT.fullmatch(text):
        scale = float(percent[1]) / 100
        if 0 < scale <= 100:
            return {"scale": scale}
    elif (size := _SIZE.fullmatch(text)) and any(size.groups()):
        wide, high = (None if edge is None else int(edge) for edge in size.groups())
        if all(edge is None or 1 <= edge <= MAX_EDGE for edge in (wide, high)):
            return {"width": wide, "height": high}
    raise InputInvalid(
        f"resize is {text!r}",
        field="resize",
        hint=f"Write 800x600, 800x, x600 or 50%; at most {MAX_EDGE:,} pixels.",
    )


def _pad(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    if text.strip().isdecimal() and int(text) <= MAX_EDGE:
        return {"margin": int(text)}
    size = _SIZE.fullmatch(text)
    if size and all(size.groups()) and all(1 <= int(edge) <= MAX_EDGE for edge in size.groups()):
        return {"canvas": (int(size[1]), int(size[2]))}
    raise InputInvalid(
        f"pad is {text!r}", field="pad", hint="Write a number of pixels, or a size as 1200x800."
    )


def _byte_count(text: str) -> int:
    found = _BYTES.fullmatch(text)
    count = float(found[1]) * _UNITS[(found[2] or "").lower()] if found else 0
    if count < 1:
        raise InputInvalid(
            f"max_bytes is {text!r}", field="max_bytes", hint="Write 200kB, 1.5MB or 50000."
        )
    return int(count)
