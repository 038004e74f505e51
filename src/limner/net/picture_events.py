"""A stream of events with pictures in their JSON -> each event parsed, its picture decoded.

Base64 is decoded as it arrives: of an event, what is held is its picture once and its few words.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection
from typing import Any

import msgspec

from limner.errors import ImageTooLarge
from limner.net.json_pictures import PictureReader
from limner.net.sse import EventCutter

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
