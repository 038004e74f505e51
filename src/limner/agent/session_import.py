"""A rollout file -> a session of the store, with its pictures as handles."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgspec

from limner.agent.ingress import Ingress
from limner.agent.rollout import (
    Entry,
    EventLine,
    SessionStartLine,
    TurnContextLine,
    UnreadableLine,
    entries,
    open_rollout,
)
from limner.agent.session import Session
from limner.agent.sessions import SESSION_EXISTS, Sessions
from limner.agent.stored_turns import is_context
from limner.content import Picture
from limner.display_text import quote
from limner.errors import InputInvalid, LimnerError
from limner.wires.base import HANDLE_URL
from limner.wires.item_views import check, handle_of
from limner.wires.items import Item, image_parts, text_part

# The first bytes of PNG, JPEG, GIF and WebP files, as base64.
_PICTURE = (
    r"(?:data:image/[\w.+-]{1,40};base64,)?"
    r"(?<![A-Za-z0-9+/])(?:iVBORw0KGgo|/9j/|R0lGOD|UklGR)[A-Za-z0-9+/]{64,}={0,2}"
)


async def replace_base64(
    items: Sequence[Item], *, ingress: Ingress, source: str
) -> tuple[list[dict[str, Any]], tuple[Picture, ...]]:
    """The items with a handle in place of each base64 picture in their texts, and those pictures.

    Text that looks like a picture and is not one stays as it is.

    Raises:
        StorageError: a picture cannot be stored.
    """
    texts = (text for item in items for text in _iter_texts(item))
    found = dict.fromkeys(match[0] for text in texts for match in re.finditer(_PICTURE, text))
    if not found:
        return [dict(item) for item in items], ()
    ingested = await ingress.parts([_image_part(one) for one in found], source=source)
    urls = {
        text: url
        for text, part in zip(found, ingested.items, strict=True)
        if isinstance(url := part.get("image_url"), str) and handle_of(url) is not None
    }
    return [_replace_texts(item, urls) for item in items], ingested.pictures


def _image_part(found: str) -> dict[str, Any]:
    url = found if found.startswith("data:") else f"data:image/*;base64,{found}"
    return {"type": "input_image", "image_url": url}


def _iter_texts(value: Any) -> Iterator[str]:
    """All texts in a JSON value that are not the URL of a handle."""
    if isinstance(value, str):
        if not value.startswith(HANDLE_URL):
            yield value
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _iter_texts(one)
    elif isinstance(value, Mapping):
        for one in cast("Mapping[str, Any]", value).values():
            yield from _iter_texts(one)


def _replace_texts(value: Any, urls: Mapping[str, str]) -> Any:
    """A JSON value with the URL of its handle in place of each base64 picture."""
    if isinstance(value, str):
        if value.startswith(HANDLE_URL):
            return value
        return re.sub(_PICTURE, lambda match: urls.get(match[0], match[0]), value)
    if isinstance(value, list):
        return [_replace_texts(one, urls) for one in cast("list[Any]", value)]
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        return {key: _replace_texts(one, urls) for key, one in pairs}
    return value


BATCH_BYTES = 16 * 1024 * 1024
BATCH_LINES = 200
MAX_WARNINGS = 20
KEPT_INPUT_CHARS = 80_000  # Codex counts 20,000 tokens
SOURCE = "imported history"
ORIGINATOR = "limner"
# The fields of the session's line that are needed to continue it; below, those of a turn's line.
META_SETTINGS = ("model_provider", "base_instructions", "dynamic_tools")

_TURN_SETTINGS = ("model",)
_ORIGIN = ("originator", "cli_version", "timestamp")


class ImportedSession(msgspec.Struct, kw_only=True):
    """What an import has stored so far.

    Attributes:
        session_id: the new session; None until a line was read.
        items: how many items it has.
        pictures: the handles of its pictures.
        omitted: how many pictures were replaced by a note.
        bad_lines: how many lines could not be parsed, or have an item that cannot be sent.
        read_bytes: how much of the file was read, decompressed.
        warnings: the first problems of its items and pictures.
    """

    session_id: str | None = None
    items: int = 0
    pictures: set[str] = msgspec.field(default_factory=set[str])
    omitted: int = 0
    bad_lines: int = 0
    read_bytes: int = 0
    warnings: list[str] = msgspec.field(default_factory=list[str])


class SessionImporter(msgspec.Struct, frozen=True, kw_only=True):
    """Imports histories from files."""

    sessions: Sessions
    ingress: Ingress

    async def rollout(
        self, path: Path, *, progress: Callable[[ImportedSession], None] = lambda _: None
    ) -> ImportedSession:
        """Import a rollout file; the session is complete, or it does not exist.

        Args:
            path: resolved by ``Reach.resolve_read``.
            progress: gets the state of the import, again and again.

        Raises:
            InputInvalid: it is not a rollout (``NOT_A_ROLLOUT``), or was imported before.
            MissingExtra: it is compressed, and ``limner[zstd]`` is not installed.
            StorageError: it cannot be read, or its content cannot be stored.
        """
        imported = ImportedSession()
        running = _Import(self, path, imported)
        with open_rollout(path) as file:
            lines = entries(file)
            try:
                while batch := await asyncio.to_thread(_batch, lines, imported):
                    await running.add(batch)
                    progress(imported)
                await running.finish()
            except BaseException:
                # Half of a history must not look like a complete one.
                await running.undo()
                raise
        return imported


class _Import:
    """One running import."""

    def __init__(self, importer: SessionImporter, path: Path, imported: ImportedSession) -> None:
        self._importer, self._path, self._imported = importer, path, imported
        self._session: Session | None = None
        self._settings: dict[str, Any] = {}
        self._last_ms: int | None = None

    async def add(self, batch: Sequence[Entry]) -> None:
        """Store the content of the next lines."""
        for entry in batch:
            if isinstance(entry, SessionStartLine) and self._session is None:
                await self._create(entry)
            elif isinstance(entry, TurnContextLine):
                self._settings |= _select(entry.payload, _TURN_SETTINGS)
        for run in _runs(batch):
            if self._session is None:  # the first line of the file is lost
                await self._create(SessionStartLine(payload={}, at_ms=run[0].at_ms))
            await self._add_run(run)

    async def finish(self) -> None:
        """Mark the session as complete."""
        if self._session is None:
            raise InputInvalid(
                f"{str(self._path)!r} is not a rollout: none of its lines is one of a session.",
                field="file",
                code="NOT_A_ROLLOUT",
                hint="Codex keeps them in ~/.codex/sessions, as rollout-….jsonl or .jsonl.zst.",
            )
        await self._importer.sessions.configure(self._session.id, self._all_settings(is_whole=True))

    async def undo(self) -> None:
        """Delete the new session; its pictures are garbage now."""
        if self._session is not None:
            with suppress(LimnerError):  # what stopped the import may stop this too
                await self._importer.sessions.delete(self._session.id)

    async def _create(self, line: SessionStartLine) -> None:
        meta = line.payload
        cwd, name, own = meta.get("cwd"), meta.get("name"), meta.get("settings")
        if meta.get("originator") == ORIGINATOR and isinstance(own, dict):
            # Its options are not imported: the author of the file does not decide what a model
            # may do.
            settings = cast("dict[str, Any]", own)
            self._settings |= _select(settings, (*META_SETTINGS, *_TURN_SETTINGS))
        self._settings |= _select(meta, META_SETTINGS)
        self._settings["imported"] = {"file": self._path.name, **_select(meta, _ORIGIN)}
        self._session = await self._create_session(
            session_id=_session_id(meta),
            cwd=cwd if isinstance(cwd, str) else "",
            name=name if isinstance(name, str) else None,
            settings=self._all_settings(is_whole=False),
            created_ms=line.at_ms,
        )
        self._imported.session_id = self._session.id
        # The author of the file is not trusted.
        await self._session.note_untrusted()

    async def _create_session(self, session_id: str | None, **about: Any) -> Session:
        sessions = self._importer.sessions
        try:
            return await sessions.create(session_id=session_id, **about)
        except InputInvalid as error:
            if error.code != SESSION_EXISTS or session_id is None:
                raise
            existing = await (await sessions.open(session_id)).about()
            if existing.settings.get("imported", {}).get("is_whole", True):
                raise
        # A process that died during this import has left an incomplete session.
        await sessions.delete(session_id)
        return await sessions.create(session_id=session_id, **about)

    async def _add_run(self, run: Sequence[EventLine]) -> None:
        assert self._session is not None, "the session is created before items are added"
        if run[0].compacts:
            first = msgspec.structs.replace(
                run[0], items=tuple(await self._compacted_items(run[0]))
            )
            run = [first, *run[1:]]
        items = [item for entry in run for item in entry.items]
        times = self._fill_times([entry.at_ms for entry in run for _ in entry.items])
        ingress, imported = self._importer.ingress, self._imported
        ingested = await ingress.items(map(_without_authority, items), source=SOURCE)
        bare, found = await replace_base64(ingested.items, ingress=ingress, source=SOURCE)
        valid = [
            (item, at_ms) for item, at_ms in zip(bare, times, strict=True) if self._is_valid(item)
        ]
        kept = [item for item, _ in valid]
        add = self._session.compact if run[0].compacts else self._session.append
        await add(kept, created_ms=[at_ms for _, at_ms in valid] or None)
        imported.items += len(kept)
        imported.pictures |= {picture.handle for picture in (*ingested.pictures, *found)}
        imported.omitted += _count_pictures(items) - _count_pictures(kept)
        _warn(imported, ingested.warnings)

    async def _compacted_items(self, line: EventLine) -> list[Item]:
        """The items of a compaction, with a mark: they repeat or sum up what is stored."""
        assert self._session is not None, "the session is created before items are added"
        earlier = _last_input(await self._session.history()) if line.keeps_input else []
        mark = {"compaction": f"compaction-{self._imported.items}"}
        return [{**item, **mark} for item in (*earlier, *line.items)]

    def _is_valid(self, item: Item) -> bool:
        """Whether an item can be sent to a model."""
        try:
            check(item)
        except InputInvalid as error:
            self._imported.bad_lines += 1
            _warn(self._imported, [f"An item was left out: {error.message}"])
            return False
        return True

    def _fill_times(self, times: Sequence[int | None]) -> list[int]:
        """The time of each item; an item without one gets that of the item before it."""
        filled: list[int] = []
        for time_ms in times:
            self._last_ms = self._last_ms if time_ms is None else time_ms
            filled.append(self._last_ms or 0)
        return filled

    def _all_settings(self, *, is_whole: bool) -> dict[str, Any]:
        imported = {**self._settings["imported"], "is_whole": is_whole}
        return {**self._settings, "imported": imported}


def _runs(batch: Iterable[Entry]) -> Iterator[list[EventLine]]:
    """The lines with items, in runs that are stored at once; a compaction starts a new run."""
    run: list[EventLine] = []
    for entry in batch:
        if isinstance(entry, EventLine):
            if entry.compacts and run:
                yield run
                run = []
            run.append(entry)
    if run:
        yield run


def _last_input(items: Sequence[Item]) -> list[Item]:
    """The user's last messages, as many as Codex keeps beside an old summary."""
    kept: list[Item] = []
    room = KEPT_INPUT_CHARS
    for item in reversed(items):
        is_input = item.get("type") == "message" and item.get("role") == "user"
        if not is_input or is_context(item):
            continue
        room -= len(msgspec.json.encode(item))
        if room < 0:
            break
        kept.insert(0, item)
    return kept


