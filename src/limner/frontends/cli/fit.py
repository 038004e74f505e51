"""Make pictures ready for models, and say what it costs to send them."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limner.catalogue.vision import VisionModel, vision_models
from limner.client import Limner
from limner.content import Picture, format_bytes
from limner.display_text import clean_line
from limner.dollars import format_usd
from limner.errors import LimnerError, UserError
from limner.frontends.cli.arguments import add_flags, flags_of
from limner.frontends.cli.output import CommandResult, failure
from limner.frontends.cli.terminal import Waiting, wait_for
from limner.pictures.fitting import FittedImage
from limner.pictures.request import Progress
from limner.storage.files import write_new
from limner.tools.declaration import arguments_of
from limner.tools.image_fit import FitArguments
from limner.tools.output_target import format_of

EXAMPLE = """\
examples:
  limner fit screenshot.png
  limner fit photo.jpg --for anthropic/claude-sonnet-5-5 --for openai/gpt-5.5
  limner fit photo.jpg --out small.webp
  limner fit plan.png --region 2400,100,800,600 --out detail.png
  limner fit *.png --for openai/gpt-5.5 --out fitted/
"""
# How many pictures are fitted at once: enough to keep the workers busy.
AT_ONCE = 16
SUFFIXES = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "image/gif": ".gif",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """One picture for one model, and the files it was written to: its own, then its tiles'."""

    image: FittedImage
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """The outcome for one file: a picture with its fits, or an error."""

    name: str
    picture: Picture | None = None
    fits: tuple[_Fit, ...] = ()
    error: LimnerError | None = None


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="a picture file, or a handle")
    parser.add_argument(
        *flags_of(arguments_of(FitArguments)["model"]),
        dest="models",
        action="append",
        metavar="MODEL",
        help="the model it is for, as provider/id; may be given again to compare "
        "(default: one model of each service)",
    )
    parser.add_argument(
        *("--out", "--output-path"),
        dest="output_path",
        metavar="PATH",
        help="write the fitted picture there; a folder if there is more than one",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace existing files")
    add_flags(
        parser,
        FitArguments,
        without=("image", "model"),
        helps={"page": "one page of a PDF or TIFF; default 1"},
        types={"page": _page},
    )
    parser.set_defaults(page=1)


def run(args: Namespace) -> CommandResult:
    """Fit every picture for every model."""
    out: str | None = args.output_path
    count = len(args.images) * max(1, len(set(args.models or ())))
    if out is not None and count > 1 and not _is_folder(out):
        raise UserError(
            "there is more than one picture to write, and --out is not a folder",
            hint=f"End it with a slash: --out {out}/",
        )
    return wait_for(lambda: _fit_all(args))


async def _fit_all(args: Namespace) -> CommandResult:
    waiting, slots, done = Waiting(), asyncio.Semaphore(AT_ONCE), 0

    async def one(lim: Limner, name: str, models: Sequence[VisionModel | None]) -> _Outcome:
        nonlocal done
        async with slots:
            try:
                outcome = await _fit_one(lim, name, models, args)
            except LimnerError as error:
                outcome = _Outcome(name=name, error=error)
        done += 1
        waiting.progress(_news(done, len(args.images), waiting))
        return outcome

    waiting.progress(_news(0, len(args.images), waiting))
    async with Limner() as lim, waiting.shown():
        models = _models(lim, args.models, writes=args.output_path is not None)
        return _result(await asyncio.gather(*(one(lim, name, models) for name in args.images)))


async def _fit_one(
    lim: Limner, name: str, models: Sequence[VisionModel | None], args: Namespace
) -> _Outcome:
    out: str | None = args.output_path
    picture = await lim.take(name)
    fits: list[_Fit] = []
    for model in models:
        image = await lim.fitting.fit(
            picture, model=model, region=args.region, page=args.page, to=_wanted(out)
        )
        paths: tuple[Path, ...] = ()
        if out is not None:
            stem = _stem(name, model, shared=len(models) > 1)
            # The suffix of a file in a folder follows from the format.
            target = Path(out) / f"{stem}{SUFFIXES[image.mime]}" if _is_folder(out) else Path(out)
            paths = await asyncio.to_thread(_write, lim, image, target, overwrite=args.overwrite)
        fits.append(_Fit(image=image, paths=paths))
    return _Outcome(name=name, picture=picture, fits=tuple(fits))


def _write(lim: Limner, image: FittedImage, target: Path, *, overwrite: bool) -> tuple[Path, ...]:
    """Write a picture, and its tiles under numbered names; a name without a suffix gets one."""
    written: list[Path] = []
    for number, part in enumerate((image, *image.tiles)):
        suffix = target.suffix or SUFFIXES[part.mime]
        named = f"{target.stem}-part{number}{suffix}" if number else f"{target.stem}{suffix}"
        path = lim.person().reach.resolve_write(str(target.with_name(named)), cwd=lim.cwd)
        written.append(write_new(path, part.data, overwrite=overwrite))
    return tuple(written)


def _result(outcomes: Sequence[_Outcome]) -> CommandResult:
    failures = [failure(outcome.error) for outcome in outcomes if outcome.error is not None]
    if len(outcomes) == len(failures) == 1:
        return failures[0]
    return CommandResult(
        value={"images": [_as_json(outcome) for outcome in outcomes]},
        text="\n".join(line for outcome in outcomes for line in _lines(outcome)),
        notes=tuple(note for found in failures for note in found.notes),
        status=next((found.status for found in failures), 0),
    )


def _lines(outcome: _Outcome) -> Iterator[str]:
    picture = outcome.picture
    if picture is None:
        yield f"{clean_line(outcome.name)}  cannot be fitted"
        return
    size = f"{picture.width}x{picture.height}"
    yield f"{clean_line(outcome.name)}  {size}  {picture.mime}  {format_bytes(picture.size_bytes)}"
    images = [image for fit in outcome.fits for image in (fit.image, *fit.image.tiles)]
    rows = [_cells(image) for image in images]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, image in zip(rows, images, strict=True):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width)
        yield "  " + "  ".join([*cells, *_remarks(image)]).rstrip()
    yield from (f"  {clean_line(str(path))}" for fit in outcome.fits for path in fit.paths)
    if images[0].fit.animated and not images[0].fit.untouched:
        yield "  an animation: only its first frame is sent"


