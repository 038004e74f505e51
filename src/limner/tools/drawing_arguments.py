"""What the drawing tools take -> an order: the caller's arguments with the defaults filled in."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from limner.catalogue.images import Size
from limner.catalogue.sizes import parse_shape, parse_size
from limner.errors import InputInvalid
from limner.imaging.fit import Region
from limner.imaging.formats import OutputFormat
from limner.pictures.request import DrawingOptions
from limner.providers.choice import AUTO
from limner.tools.arguments import is_blank
from limner.tools.declaration import Overwrite, PathText

MAX_COUNT = 10


class DrawingInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What a picture is drawn from, besides the prompt.

    Attributes:
        svg: a document to render instead.
        sources: paths or handles of pictures to draw from, the one to change first.
        mask: a path or handle of a picture that marks what may change.
        region: the part that may change.
    """

    svg: str | None = None
    sources: tuple[str, ...] = ()
    mask: str | None = None
    region: Region | None = None


class DrawingArguments(DrawingOptions, frozen=True, kw_only=True):
    """The arguments that every drawing tool has. ``tool`` is the name of the tool."""

    tool: ClassVar[str]

    prompt: str
    output_path: (
        Annotated[
            PathText,
            Meta(
                description="File path to save the PNG. Default: a new file in limner's folder.",
                extra={"flag": "--out", "metavar": "PATH"},
            ),
        ]
        | None
    ) = None
    provider: (
        Annotated[
            str,
            Meta(
                description="openai-dalle, openai-image, replicate-flux, illustrator and others, "
                "or auto.",
                extra_json_schema={"default": AUTO},
                extra={"metavar": "NAME"},
            ),
        ]
        | None
    ) = None
    model: (
        Annotated[
            str,
            Meta(
                description="One model of the provider, by its id.",
                extra={"metavar": "ID"},
            ),
        ]
        | None
    ) = None
    overwrite: Overwrite = False
    n: Annotated[
        int,
        Meta(
            description="How many pictures; each is paid for.",
            ge=1,
            le=MAX_COUNT,
            extra={"flag": "--count", "metavar": "N"},
        ),
    ] = 1
    size: (
        Annotated[
            str,
            Meta(
                description="WIDTHxHEIGHT or a shape as 16:9; by default the shape of the picture.",
                extra={"metavar": "WxH"},
            ),
        ]
        | None
    ) = None

    @property
    def inputs(self) -> DrawingInputs:
        """What the picture is drawn from."""
        return DrawingInputs()

    @property
    def given_options(self) -> dict[str, Any]:
        """The drawing options that differ from their defaults, by name."""
        defaults = DrawingOptions()
        return {
            name: value for name, value in self.options.items() if value != getattr(defaults, name)
        }

    @property
    def options(self) -> dict[str, Any]:
        """All drawing options by name, as `ImageRequest` takes them."""
        return {name: getattr(self, name) for name in DrawingOptions.__struct_fields__}


# Why an argument is not in the tool: the generated table of calls shows it.
_ONLY_CALLER = "the user or the program decides it, not the model"


class CallerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a program or a person can ask for besides, and a model cannot."""

    output_format: (
        Annotated[
            OutputFormat,
            Meta(
                description="The format of the file, by default png. The picture as the provider "
                "sent it is kept too.",
                extra={"flag": "--format", "only": _ONLY_CALLER},
            ),
        ]
        | None
    ) = None
    fallback: (
        Annotated[
            tuple[str, ...],
            Meta(
                description="Providers to try instead, one after the other, if the first fails "
                "and that cost nothing.",
                extra={"metavar": "NAMES", "separator": ",", "only": _ONLY_CALLER},
            ),
        ]
        | None
    ) = None
    partial_pictures: Annotated[
        int,
        Meta(
            description="How many unfinished pictures to show on the way; they may cost.",
            ge=0,
            extra={"flag": "--partial", "metavar": "N", "only": _ONLY_CALLER},
        ),
    ] = 0


class DrawingDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings say about calls that leave it open."""

    provider: str = AUTO
    fallback: tuple[str, ...] = ()


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller wants, parsed; nothing is decided yet.

    Attributes:
        tool: the tool that was called, for the ledger.
        arguments: what the caller gave.
        inputs: what to draw from.
        size: None for the shape of the first source.
        any_size: only the shape of the size is meant.
        provider: who draws, or ``auto``.
        fallback: who draws instead, one after the other, after failures that cost nothing.
        output_format: what to save it as; the picture as it came is kept too.
        document: the SVG that is written to the file in place of the picture.
        scene: what is kept with the picture for later edits, if its provider does not know it.
        partial_pictures: how many unfinished pictures to show on the way.
    """

    tool: str
    arguments: DrawingArguments
    inputs: DrawingInputs
    size: Size | None
    any_size: bool
    provider: str
    fallback: tuple[str, ...] = ()
    output_format: OutputFormat = "png"
    document: bytes | None = None
    scene: Mapping[str, object] | None = None
    partial_pictures: int = 0


NO_OPTIONS = CallerOptions()


def order_for(
    arguments: DrawingArguments,
    defaults: DrawingDefaults,
    options: CallerOptions = NO_OPTIONS,
) -> Order:
    """The order in the arguments of a drawing tool.

    Raises:
        InputInvalid: the prompt is blank, or the size is not a size.
    """
    if is_blank(arguments.prompt):
        raise InputInvalid("prompt is required and must not be blank", field="prompt")
    shape = None if arguments.size is None else parse_shape(arguments.size)
    size = None if arguments.size is None else shape or parse_size(arguments.size)
    inputs = arguments.inputs
    # A model or a document decides who draws; the settings are for calls that leave it open.
    is_open = arguments.model is None and inputs.svg is None
    provider, fallback = (defaults.provider, defaults.fallback) if is_open else (AUTO, ())
    if arguments.provider is not None:
        provider, fallback = arguments.provider, ()
    return Order(
        tool=arguments.tool,
        arguments=arguments,
        inputs=inputs,
        size=size,
        any_size=shape is not None,
        provider=provider,
        fallback=fallback if options.fallback is None else options.fallback,
        output_format=options.output_format or "png",
        partial_pictures=options.partial_pictures,
    )
