"""Chunks of JSON -> the parsed JSON, with its picture decoded from base64 into a sink.

A picture is most of such a body. It is not kept in memory: its part of each chunk is decoded and
written as the chunk arrives. So memory stays flat, and the time is close to that of decoding.
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

from limner.base64_text import decode_base64
from limner.errors import BadProviderImage, ImageTooLarge, LimnerError, ProviderUnavailable
from limner.net.sink import Sink
from limner.net.sse import EventParser

# The sink has its own, lower limit; this one protects the disk before that.
MAX_BYTES = 256 * 1024 * 1024
_MEMORY_BYTES = 2 * 1024 * 1024
_CHUNK_BYTES = 256 * 1024


class LastPicture:
    """A sink for one picture that can restart; a large picture is kept on disk."""

    def __init__(self, *, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._file = SpooledTemporaryFile(max_size=_MEMORY_BYTES)  # noqa: SIM115 - has a close
        self._size_bytes = 0

    def restart(self) -> None:
        """Drop the picture; another one starts."""
        self._file.seek(0)
        self._file.truncate()
        self._size_bytes = 0

    def write(self, data: bytes | memoryview) -> None:
        """Take the next bytes.

        Raises:
            ImageTooLarge: the picture has more than ``max_bytes``.
        """
        self._size_bytes += len(data)
        if self._size_bytes > self._max_bytes:
            raise ImageTooLarge(f"The picture is larger than {self._max_bytes:,} bytes.")
        self._file.write(data)

    def copy_to(self, sink: Sink) -> None:
        """Write the picture to another sink."""
        self._file.seek(0)
        while chunk := self._file.read(_CHUNK_BYTES):
            sink.write(chunk)

    def close(self) -> None:
        """Delete the picture."""
        self._file.close()


MAX_JSON_BYTES = 1024 * 1024
MAX_DEPTH = 64


class Marker(enum.Enum):
    """The value in the parsed JSON in place of a picture."""

    PICTURE = "its bytes are in the sink"
    DROPPED = "another one is in the sink, or there is no sink"


PICTURE = Marker.PICTURE
DROPPED = Marker.DROPPED

# JSON has no such numbers, so a service cannot send the marks. json.loads accepts them and passes
# them to a function.
_MARKS = {PICTURE: b"NaN", DROPPED: b"Infinity"}
_MARKERS: dict[str, Marker] = {mark.decode(): marker for marker, mark in _MARKS.items()}

_TOKEN = re.compile(rb'["{}\[\],]')
_STRING_BODY = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_WHOLE_ESCAPES = re.compile(rb"(?:[^\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*+", re.DOTALL)
_LONGEST_ESCAPE = len(r"\u0000")
_WHITESPACE = b" \t\r\n"
# Enough of a string to distinguish a URL from base64, with any escapes.
_HEAD_BYTES = 256
_SCHEME_CHARS = 32

# Base64 is decoded in groups of four characters. A file is written faster in whole pages, and in
# fewer pieces; much larger ones would need memory in a hundred calls at once.
_UNIT_CHARS = 4
_PAGE_CHARS = 16 * 1024
_BLOCK_CHARS = 128 * 1024

_decode_string = msgspec.json.Decoder(str).decode


async def read_json_with_pictures(
    chunks: AsyncIterator[bytes],
    *,
    wanted: Collection[str] = (),
    sink: Sink | None = None,
    last: bool = False,
    max_json_bytes: int = MAX_JSON_BYTES,
) -> Any:
    """Parse a JSON body, and write its first picture, or its ``last``, to the sink.

    A path in ``wanted`` has the keys from the top, joined by dots; lists do not count
    (``"data.b64_json"``). A string there is a picture, in base64 or as a ``data:`` URL, unless it
    is empty or another URL: such a string is kept. In the result ``PICTURE`` marks the picture in
    the sink, and ``DROPPED`` every other picture.

    Raises:
        ProviderUnavailable: the body is incomplete; the picture may be billed.
        BadProviderImage: the body is not JSON, too long, or its base64 is not valid.
        ImageTooLarge: a picture before the last one is too large.
    """
    reader = PictureReader(wanted=wanted, sink=sink, max_json_bytes=max_json_bytes)
    if last and sink is not None:
        return await _read_last_picture(chunks, reader, sink)
    async for chunk in chunks:
        reader.feed(chunk)
    return reader.finish()


async def _read_last_picture(
    chunks: AsyncIterator[bytes], reader: PictureReader, sink: Sink
) -> Any:
    """Read a body whose last picture is wanted; only the end of the body shows which it is."""
    with closing(LastPicture()) as last:
        reader.keep_last(last)
        async for chunk in chunks:
            reader.feed(chunk)
        value = reader.finish()
        last.copy_to(sink)
        return value


def _bad_response(problem: str) -> BadProviderImage:
    return BadProviderImage(
        f"The service's response {problem}",
        hint="Check that the base URL is the service's API and not another page.",
    )


class _Frame(msgspec.Struct):
    """An open object or list; ``key`` is the key of the current value."""

    is_object: bool
    expects_key: bool
    key: str = ""


class _Base64:
    """Parts of a base64 string in JSON -> bytes in a sink."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._rest = b""
        self._padded = False

    def feed(self, piece: bytes) -> None:
        self._rest += piece
        if len(self._rest) >= _BLOCK_CHARS:
            self._decode(_PAGE_CHARS)

    def finish(self) -> None:
        self._decode(_UNIT_CHARS)
        if self._rest.strip(_WHITESPACE):
            raise _bad_response("has a picture whose base64 is cut short")

    def _decode(self, multiple: int) -> None:
        """Decode what is there, as far as its length is a multiple of so many characters."""
        data, partial_escape = self._rest, b""
        if b"\\" in data:
            data, partial_escape = _unescape_complete(data)
        if self._padded and data.strip(_WHITESPACE):
            raise _bad_response("has more base64 after its end")
        whole = len(data) - len(data) % multiple
        try:
            decoded = decode_base64(data[:whole])
        except ValueError:
            data = data.translate(None, _WHITESPACE)
            whole = len(data) - len(data) % multiple
            decoded = _decode_strictly(data[:whole])
        self._padded = self._padded or data.endswith(b"=", 0, whole)
        self._rest = data[whole:] + partial_escape
        self._sink.write(decoded)


