"""A rollout file -> a session of the store: its items in their order, its pictures as handles."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from limner.agent.ingress import Ingress
from limner.agent.rollout import (
    GENERATED,
    Entry,
    EventLine,
    SessionStartLine,
    TurnContextLine,
    UnreadableLine,
    entries,
    opened,
)
from limner.agent.session import Session
from limner.agent.sessions import SESSION_EXISTS, Sessions
from limner.content import Picture
from limner.errors import ImageError, InputInvalid, LimnerError, MissingExtra, ReachDenied
from limner.pictures.take import Pictures
from limner.storage.blobs import is_handle
from limner.storage.files import open_plain
from limner.wires.base import HANDLE_URL
from limner.wires.item_views import check, handle_of
from limner.wires.items import Item, image_parts

# What PNG, JPEG, GIF and WebP files begin with, as base64.
_PICTURE = (
    r"(?:data:image/[\w.+-]{1,40};base64,)?"
    r"(?<![A-Za-z0-9+/])(?:iVBORw0KGgo|/9j/|R0lGOD|UklGR)[A-Za-z0-9+/]{64,}={0,2}"
)

Swap = Callable[[str], str]


async def without_embedded(
    items: Iterable[Mapping[str, Any]], *, ingress: Ingress, source: str
) -> tuple[list[dict[str, Any]], tuple[Picture, ...]]:
    """The items with each picture in their texts replaced by its handle, and those pictures.

    What looks like a picture and is none stays as it is.

    Raises:
        StorageError: a picture cannot be kept.
    """
    given = [dict(item) for item in items]
    found: dict[str, None] = {}

    def note(text: str) -> str:
        found.update(dict.fromkeys(match[0] for match in re.finditer(_PICTURE, text)))
        return text

    for item in given:
        _rewritten(item, note)
    if not found:
        return given, ()
    entered = await ingress.parts([_part(one) for one in found], source=source)
    handles = {
        text: url
        for text, part in zip(found, entered.items, strict=True)
        if isinstance(url := part.get("image_url"), str) and handle_of(url) is not None
    }

    def swap(text: str) -> str:
        return re.sub(_PICTURE, lambda match: handles.get(match[0], match[0]), text)

    return [_rewritten(item, swap) for item in given], entered.pictures


def _part(found: str) -> dict[str, Any]:
    url = found if found.startswith("data:") else f"data:image/*;base64,{found}"
    return {"type": "input_image", "image_url": url}


def _rewritten(value: Any, swap: Swap) -> Any:
    if isinstance(value, str):
        # Most texts are short, or name a picture already.
        return value if value.startswith(HANDLE_URL) else swap(value)
    if isinstance(value, list):
        return [_rewritten(one, swap) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {k: _rewritten(v, swap) for k, v in cast("dict[str, Any]", value).items()}
    return value


BATCH_BYTES = 16 * 1024 * 1024
BATCH_LINES = 200
MAX_WARNINGS = 20
SOURCE = "imported history"
ORIGINATOR = "limner"
# What the line about the session says that is needed to go on with it; below, those about turns.
META_SETTINGS = ("model_provider", "base_instructions", "dynamic_tools")

_READ_BYTES = 1 << 20
_TURN_SETTINGS = ("model",)
_ORIGIN = ("originator", "cli_version", "timestamp")


def pictures_beside(path: Path) -> Path:
    """The folder of the pictures that were exported with a file of that name."""
    return path.with_name(f"{path.name.partition('.')[0]}.pictures")


class ImportedSession(msgspec.Struct, kw_only=True):
    """What an import has brought in so far.

    Attributes:
        session_id: the session it became; None until a line was read.
        items: how many items it has.
        pictures: the handles of its pictures.
        omitted: how many pictures were replaced by words.
        bad_lines: how many lines could not be read, or hold an item that no model can be sent.
        read_bytes: how much of the file was read, decompressed.
        warnings: what was odd about the first of its items and pictures.
    """

    session_id: str | None = None
    items: int = 0
    pictures: set[str] = msgspec.field(default_factory=set[str])
    omitted: int = 0
    bad_lines: int = 0
    read_bytes: int = 0
    warnings: list[str] = msgspec.field(default_factory=list[str])


class SessionImporter(msgspec.Struct, frozen=True, kw_only=True):
    """Brings histories in from elsewhere."""

    sessions: Sessions
    ingress: Ingress
    pictures: Pictures

    async def rollout(
        self, path: Path, *, progress: Callable[[ImportedSession], None] = lambda _: None
    ) -> ImportedSession:
        """Import a rollout file; the session is there whole, or it is not there.

        Args:
            path: resolved by ``Reach.resolve_read``.
            progress: gets what was brought in so far, again and again.

        Raises:
            InputInvalid: it is no rollout (``NOT_A_ROLLOUT``), or was imported before.
            MissingExtra: it is compressed, and ``limner[zstd]`` is not installed.
            StorageError: it cannot be read, or what it holds cannot be kept.
        """
        told = ImportedSession()
        await self._take_beside(pictures_beside(path), told)
        bringing = _Bringing(self, path, told)
        with opened(path) as file:
            lines = entries(file)
            try:
                while batch := await asyncio.to_thread(_batch, lines, told):
                    await bringing.take(batch)
                    progress(told)
                await bringing.finish()
            except BaseException:
                # Half a history must not pass for a whole one.
                await bringing.undo()
                raise
        return told

    async def _take_beside(self, folder: Path, told: ImportedSession) -> None:
        """Take in the pictures that were exported beside the file."""
        if not await asyncio.to_thread(folder.is_dir):
            return
        for path in sorted(folder.iterdir()):
            if not is_handle(path.stem):
                continue
            try:
                with open_plain(path) as file, self.pictures.sink() as sink:
                    await asyncio.to_thread(_pour, file, sink.write)
                    await self.pictures.take(sink, lineage={"from": SOURCE})
            except (ImageError, MissingExtra, ReachDenied) as error:
                _warn(told, [f"{path.name}: {error.message}"])


class _Bringing:
    """One import under way."""

    def __init__(self, importing: SessionImporter, path: Path, told: ImportedSession) -> None:
        self._importing, self._path, self._told = importing, path, told
        self._session: Session | None = None
        self._settings: dict[str, Any] = {}
        self._last_ms: int | None = None

    async def take(self, batch: Sequence[Entry]) -> None:
        """Keep what the next lines say."""
        for entry in batch:
            if isinstance(entry, SessionStartLine) and self._session is None:
                await self._begin(entry)
            elif isinstance(entry, TurnContextLine):
                self._settings |= _chosen(entry.payload, _TURN_SETTINGS)
        for run in _runs(batch):
            if self._session is None:  # the first line of the file is lost
                await self._begin(SessionStartLine(payload={}, at_ms=run[0].at_ms))
            await self._add(run)

    async def finish(self) -> None:
        """Say that it is whole."""
        if self._session is None:
            raise InputInvalid(
                f"{str(self._path)!r} is not a rollout: none of its lines is one of a session.",
                field="file",
                code="NOT_A_ROLLOUT",
                hint="Codex keeps them in ~/.codex/sessions, as rollout-….jsonl or .jsonl.zst.",
            )
        await self._importing.sessions.configure(self._session.id, self._described(is_whole=True))

    async def undo(self) -> None:
        """Remove what was brought in; its pictures are garbage now."""
        if self._session is not None:
            with suppress(LimnerError):  # what stopped the import may stop this too
                await self._importing.sessions.delete(self._session.id)

    async def _begin(self, line: SessionStartLine) -> None:
        meta = line.payload
        cwd, name, own = meta.get("cwd"), meta.get("name"), meta.get("settings")
        if meta.get("originator") == ORIGINATOR and isinstance(own, dict):
            # Its terms stay behind: whoever wrote the file does not say how far a model may go.
            told = cast("dict[str, Any]", own)
            self._settings |= _chosen(told, (*META_SETTINGS, *_TURN_SETTINGS))
        self._settings |= _chosen(meta, META_SETTINGS)
        self._settings["imported"] = {"file": self._path.name, **_chosen(meta, _ORIGIN)}
        self._session = await self._created(
            session_id=_session_id(meta),
            cwd=cwd if isinstance(cwd, str) else "",
            name=name if isinstance(name, str) else None,
            settings=self._described(is_whole=False),
            created_ms=line.at_ms,
        )
        self._told.session_id = self._session.id
        # What was said elsewhere was said by whoever wrote the file.
        await self._session.note_untrusted()

    async def _created(self, session_id: str | None, **about: Any) -> Session:
        sessions = self._importing.sessions
        try:
            return await sessions.create(session_id=session_id, **about)
        except InputInvalid as error:
            if error.code != SESSION_EXISTS or session_id is None:
                raise
            there = await (await sessions.open(session_id)).about()
            if there.settings.get("imported", {}).get("is_whole", True):
                raise
        # A process that was killed in the middle of this import has left its half of it.
        await sessions.delete(session_id)
        return await sessions.create(session_id=session_id, **about)

    async def _add(self, run: Sequence[EventLine]) -> None:
        assert self._session is not None, "a session is begun before anything is added to it"
        items = [item for entry in run for item in entry.items]
        times = self._filled([entry.at_ms for entry in run for _ in entry.items])
        ingress, told = self._importing.ingress, self._told
        entered = await ingress.items(items, source=SOURCE)
        bare, found = await without_embedded(entered.items, ingress=ingress, source=SOURCE)
        sound = [
            (item, at_ms) for item, at_ms in zip(bare, times, strict=True) if self._is_sound(item)
        ]
        kept = [item for item, _ in sound]
        add = self._session.compact if run[0].compacts else self._session.append
        await add(kept, created_ms=[at_ms for _, at_ms in sound] or None)
        told.items += len(kept)
        told.pictures |= {picture.handle for picture in (*entered.pictures, *found)}
        told.omitted += _pictures_in(items) - _pictures_in(kept)
        _warn(told, entered.warnings)

    def _is_sound(self, item: Item) -> bool:
        """Whether requests can be written with this item in them."""
        try:
            check(item)
        except InputInvalid as error:
            self._told.bad_lines += 1
            _warn(self._told, [f"An item was left out: {error.message}"])
            return False
        return True

    def _filled(self, times: Sequence[int | None]) -> list[int]:
        """The moment of each item; one that has none came with the one before it."""
        filled: list[int] = []
        for moment in times:
            self._last_ms = self._last_ms if moment is None else moment
            filled.append(self._last_ms or 0)
        return filled

    def _described(self, *, is_whole: bool) -> dict[str, Any]:
        imported = {**self._settings["imported"], "is_whole": is_whole}
        return {**self._settings, "imported": imported}


def _runs(batch: Iterable[Entry]) -> Iterator[list[EventLine]]:
    """What happened, in runs that are added at once; a compaction begins a new one."""
    run: list[EventLine] = []
    for entry in batch:
        if isinstance(entry, EventLine):
            if entry.compacts and run:
                yield run
                run = []
            run.append(entry)
    if run:
        yield run


def _session_id(meta: Mapping[str, Any]) -> str | None:
    """The id of the session where it had one that can be one here."""
    try:
        return str(uuid.UUID(meta["id"]))
    except (KeyError, ValueError, TypeError, AttributeError):
        return None


def _chosen(payload: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: payload[name] for name in names if payload.get(name) is not None}


def _pictures_in(items: Iterable[Item]) -> int:
    return sum(
        len(image_parts(item)) + (item.get("type") == GENERATED and bool(item.get("result")))
        for item in items
    )


def _batch(lines: Iterator[tuple[Entry, int]], told: ImportedSession) -> list[Entry]:
    """The next lines, as many as are worked on at once."""
    batch: list[Entry] = []
    size_bytes = 0
    for entry, line_bytes in lines:
        told.bad_lines += isinstance(entry, UnreadableLine)
        batch.append(entry)
        size_bytes += line_bytes
        if size_bytes >= BATCH_BYTES or len(batch) >= BATCH_LINES:
            break
    told.read_bytes += size_bytes
    return batch


def _pour(file: BinaryIO, write: Callable[[bytes], None]) -> None:
    while part := file.read(_READ_BYTES):
        write(part)


def _warn(told: ImportedSession, warnings: Sequence[str]) -> None:
    told.warnings += warnings[: MAX_WARNINGS - len(told.warnings)]
