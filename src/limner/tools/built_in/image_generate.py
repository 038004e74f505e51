"""The tool `image_generate`: a prompt in, a PNG on disk and its facts out."""

from typing import Annotated

from msgspec import Meta

from limner.tools.base import Tool
from limner.tools.built_in import ToolParts
from limner.tools.declaration import ToolDeclaration
from limner.tools.drawing_arguments import DrawingArguments, DrawingInputs
from limner.tools.generation_tool import DRAWS, MAX_RESULT_CHARS, DrawingAnswer, drawing_tool


class GenerateArguments(DrawingArguments, frozen=True, kw_only=True):
    """The arguments of `image_generate`."""

    tool = "image_generate"

    prompt: Annotated[str, Meta(description="Text description of the image to generate.")]
    size: Annotated[
        str,
        Meta(
            description="One of 512x512 (Flux only), 1024x1024, 1024x1792, 1792x1024; "
            "another WIDTHxHEIGHT the provider can draw; or a shape, as 16:9.",
            extra={"metavar": "WxH"},
        ),
    ] = "1024x1024"
    svg: (
        Annotated[
            str,
            Meta(
                description="An SVG document to render instead of asking an image model; the "
                "prompt then only describes it.",
                extra={"metavar": "FILE"},
            ),
        ]
        | None
    ) = None

    @property
    def inputs(self) -> DrawingInputs:
        """The document, if there is one."""
        return DrawingInputs(svg=self.svg)


IMAGE_GENERATE = ToolDeclaration(
    name=GenerateArguments.tool,
    title="Draw a picture",
    description="Draw one picture from a text prompt and save it as a PNG. Returns the path, the "
    "real dimensions, the cost in dollars, the provider and the prompt it used. On a machine "
    "without an image model it draws vector art; then `svg` gives the best pictures: write an SVG "
    'document yourself, and place ready-made pictures in it with <asset name="robot" x="10" '
    'y="10" size="300"/>.',
    arguments=GenerateArguments,
    answer=DrawingAnswer,
    hints=DRAWS,
    max_result_chars=MAX_RESULT_CHARS,
    keeps_books=True,
    first=(
        *("prompt", "output_path", "size", "quality", "provider", "model", "svg"),
        *("seed", "overwrite", "n"),
    ),
)


def build(parts: ToolParts) -> Tool:
    """Build the tool."""
    return drawing_tool(IMAGE_GENERATE, parts.generator, parts.defaults)
