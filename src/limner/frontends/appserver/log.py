"""Lines for whoever runs the server -> standard error, without ever waiting for them."""

from __future__ import annotations

import contextlib
import os
import threading
from queue import SimpleQueue

from limner.frontends.cli.stderr import harmless
from limner.net.redaction import redact

STDERR = 2
MAX_WAITING = 1_000
MAX_LINE_CHARS = 8_000
LAST_WORDS_S = 0.5


class Log:
    """Writes what it is called with, secrets hidden, from a thread of its own.

    A client that starts the server with a pipe for standard error and does not read it would
    otherwise stop everything with the first few hundred lines. What finds no room is counted.
    """

    def __init__(self, fd: int = STDERR) -> None:
        self._fd = fd
        self._waiting: SimpleQueue[str | None] = SimpleQueue()
        self._lost = 0
        self._thread: threading.Thread | None = None

    def __call__(self, text: str) -> None:
        """Say one thing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="log", daemon=True)
            self._thread.start()
        if self._waiting.qsize() >= MAX_WAITING:
            self._lost += 1
            return
        if self._lost:
            self._waiting.put(f"limner: {self._lost:,} lines of this log are lost\n")
            self._lost = 0
        self._waiting.put(f"limner: {harmless(redact(text[:MAX_LINE_CHARS]))}\n")

    def close(self) -> None:
        """Give what is waiting a moment to be read."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(LAST_WORDS_S)

    def _write(self) -> None:
        while (line := self._waiting.get()) is not None:
            # Nobody reading the log is no reason to fail.
            with contextlib.suppress(OSError):
                os.write(self._fd, line.encode("utf-8", "backslashreplace"))
