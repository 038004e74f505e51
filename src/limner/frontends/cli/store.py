"""Copy the records of this home into another database: sessions, ledger, jobs, batches, gallery.

TO is the address of an empty PostgreSQL database, such as postgresql://user@host/database (with the
password in PGPASSWORD), or the path of a new SQLite file, limner.db in a new home. The records
come from the store that the settings name. The numbers of both are compared, and nothing is copied
if they differ. No other limner process may be running. Pictures are not moved.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import msgspec

from limner.client import Limner
from limner.errors import OutputExists
from limner.frontends.cli.output import CommandResult
from limner.frontends.cli.terminal import wait_for
from limner.storage.store import Store
from limner.storage.store_copy import copy_store

EXAMPLE = """\
examples:
  limner store copy copy/limner.db    a new home with the same records
"""


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("action", choices=["copy"], help="copy all records into an empty database")
    parser.add_argument("to", metavar="TO", help="an address (postgresql://…) or a new file")


def run(args: Namespace) -> CommandResult:
    """Copy the records."""
    return wait_for(lambda: _copy(args.to))


async def _copy(to: str) -> CommandResult:
    async with Limner() as lim:
        is_address = to.startswith(("postgresql://", "postgres://"))
        context = lim.person()
        path = lim.home.database if is_address else context.reach.resolve_write(to, cwd=lim.cwd)
        if not is_address and path.exists():
            raise OutputExists(f"{str(path)!r} exists already; nothing was copied.")
        target = Store(path, url=to if is_address else None)
        try:
            copied = await copy_store(lim.store, target)
        finally:
            await target.aclose()
    lines = [f"{number:>10,}  {table}" for table, number in copied.rows.items() if number]
    return CommandResult(
        value=msgspec.structs.asdict(copied),
        text="\n".join([*lines, f"copied from {copied.source} to {copied.target}"]),
    )
