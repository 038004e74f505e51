"""Pictures one after the other -> the last of them, held until it is known to be the last."""

from __future__ import annotations

from tempfile import SpooledTemporaryFile

from limner.errors import ImageTooLarge
from limner.net.sink import Sink

# The sink has its own, lower limit; this one keeps what is held before that from filling a disk.
MAX_BYTES = 256 * 1024 * 1024
_MEMORY_BYTES = 2 * 1024 * 1024
_PIECE_BYTES = 256 * 1024


class HeldPicture:
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
