"""Draw a picture from words and save it."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from limner.client import Limner
from limner.dollars import format_usd
from limner.errors import NANO_PER_USD, InputInvalid, UserError
from limner.frontends.cli.output import CommandResult
from limner.frontends.cli.preview import show, shows_pictures, unfinished
from limner.frontends.cli.terminal import Waiting, ask, wait_for
from limner.imaging.formats import OutputFormat
from limner.tools.generation_tool import as_value
from limner.tools.image_generate import TOOL as GENERATE
from limner.tools.picture_set import PictureSet
from limner.tools.planning import Plan

EXAMPLE = """\
examples:
  limner generate "a watercolor painting of a mountain lake at dawn"
  limner generate "studio headshot" --size 1024x1792 --quality hd --out headshot.png
  limner generate "a sticker of a robot" --background transparent --count 4
  limner generate "a banner of hills" --size 16:9 --out banner.webp
  limner generate "a robot" --dry-run
  limner generate - < prompt.txt
  limner generate --svg poster.svg --out poster.png
"""
# What the name of a file says about what is in it.
FORMATS: Mapping[str, OutputFormat] = {
    ".png": "png",
    ".jpg": "jpeg",
    ".jpeg": "jpeg",
    ".webp": "webp",
}


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "prompt", nargs="?", help="what to draw, in quotes; - reads it from standard input"
    )
    add_drawing_options(parser)
    parser.add_argument("--svg", metavar="FILE", help="render this SVG document; - reads it")


def add_drawing_options(parser: ArgumentParser) -> None:
    """Add what every command that draws takes."""
    parser.add_argument("--out", metavar="PATH", help="where to save it")
    parser.add_argument(
        "--format",
        choices=get_args(OutputFormat),
        help="what to save it as; default what the name of --out ends with, or png",
    )
    parser.add_argument("--size", metavar="WxH", help="in pixels, or a shape as 16:9")
    parser.add_argument("--quality", choices=["standard", "hd"], help="default standard")
    parser.add_argument("--provider", metavar="NAME", help="who draws it; default auto")
    parser.add_argument(
        "--fallback",
        metavar="NAMES",
        help="who draws it instead where that fails and cost nothing, as a,b",
    )
    parser.add_argument("--model", metavar="ID", help="one model of the provider")
    parser.add_argument("--count", type=int, metavar="N", help="how many pictures; default 1")
    parser.add_argument("--background", choices=["transparent", "opaque"], help="if it can")
    parser.add_argument("--negative", metavar="WORDS", help="what should not be in it")
    parser.add_argument("--seed", type=int, metavar="N", help="for the same picture again")
    parser.add_argument(
        "--partial", type=int, default=0, metavar="N", help="show unfinished pictures; may cost"
    )
    parser.add_argument("--budget", metavar="USD", help="refuse to spend more than this")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
    parser.add_argument("--dry-run", action="store_true", help="say what it would cost, and stop")
    parser.add_argument("--show", action="store_true", help="show the picture in the terminal")
    parser.add_argument("--debug", action="store_true", help="show requests and answers, redacted")


def run(args: Namespace) -> CommandResult:
    """Draw, or quote."""
    prompt, svg = _input(args.prompt, args.svg)
    return answer_for(GENERATE, {"prompt": prompt, "svg": svg}, args)


def answer_for(tool: str, arguments: Mapping[str, Any], args: Namespace) -> CommandResult:
    """What a command that draws answers: the pictures, or with ``--dry-run`` their price."""
    given = {
        **arguments,
        "output_path": args.out,
        "size": args.size,
        "quality": args.quality,
        "provider": args.provider,
        "model": args.model,
        "n": args.count,
        "background": args.background,
        "negative_prompt": args.negative,
        "seed": args.seed,
        "overwrite": args.overwrite,
    }
    more: dict[str, Any] = {
        "partial_pictures": args.partial,
        "output_format": _output_format(args.out, args.format),
    }
    if args.fallback is not None:
        more["fallback"] = tuple(name.strip() for name in args.fallback.split(",") if name.strip())
    if args.dry_run:
        return wait_for(lambda: _quote(tool, given, more, budget_usd=args.budget))
    return draw(tool, given, args, more, budget_usd=args.budget, debug=args.debug)


def _output_format(out: str | None, chosen: OutputFormat | None) -> OutputFormat:
    """What was chosen, or else what the file's name says.

    Raises:
        UserError: the name says something else than what was chosen.
    """
    named = FORMATS.get(Path(out or "").suffix.lower())
    if chosen is not None and named is not None and chosen != named:
        raise UserError(
            f"--format says {chosen}, and the name {out} says {named}",
            hint="Leave out --format, or give the file another name.",
        )
    return chosen or named or "png"


def draw(
    tool: str,
    arguments: Mapping[str, Any],
    args: Namespace,
    more: Mapping[str, Any] | None = None,
    *,
    budget_usd: str | None = None,
    debug: bool = False,
) -> CommandResult:
    """Draw as the tool would with these arguments, in front of a person."""

    async def work() -> CommandResult:
        waiting = Waiting()
        async with Limner(budget_usd=budget_usd, observe=waiting.say if debug else None) as lim:
            async with waiting.shown(), unfinished(waiting, lim) as progress:
                drawn = await lim.draw(tool, arguments, progress=progress, ask=ask, **(more or {}))
            elapsed_s = waiting.elapsed_s
            if args.show or (shows_pictures() and not args.json):
                for image in drawn.images:
                    await show(image.image, lim)
            return _drawn(drawn, elapsed_s)

    return wait_for(work)


def _input(prompt: str | None, file: str | None) -> tuple[str, str | None]:
    """The prompt and the SVG document; a document that comes alone is named after its file."""
    if prompt is None and file is None:
        raise UserError("say what to draw", hint='For example: limner generate "a robot"')
    if prompt == "-" and file == "-":
        raise UserError("the prompt and the SVG document cannot both come from standard input")
    svg = None if file is None else _text(_read(file), "the SVG document")
    if prompt == "-":
        return _text(_read(prompt), "the prompt").strip(), svg
    words = f"SVG document {file}" if prompt is None else prompt
    return _text(os.fsencode(words), "the prompt"), svg


def _read(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except (OSError, ValueError) as error:
        trouble = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{file!r} cannot be read: {trouble}") from error


def _text(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputInvalid(f"{what} is not UTF-8 text") from error


async def _quote(
    tool: str, arguments: Mapping[str, Any], more: Mapping[str, Any], *, budget_usd: str | None
) -> CommandResult:
    async with Limner(budget_usd=budget_usd) as lim:
        return _quoted(await lim.plan(tool, arguments, **more), int(arguments["n"] or 1))


def _quoted(plan: Plan, count: int) -> CommandResult:
    request, quote, service = plan.request, plan.quote, plan.choice.spec.name
    notes = [f"{request.width}x{request.height} · {service} ({request.model})"]
    if plan.choice.notice is not None:
        notes.append(plan.choice.notice)
    nano = quote.nano * count
    return CommandResult(
        value={
            "quote_usd": nano / NANO_PER_USD,
            "exact": quote.exact,
            "cost_source": quote.source,
            "provider": service,
            "model": request.model,
            "dimensions": {"width": request.width, "height": request.height},
            "quality": request.quality,
            "output_path": None if plan.target is None else str(plan.target),
            "notice": plan.choice.notice,
        },
        text=format_usd(nano) if quote.exact else f"at most {format_usd(nano)}",
        notes=tuple(notes),
    )


def _drawn(drawn: PictureSet, elapsed_s: float) -> CommandResult:
    first = drawn.images[0]
    notes = [
        f"{first.dimensions} · {first.provider} ({first.model}) · "
        f"{format_usd(drawn.cost_nano)} · {elapsed_s:.1f} s"
    ]
    notes += [first.extras[name] for name in ("note", "notice") if name in first.extras]
    if first.extras.get("unmatched"):
        notes.append(f"Not drawn: {', '.join(first.extras['unmatched'])}")
    for passed in first.extras.get("passed_over", ()):
        notes.append(f"{passed['provider']} failed: {passed['why']}")
    notes += [f"One is missing: {error.message}" for error in drawn.failures]
    paths = "\n".join(str(image.path) for image in drawn.images)
    return CommandResult(value=as_value(drawn), text=paths, notes=tuple(notes))
