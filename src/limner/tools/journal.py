"""A plan <-> its journal entry, which is enough to finish the job after a crash."""

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
    """What was requested, and the path of the file; None for a generated name.

    ``parents`` are the handles of the pictures it was drawn from. ``untrusted`` is the mark of the
    picture in its lineage.
    """

    request: ImageRequest
    target: str | None
    parents: tuple[str, ...] = ()
    output_format: OutputFormat = "png"
    untrusted: bool = False

    @property
    def path(self) -> Path | None:
        """The target as a path."""
        return None if self.target is None else Path(self.target)


def encode_entry(plan: Plan) -> str:
    """Encode what the journal keeps of a plan."""
    target = plan.target
    if target is not None and plan.document is not None and not target.is_dir():
        # The SVG is not stored, so a recovered job has its picture.
        target = target.with_suffix(".png")
    # The journal holds no bytes. Source pictures have been sent, and only the illustrator takes an
    # SVG document: its jobs cannot be resumed.
    bare = replace(plan.request, svg=None, sources=(), mask=None)
    entry = JournalEntry(
        request=bare,
        target=None if target is None else str(target),
        parents=plan.parents,
        output_format=plan.output_format,
        untrusted=plan.is_marked,
    )
    return msgspec.json.encode(entry).decode()


def decode_entry(row: JobRow) -> JournalEntry:
    """Decode the journal entry of a job.

    Raises:
        StorageError: the entry cannot be decoded.
    """
    try:
        return msgspec.json.decode(row.request, type=JournalEntry)
    except msgspec.DecodeError as error:
        raise StorageError(f"The journal entry of {row.id} cannot be decoded: {error}") from error
