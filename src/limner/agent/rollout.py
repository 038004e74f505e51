"""A Codex rollout file, plain or compressed -> its parsed lines; and such lines -> bytes.

A rollout is JSON lines: the first describes the session, most of the others contain one item each.
A line that cannot be parsed is not the same as a valid line that limner does not need.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from limner.agent.session import encode_json, is_too_deep
from limner.errors import MissingExtra, StorageError
from limner.storage.files import open_plain
from limner.storage.os_errors import disk_errors
from limner.wires.items import message, text_part

MAX_LINE_BYTES = 256 * 1024 * 1024
INSTALL = 'pip install "limner[zstd]"'

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# In the standard library since Python 3.14.
_ZSTD_MODULES = ("compression.zstd", "backports.zstd")
_DISCARD_BYTES = 1 << 20


class SessionStartLine(msgspec.Struct, frozen=True, kw_only=True):
    """The line that describes the session."""

    payload: Mapping[str, Any]
    at_ms: int | None = None


class TurnContextLine(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a turn; the last ones are in force when the session is opened again."""

    payload: Mapping[str, Any]


class EventLine(msgspec.Struct, frozen=True, kw_only=True):
    """Items of the history; ``compacts`` if they replace all before them.

    ``keeps_input`` if the user's messages before them stay.
    """

    items: tuple[dict[str, Any], ...]
    at_ms: int | None = None
    compacts: bool = False
    keeps_input: bool = False


class OtherLine(msgspec.Struct, frozen=True, kw_only=True):
    """A valid line that limner does not keep."""


class UnreadableLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that is not a line of a rollout: damaged, too long, or of another shape."""

    reason: str


Entry = SessionStartLine | TurnContextLine | EventLine | OtherLine | UnreadableLine


@contextmanager
def open_rollout(path: Path) -> Generator[BinaryIO]:
    """The bytes of a rollout file, decompressed if they are compressed.

    Args:
        path: resolved by ``Reach.resolve_read``.

    Raises:
        MissingExtra: it is compressed, and no decompressor is installed.
        StorageError: it cannot be read.
    """
    with open_plain(path) as file, disk_errors(doing="read", path=path):
        magic = file.read(len(_ZSTD_MAGIC))
        file.seek(0)
        if magic != _ZSTD_MAGIC:
            yield file
            return
        zstd = _zstd()
        try:
            with zstd.open(file, "rb") as plain:
                yield plain
        except (zstd.ZstdError, EOFError) as error:
            raise StorageError(
                f"Could not read {str(path)!r}: its compressed data is damaged.",
                hint="Copy the file again; `zstd -t` tests one.",
            ) from error


def entries(file: BinaryIO, *, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[Entry, int]]:
    """Each line that is not blank, parsed, and its size in bytes."""
    while line := file.readline(max_line_bytes + 1):
        if len(line) > max_line_bytes and not line.endswith(b"\n"):
            yield UnreadableLine(reason="it is too long"), len(line) + _skip_line(file)
        elif line.strip():
            yield parse(line), len(line)


def parse(line: bytes) -> Entry:
    """Parse one line."""
    try:
        value: object = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return UnreadableLine(reason="it is not JSON")
    if not isinstance(value, dict):
        return UnreadableLine(reason="it is not an object")
    if is_too_deep(cast("object", value)):
        return UnreadableLine(reason="it is nested too deeply")
    envelope = cast("dict[str, Any]", value)
    kind: object = envelope.get("type")
    payload: object = envelope.get("payload")
    if not isinstance(kind, str) or not isinstance(payload, dict):
        return UnreadableLine(reason="it has no type and payload")
    return _entry(kind, cast("dict[str, Any]", payload), _parse_time(envelope.get("timestamp")))


def encode_line(kind: str, payload: Mapping[str, Any], *, at_ms: int) -> bytes:
    """Encode a line as Codex does.

    Raises:
        InputInvalid: the payload is not JSON.
    """
    moment = datetime.fromtimestamp(at_ms / 1000, UTC)
    timestamp = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    text = encode_json({"timestamp": timestamp, "type": kind, "payload": payload})
    return text.encode() + b"\n"


def _entry(kind: str, payload: dict[str, Any], at_ms: int | None) -> Entry:
    match kind:
        case "session_meta":
            return SessionStartLine(payload=payload, at_ms=at_ms)
        case "turn_context":
            return TurnContextLine(payload=payload)
        case "response_item":
            if not isinstance(payload.get("type"), str):
                return UnreadableLine(reason="its item has no type")
            return EventLine(items=(payload,), at_ms=at_ms)
        case "compacted":
            is_old = not isinstance(payload.get("replacement_history"), list)
            return EventLine(
                items=_replacement(payload), at_ms=at_ms, compacts=True, keeps_input=is_old
            )
        case _:
            return OtherLine()


def _replacement(payload: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """The items of a compaction; older versions of Codex wrote its summary alone."""
    history: object = payload.get("replacement_history")
    if isinstance(history, list):
        return tuple(
            cast("dict[str, Any]", one)
            for one in cast("list[object]", history)
            if isinstance(one, dict)
        )
    summary = payload.get("message")
    if not isinstance(summary, str) or not summary:
        return ()
    return (message("user", text_part(summary)),)


def _parse_time(timestamp: object) -> int | None:
    if not isinstance(timestamp, str):
        return None
    try:
        moment = datetime.fromisoformat(timestamp)
        return int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def _skip_line(file: BinaryIO) -> int:
    """Skip the rest of a line; return its size."""
    skipped = 0
    while part := file.readline(_DISCARD_BYTES):
        skipped += len(part)
        if part.endswith(b"\n"):
            break
    return skipped


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _zstd() -> Any:
    for name in _ZSTD_MODULES:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise MissingExtra("Reading compressed rollouts needs limner[zstd].", hint=INSTALL)
