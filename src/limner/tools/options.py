"""The keywords of `generate`, `edit`, `render` and other functions, for type checkers.

Made by scripts/reference.py from the Structs of arguments: run `make format` after a change.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict

from limner.imaging.fit import Region
from limner.imaging.transform import Mark
from limner.pictures.request import Progress
from limner.tools.base import Question
from limner.tools.image_input import ImageInput


class CallHooks(TypedDict, total=False):
    """Functions that follow a call.

    Attributes:
        progress: gets a `Progress` for each step of the call; it must not block.
        ask: decides a `Question` that only the user can decide; without it the answer is no.
    """

    progress: Callable[[Progress], None]
    ask: Callable[[Question], Awaitable[bool]]


class GenerateOptions(CallHooks, total=False):
    """The keywords of `generate`.

    Attributes:
        quality: standard or hd.
        seed: The same seed draws the same picture again, if the model has seeds.
        background: transparent or opaque, if the model can.
        negative_prompt: What should not be in the picture.
        output_path: File path to save the PNG. Default: a new file in limner's folder.
        provider: openai-dalle, openai-image, replicate-flux, illustrator and others, or auto.
        model: One model of the provider, by its id.
        overwrite: Replace an existing file at output_path.
        size: One of 512x512 (Flux only), 1024x1024, 1024x1792, 1792x1024; another WIDTHxHEIGHT the
            provider can draw; or a shape, as 16:9.
        svg: An SVG document to render instead of asking an image model; the prompt then only
            describes it.
        output_format: The format of the file, by default png. The picture as the provider sent it
            is kept too.
        fallback: Providers to try instead, one after the other, if the first fails and that cost
            nothing.
        partial_pictures: How many unfinished pictures to show on the way; they may cost.
    """

    quality: Literal["standard", "hd"] | None
    seed: int | None
    background: Literal["transparent", "opaque"] | None
    negative_prompt: str | None
    output_path: str | Path | None
    provider: str | None
    model: str | None
    overwrite: bool | None
    size: str | None
    svg: str | None
    output_format: Literal["png", "jpeg", "webp"] | None
    fallback: Sequence[str] | None
    partial_pictures: int | None


class EditOptions(CallHooks, total=False):
    """The keywords of `edit`.

    Attributes:
        quality: standard or hd.
        seed: The same seed draws the same picture again, if the model has seeds.
        background: transparent or opaque, if the model can.
        negative_prompt: What should not be in the picture.
        output_path: File path to save the PNG. Default: a new file in limner's folder.
        provider: openai-dalle, openai-image, replicate-flux, illustrator and others, or auto.
        model: One model of the provider, by its id.
        overwrite: Replace an existing file at output_path.
        size: WIDTHxHEIGHT or a shape as 16:9; by default the shape of the picture.
        references: More pictures to take from: paths or handles.
        mask: A picture of the same size, transparent or white where it may change.
        region: The part that may change, in pixels of the picture.
        output_format: The format of the file, by default png. The picture as the provider sent it
            is kept too.
        fallback: Providers to try instead, one after the other, if the first fails and that cost
            nothing.
        partial_pictures: How many unfinished pictures to show on the way; they may cost.
    """

    quality: Literal["standard", "hd"] | None
    seed: int | None
    background: Literal["transparent", "opaque"] | None
    negative_prompt: str | None
    output_path: str | Path | None
    provider: str | None
    model: str | None
    overwrite: bool | None
    size: str | None
    references: Sequence[ImageInput] | None
    mask: ImageInput | None
    region: Region | None
    output_format: Literal["png", "jpeg", "webp"] | None
    fallback: Sequence[str] | None
    partial_pictures: int | None


class RenderOptions(CallHooks, total=False):
    """The keywords of `render`.

    Attributes:
        source_format: What the source is written in. By default its start decides.
        size: WIDTHxHEIGHT in pixels. By default the document decides.
        output_path: File path to save it. Default: a new file in limner's folder.
        output_format: The format of the file. By default its name decides, else png.
        overwrite: Replace an existing file at output_path.
    """

    source_format: Literal["limner", "svg", "dot", "mermaid", "vega-lite", "typst"] | None
    size: str | None
    output_path: str | Path | None
    output_format: Literal["png", "jpeg", "webp", "svg"] | None
    overwrite: bool | None


class TransformOptions(CallHooks, total=False):
    """The keywords of `transform`.

    Attributes:
        crop: The part to keep, in pixels of the original.
        rotate: Degrees clockwise.
        flip: horizontal or vertical.
        resize: WIDTHxHEIGHT; WIDTHx or xHEIGHT in proportion; or 50%.
        pad: Pixels to add on each side, or the WIDTHxHEIGHT to pad to.
        background: The colour of what is added. Default: transparent.
        grey: Shades of grey instead of colours.
        cut_out: Make a flat or checkered background transparent.
        blur: Parts to make unreadable, in pixels of the original.
        marks: Boxes, arrows and numbered points to draw over it.
        max_bytes: Compress to at most this size, as 200kB or 1.5MB.
        output_format: png, jpeg or webp. Default: by output_path, else as the original.
        output_path: File path to save it. Default: a new file in limner's folder.
        overwrite: Replace an existing file at output_path.
    """

    crop: Region | None
    rotate: float | None
    flip: Literal["horizontal", "vertical"] | None
    resize: str | None
    pad: str | None
    background: str | None
    grey: bool | None
    cut_out: bool | None
    blur: Sequence[Region] | None
    marks: Sequence[Mark] | None
    max_bytes: str | None
    output_format: Literal["png", "jpeg", "webp"] | None
    output_path: str | Path | None
    overwrite: bool | None


class CheckOptions(CallHooks, total=False):
    """The keywords of `check`.

    Attributes:
        against: A reference of the same size: every visible difference fails.
        expect: Criteria in words, as: shows 'Save'; has 3 buttons; text is readable.
        ignore: Parts that may differ from the reference, in pixels.
        sheet: File path for a PNG with both pictures and the differences marked.
    """

    against: ImageInput | None
    expect: Sequence[str] | None
    ignore: Sequence[Region] | None
    sheet: str | Path | None


class SheetOptions(CallHooks, total=False):
    """The keywords of `sheet`.

    Attributes:
        prompts: Texts to draw; each is drawn by each model with each seed.
        models: Models that draw, by id, or providers by name.
        seeds: Seeds, one picture for each.
        size: The size to draw: WIDTHxHEIGHT or a shape as 16:9.
        budget_usd: Draw nothing if all pictures together cost more.
        output_path: File path to save it. Default: a new file in limner's folder.
        overwrite: Replace an existing file at output_path.
    """

    prompts: Sequence[str] | None
    models: Sequence[str] | None
    seeds: Sequence[int] | None
    size: str | None
    budget_usd: str | None
    output_path: str | Path | None
    overwrite: bool | None


class InspectOptions(CallHooks, total=False):
    """The keywords of `inspect`.

    Attributes:
        paths: More image files to look at together with the first.
        region: Only this part, in pixels of the original.
        schema: A JSON schema that the answer has to follow.
        model: The model to ask, as provider/id. By default the settings say.
    """

    paths: Sequence[ImageInput] | None
    region: Region | None
    schema: Mapping[str, object] | None
    model: str | None
