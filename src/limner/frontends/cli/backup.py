"""Write the whole home into one archive: database, pictures, generated files and settings.

Other limner processes may go on working. Keys are not in the archive. `tar -xf FILE -C FOLDER`
restores it: see the guide on storage. The exit status is 1 if a stored picture is damaged; the
archive is written nevertheless.
"""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser, Namespace

import msgspec

from limner.client import Limner
from limner.content import format_bytes
from limner.errors import LimnerError
from limner.frontends.cli.output import CommandResult
from limner.frontends.cli.terminal import Waiting, wait_for
from limner.pictures.request import Progress
from limner.storage.backup import write_backup

EXAMPLE = """\
examples:
  limner backup limner-2026-11-16.tar
  limner backup ~/limner.tar --overwrite --json
"""

PG_DUMP = 'pg_dump --format=custom --file=limner.dump "$LIMNER_STORE" writes a copy.'


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("file", metavar="FILE", help="the archive to write")
    parser.add_argument("--overwrite", action="store_true", help="replace the file if it exists")


def run(args: Namespace) -> CommandResult:
    """Write the archive."""
    return wait_for(lambda: _back_up(args))


async def _back_up(args: Namespace) -> CommandResult:
    waiting = Waiting()

    def tell(done: int, of: int) -> None:
        message = f"Copying {done:,} of {of:,}"
        waiting.progress(Progress(message=message, elapsed_s=waiting.elapsed_s, fraction=done / of))

    async with Limner() as lim, waiting.shown():
        context = lim.person()
        path = context.reach.resolve_write(args.file, cwd=context.cwd)
        lim.store.refuse_shared("`limner backup`", instead=PG_DUMP)
        await lim.store.open()  # it refuses a database that is lost or damaged
        written = await asyncio.to_thread(
            write_backup, lim.home, path, overwrite=args.overwrite, progress=tell
        )
    notes = [f"damaged: {handle}" for handle in written.damaged]
    if notes:
        notes.append("limner doctor --repair restores what it can.")
    size = format_bytes(written.size_bytes)
    return CommandResult(
        value={**msgspec.structs.asdict(written), "path": str(written.path)},
        text=f"{written.path}: {written.files:,} files, {written.pictures:,} pictures, {size}",
        notes=tuple(notes),
        status=LimnerError.exit_status if written.damaged else 0,
    )