def _decode_strictly(data: bytes) -> bytes:
    try:
        return decode_base64(data)
    except ValueError:
        raise _bad_response("has a picture that is not base64") from None


def _unescape(data: bytes) -> bytes:
    try:
        return _decode_string(b'"%b"' % data).encode()
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _bad_response("has a string with a broken escape") from None


def _unescape_complete(data: bytes) -> tuple[bytes, bytes]:
    """The data without its escapes, and an incomplete escape at its end."""
    body = _WHOLE_ESCAPES.match(data)
    cut = body.end() if body else 0
    if len(data) - cut >= _LONGEST_ESCAPE:
        raise _bad_response("has a string with a broken escape")
    return _unescape(data[:cut].translate(None, _WHITESPACE)), data[cut:]


class PictureReader:
    """Parses JSON chunk by chunk and keeps all of it except the pictures.

    It does the work of `read_json_with_pictures` for callers that get the chunks one by one.
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
        self._last: LastPicture | None = None
        self._mark_at: int | None = None
        self._max_json_bytes = max_json_bytes
        self._kept = bytearray()
        self._frames: list[_Frame] = []
        # Each state takes a chunk and a position in it, and returns the next position.
        self._state: Callable[[bytes, int], int] = self._structure
        self._key_at: int | None = None
        self._escaped = False
        self._head = b""
        self._base64: _Base64 | None = None

    def keep_last(self, last: LastPicture) -> None:
        """Let every picture replace the one before it."""
        self._last = last

    def feed(self, chunk: bytes) -> None:
        """Take the next chunk; raises as `read_json_with_pictures`."""
        at = 0
        while at < len(chunk):
            at = self._state(chunk, at)

    def finish(self) -> Any:
        """The parsed JSON; raises as `read_json_with_pictures`."""
        if not self._kept.strip():
            raise _bad_response("is empty")
        if self._frames:
            raise ProviderUnavailable(
                "The service's response is incomplete; the request may be billed and was not sent "
                "again",
                may_be_billed=True,
                retryable=False,
            )
        try:
            return json.loads(self._kept.decode(), parse_constant=_MARKERS.__getitem__)
        except ValueError:
            raise _bad_response("is not JSON") from None

    def _keep(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > self._max_json_bytes:
            raise _bad_response(f"has more than {self._max_json_bytes} bytes besides the picture")

    def _structure(self, chunk: bytes, at: int) -> int:
        token = _TOKEN.search(chunk, at)
        between = chunk[at : token.start() if token else len(chunk)]
        if b"N" in between or b"I" in between:
            raise _bad_response("is not JSON")
        if not self._frames and between.strip():
            raise _bad_response("is not a JSON object or list")
        self._keep(between)
        if token is None:
            return len(chunk)
        if token[0] == b'"':
            self._open_string()
        else:
            self._keep(token[0])
            self._handle_token(token[0])
        return token.end()

    def _handle_token(self, token: bytes) -> None:
        """Handle a brace, a bracket or a comma."""
        if token in b"{[":
            if len(self._frames) == MAX_DEPTH:
                raise _bad_response("is nested too deeply")
            self._frames.append(_Frame(is_object=token == b"{", expects_key=token == b"{"))
        elif not self._frames:
            raise _bad_response("is not JSON")
        elif token == b",":
            self._frames[-1].expects_key = self._frames[-1].is_object
        elif self._frames.pop().is_object != (token == b"}"):
            raise _bad_response("is not JSON")

    def _open_string(self) -> None:
        if not self._frames:
            raise _bad_response("is not a JSON object or list")
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
        """State: inside a string that is kept."""
        end = self._string_end(chunk, at)
        self._keep(chunk[at:end])
        if self._state == self._structure and self._key_at is not None:
            frame = self._frames[-1]
            frame.key = _unescape(bytes(self._kept[self._key_at + 1 : -1])).decode()
            frame.expects_key = False
        return end

    def _skip(self, chunk: bytes, at: int) -> int:
        """State: inside a picture that is dropped."""
        return self._string_end(chunk, at)

    def _string_end(self, chunk: bytes, at: int) -> int:
        """The end of the string in this chunk, after its closing quote."""
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
        """State: at the start of a string at a wanted path, which is a picture or a URL."""
        before = len(self._head)
        self._head += chunk[at : at + _HEAD_BYTES - before]
        body = _STRING_BODY.match(self._head)
        end = body.end() if body else 0
        if self._head[end : end + 1] == b'"':
            self._head = self._head[:end]
            self._start_wanted(ended=True)
            return at + end + 1 - before
        if len(self._head) == _HEAD_BYTES:
            self._start_wanted(ended=False)
        return at + len(self._head) - before

    def _start_wanted(self, *, ended: bool) -> None:
        text, _ = _unescape_complete(self._head)
        if text.startswith(b"data:"):
            self._start_picture(self._base64_of_data_url(), ended=ended)
        elif not text or b":" in text[:_SCHEME_CHARS]:
            self._key_at = None
            self._keep(b'"' + self._head + (b'"' if ended else b""))
            body = _STRING_BODY.match(self._head)
            self._escaped = body is not None and body.end() < len(self._head)
            self._state = self._structure if ended else self._string
        else:
            self._start_picture(self._head, ended=ended)

    def _base64_of_data_url(self) -> bytes:
        media_type, comma, data = self._head.partition(b",")
        if not comma or not _unescape_complete(media_type)[0].endswith(b";base64"):
            raise _bad_response("has a data: URL that is not base64")
        return data

    def _next_sink(self) -> Sink | None:
        """The sink of the picture that starts now; None if it is dropped."""
        if self._last is None:
            sink, self._sink = self._sink, None
            return sink
        if self._mark_at is not None:
            mark = slice(self._mark_at, self._mark_at + len(_MARKS[PICTURE]))
            self._kept[mark] = _MARKS[DROPPED]
        self._mark_at = len(self._kept)
        self._last.restart()
        return self._last

    def _start_picture(self, data: bytes, *, ended: bool) -> None:
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
        # An escaped quote is not the end, but it is not base64 either, so it fails.
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


class PictureLine(msgspec.Struct, frozen=True):
    """One line: its JSON with ``PICTURE`` for its last picture, and that picture.

    The picture is there until the next line is read. If the line could not be read, ``problem``
    says why, and the body is None.
    """

    body: Any
    picture: LastPicture
    problem: LimnerError | None = None


async def picture_lines(
    chunks: AsyncIterator[bytes], *, wanted: Collection[str], max_json_bytes: int = MAX_JSON_BYTES
) -> AsyncGenerator[PictureLine]:
    """Parse JSON Lines; ``wanted`` has the paths of the pictures in a line, as for JSON.

    A line that is not valid does not hide the lines after it.
    """
    with closing(LastPicture()) as picture:
        line = _Line(picture, wanted, max_json_bytes)
        async for chunk in chunks:
            # A JSON string has no line end in it, so that every one ends a line.
            *ended, rest = chunk.split(b"\n")
            for piece in ended:
                line.feed(piece)
                if (read := line.finish()) is not None:
                    yield read
                line = _Line(picture, wanted, max_json_bytes)
            line.feed(rest)
        if (read := line.finish()) is not None:
            yield read


class _Line:
    """One line, as far as it has arrived."""

    def __init__(self, picture: LastPicture, wanted: Collection[str], max_json_bytes: int) -> None:
        self._picture = picture
        self._reader = PictureReader(wanted=wanted, sink=None, max_json_bytes=max_json_bytes)
        self._reader.keep_last(picture)
        picture.restart()
        self._problem: LimnerError | None = None
        self._is_blank = True

    def feed(self, piece: bytes) -> None:
        if self._problem is not None or not piece:
            return
        self._is_blank = self._is_blank and piece.isspace()
        try:
            self._reader.feed(piece)
        except LimnerError as error:
            self._problem = error

    def finish(self) -> PictureLine | None:
        if self._is_blank:
            return None
        if self._problem is None:
            try:
                return PictureLine(self._reader.finish(), self._picture)
            except LimnerError as error:
                self._problem = error
        return PictureLine(None, self._picture, self._problem)


MAX_PICTURE_BYTES = 64 * 1024 * 1024


class PictureEvent(msgspec.Struct, frozen=True):
    """One event: its name, its JSON with ``PICTURE`` for the picture, and that picture."""

    name: str
    body: Any
    picture: memoryview


async def picture_events(
    chunks: AsyncIterator[bytes], *, wanted: Collection[str]
) -> AsyncGenerator[PictureEvent]:
    """Parse a stream of events; ``wanted`` has the paths of their pictures, as for JSON.

    Raises:
        ProviderUnavailable: an event is incomplete.
        BadProviderImage: an event's data is not JSON, or its base64 is not valid.
        ImageTooLarge: a picture has too many bytes.
    """
    parser = EventParser(lambda: _PictureData(wanted))
    async for chunk in chunks:
        for name, (body, picture) in parser.feed(chunk):
            yield PictureEvent(name, body, picture)


class _PictureData:
    """The data of one event."""

    def __init__(self, wanted: Collection[str]) -> None:
        self._picture = _MemorySink()
        self._reader = PictureReader(wanted=wanted, sink=self._picture)

    def feed(self, piece: bytes) -> None:
        self._reader.feed(piece)

    def finish(self) -> tuple[Any, memoryview]:
        return self._reader.finish(), memoryview(self._picture.data)


class _MemorySink:
    """A sink in memory."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes | memoryview) -> None:
        self.data += data
        if len(self.data) > MAX_PICTURE_BYTES:
            raise ImageTooLarge(f"A picture has more than {MAX_PICTURE_BYTES:,} bytes.")
