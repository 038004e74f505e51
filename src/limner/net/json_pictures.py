"""A body of JSON -> the parsed JSON, its picture decoded from base64 into a sink on the way.

A picture is most of such a body. It is never held: each chunk's part of it is decoded and poured
as the chunk arrives, so that memory stays flat and the work stays close to decoding alone.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection
from contextlib import closing
from tempfile import SpooledTemporaryFile
from typing import Any

import msgspec

from limner.errors import BadProviderImage, ImageTooLarge, ProviderUnavailable
from limner.net.sink import Sink
from limner.net.sse import EventCutter

# The sink has its own, lower limit; this one keeps what is held before that from filling a disk.
MAX_BYTES = 256 * 1024 * 1024
_MEMORY_BYTES = 2 * 1024 * 1024
_PIECE_BYTES = 256 * 1024


class LastPicture:
    """A sink for one picture that can be begun again; a large one is held on disk."""

    def __init__(self, *, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._file = SpooledTemporaryFile(max_size=_MEMORY_BYTES)  # noqa: SIM115 - has a close
        self._size_bytes = 0

    def restart(self) -> None:
        """Forget the picture; another begins."""
        self._file.seek(0)
        self._file.truncate()
        self._size_bytes = 0

    def write(self, data: bytes | memoryview) -> None:
        """Take the next bytes.

        Raises:
            ImageTooLarge: no picture has so many.
        """
        self._size_bytes += len(data)
        if self._size_bytes > self._max_bytes:
            raise ImageTooLarge(f"The picture is larger than {self._max_bytes:,} bytes.")
        self._file.write(data)

    def pour(self, sink: Sink) -> None:
        """Pour the picture into another sink."""
        self._file.seek(0)
        while piece := self._file.read(_PIECE_BYTES):
            sink.write(piece)

    def close(self) -> None:
        """Let go of it."""
        self._file.close()


MAX_JSON_BYTES = 1024 * 1024
MAX_DEPTH = 64


class Marker(enum.Enum):
    """What stands in the parsed JSON where a picture was."""

    PICTURE = "its bytes are in the sink"
    DROPPED = "another one is in the sink, or there is no sink"


PICTURE = Marker.PICTURE
DROPPED = Marker.DROPPED

# JSON has no such numbers, so the marks cannot be confused with anything a service sends;
# json.loads reads them all the same and hands them to a function of ours.
_MARKS = {PICTURE: b"NaN", DROPPED: b"Infinity"}
_MARKERS: dict[str, Marker] = {mark.decode(): marker for marker, mark in _MARKS.items()}

_TOKEN = re.compile(rb'["{}\[\],]')
_STRING_BODY = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_WHOLE_ESCAPES = re.compile(rb"(?:[^\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*+", re.DOTALL)
_LONGEST_ESCAPE = len(r"\u0000")
_WHITESPACE = b" \t\r\n"
# Enough of a string to tell an address from base64, whatever its escapes.
_HEAD_BYTES = 256
_SCHEME_CHARS = 32

_decode_base64 = msgspec.json.Decoder(bytes).decode
_decode_string = msgspec.json.Decoder(str).decode


async def read_json_with_pictures(
    chunks: AsyncIterator[bytes],
    *,
    wanted: Collection[str] = (),
    sink: Sink | None = None,
    last: bool = False,
    max_json_bytes: int = MAX_JSON_BYTES,
) -> Any:
    """Parse a body of JSON, pouring the first picture in it into the sink, or the ``last``.

    A path in ``wanted`` names keys from the top, joined by dots; lists on the way do not count
    (``"data.b64_json"``). A string there is a picture, in base64 or as a ``data:`` address, unless
    it is empty or an address of another kind: such a string is kept. In the result ``PICTURE``
    stands for the picture that was poured and ``DROPPED`` for every other.

    Raises:
        ProviderUnavailable: the body broke off; the picture may be billed.
        BadProviderImage: the body is not JSON, is too much of it, or the base64 is wrong.
        ImageTooLarge: one of the pictures before the last is larger than any may be.
    """
    reader = PictureReader(wanted=wanted, sink=sink, max_json_bytes=max_json_bytes)
    if last and sink is not None:
        return await _read_holding(chunks, reader, sink)
    async for chunk in chunks:
        reader.feed(chunk)
    return reader.finish()


async def _read_holding(chunks: AsyncIterator[bytes], reader: PictureReader, sink: Sink) -> Any:
    """Read a body of which only the last picture is wanted: which it is, only its end tells."""
    with closing(LastPicture()) as held:
        reader.hold(held)
        async for chunk in chunks:
            reader.feed(chunk)
        value = reader.finish()
        held.pour(sink)
        return value


def _nonsense(what: str) -> BadProviderImage:
    return BadProviderImage(
        f"The service's answer {what}",
        hint="Check that the base URL is the service's API and not another page.",
    )


class _Frame(msgspec.Struct):
    """An open object or list; ``key`` is the name whose value is being read."""

    is_object: bool
    expects_key: bool
    key: str = ""


class _Base64:
    """Base64 in pieces, as they stand in a JSON string -> bytes in a sink."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._rest = b""
        self._padded = False

    def feed(self, piece: bytes) -> None:
        data, partial_escape = self._rest + piece, b""
        if b"\\" in data:
            data, partial_escape = _unescape_whole(data)
        if self._padded and data.strip(_WHITESPACE):
            raise _nonsense("has more base64 after its end")
        whole = len(data) & ~3
        try:
            decoded = _decode_base64(b'"%b"' % data[:whole])
        except msgspec.DecodeError:
            data = data.translate(None, _WHITESPACE)
            whole = len(data) & ~3
            decoded = _strictly_decoded(data[:whole])
        self._padded = self._padded or data.endswith(b"=", 0, whole)
        self._rest = data[whole:] + partial_escape
        self._sink.write(decoded)

    def finish(self) -> None:
        if self._rest.strip(_WHITESPACE):
            raise _nonsense("has a picture whose base64 is cut short")


