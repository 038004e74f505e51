"""Copy this home elsewhere: its records into another database, or its pictures to another place.

TO says what is copied. The records (sessions, ledger, jobs, batches, gallery) go to the address of
an empty PostgreSQL database, such as postgresql://user@host/database (with the password in
PGPASSWORD), or to the path of a new SQLite file, limner.db in a new home. The numbers of both are
compared, and nothing is copied if they differ. No other limner process may be running.

The pictures go to a bucket (s3://bucket/folder, gs://…, az://…) or to a folder that exists
(file:///folder). The digest of each copy is checked. What is there already is left out, so the
command goes on if you run it again. The exit status is 1 if a stored picture is damaged.

Both come from where the settings say, and nothing is deleted there.
"""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser, Namespace

import msgspec

from limner.client import Limner
from limner.content import format_bytes
from limner.errors import InputInvalid, LimnerError, OutputExists, StorageError, UserError
from limner.frontends.cli.output import CommandResult
from limner.frontends.cli.terminal import Waiting, wait_for
from limner.pictures.request import Progress
from limner.settings.values import BlobAddress
from limner.storage.blob_copy import copy_blobs
from limner.storage.blobs import BlobStore
from limner.storage.store import Store
from limner.storage.store_copy import copy_store

EXAMPLE = """\
examples:
  limner store copy copy/limner.db    a new home with the same records
"""
_PLACES = ("s3:", "gs:", "az:", "file:")


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("action", choices=["copy"], help="copy all records, or all pictures")
    parser.add_argument(
        "to", metavar="TO", help="records: postgresql://… or a new file; pictures: s3://…, file://…"
    )


def run(args: Namespace) -> CommandResult:
    """Copy the records or the pictures."""
    to: str = args.to
    return wait_for(lambda: _copy_pictures(to) if to.startswith(_PLACES) else _copy_records(to))


async def _copy_records(to: str) -> CommandResult:
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


async def _copy_pictures(to: str) -> CommandResult:
    waiting = Waiting()

    def tell(done: int, of: int) -> None:
        message = f"Copying {done:,} of {of:,}"
        waiting.progress(Progress(message=message, elapsed_s=waiting.elapsed_s, fraction=done / of))

    async with Limner() as lim, waiting.shown():
        source, target = lim.components.blobs, _target(lim, to)
        await _check_target(lim, source, target)
        copied = await copy_blobs(source, target, progress=tell)
    notes = [f"damaged: {handle}" for handle in copied.damaged]
    return CommandResult(
        value=msgspec.structs.asdict(copied),
        text=f"{copied.copied:,} of {copied.files:,} pictures copied, "
        f"{format_bytes(copied.size_bytes)}, from {copied.source} to {copied.target}",
        notes=tuple(notes),
        status=LimnerError.exit_status if copied.damaged else 0,
    )


def _target(lim: Limner, to: str) -> BlobStore:
    try:
        address = msgspec.convert(to, BlobAddress)
    except msgspec.ValidationError:
        raise InputInvalid(
            "TO is no address of a bucket or a folder.",
            field="to",
            hint="Write s3://bucket/folder, gs://…, az://… or file:///folder.",
        ) from None
    return lim.components.blobs_at(address)


async def _check_target(lim: Limner, source: BlobStore, target: BlobStore) -> None:
    """Refuse the place itself, and one that another database counts on."""
    if source.place == target.place:
        raise UserError(
            f"The pictures are stored in {target.place} already.",
            hint="Set LIMNER_BLOBS to the old place for this command; empty is the home.",
        )
    await asyncio.to_thread(target.check)
    home = await lim.store.read(lambda tx: tx.one("home_id"))
    assert home is not None
    if await asyncio.to_thread(target.claimants) - {home["id"]}:
        raise StorageError(
            f"Another database stores its pictures in {target.place}: nothing was copied.",
            code="BLOBS_SHARED",
            hint="Choose a folder of its own for each database.",
        )
