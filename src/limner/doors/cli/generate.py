"""Draw a picture from words and save it as a PNG."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from limner.client import Limner
from limner.doors.cli.answer import Answer
from limner.doors.cli.preview import show, shows_pictures
from limner.doors.cli.terminal import Waiting, ask, wait_for
from limner.errors import NANO_PER_USD, InputInvalid, UserError
from limner.money.amounts import format_usd
from limner.tools.image_generate import as_value
from limner.tools.landing import GeneratedImage
from limner.tools.ordering import Plan

EXAMPLE = """\
examples:
  limner generate "a watercolor painting of a mountain lake at dawn"
  limner generate "studio headshot" --size 1024x1792 --quality hd --out headshot.png
  limner generate "a robot" --dry-run
  limner generate - < prompt.txt
  limner generate --svg poster.svg --out poster.png
"""


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "prompt", nargs="?", help="what to draw, in quotes; - reads it from standard input"
    )
    parser.add_argument("--out", metavar="PATH", help="where to save the PNG")
    parser.add_argument("--size", metavar="WxH", help="default 1024x1024")
    parser.add_argument("--quality", choices=["standard", "hd"], help="default standard")
    parser.add_argument("--provider", metavar="NAME", help="who draws it; default auto")
    parser.add_argument("--model", metavar="ID", help="one model of the provider")
    parser.add_argument("--svg", metavar="FILE", help="render this SVG document; - reads it")
    parser.add_argument("--seed", type=int, metavar="N", help="for the same picture again")
    parser.add_argument("--budget", metavar="USD", help="refuse to spend more than this")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
    parser.add_argument("--dry-run", action="store_true", help="say what it would cost, and stop")
    parser.add_argument("--show", action="store_true", help="show the picture in the terminal")
    parser.add_argument("--debug", action="store_true", help="show requests and answers, redacted")


def run(args: Namespace) -> Answer:
    """Draw, or quote."""
    prompt, svg = _input(args.prompt, args.svg)
    arguments: dict[str, Any] = {
        "output_path": args.out,
        "size": args.size,
        "quality": args.quality,
        "provider": args.provider,
        "model": args.model,
        "svg": svg,
        "seed": args.seed,
        "overwrite": args.overwrite,
    }
    if args.dry_run:
        return wait_for(lambda: _quote(prompt, arguments, budget_usd=args.budget))
    return draw(prompt, arguments, args, budget_usd=args.budget, debug=args.debug)


def draw(
    prompt: str,
    arguments: Mapping[str, Any],
    args: Namespace,
    *,
    budget_usd: str | None = None,
    debug: bool = False,
) -> Answer:
    """Draw as `image_generate` would with these arguments, in front of a person."""

    async def work() -> Answer:
        waiting = Waiting()
        async with Limner(budget_usd=budget_usd, observe=waiting.say if debug else None) as lim:
            async with waiting.shown():
                drawn = await lim.generate(prompt, progress=waiting.progress, ask=ask, **arguments)
            elapsed_s = waiting.elapsed_s
            if args.show or (shows_pictures() and not args.json):
                await show(drawn.image, lim)
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


async def _quote(prompt: str, arguments: Mapping[str, Any], *, budget_usd: str | None) -> Answer:
    async with Limner(budget_usd=budget_usd) as lim:
        return _quoted(await lim.quote(prompt, **arguments))


def _quoted(plan: Plan) -> Answer:
    request, quote, service = plan.request, plan.quote, plan.choice.spec.name
    notes = [f"{request.width}x{request.height} · {service} ({request.model})"]
    if plan.choice.notice is not None:
        notes.append(plan.choice.notice)
    return Answer(
        value={
            "quote_usd": quote.nano / NANO_PER_USD,
            "exact": quote.exact,
            "cost_source": quote.source,
            "provider": service,
            "model": request.model,
            "dimensions": {"width": request.width, "height": request.height},
            "quality": request.quality,
            "output_path": None if plan.target is None else str(plan.target),
            "notice": plan.choice.notice,
        },
        text=format_usd(quote.nano) if quote.exact else f"at most {format_usd(quote.nano)}",
        notes=tuple(notes),
    )


def _drawn(drawn: GeneratedImage, elapsed_s: float) -> Answer:
    notes = [
        f"{drawn.dimensions} · {drawn.provider} ({drawn.model}) · "
        f"{format_usd(drawn.cost_nano)} · {elapsed_s:.1f} s"
    ]
    notes += [drawn.extras[name] for name in ("note", "notice") if name in drawn.extras]
    if drawn.extras.get("unmatched"):
        notes.append(f"Not drawn: {', '.join(drawn.extras['unmatched'])}")
    return Answer(value=as_value(drawn), text=str(drawn.path), notes=tuple(notes))
