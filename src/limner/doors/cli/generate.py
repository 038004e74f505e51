"""Draw a picture from words and save it as a PNG."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from limner.client import Limner
from limner.doors.cli.preview import can_show, show
from limner.doors.cli.terminal import Waiting, ask, print_json, say, wait_for
from limner.errors import NANO_PER_USD, UserError
from limner.money.amounts import format_usd
from limner.tools.drawing import GeneratedImage
from limner.tools.image_generate import as_value
from limner.tools.ordering import Plan

EXAMPLE = """\
examples:
  limner generate "a watercolor painting of a mountain lake at dawn"
  limner generate "studio headshot" --size 1024x1792 --quality hd --out headshot.png
  limner generate "a robot" --dry-run
  limner generate --svg poster.svg --out poster.png
"""


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("prompt", nargs="?", help="what to draw; - reads it from standard input")
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


def run(args: Namespace) -> int:
    """Draw, or quote."""
    prompt, svg = _input(args)
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

    async def work() -> int:
        observe = say if args.debug else None
        async with Limner(budget_usd=args.budget, observe=observe) as lim:
            plan = await lim.quote(prompt, **arguments)
            if args.dry_run:
                _print_plan(plan, as_json=args.json)
                return 0
            waiting = Waiting(f"{plan.choice.spec.name} is drawing …")
            async with waiting.shown():
                drawn = await lim.generate(prompt, progress=waiting.progress, ask=ask, **arguments)
            _print_drawn(drawn, waiting.elapsed_s, as_json=args.json)
            if args.show or can_show():
                await show(drawn.path.read_bytes(), lim)
            return 0

    return wait_for(work)


def _input(args: Namespace) -> tuple[str, str | None]:
    """The prompt and the SVG document; a document that comes alone is named after its file."""
    prompt: str | None = args.prompt
    file: str | None = args.svg
    if prompt == file == "-":
        raise UserError("the prompt and the SVG document cannot both come from standard input")
    if prompt is None and file is None:
        raise UserError("say what to draw", hint='For example: limner generate "a robot"')
    if prompt is None:
        prompt = f"SVG document {file}"
    elif prompt == "-":
        prompt = sys.stdin.read().strip()
    return prompt, None if file is None else _read_svg(file)


def _read_svg(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file} cannot be read: {error}") from error


def _print_plan(plan: Plan, *, as_json: bool) -> None:
    request, quote = plan.request, plan.quote
    if as_json:
        print_json(
            {
                "quote_usd": quote.nano / NANO_PER_USD,
                "exact": quote.exact,
                "cost_source": quote.source,
                "provider": plan.choice.spec.name,
                "model": request.model,
                "dimensions": {"width": request.width, "height": request.height},
                "quality": request.quality,
                "output_path": None if plan.target is None else str(plan.target),
                "notice": plan.choice.notice,
            }
        )
        return
    bound = "" if quote.exact else "at most "
    print(f"{bound}{format_usd(quote.nano)}")
    say(f"{request.width}x{request.height} · {plan.choice.spec.name} ({request.model})")
    if plan.choice.notice is not None:
        say(plan.choice.notice)


def _print_drawn(drawn: GeneratedImage, elapsed_s: float, *, as_json: bool) -> None:
    if as_json:
        print_json(as_value(drawn))
        return
    print(drawn.path)
    say(
        f"{drawn.dimensions} · {drawn.provider} ({drawn.model}) · "
        f"{format_usd(drawn.cost_nano)} · {elapsed_s:.1f} s"
    )
    for note in ("note", "notice"):
        if note in drawn.extras:
            say(drawn.extras[note])
    if drawn.extras.get("unmatched"):
        say(f"Not drawn: {', '.join(drawn.extras['unmatched'])}")
