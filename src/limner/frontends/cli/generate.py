"""Draw a picture from words and save it."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from limner.client import Limner
from limner.dollars import format_usd
from limner.errors import InputInvalid, UserError
from limner.frontends.cli.arguments import add_budget_flag, add_flags, read_flags
from limner.frontends.cli.output import CommandResult, is_note_due
from limner.frontends.cli.terminal import Waiting, ask, result_at_once, wait_for
from limner.imaging.formats import BY_MIME, OutputFormat
from limner.tools.built_in.image_generate import GenerateArguments
from limner.tools.drawing_arguments import NO_OPTIONS, CallerOptions, DrawingArguments
from limner.tools.generation_tool import as_value
from limner.tools.output_target import format_of
from limner.tools.planning import Plan

if TYPE_CHECKING:
    from limner.tools.picture_set import PictureSet

EXAMPLE = """\
examples:
  limner generate "a watercolor painting of a mountain lake at dawn"
  limner generate "a fox under the moon" --size 1024x1792 --quality hd --out fox.png
  limner generate "a sticker of a robot" --count 4
  limner generate "a banner of hills" --size 16:9 --out banner.webp
  limner generate "a pie chart of votes: Ada 40, Grace 35, Alan 25"
  limner generate "a robot" --dry-run
  limner generate - < prompt.txt
  limner generate --svg poster.svg --out poster.png

with a key:
  limner generate "a sticker of a robot" --background transparent
"""
HELPS = {
    "output_path": "where to save the picture; default: a new file in limner's folder",
    "overwrite": "replace an existing file",
    "fallback": "who draws it instead if that fails and cost nothing, as a,b",
    "output_format": "the format of the file; default: what the name of --out ends with, or png",
    "svg": "render this SVG document; - reads it from standard input",
}


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "prompt", nargs="?", help="what to draw, in quotes; - reads it from standard input"
    )
    add_drawing_flags(parser, GenerateArguments, without=("prompt",))


def add_drawing_flags(
    parser: ArgumentParser, kind: type[DrawingArguments], *, without: tuple[str, ...]
) -> None:
    """Add the flags of a drawing command: the tool's arguments, and the options of a caller."""
    add_flags(parser, kind, without=without, helps=HELPS)
    add_flags(parser, CallerOptions, helps=HELPS)
    parser.set_defaults(partial_pictures=0)
    add_budget_flag(parser)
    parser.add_argument("--dry-run", action="store_true", help="say what it would cost, and stop")
    parser.add_argument("--show", action="store_true", help="show the picture in the terminal")
    parser.add_argument(
        "--debug", action="store_true", help="show requests and responses, without secrets"
    )


def run(args: Namespace) -> CommandResult:
    """Draw, or quote."""
    prompt, svg = _input(args.prompt, args.svg)
    return draw_or_quote(read_flags(GenerateArguments, args, prompt=prompt, svg=svg), args)


def draw_or_quote(arguments: DrawingArguments, args: Namespace) -> CommandResult:
    """Draw and show progress, or with ``--dry-run`` say what it would cost."""
    options = read_flags(CallerOptions, args)
    output_format = output_format_of(arguments.output_path, options.output_format)
    options = replace(options, output_format=output_format)
    if args.dry_run:
        return _quoted(_plan(arguments, options, Limner(budget_usd=args.budget_usd)))
    return draw(arguments, args, options, budget_usd=args.budget_usd, debug=args.debug)


def output_format_of(out: str | None, chosen: OutputFormat | None) -> OutputFormat:
    """The chosen format, or else the one that the file's name asks for.

    Raises:
        UserError: the name asks for another format than the one that was chosen, or for one that
            limner does not write.
    """
    named = None if out is None else format_of(out)
    if chosen is not None and named is not None and chosen != named:
        raise UserError(
            f"--format says {chosen}, and the name {out} says {named}",
            hint="Leave out --format, or give the file another name.",
        )
    return chosen or named or "png"


