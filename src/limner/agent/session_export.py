"""A session of the store -> a rollout file, its pictures beside it or inside it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from limner import __version__
from limner.agent.rollout import GENERATED, line
from limner.agent.session import Session, SessionAbout
from limner.agent.session_import import META_SETTINGS, ORIGINATOR, pictures_beside
from limner.content import Picture
from limner.errors import OutputExists, StorageError
from limner.pictures.placeholders import omitted, reason_of
from limner.pictures.take import Pictures
from limner.storage.files import check_new, write_new
from limner.wires.item_views import handle_of
from limner.wires.items import Item, Part, image_parts, is_image, map_parts, text_part

T = TypeVar("T")

# What follows stands in place of all before it.
COMPACTED: Mapping[str, Any] = {"message": "", "replacement_history": []}
_SUFFIXES = {"image/jpeg": ".jpg", "image/svg+xml": ".svg"}


class ExportedSession(msgspec.Struct, kw_only=True):
    """What an export has written so far.

    Attributes:
        path: the file.
        folder: where its pictures are; None where they are inside it, or there are none.
        items: how many items were written.
        pictures: the handles of the pictures that were written.
        omitted: the handles of those whose bytes are gone.
    """

    path: Path
    folder: Path | None = None
    items: int = 0
    pictures: set[str] = msgspec.field(default_factory=set[str])
    omitted: set[str] = msgspec.field(default_factory=set[str])


class SessionExporter(msgspec.Struct, frozen=True, kw_only=True):
    """Writes sessions as files that Codex, and limner elsewhere, can read."""

    pictures: Pictures

    async def rollout(
        self, session: Session, path: Path, *, inline: bool = False, overwrite: bool = False
    ) -> ExportedSession:
        """Write a session as JSON lines; the file is there whole, or it is not there.

        Args:
            session: what to write.
            path: resolved by ``Reach.resolve_write``.
            inline: put pictures into the file as data URLs, as Codex reads them, instead of into
                a folder beside it.
            overwrite: replace a file that has the name.

        Raises:
            InputInvalid: the session was deleted.
            OutputExists: the name is taken.
            ReachDenied: a folder on the way has become a symlink.
            StorageError: the disk is full.
        """
        check_new(path, overwrite=overwrite)
        told = ExportedSession(path=path)
        writing = _Inline(self.pictures, told) if inline else _Beside(self.pictures, told)
        lines = _lines(session, await session.about(), writing, told)
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(
            lambda: write_new(path, _from_thread(lines, loop), overwrite=overwrite)
        )
        return told


class _Beside(msgspec.Struct, frozen=True):
    """Writes the pictures of items into a folder; the items name them by handle."""

    pictures: Pictures
    told: ExportedSession

    async def write(self, item: Item) -> Item:
        for handle in _handles(item):
            if handle not in self.told.pictures | self.told.omitted:
                await self._copy(handle)
        return item

    async def _copy(self, handle: str) -> None:
        try:
            picture = await self.pictures.recall(handle)
        except StorageError:
            self.told.omitted.add(handle)
            return
        folder = pictures_beside(self.told.path)
        suffix = _SUFFIXES.get(picture.mime, f".{picture.mime.rpartition('/')[2]}")
        with suppress(OutputExists):  # by its name it is the same picture
            await asyncio.to_thread(
                write_new, folder / f"{handle}{suffix}", self.pictures.path(picture)
            )
        self.told.folder = folder
        self.told.pictures.add(handle)


class _Inline(msgspec.Struct, frozen=True):
    """Writes the pictures of items into the items."""

    pictures: Pictures
    told: ExportedSession

    async def write(self, item: Item) -> Item:
        written = {handle: await self._encoded(handle) for handle in _handles(item)}
        return _with_data(item, written) if written else item

    async def _encoded(self, handle: str) -> dict[str, Any]:
        """The part of an item that a picture becomes."""
        try:
            picture = await self.pictures.recall(handle)
            data = await self.pictures.original(picture)
        except StorageError as error:
            self.told.omitted.add(handle)
            return text_part(omitted(reason_of(error)))
        self.told.pictures.add(handle)
        return {
            "type": "input_image",
            "image_url": await asyncio.to_thread(_data_url, picture, data),
        }


async def _lines(
    session: Session, about: SessionAbout, writing: _Beside | _Inline, told: ExportedSession
) -> AsyncIterator[bytes]:
    yield line("session_meta", _meta(about), at_ms=about.created_ms)
    async for stored in session.items():
        if stored.seq == about.sends_from > 0:
            yield line("compacted", COMPACTED, at_ms=stored.created_ms)
        item = await writing.write(stored.item)
        yield line("response_item", item, at_ms=stored.created_ms)
        told.items += 1
    if about.sends_from == told.items > 0:
        yield line("compacted", COMPACTED, at_ms=about.updated_ms)


def _meta(about: SessionAbout) -> dict[str, Any]:
    begun = datetime.fromtimestamp(about.created_ms / 1000, UTC)
    # Codex looks for these beside the settings: without them it forgets the tools of its client.
    known = {name: about.settings[name] for name in META_SETTINGS if name in about.settings}
    return {
        "id": about.id,
        "timestamp": begun.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "cwd": about.cwd,
        "originator": ORIGINATOR,
        "cli_version": __version__,
        "name": about.name,
        "settings": about.settings,
        **known,
    }


def _handles(item: Item) -> Sequence[str]:
    """The pictures of an item, each once."""
    urls = [part.get("image_url") for part in image_parts(item)]
    if item.get("type") == GENERATED:
        urls.append(item.get("result"))
    found = [handle_of(url) for url in urls if isinstance(url, str)]
    return list(dict.fromkeys(handle for handle in found if handle is not None))


def _with_data(item: Item, written: Mapping[str, Mapping[str, Any]]) -> Item:
    def replace(part: Part) -> Part:
        handle = handle_of(str(part.get("image_url"))) if is_image(part) else None
        if handle is None:
            return part
        new = written[handle]
        return {**part, **new} if is_image(new) else new

    kept = map_parts(item, replace)
    if kept.get("type") == GENERATED and (handle := handle_of(str(kept.get("result")))):
        # Here a picture is base64 alone.
        kept["result"] = str(written[handle].get("image_url", "")).partition(",")[2]
    return kept


def _data_url(picture: Picture, data: bytes) -> str:
    return f"data:{picture.mime};base64,{base64.b64encode(data).decode()}"


def _from_thread(source: AsyncIterator[T], loop: asyncio.AbstractEventLoop) -> Iterator[T]:
    """What an event loop makes, for a thread that needs one after the other."""

    async def following() -> T | None:
        return await anext(source, None)

    while (made_next := asyncio.run_coroutine_threadsafe(following(), loop).result()) is not None:
        yield made_next