def _cells(image: FittedImage) -> list[str]:
    cells = [
        image.model or "",
        f"{image.width}x{image.height}",
        image.mime,
        format_bytes(len(image.data)),
    ]
    if image.model is None:
        return [*cells, "", ""]
    counted = "tokens unknown" if image.tokens is None else f"{image.tokens:,} tokens"
    if image.tokens is not None and not image.tokens_exact:
        counted = f"about {counted}"
    price = "price unknown" if image.cost_nano is None else format_usd(image.cost_nano)
    return [*cells, counted, price]


def _remarks(image: FittedImage) -> Iterator[str]:
    fit = image.fit
    if fit.untouched:
        yield "as it is"
    if (fit.part.width, fit.part.height) != (fit.original_width, fit.original_height):
        yield f"of {fit.part.width}x{fit.part.height} at {fit.part.x},{fit.part.y}"


def _as_json(outcome: _Outcome) -> dict[str, Any]:
    if outcome.error is not None:
        return {"path": outcome.name, "error": outcome.error.as_json()}
    picture = outcome.picture
    assert picture is not None
    return {
        "path": outcome.name,
        "handle": picture.handle,
        "original": {
            "width": picture.width,
            "height": picture.height,
            "bytes": picture.size_bytes,
            "mime": picture.mime,
        },
        "fits": [
            {**_fit_as_json(fit.image), "paths": [str(path) for path in fit.paths]}
            for fit in outcome.fits
        ],
    }


def _fit_as_json(image: FittedImage) -> dict[str, Any]:
    fit = image.fit
    return {
        "model": image.model,
        "width": fit.width,
        "height": fit.height,
        "bytes": len(image.data),
        "mime": fit.mime,
        "tokens": image.tokens,
        "tokens_exact": image.tokens_exact,
        "cost_usd": image.cost_usd,
        "untouched": fit.untouched,
        "animated": fit.animated,
        "part": fit.part,
        "scale_x": fit.scale_x,
        "scale_y": fit.scale_y,
        "tiles": [_fit_as_json(tile) for tile in image.tiles],
    }


def _models(
    lim: Limner, names: Sequence[str] | None, *, writes: bool
) -> Sequence[VisionModel | None]:
    """The named models; else one of each service, or no model if a file is written."""
    if names:
        return [lim.models.vision_facts(name) for name in dict.fromkeys(names)]
    if writes:
        return [None]
    return [*{model.provider: model for model in reversed(vision_models())}.values()][::-1]


def _news(done: int, total: int, waiting: Waiting) -> Progress:
    message = "Fitting" if total == 1 else f"Fitting {done} of {total}"
    return Progress(message=message, elapsed_s=waiting.elapsed_s, fraction=done / total)


def _stem(name: str, model: VisionModel | None, *, shared: bool) -> str:
    stem = Path(name).stem
    return f"{stem}-{model.id.replace('/', '-')}" if shared and model is not None else stem


def _is_folder(out: str) -> bool:
    return out.endswith(("/", "\\")) or Path(out).is_dir()


def _wanted(out: str | None) -> str | None:
    """The media type that the name of the file asks for; None if it asks for none."""
    named = None if out is None else format_of(out)
    return None if named is None else f"image/{named}"


def _page(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError("give the number of a page, counted from 1")
    return int(text)
