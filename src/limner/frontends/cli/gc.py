"""Remove the pictures that nothing refers to.

A picture stays that a session names, that was paid for, or that either of those comes from. What
came in during the last day stays too, since a program may be about to use it. So does everything
that an interrupted job may own. If the database does not know most of the stored files, the command
lists them, removes nothing and ends with status 1.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import msgspec

from limner.client import Limner
from limner.content import format_bytes
from limner.errors import StorageError
from limner.frontends.cli.output import CommandResult, counted, failure
from limner.frontends.cli.terminal import Waiting, wait_for
from limner.pictures.gc import GRACE_S, SETTLING_S, TOO_MANY_STRAYS
from limner.pictures.request import Progress

EXAMPLE = """\
examples:
  limner gc --dry-run                 what it would remove
  limner gc
  limner gc --all                     what came in today as well; when nothing else is running
  limner gc --strays                  files that the database does not know, even if they are many
"""


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--all", action="store_true", help="also those stored during the last day")
    parser.add_argument(
        "--strays",
        action="store_true",
        help="also files that the database does not know, however many they are, and unused "
        "pictures that a repair brought back",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what it would remove, and stop")


def run(args: Namespace) -> CommandResult:
    """Remove what is garbage."""
    try:
        return wait_for(lambda: _collect(args))
    except StorageError as error:
        if error.code != TOO_MANY_STRAYS:
            raise
        # The files are the result: a person or a program looks through them.
        return msgspec.structs.replace(failure(error), text="\n".join(error.extras["strays"]))


async def _collect(args: Namespace) -> CommandResult:
    waiting = Waiting()

    def tell(done: int, of: int) -> None:
        message = f"Removing {done:,} of {of:,}"
        waiting.progress(Progress(message=message, elapsed_s=waiting.elapsed_s, fraction=done / of))

    grace_s = SETTLING_S if args.all else GRACE_S
    async with Limner() as lim, waiting.shown():
        freed = await lim.garbage.collect(
            grace_s=grace_s, dry_run=args.dry_run, strays=args.strays, progress=tell
        )
    verb = "would be removed" if args.dry_run else "removed"
    pictures, files = counted(freed.pictures, "picture"), counted(freed.files, "file")
    notes: list[str] = []
    if freed.young:
        which = "1 more is" if freed.young == 1 else f"{freed.young:,} more are"
        since = "minute" if args.all else "day: --all removes them too"
        notes.append(f"{which} referred to by nothing, but came in within the last {since}.")
    if freed.owed:
        which = "1 file stays" if freed.owed == 1 else f"{freed.owed:,} files stay"
        notes.append(f"{which}, because an interrupted job may own it: limner jobs list")
    return CommandResult(
        value={
            "pictures": freed.pictures,
            "files": freed.files,
            "bytes": freed.size_bytes,
            "young": freed.young,
            "owed": freed.owed,
            "dry_run": args.dry_run,
        },
        text=f"{pictures} {verb}: {files}, {format_bytes(freed.size_bytes)}",
        notes=tuple(notes),
    )
