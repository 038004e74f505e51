"""Chunks of a ``text/event-stream`` -> its events.

By the HTML standard: lines end with CR, LF or both; a byte order mark may come first; the data of
one event may have several lines; comments are ignored; and an event without its blank line at the
end is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import msgspec

from limner.errors import ModelBadAnswer

MAX_EVENT_BYTES = 16 * 1024 * 1024
# Longer than any known event name.
MAX_NAME_BYTES = 1024

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST_FIELD = len(_BYTE_ORDER_MARK + b"event")

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class ServerSentEvent(msgspec.Struct, frozen=True):
    """One event: its name and its data."""

    name: str
    data: str


class EventData(Protocol[T_co]):
    """Takes the data of one event as it arrives."""

    def feed(self, piece: bytes) -> None:
        """Take the next bytes."""
        ...

    def finish(self) -> T_co:
        """The event has ended: return its data."""
        ...


class EventParser(Generic[T]):
    """Parses one stream into events; it stores only their names.

    Args:
        new_data: makes the object that gets the data of the next event.
    """

    def __init__(self, new_data: Callable[[], EventData[T]]) -> None:
        self._new_data = new_data
        self._data: EventData[T] | None = None
        self._name = b""
        self._field = b""
        # The function that gets the value of the line; None until its field is known.
        self._take: Callable[[bytes], None] | None = None
        self._before_value = False
        self._after_cr = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[tuple[str, T]]:
        """Take the next bytes; returns the names and data of the events that they complete."""
        if self._after_cr and chunk.startswith(b"\n"):
            # The second half of a line end that was split between two chunks.
            chunk, self._after_cr = chunk[1:], False
        if chunk:
            self._after_cr = chunk.endswith(b"\r")
        first, *rest = _LINE_END.split(chunk)
        self._feed_line(first)
        events: list[tuple[str, T]] = []
        for piece in rest:
            event = self._end_line()
            if event is not None:
                events.append(event)
            self._feed_line(piece)
        return events

    def _feed_line(self, piece: bytes) -> None:
        """Take the next part of the line."""
        if self._take is None:
            field, colon, piece = piece.partition(b":")
            # One byte more than the longest known field shows that it is another field.
            self._field += field[: _LONGEST_FIELD + 1 - len(self._field)]
            if not colon:
                return
            self._take = self._value_handler()
        if piece and self._before_value:
            self._before_value = False
            piece = piece.removeprefix(b" ")
        if piece:
            self._take(piece)

    def _value_handler(self) -> Callable[[bytes], None]:
        self._before_value = True
        field = self._whole_field()
        if field == b"event":
            self._name = b""
            return self._take_name
        if field != b"data":
            return _ignore
        if self._data is None:
            self._data = self._new_data()
        else:
            self._data.feed(b"\n")
        return self._data.feed

    def _take_name(self, piece: bytes) -> None:
        self._name += piece[: MAX_NAME_BYTES - len(self._name)]

    def _whole_field(self) -> bytes:
        return self._field.removeprefix(_BYTE_ORDER_MARK) if self._at_start else self._field

    def _end_line(self) -> tuple[str, T] | None:
        """End the line; returns the event that ends with it, or None."""
        event = None
        if self._take is None:
            if self._whole_field():
                # A field without a colon: its value is empty.
                self._value_handler()
            else:
                event = self._dispatch()
        self._field, self._take, self._at_start = b"", None, False
        return event

    def _dispatch(self) -> tuple[str, T] | None:
        name, data = self._name or b"message", self._data
        self._name, self._data = b"", None
        return None if data is None else (_text(name), data.finish())


class EventStream:
    """Parses one stream into events with text as data.

    Args:
        max_event_bytes: the largest allowed data of one event.
    """

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._parser = EventParser(lambda: _Text(max_bytes=max_event_bytes))

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Take the next bytes; returns the events that they complete.

        Raises:
            ModelBadAnswer: an event is too large.
        """
        return [ServerSentEvent(name, data) for name, data in self._parser.feed(chunk)]


class _Text:
    """The data of an event, as text."""

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._size_bytes = 0

    def feed(self, piece: bytes) -> None:
        self._size_bytes += len(piece)
        if self._size_bytes > self._max_bytes:
            raise ModelBadAnswer(
                f"The answer has an event of more than {self._max_bytes:,} bytes",
                may_be_billed=True,
            )
        self._pieces.append(piece)

    def finish(self) -> str:
        return _text(b"".join(self._pieces))


def _ignore(piece: bytes) -> None:
    """Ignore the value of a comment, an id or an unknown field."""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
