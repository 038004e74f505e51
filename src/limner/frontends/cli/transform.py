"""Crop, scale, turn, mark, blur, cut out, convert or compress a picture, for free."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace

import msgspec

from limner.client import Limner
from limner.content import format_bytes
from limner.frontends.cli.arguments import add_flags, read_flags
from limner.frontends.cli.generate import HELPS
from limner.frontends.cli.output import CommandResult
from limner.frontends.cli.preview import show
from limner.frontends.cli.terminal import Waiting, ask, wait_for
from limner.imaging.transform import Mark
from limner.tools.built_in.image_transform import as_value
from limner.tools.transformation import TransformArguments

EXAMPLE = """\
examples:
  limner transform photo.jpg --resize 800x --out small.webp
  limner transform screenshot.png --crop 0,0,400,300 --blur 20,20,120,24
  limner transform screenshot.png --mark "box:30,40,200,80:Total" --mark point:60,200:1
  limner transform logo.png --cut-out --pad 20
  limner transform photo.jpg --max-size 200kB
"""


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("image", metavar="IMAGE", help="a picture file, or a handle")
    helps = {
        **HELPS,
        "marks": "draw box:X,Y,W,H:LABEL, arrow:X,Y,X,Y:LABEL or point:X,Y:LABEL over it; "
        "may be given again",
        "blur": "make a part unreadable; may be given again",
    }
    add_flags(parser, TransformArguments, without=("image",), helps=helps, types={"marks": _mark})
    parser.add_argument("--show", action="store_true", help="show the picture in the terminal")


def run(args: Namespace) -> CommandResult:
    """Transform a picture."""
    arguments = read_flags(TransformArguments, args)

    async def work() -> CommandResult:
        waiting = Waiting()
        async with Limner() as lim:
            async with waiting.shown():
                made = await lim.transformer.transform(arguments, lim.person(ask=ask))
            if args.show:
                await show(made.image, lim)
        size = f"{made.image.width}x{made.image.height} · {format_bytes(made.image.size_bytes)}"
        return CommandResult(
            value=as_value(made), text=str(made.path), notes=(f"{size} · free", *made.notes)
        )

    return wait_for(work)


def _mark(text: str) -> Mark:
    shape, _, rest = text.partition(":")
    numbers, _, label = rest.partition(":")
    mark = {"shape": shape, "at": numbers.split(","), "label": label}
    try:
        return msgspec.convert(mark, Mark, strict=False)
    except msgspec.ValidationError:
        raise ArgumentTypeError(
            "give box:X,Y,WIDTH,HEIGHT, arrow:X,Y,X,Y or point:X,Y, then :LABEL if you want one"
        ) from None
