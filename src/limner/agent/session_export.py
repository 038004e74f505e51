"""A session of the store -> a rollout file, with its pictures inside it, as Codex reads them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from limner import __version__
from limner.agent.rollout import encode_line
from limner.agent.rollout_events import RolloutEvents
from limner.agent.session import Session, SessionAbout
from limner.agent.session_import import META_SETTINGS, ORIGINATOR
from limner.base64_text import encode_base64
from limner.content import Picture
from limner.errors import StorageError
from limner.pictures.placeholders import omitted, reason_of
from limner.pictures.take import Pictures
from limner.storage.files import check_new, write_new
from limner.wires.item_views import handle_of
from limner.wires.items import Item, Part, image_handles, is_image, map_parts, text_part

T = TypeVar("T")

# The items after this line replace all before it.
COMPACTED: Mapping[str, Any] = {"message": "", "replacement_history": []}


class ExportedSession(msgspec.Struct, kw_only=True):
    """What an export has written so far.

    Attributes:
        path: the file.
        items: how many items were written.
        pictures: the handles of the pictures that were written.
        omitted: the handles of the pictures that are no longer stored.
    """

    path: Path
    items: int = 0
    pictures: set[str] = msgspec.field(default_factory=set[str])
    omitted: set[str] = msgspec.field(default_factory=set[str])


class SessionExporter(msgspec.Struct, frozen=True, kw_only=True):
    """Writes sessions as files that Codex, and limner elsewhere, can read."""

    pictures: Pictures

    async def rollout(
        self, session: Session, path: Path, *, overwrite: bool = False
    ) -> ExportedSession:
        """Write a session as JSON lines; the file is complete, or it does not exist.

        Args:
            session: what to write.
            path: resolved by ``Reach.resolve_write``.
            overwrite: replace a file that has the name.

        Raises:
            InputInvalid: the session was deleted.
            OutputExists: the name is taken.
            ReachDenied: a folder on the way has become a symlink.
            StorageError: the disk is full.
        """
        check_new(path, overwrite=overwrite)
        export = ExportedSession(path=path)
        lines = _lines(session, await session.about(), _Inliner(self.pictures, export))
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(
            lambda: write_new(path, _from_thread(lines, loop), overwrite=overwrite)
        )
        return export


class _Inliner(msgspec.Struct, frozen=True):
    """Puts the pictures of items into the items, as data URLs."""

    pictures: Pictures
    export: ExportedSession

    async def inline(self, item: Item) -> Item:
        handles = dict.fromkeys(image_handles(item))
        parts = {handle: await self._part(handle) for handle in handles}
        return _inline_pictures(item, parts) if parts else item

    async def _part(self, handle: str) -> dict[str, Any]:
        """The part that replaces a picture."""
        try:
            picture = await self.pictures.recall(handle)
            data = await self.pictures.original(picture)
        except StorageError as error:
            self.export.omitted.add(handle)
            return text_part(omitted(reason_of(error)))
        self.export.pictures.add(handle)
        return {
            "type": "input_image",
            "image_url": await asyncio.to_thread(_data_url, picture, data),
        }


async def _lines(session: Session, about: SessionAbout, inliner: _Inliner) -> AsyncIterator[bytes]:
    events, export = RolloutEvents(), inliner.export
    yield encode_line("session_meta", _meta(about), at_ms=about.created_ms)
    async for stored in session.items():
        at_ms = stored.created_ms
        if stored.seq == about.sends_from > 0:
            yield encode_line("compacted", COMPACTED, at_ms=at_ms)
        for event in events.before(stored):
            yield encode_line("event_msg", event, at_ms=at_ms)
        item = await inliner.inline(stored.item)
        yield encode_line("response_item", item, at_ms=at_ms)
        for event in events.after(item):
            yield encode_line("event_msg", event, at_ms=at_ms)
        export.items += 1
    for event in events.end():
        yield encode_line("event_msg", event, at_ms=about.updated_ms)
    if about.sends_from == export.items > 0:
        yield encode_line("compacted", COMPACTED, at_ms=about.updated_ms)


def _meta(about: SessionAbout) -> dict[str, Any]:
    created = datetime.fromtimestamp(about.created_ms / 1000, UTC)
    # Codex looks for these next to the settings: without them it loses the tools of its client.
    known = {name: about.settings[name] for name in META_SETTINGS if name in about.settings}
    return {
        "id": about.id,
        "timestamp": created.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "cwd": about.cwd,
        "originator": ORIGINATOR,
        "cli_version": __version__,
        "name": about.name,
        "settings": about.settings,
        **known,
    }


def _inline_pictures(item: Item, parts: Mapping[str, Mapping[str, Any]]) -> Item:
    def replace(part: Part) -> Part:
        handle = handle_of(str(part.get("image_url"))) if is_image(part) else None
        if handle is None:
            return part
        new = parts[handle]
        return {**part, **new} if is_image(new) else new

    return map_parts(item, replace)


def _data_url(picture: Picture, data: bytes) -> str:
    return f"data:{picture.mime};base64,{encode_base64(data)}"


def _from_thread(source: AsyncIterator[T], loop: asyncio.AbstractEventLoop) -> Iterator[T]:
    """Iterate in a thread over what the event loop yields."""

    async def next_value() -> T | None:
        return await anext(source, None)

    while (value := asyncio.run_coroutine_threadsafe(next_value(), loop).result()) is not None:
        yield value
