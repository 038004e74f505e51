"""The ready-made pictures that `<asset name="…"/>` places in an SVG document."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from limner.doors.cli.terminal import print_json, say
from limner.errors import UserError
from limner.illustrator import assets

EXAMPLE = """\
examples:
  limner assets search robot
  limner assets search "red fruit" --json
  limner assets licences
"""


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("action", choices=["search", "licences"])
    parser.add_argument("word", nargs="?", help="what the picture should show")
    parser.add_argument("--limit", type=int, default=20, help="how many at most; default 20")


def run(args: Namespace) -> int:
    """Search, or tell whose pictures they are."""
    if args.action == "licences":
        text = assets.licences()
        print_json({"licences": text}) if args.json else print(text)
        return 0
    if args.word is None:
        raise UserError("say what to look for", hint="For example: limner assets search robot")
    found = assets.search(args.word, limit=args.limit)
    if args.json:
        print_json({"assets": found})
        return 0
    for asset in found:
        print(f"{asset.name:32}{', '.join(asset.tags[:6])}")
    if not found:
        say(f"No picture matches {args.word!r}.")
    return 0
