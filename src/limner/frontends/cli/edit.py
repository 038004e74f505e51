"""Change a picture, or draw a new one from pictures; the original stays as it is."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import msgspec

from limner.frontends.cli.arguments import region
from limner.frontends.cli.generate import add_drawing_options, answer_for
from limner.frontends.cli.output import CommandResult
from limner.tools.image_edit import TOOL as EDIT

EXAMPLE = """\
examples:
  limner edit photo.jpg "make it dusk, keep the people as they are"
  limner edit room.png "a red sofa" --region 400,300,500,260 --out red.png
  limner edit shirt.png "put the logo on it" --reference logo.png --reference style.png
  limner edit portrait.png "another expression" --count 4
"""


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("image", metavar="IMAGE", help="a picture file, or a handle")
    parser.add_argument("prompt", metavar="PROMPT", help="what to change, in quotes")
    parser.add_argument(
        "--reference",
        action="append",
        default=[],
        metavar="IMAGE",
        help="another picture to take from; may be given again",
    )
    parser.add_argument(
        "--mask",
        metavar="IMAGE",
        help="a picture of the same size, transparent or white where it may change",
    )
    parser.add_argument(
        "--region",
        type=region,
        metavar="X,Y,WIDTH,HEIGHT",
        help="the part that may change, in pixels of the picture",
    )
    add_drawing_options(parser)


def run(args: Namespace) -> CommandResult:
    """Edit, or quote."""
    arguments = {
        "image": args.image,
        "prompt": args.prompt,
        "references": args.reference,
        "mask": args.mask,
        "region": None if args.region is None else msgspec.to_builtins(args.region),
    }
    return answer_for(EDIT, arguments, args)
