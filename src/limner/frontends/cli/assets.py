"""The ready-made pictures that `<asset name="…"/>` places in an SVG document."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from limner.errors import UserError
from limner.frontends.cli.output import CommandResult
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
    parser.add_argument(
        "--limit", type=int, default=20, metavar="N", help="how many at most; default 20"
    )


def run(args: Namespace) -> CommandResult:
    """Search, or list the licences."""
    if args.action == "licences":
        if args.word is not None:
            raise UserError("assets licences takes no word: it lists all licences")
        licences = assets.licences()
        return CommandResult(value={"licences": licences}, text=licences.rstrip())
    if args.word is None:
        raise UserError("say what to look for", hint="For example: limner assets search robot")
    if args.limit < 1:
        raise UserError("--limit must be at least 1")
    found = assets.search(args.word, limit=args.limit)
    return CommandResult(
        value={"assets": found},
        text="\n".join(f"{asset.name:32}{', '.join(asset.tags[:6])}" for asset in found),
        notes=() if found else (f"No picture matches {args.word!r}.",),
    )
