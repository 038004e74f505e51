"""Put pictures on one numbered sheet; draw them first from prompts, models and seeds."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from limner.client import Limner
from limner.dollars import format_usd
from limner.errors import NANO_PER_USD
from limner.frontends.cli.arguments import add_flags, read_flags
from limner.frontends.cli.generate import HELPS
from limner.frontends.cli.output import CommandResult
from limner.frontends.cli.preview import show
from limner.frontends.cli.terminal import Waiting, ask, wait_for
from limner.tools.contact_sheet import SheetArguments, as_value

EXAMPLE = """\
examples:
  limner sheet before.png after.png --out sheet.png
  limner sheet --prompt "a fox" --prompt "an owl" --seed 1 --seed 2
  limner sheet --prompt "a fox" --model illustrator --seed 1 --dry-run
"""


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("images", nargs="*", metavar="IMAGE", help="a picture file, or a handle")
    again = "; may be given again"
    helps = {
        **HELPS,
        "prompts": f"a text to draw, by each model with each seed{again}",
        "models": f"a model that draws, by id, or a provider by name{again}",
        "seeds": f"a seed{again}",
    }
    add_flags(parser, SheetArguments, without=("images",), helps=helps)
    parser.add_argument("--dry-run", action="store_true", help="say what it would cost, and stop")
    parser.add_argument("--show", action="store_true", help="show the sheet in the terminal")


def run(args: Namespace) -> CommandResult:
    """Make a sheet, or say what it would cost."""
    arguments = read_flags(SheetArguments, args)

    async def quote() -> CommandResult:
        async with Limner() as lim:
            nano = await lim.sheets.quote(arguments, lim.person())
        price = format_usd(nano)
        return CommandResult(value={"cost_usd": nano / NANO_PER_USD}, text=f"at most {price}")

    async def work() -> CommandResult:
        waiting = Waiting()
        async with Limner() as lim:
            async with waiting.shown():
                sheet = await lim.sheets.make(arguments, lim.person(ask=ask))
            if args.show:
                await show(sheet.image, lim)
        listed = [
            f"{one.title} · {' · '.join(one.lines)}{'' if one.path is None else f' · {one.path}'}"
            for one in sheet.pictures
        ]
        return CommandResult(
            value=as_value(sheet),
            text="\n".join([str(sheet.path), *listed]),
            notes=(format_usd(sheet.cost_nano),) if sheet.cost_nano else (),
        )

    return wait_for(quote if args.dry_run else work)
