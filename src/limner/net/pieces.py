"""The body of a large request -> pieces that go out one by one.

An event loop that is handed megabytes at once copies what is left of them each time the network
has taken a little: a conversation with pictures went out at a quarter of the speed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2

PIECE_BYTES = 256 * 1024


class Pieces(httpx2.AsyncByteStream):
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
