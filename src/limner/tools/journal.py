"""A request that is sent <-> what the journal keeps of it: enough to finish it after a crash."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec.structs import replace

from limner.errors import StorageError
from limner.imaging.formats import OutputFormat
from limner.money.records import JobRow
from limner.pictures.request import ImageRequest
from limner.tools.planning import Plan


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for, and where the picture was to go; None for a name of its own.

    ``parents`` are the handles of the pictures it was drawn from.
    """

    request: ImageRequest
    target: str | None
    parents: tuple[str, ...] = ()
    output_format: OutputFormat = "png"

    @property
    def path(self) -> Path | None:
        """The target as a path."""
        return None if self.target is None else Path(self.target)


def journal_entry(plan: Plan) -> str:
    """The JSON text for the journal."""
    target = None if plan.target is None else str(plan.target)
    # Only the illustrator draws documents, and it has nothing to be asked for again; and what was
    # drawn from has been sent: the journal is no place for bytes.
    bare = replace(plan.request, svg=None, sources=(), mask=None)
    entry = JournalEntry(
        request=bare, target=target, parents=plan.parents, output_format=plan.output_format
    )
    return msgspec.json.encode(entry).decode()


def entry_of(row: JobRow) -> JournalEntry:
    """What the journal says of a job.

    Raises:
        StorageError: it cannot be read.
    """
    try:
        return msgspec.json.decode(row.request, type=JournalEntry)
    except msgspec.DecodeError as error:
        raise StorageError(f"The journal of {row.id} cannot be read: {error}") from error
