"""The sink that net and providers write a picture's bytes to: the layers above implement it."""

from __future__ import annotations

from typing import Protocol


class Sink(Protocol):
    """Takes the untrusted bytes of a picture as they arrive; an error from it ends the transfer."""

    def write(self, data: bytes | memoryview) -> None:
        """Take the next bytes.

        Raises:
            ImageTooLarge: more bytes than a picture may have.
        """
        ...
