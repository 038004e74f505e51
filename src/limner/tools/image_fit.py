"""The tool `image_fit`: a picture and a model in, the picture as that model gets it and its price.

It is for agents that send pictures to models themselves, and want to know what a look will cost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from limner.catalogue.vision import VisionModel
from limner.content import Picture
from limner.pictures.fitting import FittedImage, Fitting
from limner.tools.base import Outcome, Tool, ToolContext
from limner.tools.built_in.image_recall import READS
from limner.tools.declaration import Dimensions, Handle, ImageText, ToolDeclaration
from limner.tools.regions import RegionArgument
from limner.tools.sources import SourceLoader


class FitArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `image_fit`."""

    image: Annotated[
        ImageText, Meta(description="A file path, or the handle that came with a picture.")
    ]
    model: (
        Annotated[
            str,
            Meta(
                description="The model it is for, as provider/id, such as openai/gpt-5.5.",
                extra={"flag": "--for"},
            ),
        ]
        | None
    ) = None
    region: (
        Annotated[RegionArgument, Meta(description="Only this part, in pixels of the original.")]
        | None
    ) = None
    page: (
        Annotated[int, Meta(description="The page of a document.", ge=1, extra={"metavar": "N"})]
        | None
    ) = None


class FitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The value of `image_fit`.

    A point of the fitted picture times ``scale``, plus the corner of ``part``, is a point of the
    original.
    """

    image: Handle
    mime: str
    dimensions: Dimensions
    bytes: int
    original: Mapping[str, Any]
    part: Mapping[str, Any]
    scale: Mapping[str, Any]
    model: str | None
    tokens: int | None
    tokens_exact: bool
    cost_usd: float | None


IMAGE_FIT = ToolDeclaration(
    name="image_fit",
    title="Make a picture ready for a model",
    description="Make a picture file ready for a vision model, free of charge: returns the picture "
    "as the model should get it, the tokens and dollars a look at it takes, and how its pixels map "
    "to those of the original. Give `region` for a part at full detail.",
    arguments=FitArguments,
    answer=FitAnswer,
    hints=READS,
    max_result_chars=2_000,
)


def image_fit(
    sources: SourceLoader, fitting: Fitting, *, find_model: Callable[[str], VisionModel]
) -> Tool:
    """The tool, which fits pictures that ``sources`` finds for models that ``find_model`` finds."""

    async def run(arguments: FitArguments, context: ToolContext) -> Outcome:
        model = None if arguments.model is None else find_model(arguments.model)
        picture = await sources.take(arguments.image, context)
        fitted = await fitting.fit(
            picture, model=model, region=arguments.region, page=arguments.page or 1
        )
        shown = _as_picture(fitted)
        return Outcome(
            value=_as_value(fitted, shown, of=picture),
            content=(shown,),
            untrusted=not await sources.pictures.drawn_here([picture.handle]),
        )

    return IMAGE_FIT.tool(run)


def _as_picture(fitted: FittedImage) -> Picture:
    return Picture(
        handle=hashlib.sha256(fitted.data).hexdigest(),
        mime=fitted.mime,
        width=fitted.width,
        height=fitted.height,
        size_bytes=len(fitted.data),
    )


def _as_value(fitted: FittedImage, shown: Picture, *, of: Picture) -> dict[str, Any]:
    fit = fitted.fit
    answer = FitAnswer(
        image=shown.handle,
        mime=shown.mime,
        dimensions=Dimensions(width=shown.width, height=shown.height),
        bytes=shown.size_bytes,
        original={
            "image": of.handle,
            "width": fit.original_width,
            "height": fit.original_height,
        },
        part=msgspec.to_builtins(fit.part),
        scale={"x": fit.scale_x, "y": fit.scale_y},
        model=fitted.model,
        tokens=fitted.tokens,
        tokens_exact=fitted.tokens_exact,
        cost_usd=fitted.cost_usd,
    )
    return msgspec.to_builtins(answer)
