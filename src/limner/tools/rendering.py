"""The arguments of `image_render` -> a picture of a source, drawn on the way of every picture."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import PurePath
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from limner.catalogue.images import Size
from limner.catalogue.sizes import parse_size
from limner.errors import InputInvalid
from limner.rendering.sources import CompiledSource, SourceFormat
from limner.tools.arguments import is_blank
from limner.tools.base import ToolContext
from limner.tools.built_in.image_generate import GenerateArguments
from limner.tools.declaration import OutputPath, Overwrite
from limner.tools.drawing_arguments import DrawingDefaults, order_for
from limner.tools.generation import ImageGenerator
from limner.tools.output_file import GeneratedImage
from limner.tools.output_target import format_of

Compile = Callable[[str, SourceFormat | None, Size | None], Awaitable[CompiledSource]]
"""Compiles the text of a source, in a format or the one it looks like, at a size or its own."""

Resolve = Callable[[CompiledSource], Awaitable[bytes]]
"""Makes a file of a compiled source: SVG with the ready-made pictures in it, or PNG."""

FileFormat = Literal["png", "jpeg", "webp", "svg"]
HelpTopic = Literal["charts", "diagrams", "pages", "svg", "formats"]
_MAX_DESCRIBED_CHARS = 200
# The database is not for larger sources.
_MAX_KEPT_CHARS = 100_000


class RenderArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `image_render`."""

    tool: ClassVar[str] = "image_render"

    source: Annotated[str, Meta(description="The text of the document.")] = ""
    source_format: (
        Annotated[
            SourceFormat,
            Meta(description="What the source is written in. By default its start decides."),
        ]
        | None
    ) = None
    size: (
        Annotated[
            str,
            Meta(
                description="WIDTHxHEIGHT in pixels. By default the document decides.",
                extra={"metavar": "WxH"},
            ),
        ]
        | None
    ) = None
    output_path: OutputPath | None = None
    output_format: (
        Annotated[
            FileFormat,
            Meta(
                description="The format of the file. By default its name decides, else png.",
                extra={"flag": "--format"},
            ),
        ]
        | None
    ) = None
    overwrite: Overwrite = False
    help: (
        Annotated[
            HelpTopic,
            Meta(description="Return how to write charts, diagrams, pages or SVG; draw nothing."),
        ]
        | None
    ) = None


class SourceRenderer(msgspec.Struct, frozen=True, kw_only=True):
    """Renders sources: compiles them to SVG, and draws that as every other picture."""

    compile: Compile
    resolve: Resolve
    paint: Resolve
    generator: ImageGenerator

    async def preview(self, source: str, kind: SourceFormat | None, size: Size | None) -> bytes:
        """A source as PNG; nothing is stored.

        Raises:
            LimnerError: it is not what its format says, or cannot be drawn.
        """
        return await self.paint(await self.compile(source, kind, size))

    async def render(self, arguments: RenderArguments, context: ToolContext) -> GeneratedImage:
        """Draw a source and save it.

        Raises:
            InputInvalid: there is no source, or it is not what its format says.
            LimnerError: it cannot be drawn or saved.
        """
        if is_blank(arguments.source):
            raise InputInvalid(
                "source is required and must not be blank",
                field="source",
                hint='For example {"type": "bar", "labels": ["Q1"], "values": [12]}.',
            )
        file_format = _file_format(arguments)
        size = None if arguments.size is None else parse_size(arguments.size)
        compiled = await self.compile(arguments.source, arguments.source_format, size)
        drawing = GenerateArguments(
            prompt=_description(compiled, arguments.source),
            svg=compiled.svg,
            size=f"{compiled.width}x{compiled.height}",
            output_path=arguments.output_path,
            overwrite=arguments.overwrite,
        )
        kept = len(arguments.source) <= _MAX_KEPT_CHARS
        order = replace(
            order_for(drawing, DrawingDefaults()),
            tool=arguments.tool,
            scene={"prompt": drawing.prompt, "source": arguments.source} if kept else None,
        )
        if file_format == "svg":
            order = replace(order, document=await self.resolve(compiled))
        else:
            order = replace(order, output_format=file_format)
        drawn = await self.generator.draw(order, context)
        notes = [*compiled.notes, *_asset_notes(drawn)]
        return replace(drawn, extras={"source_format": compiled.format, "notes": notes})


def _file_format(arguments: RenderArguments) -> FileFormat:
    """The format that is asked for, or else the one that the file's name ends with."""
    path = PurePath(arguments.output_path or "")
    named: FileFormat | None = "svg" if path.suffix.lower() == ".svg" else format_of(str(path))
    chosen = arguments.output_format
    if chosen and named and chosen != named:
        raise InputInvalid(
            f"output_format is {chosen}, and the name {path.name!r} says {named}",
            field="output_format",
            hint="Leave out the format, or give the file another name.",
        )
    return chosen or named or "png"


def _description(compiled: CompiledSource, source: str) -> str:
    """What the history of the picture says it was drawn from."""
    words = " ".join(source.split())[:_MAX_DESCRIBED_CHARS].encode(errors="replace").decode()
    return f"{compiled.format} document: {words}"


class MissingAsset(msgspec.Struct, frozen=True):
    """A ready-made picture that a document names and that does not exist."""

    name: str
    nearest: list[str]


def _asset_notes(drawn: GeneratedImage) -> list[str]:
    missing = msgspec.convert(drawn.extras.get("missing_assets", []), list[MissingAsset])
    scenes = msgspec.convert(drawn.extras.get("missing_scenes", []), list[str])
    return [
        f"No ready-made picture is named {one.name[:60]!r}"
        + (f"; the nearest are {', '.join(one.nearest)}." if one.nearest else ".")
        for one in missing
    ] + [f"No scene is named {name[:60]!r}; `help` about svg names them." for name in scenes]
