"""The bytes of all pictures in one place -> another place, each with its digest compared.

What is there already is left out, so a copy that was interrupted goes on when it runs again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from limner.errors import StorageError
from limner.storage.blobs import BlobStore

_AT_ONCE = 8
_BEFORE_NEWS = 64


class BlobCopy(msgspec.Struct, frozen=True, kw_only=True):
    """What was copied.

    Attributes:
        source: the place the bytes come from.
        target: the place that has them now.
        files: how many contents the source has.
        copied: how many of them were copied now; the others were there.
        size_bytes: the size of those that were copied now.
        damaged: the handles whose bytes do not match; these were not copied.
    """

    source: str
    target: str
    files: int
    copied: int
    size_bytes: int
    damaged: tuple[str, ...]


async def copy_blobs(
    source: BlobStore,
    target: BlobStore,
    *,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> BlobCopy:
    """Copy all bytes that the target does not have.

    Args:
        source: it does not change.
        target: it keeps what it has.
        progress: gets the number of contents that are done, and of all that are to be copied.

    Raises:
        StorageError: a place cannot be read or written, or the target does not have what was
            copied.
    """
    handles = sorted(await asyncio.to_thread(lambda: list(source.handles())))
    left = await asyncio.to_thread(_missing, source, target, handles)
    sizes: dict[str, int | None] = {}
    for start in range(0, len(left), _BEFORE_NEWS):
        chunk = left[start : start + _BEFORE_NEWS]
        sizes |= await asyncio.to_thread(_copy_some, source, target, chunk)
        progress(len(sizes), len(left))
    damaged = tuple(handle for handle, size_bytes in sizes.items() if size_bytes is None)
    whole = [handle for handle in handles if handle not in set(damaged)]
    if lost := await asyncio.to_thread(_missing, source, target, whole):
        raise StorageError(
            f"{target.place} has {len(whole) - len(lost):,} of {len(whole):,} pictures.",
            hint="Run the command again: it copies the rest.",
            retryable=True,
        )
    copied = [size_bytes for size_bytes in sizes.values() if size_bytes is not None]
    return BlobCopy(
        source=source.place,
        target=target.place,
        files=len(handles),
        copied=len(copied),
        size_bytes=sum(copied),
        damaged=damaged,
    )


def _missing(source: BlobStore, target: BlobStore, handles: Sequence[str]) -> list[str]:
    """The handles whose bytes are not in the target with the same size."""
    ours, theirs = source.facts(handles), target.facts(handles)
    sizes = {handle: facts.size_bytes for handle, facts in theirs.items()}
    return [one for one in handles if one in ours and sizes.get(one) != ours[one].size_bytes]


def _copy_some(
    source: BlobStore, target: BlobStore, handles: Sequence[str]
) -> dict[str, int | None]:
    """The size of each content that was copied; None if its bytes are damaged."""

    def copy(handle: str) -> int | None:
        try:
            data = source.read(handle)
        except StorageError as error:
            if error.code in ("PICTURE_DAMAGED", "PICTURE_MISSING"):
                return None
            raise
        target.add(data)
        if not target.is_whole(handle):
            raise StorageError(
                f"{target.place} does not have the bytes of {handle} as they were sent.",
                hint="Check the disk and the log of the service, then run the command again.",
            )
        return len(data)

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return dict(zip(handles, threads.map(copy, handles), strict=True))
