"""Draw a chart, a diagram, a page or an SVG document, exactly as it is written, for free."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import get_args

from limner.client import Limner
from limner.errors import UserError
from limner.frontends.cli.arguments import add_flags, read_flags
from limner.frontends.cli.generate import HELPS, decode_text, read_file
from limner.frontends.cli.output import CommandResult
from limner.frontends.cli.preview import show, shows_pictures
from limner.frontends.cli.terminal import Waiting, ask, wait_for
from limner.tools.built_in.image_render import as_value
from limner.tools.rendering import HelpTopic, RenderArguments

EXAMPLE = """\
examples:
  limner render sales.json --out sales.png
  limner render poster.svg --size 1024x1792
  limner render flow.mmd --out flow.svg
  echo '{"type": "pie", "values": {"tea": 3, "coffee": 5}}' | limner render -
  limner render --help-on charts          how to write charts
"""


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "source", nargs="?", metavar="FILE", help="the document; - reads it from standard input"
    )
    add_flags(parser, RenderArguments, without=("source", "help"), helps=HELPS)
    topics = ",".join(get_args(HelpTopic))
    parser.add_argument(
        "--help-on", dest="topic", metavar=f"{{{topics}}}", help="say how to write one of these"
    )
    parser.add_argument("--show", action="store_true", help="show the picture in the terminal")


def run(args: Namespace) -> CommandResult:
    """Render a document, or say how to write one."""
    if args.topic is not None:
        return _help(read_flags(RenderArguments, args, source="", help=args.topic))
    if args.source is None:
        raise UserError("give a document", hint="For example: limner render sales.json")
    text = decode_text(read_file(args.source), "the document")
    arguments = read_flags(RenderArguments, args, source=text)

    async def work() -> CommandResult:
        waiting = Waiting()
        async with Limner() as lim:
            async with waiting.shown():
                drawn = await lim.renderer.render(arguments, lim.person(ask=ask))
            if args.show or (shows_pictures() and not args.json):
                await show(drawn.image, lim)
        value = as_value(drawn)
        size = f"{drawn.dimensions} · {value['source_format']} · free"
        return CommandResult(value=value, text=str(drawn.path), notes=(size, *value["notes"]))

    return wait_for(work)


def _help(arguments: RenderArguments) -> CommandResult:
    from limner.rendering.help import help_text  # noqa: PLC0415 - only help needs it

    text = help_text(arguments.help or "formats")
    return CommandResult(value={"help": text}, text=text)
