"""The body of a large request -> pieces that go out one by one.

An event loop that is handed megabytes at once copies what is left of them each time the network
has taken a little: a conversation with pictures went out at a quarter of the speed.
"""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Mapping, Sequence

import httpx2
import msgspec


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a form: under which name it is sent, what it is called and what it is."""

    field: str
    filename: str
    mime: str
    data: bytes


class MultipartForm(msgspec.Struct, frozen=True, kw_only=True):
    """What a form is filled in with; files of the same field come in this order.

    There is at least one file: a form without one would be sent in another encoding.
    """

    fields: Mapping[str, str | int | bool] = msgspec.field(
        default_factory=dict[str, str | int | bool]
    )
    uploads: Sequence[Upload]

    def files(self) -> list[tuple[str, tuple[str, io.BytesIO, str]]]:
        """The files as the HTTP client takes them.

        It reads them piece by piece while it sends, and what it reads from shares the bytes: no
        second copy of a picture comes into being.
        """
        return [(one.field, (one.filename, io.BytesIO(one.data), one.mime)) for one in self.uploads]


PIECE_BYTES = 256 * 1024


class ChunkedBody(httpx2.AsyncByteStream):
    """A body that is in memory, read a piece at a time."""

    def __init__(self, body: bytes) -> None:
        self._body = memoryview(body)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Reading(self._body)


class _Reading:
    # Not a generator: one that is given up half-way would have to be closed by its event loop.
    def __init__(self, body: memoryview) -> None:
        self._rest = body

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._rest:
            raise StopAsyncIteration
        piece, self._rest = self._rest[:PIECE_BYTES], self._rest[PIECE_BYTES:]
        return bytes(piece)
