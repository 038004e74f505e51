"""Draw a picture offline, with nothing but what limner brings, and say where it is."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from limner.doors.cli.answer import Answer
from limner.doors.cli.generate import draw

EXAMPLE = """\
examples:
  limner demo
  limner demo --show
"""
PROMPT = "a cat on a red bicycle on a beach at sunset"


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--show", action="store_true", help="show the picture in the terminal")


def run(args: Namespace) -> Answer:
    """Draw the demo picture with the embedded illustrator, whatever keys are set."""
    return draw(PROMPT, {"provider": "illustrator"}, args)