def _without_authority(item: Item) -> Item:
    """The item; a message of a role that gives orders becomes a quoted message of the user."""
    role = item.get("role")
    if item.get("type", "message") != "message" or role in (None, "user", "assistant"):
        return item
    note = text_part(f"A message of the role {quote(str(role), max_chars=40)} in the file:")
    content: object = item.get("content")
    parts = [text_part(content)] if isinstance(content, str) else content
    shown = [note, *cast("list[Any]", parts)] if isinstance(parts, list) else [note]
    return {**item, "role": "user", "content": shown, "untrusted": True}


def _session_id(meta: Mapping[str, Any]) -> str | None:
    """The id of the session, if it has one that is a UUID."""
    try:
        return str(uuid.UUID(meta["id"]))
    except (KeyError, ValueError, TypeError, AttributeError):
        return None


def _select(payload: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: payload[name] for name in names if payload.get(name) is not None}


def _count_pictures(items: Iterable[Item]) -> int:
    return sum(len(image_parts(item)) for item in items)


def _batch(lines: Iterator[tuple[Entry, int]], imported: ImportedSession) -> list[Entry]:
    """The next lines, as many as are stored at once."""
    batch: list[Entry] = []
    size_bytes = 0
    for entry, line_bytes in lines:
        imported.bad_lines += isinstance(entry, UnreadableLine)
        batch.append(entry)
        size_bytes += line_bytes
        if size_bytes >= BATCH_BYTES or len(batch) >= BATCH_LINES:
            break
    imported.read_bytes += size_bytes
    return batch


def _warn(imported: ImportedSession, warnings: Sequence[str]) -> None:
    imported.warnings += warnings[: MAX_WARNINGS - len(imported.warnings)]
