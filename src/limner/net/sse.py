"""Bytes of a ``text/event-stream`` -> its events, however the network has cut them.

By the rules of the HTML standard: lines end with CR, LF or both; a byte order mark may come first;
the data of one event may be several lines; comments keep the connection alive and say nothing; and
an event that its blank line never follows did not happen.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import msgspec

from limner.errors import ModelBadAnswer

MAX_EVENT_BYTES = 16 * 1024 * 1024
# Longer than any name that somebody knows.
MAX_NAME_BYTES = 1024

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST_FIELD = len(_BYTE_ORDER_MARK + b"event")

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class ServerSentEvent(msgspec.Struct, frozen=True):
    """One event: what the server calls it, and its data."""

    name: str
    data: str


class Data(Protocol[T_co]):
    """What becomes of the data of one event, as it arrives."""

    def feed(self, piece: bytes) -> None:
        """Take the next bytes."""
        ...

    def finish(self) -> T_co:
        """The event has ended: what its data comes to."""
        ...


class EventCutter(Generic[T]):
    """Cuts one stream into events, and holds nothing of them but their names.

    Args:
        new_data: makes what the data of the next event is fed to.
    """

    def __init__(self, new_data: Callable[[], Data[T]]) -> None:
        self._new_data = new_data
        self._data: Data[T] | None = None
        self._name = b""
        self._field = b""
        # What takes the value of the line; None as long as its field is not known.
        self._take: Callable[[bytes], None] | None = None
        self._before_value = False
        self._after_cr = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[tuple[str, T]]:
        """Take the next bytes; name and data of the events that they complete."""
        if self._after_cr and chunk.startswith(b"\n"):
            # The other half of a line end that was cut in two.
            chunk, self._after_cr = chunk[1:], False
        if chunk:
            self._after_cr = chunk.endswith(b"\r")
        first, *rest = _LINE_END.split(chunk)
        self._go_on(first)
        events: list[tuple[str, T]] = []
        for piece in rest:
            event = self._end_line()
            if event is not None:
                events.append(event)
            self._go_on(piece)
        return events

    def _go_on(self, piece: bytes) -> None:
        """Take more of the line."""
        if self._take is None:
            field, colon, piece = piece.partition(b":")
            # One byte more than the longest tells that it is another.
            self._field += field[: _LONGEST_FIELD + 1 - len(self._field)]
            if not colon:
                return
            self._take = self._taker()
        if piece and self._before_value:
            self._before_value = False
            piece = piece.removeprefix(b" ")
        if piece:
            self._take(piece)

    def _taker(self) -> Callable[[bytes], None]:
        self._before_value = True
        field = self._whole_field()
        if field == b"event":
            self._name = b""
            return self._take_name
        if field != b"data":
            return _pass_over
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
        """End the line; the event that ends with it, if one does."""
        event = None
        if self._take is None:
            if self._whole_field():
                # A field without a colon: its value is empty.
                self._taker()
            else:
                event = self._dispatch()
        self._field, self._take, self._at_start = b"", None, False
        return event

    def _dispatch(self) -> tuple[str, T] | None:
        name, data = self._name or b"message", self._data
        self._name, self._data = b"", None
        return None if data is None else (_text(name), data.finish())


class Events:
    """Cuts one stream into events, each held as text.

    Args:
        max_event_bytes: the most that the data of one event may hold.
    """

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._cutter = EventCutter(lambda: _Text(max_bytes=max_event_bytes))

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Take the next bytes; the events that they complete.

        Raises:
            ModelBadAnswer: an event is larger than any answer has reason to be.
        """
        return [ServerSentEvent(name, data) for name, data in self._cutter.feed(chunk)]


class _Text:
    """The data of an event, as text."""

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._held_bytes = 0

    def feed(self, piece: bytes) -> None:
        self._held_bytes += len(piece)
        if self._held_bytes > self._max_bytes:
            raise ModelBadAnswer(
                f"The answer has an event of more than {self._max_bytes:,} bytes",
                may_be_billed=True,
            )
        self._pieces.append(piece)

    def finish(self) -> str:
        return _text(b"".join(self._pieces))


def _pass_over(piece: bytes) -> None:
    """Take what says nothing: a comment, an id, a field that nobody knows."""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