def _strictly_decoded(data: bytes) -> bytes:
    try:
        return _decode_base64(b'"%b"' % data)
    except msgspec.DecodeError:
        raise _nonsense("has a picture that is not base64") from None


def _unescaped(data: bytes) -> bytes:
    try:
        return _decode_string(b'"%b"' % data).encode()
    except msgspec.DecodeError:
        raise _nonsense("has a string with a broken escape") from None


def _unescape_whole(data: bytes) -> tuple[bytes, bytes]:
    """The data without its escapes, and apart from it an escape that is not complete yet."""
    body = _WHOLE_ESCAPES.match(data)
    cut = body.end() if body else 0
    if len(data) - cut >= _LONGEST_ESCAPE:
        raise _nonsense("has a string with a broken escape")
    return _unescaped(data[:cut].translate(None, _WHITESPACE)), data[cut:]


class PictureReader:
    """Follows JSON from chunk to chunk: keeps all of it but the pictures.

    What `read_json_with_pictures` does, for those who are handed the chunks one by one.
    """

    def __init__(
        self,
        *,
        wanted: Collection[str],
        sink: Sink | None,
        max_json_bytes: int = MAX_JSON_BYTES,
    ) -> None:
        self._wanted = frozenset(tuple(path.split(".")) for path in wanted)
        self._sink = sink
        self._held: LastPicture | None = None
        self._mark_at: int | None = None
        self._max_json_bytes = max_json_bytes
        self._kept = bytearray()
        self._frames: list[_Frame] = []
        # Each state takes a chunk and a position in it, and answers how far it came.
        self._state: Callable[[bytes, int], int] = self._structure
        self._key_at: int | None = None
        self._escaped = False
        self._head = b""
        self._base64: _Base64 | None = None

    def hold(self, held: LastPicture) -> None:
        """From now on every picture takes the place of the one before it."""
        self._held = held

    def feed(self, chunk: bytes) -> None:
        """Take the next chunk; raises as `read_json_with_pictures`."""
        at = 0
        while at < len(chunk):
            at = self._state(chunk, at)

    def finish(self) -> Any:
        """The parsed JSON; raises as `read_json_with_pictures`."""
        if not self._kept.strip():
            raise _nonsense("is empty")
        if self._frames:
            raise ProviderUnavailable(
                "The service's answer broke off before its end; the request may be billed and "
                "was not sent again",
                may_be_billed=True,
                retryable=False,
            )
        try:
            return json.loads(self._kept.decode(), parse_constant=_MARKERS.__getitem__)
        except ValueError:
            raise _nonsense("is not JSON") from None

    def _keep(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > self._max_json_bytes:
            raise _nonsense(f"has more than {self._max_json_bytes} bytes besides the picture")

    def _structure(self, chunk: bytes, at: int) -> int:
        token = _TOKEN.search(chunk, at)
        between = chunk[at : token.start() if token else len(chunk)]
        if b"N" in between or b"I" in between:
            raise _nonsense("is not JSON")
        if not self._frames and between.strip():
            raise _nonsense("is not a JSON object or list")
        self._keep(between)
        if token is None:
            return len(chunk)
        if token[0] == b'"':
            self._open_string()
        else:
            self._keep(token[0])
            self._move(token[0])
        return token.end()

    def _move(self, token: bytes) -> None:
        """Follow a brace, a bracket or a comma."""
        if token in b"{[":
            if len(self._frames) == MAX_DEPTH:
                raise _nonsense("is nested too deeply")
            self._frames.append(_Frame(is_object=token == b"{", expects_key=token == b"{"))
        elif not self._frames:
            raise _nonsense("is not JSON")
        elif token == b",":
            self._frames[-1].expects_key = self._frames[-1].is_object
        elif self._frames.pop().is_object != (token == b"}"):
            raise _nonsense("is not JSON")

    def _open_string(self) -> None:
        if not self._frames:
            raise _nonsense("is not a JSON object or list")
        is_key = self._frames[-1].expects_key
        if not is_key and self._path() in self._wanted:
            self._head = b""
            self._state = self._wanted_head
            return
        self._key_at = len(self._kept) if is_key else None
        self._keep(b'"')
        self._state = self._string

    def _path(self) -> tuple[str, ...]:
        return tuple(frame.key for frame in self._frames if frame.is_object)

    def _string(self, chunk: bytes, at: int) -> int:
        """The inside of a string that is kept."""
        end = self._string_end(chunk, at)
        self._keep(chunk[at:end])
        if self._state == self._structure and self._key_at is not None:
            frame = self._frames[-1]
            frame.key = _unescaped(bytes(self._kept[self._key_at + 1 : -1])).decode()
            frame.expects_key = False
        return end

    def _skip(self, chunk: bytes, at: int) -> int:
        """The inside of a picture that nobody takes."""
        return self._string_end(chunk, at)

    def _string_end(self, chunk: bytes, at: int) -> int:
        """How far the string goes in this chunk, its closing quote included."""
        if self._escaped:
            self._escaped = False
            at += 1
        body = _STRING_BODY.match(chunk, at)
        end = body.end() if body else at
        if end == len(chunk):
            return end
        if chunk[end : end + 1] == b'"':
            self._state = self._structure
        else:
            self._escaped = True
        return end + 1

    def _wanted_head(self, chunk: bytes, at: int) -> int:
        """The beginning of a string at a wanted path: picture or address?"""
        held = len(self._head)
        self._head += chunk[at : at + _HEAD_BYTES - held]
        body = _STRING_BODY.match(self._head)
        end = body.end() if body else 0
        if self._head[end : end + 1] == b'"':
            self._head = self._head[:end]
            self._begin_wanted(ended=True)
            return at + end + 1 - held
        if len(self._head) == _HEAD_BYTES:
            self._begin_wanted(ended=False)
        return at + len(self._head) - held

    def _begin_wanted(self, *, ended: bool) -> None:
        text, _ = _unescape_whole(self._head)
        if text.startswith(b"data:"):
            self._begin_picture(self._base64_of_data_url(), ended=ended)
        elif not text or b":" in text[:_SCHEME_CHARS]:
            self._key_at = None
            self._keep(b'"' + self._head + (b'"' if ended else b""))
            body = _STRING_BODY.match(self._head)
            self._escaped = body is not None and body.end() < len(self._head)
            self._state = self._structure if ended else self._string
        else:
            self._begin_picture(self._head, ended=ended)

    def _base64_of_data_url(self) -> bytes:
        media_type, comma, data = self._head.partition(b",")
        if not comma or not _unescape_whole(media_type)[0].endswith(b";base64"):
            raise _nonsense("has a data: address that is not base64")
        return data

    def _next_sink(self) -> Sink | None:
        """Where the picture that begins now goes, if anywhere."""
        if self._held is None:
            sink, self._sink = self._sink, None
            return sink
        if self._mark_at is not None:
            mark = slice(self._mark_at, self._mark_at + len(_MARKS[PICTURE]))
            self._kept[mark] = _MARKS[DROPPED]
        self._mark_at = len(self._kept)
        self._held.restart()
        return self._held

    def _begin_picture(self, data: bytes, *, ended: bool) -> None:
        sink = self._next_sink()
        if sink is None:
            self._keep(_MARKS[DROPPED])
            self._state = self._structure if ended else self._skip
            body = _STRING_BODY.match(data)
            self._escaped = not ended and body is not None and body.end() < len(data)
            return
        self._keep(_MARKS[PICTURE])
        self._base64 = _Base64(sink)
        self._base64.feed(data)
        if ended:
            self._end_picture()
        else:
            self._state = self._picture

    def _picture(self, chunk: bytes, at: int) -> int:
        assert self._base64 is not None
        # A quote behind a backslash is no end, but it is no base64 either: it fails as such.
        end = chunk.find(b'"', at)
        self._base64.feed(chunk[at : end if end >= 0 else len(chunk)])
        if end < 0:
            return len(chunk)
        self._end_picture()
        return end + 1

    def _end_picture(self) -> None:
        assert self._base64 is not None
        self._base64.finish()
        self._base64 = None
        self._state = self._structure


MAX_PICTURE_BYTES = 64 * 1024 * 1024


class PictureEvent(msgspec.Struct, frozen=True):
    """One event: its name, its JSON with ``PICTURE`` for the picture, and that picture."""

    name: str
    body: Any
    picture: memoryview


async def picture_events(
    chunks: AsyncIterator[bytes], *, wanted: Collection[str]
) -> AsyncGenerator[PictureEvent]:
    """Follow a stream of events; ``wanted`` says where their pictures are, as for JSON.

    Raises:
        ProviderUnavailable: an event broke off.
        BadProviderImage: an event's data is not JSON, or its base64 is wrong.
        ImageTooLarge: no picture has so many bytes.
    """
    cutter = EventCutter(lambda: _Data(wanted))
    async for chunk in chunks:
        for name, (body, picture) in cutter.feed(chunk):
            yield PictureEvent(name, body, picture)


class _Data:
    """The data of one event."""

    def __init__(self, wanted: Collection[str]) -> None:
        self._picture = _Held()
        self._reader = PictureReader(wanted=wanted, sink=self._picture)

    def feed(self, piece: bytes) -> None:
        self._reader.feed(piece)

    def finish(self) -> tuple[Any, memoryview]:
        return self._reader.finish(), memoryview(self._picture.data)


class _Held:
    """A sink in memory."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes | memoryview) -> None:
        self.data += data
        if len(self.data) > MAX_PICTURE_BYTES:
            raise ImageTooLarge(f"A picture has more than {MAX_PICTURE_BYTES:,} bytes.")
