"""Draw a picture offline, with nothing but what limner brings, and say where it is."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from limner.doors.cli import generate

EXAMPLE = """\
examples:
  limner demo
  limner demo --show
"""
PROMPT = "a cat on a red bicycle on a beach at sunset"


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--show", action="store_true", help="show the picture in the terminal")


def run(args: Namespace) -> int:
    """Draw the demo picture with the embedded illustrator, whatever keys are set."""
    words = [PROMPT, "--provider", "illustrator", *(["--show"] if args.show else [])]
    parser = ArgumentParser()
    generate.configure(parser)
    return generate.run(Namespace(**vars(parser.parse_args(words)), json=args.json))
