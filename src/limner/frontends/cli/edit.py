"""Change a picture, or draw a new one from pictures; the original is not changed."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from limner.frontends.cli.arguments import read_flags
from limner.frontends.cli.generate import add_drawing_flags, draw_or_quote
from limner.frontends.cli.output import CommandResult
from limner.tools.built_in.image_edit import EditArguments

EXAMPLE = """\
without a key, what limner drew and the pixels of any picture:
  limner edit house.png "remove the tree" --out no-tree.png
  limner edit house.png "make it night, and add two ducks" --out night.png
  limner edit photo.jpg "crop it to a square and rotate it" --out square.png
with a key:
  limner edit photo.jpg "make it dusk, keep the people as they are"
  limner edit room.png "a red sofa" --region 400,300,500,260 --out red.png
  limner edit shirt.png "put the logo on it" --reference logo.png --reference style.png
  limner edit portrait.png "another expression" --count 4
"""


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("image", metavar="IMAGE", help="a picture file, or a handle")
    parser.add_argument("prompt", metavar="PROMPT", help="what to change, in quotes")
    add_drawing_flags(parser, EditArguments, without=("image", "prompt"))


def run(args: Namespace) -> CommandResult:
    """Edit, or quote."""
    return draw_or_quote(read_flags(EditArguments, args), args)