def draw(
    arguments: DrawingArguments,
    args: Namespace,
    options: CallerOptions = NO_OPTIONS,
    *,
    budget_usd: str | None = None,
    debug: bool = False,
) -> CommandResult:
    """Draw, and show progress and the picture."""
    from limner.frontends.cli.preview import (  # noqa: PLC0415 - a quote shows no picture
        show,
        showing_partial_pictures,
        shows_pictures,
    )

    async def work() -> CommandResult:
        waiting = Waiting()
        async with Limner(budget_usd=budget_usd, observe=waiting.say if debug else None) as lim:
            async with waiting.shown(), showing_partial_pictures(waiting, lim) as progress:
                drawn = await lim.draw(arguments, options, progress=progress, ask=ask)
            elapsed_s = waiting.elapsed_s
            if args.show or (shows_pictures() and not args.json):
                for image in drawn.images:
                    await show(image.image, lim)
            return _drawn(drawn, elapsed_s, lim)

    return wait_for(work)


def _input(prompt: str | None, file: str | None) -> tuple[str, str | None]:
    """The prompt and the SVG document; without a prompt the file's name is the prompt."""
    if prompt is None and file is None:
        raise UserError("give a prompt", hint='For example: limner generate "a robot"')
    if prompt == "-" and file == "-":
        raise UserError("the prompt and the SVG document cannot both come from standard input")
    svg = None if file is None else decode_text(read_file(file), "the SVG document")
    if prompt == "-":
        return decode_text(read_file(prompt), "the prompt").strip(), svg
    words = f"SVG document {file}" if prompt is None else prompt
    return decode_text(os.fsencode(words), "the prompt"), svg


def read_file(file: str) -> bytes:
    """The bytes of a file that a person named; - is standard input."""
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except (OSError, ValueError) as error:
        trouble = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{file!r} cannot be read: {trouble}") from error


def decode_text(data: bytes, what: str) -> str:
    """The text in a file."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputInvalid(f"{what} is not UTF-8 text") from error


def _plan(arguments: DrawingArguments, options: CallerOptions, lim: Limner) -> Plan:
    if arguments.output_path is None and not arguments.inputs.sources:
        # It does without `asyncio`, a seventh of the time of a quote.
        return result_at_once(lim.plan(arguments, options))

    async def work() -> Plan:
        async with lim:
            return await lim.plan(arguments, options)

    return wait_for(work)


def _quoted(plan: Plan) -> CommandResult:
    request, quote, service = plan.request, plan.quote, plan.choice.spec.name
    notes = [f"{request.width}x{request.height} · {service} ({request.model})"]
    if plan.choice.notice is not None:
        notes.append(plan.choice.notice)
    price = format_usd(plan.cost_nano)
    return CommandResult(
        value={
            "cost_usd": plan.cost_usd,
            "exact": quote.exact,
            "cost_source": quote.source,
            "provider": service,
            "model": request.model,
            "dimensions": {"width": request.width, "height": request.height},
            "quality": request.quality,
            "output_path": None if plan.target is None else str(plan.target),
            "notice": plan.choice.notice,
        },
        text=price if quote.exact else f"at most {price}",
        notes=tuple(notes),
    )


def _drawn(drawn: PictureSet, elapsed_s: float, lim: Limner) -> CommandResult:
    first = drawn.images[0]
    extras: Mapping[str, Any] = first.extras
    notes = [
        f"{first.dimensions} · {first.provider} ({first.model}) · "
        f"{format_usd(drawn.cost_nano)} · {elapsed_s:.1f} s"
    ]
    if first.path.suffix.lower() != ".png":
        notes.append(f"Saved as {BY_MIME[first.image.mime].title}.")
    if "note" in extras and is_note_due(lim.home, lim.clock().date()):
        notes.append(extras["note"])
    if "notice" in extras:
        notes.append(extras["notice"])
    if extras.get("changes"):
        notes.append(f"Changed: {'; '.join(extras['changes'])}.")
    if extras.get("account"):
        notes.append(extras["account"])
    notes += [f"{one['provider']} failed: {one['why']}" for one in extras.get("passed_over", ())]
    notes += [f"One is missing: {error.message}" for error in drawn.failures]
    paths = "\n".join(str(image.path) for image in drawn.images)
    return CommandResult(value=as_value(drawn), text=paths, notes=tuple(notes))
