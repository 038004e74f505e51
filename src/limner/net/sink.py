"""Bytes from the network -> a sink, which a higher layer provides."""

from __future__ import annotations

from typing import Protocol


class Sink(Protocol):
    """Takes the untrusted bytes of one picture as they arrive; its error ends the transfer."""

    def write(self, data: bytes | memoryview) -> None:
        """Take the next bytes.

        Raises:
            ImageTooLarge: more bytes than a picture may have.
        """
        ...
