"""Where bytes from the network are poured: the one thing net asks of the layers above."""

from __future__ import annotations

from typing import Protocol


class Sink(Protocol):
    """Takes bytes as they arrive; what it raises (too many of them) ends the transfer."""

    def write(self, data: bytes | memoryview) -> None:
        """Take the next bytes."""
        ...
