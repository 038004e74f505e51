"""What a user typed <-> a file that only they can read, one JSON text on each line."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from limner.errors import LimnerError
from limner.storage.files import write_new

KEPT = 1_000
# The file is rewritten only if it is much larger than what is kept, not at every start.
_MAX_BYTES = 1024 * 1024


class InputHistory:
    """The messages of earlier chats. If the file cannot be read or written, nothing fails."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> list[str]:
        """Load the last messages, oldest first; lines that cannot be decoded are left out."""
        try:
            data = self._path.read_bytes()
        except OSError:
            return []
        lines = data.splitlines()[-KEPT:]
        if len(data) > _MAX_BYTES:
            self._rewrite(lines)
        return [text for line in lines if (text := _decode(line))]

    def add(self, message: str) -> None:
        """Append a message."""
        line = json.dumps(message).encode() + b"\n"
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, line)
            finally:
                os.close(file)

    def _rewrite(self, lines: list[bytes]) -> None:
        kept = b"".join(line + b"\n" for line in lines)[-_MAX_BYTES:]
        with suppress(LimnerError, OSError):
            write_new(self._path.resolve(), kept, overwrite=True, mode=0o600)


def _decode(line: bytes) -> str:
    try:
        text = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    return text if isinstance(text, str) else ""
