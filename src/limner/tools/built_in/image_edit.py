"""The tool `image_edit`: pictures and words in, a new picture on disk and its facts out."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from limner.tools.base import Tool
from limner.tools.built_in import ToolParts
from limner.tools.declaration import ImageText, ToolDeclaration
from limner.tools.drawing_arguments import DrawingArguments, DrawingInputs
from limner.tools.generation_tool import DRAWS, MAX_RESULT_CHARS, DrawingAnswer, drawing_tool
from limner.tools.regions import RegionArgument

MAX_REFERENCES = 15


class EditArguments(DrawingArguments, frozen=True, kw_only=True):
    """The arguments of `image_edit`."""

    tool = "image_edit"

    image: Annotated[
        ImageText,
        Meta(description="The picture to change: a file path, or the handle that came with it."),
    ]
    prompt: Annotated[str, Meta(description="What to change, and what to keep.")]
    references: Annotated[
        tuple[ImageText, ...],
        Meta(
            description="More pictures to take from: paths or handles.",
            max_length=MAX_REFERENCES,
            extra={"flag": "--reference", "metavar": "IMAGE"},
        ),
    ] = ()
    mask: (
        Annotated[
            ImageText,
            Meta(
                description="A picture of the same size, transparent or white where it may change.",
                extra={"metavar": "IMAGE"},
            ),
        ]
        | None
    ) = None
    region: (
        Annotated[
            RegionArgument,
            Meta(description="The part that may change, in pixels of the picture."),
        ]
        | None
    ) = None

    @property
    def inputs(self) -> DrawingInputs:
        """The pictures, the one to change first, and the part that may change."""
        return DrawingInputs(
            sources=(self.image, *self.references), mask=self.mask, region=self.region
        )


IMAGE_EDIT = ToolDeclaration(
    name=EditArguments.tool,
    title="Change a picture",
    description="Change a picture, or draw a new one from pictures: say in `prompt` what to change "
    "and what to keep. `mask` or `region` limits the change to a part; `references` are further "
    "pictures to take from, such as a style, a face or a product. Saves a PNG and returns its "
    "path, dimensions and cost. The original stays as it is.",
    arguments=EditArguments,
    answer=DrawingAnswer,
    hints=DRAWS,
    max_result_chars=MAX_RESULT_CHARS,
    keeps_books=True,
    first=(
        *("image", "prompt", "references", "mask", "region", "output_path", "quality"),
        *("provider", "model", "seed", "overwrite", "n", "background", "negative_prompt", "size"),
    ),
)


def build(parts: ToolParts) -> Tool:
    """Build the tool."""
    return drawing_tool(IMAGE_EDIT, parts.generator, parts.defaults)
