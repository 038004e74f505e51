"""What a person typed <-> a file that only they can read, one JSON text on each line."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from limner.errors import LimnerError
from limner.storage.files import write_new

KEPT = 1_000
# Rewriting is for a file that has outgrown what is kept, not for every start.
_MOST_BYTES = 1024 * 1024


class InputHistory:
    """The messages of earlier conversations. Losing them is no reason to fail."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> list[str]:
        """The last messages, oldest first; what is not readable is left out."""
        try:
            data = self._path.read_bytes()
        except OSError:
            return []
        lines = data.splitlines()[-KEPT:]
        if len(data) > _MOST_BYTES:
            self._rewrite(lines)
        return [text for line in lines if (text := _decoded(line))]

    def add(self, message: str) -> None:
        """Keep one more message."""
        line = json.dumps(message).encode() + b"\n"
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, line)
            finally:
                os.close(file)

    def _rewrite(self, lines: list[bytes]) -> None:
        kept = b"".join(line + b"\n" for line in lines)[-_MOST_BYTES:]
        with suppress(LimnerError, OSError):
            write_new(self._path.resolve(), kept, overwrite=True, mode=0o600)


def _decoded(line: bytes) -> str:
    try:
        text = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    return text if isinstance(text, str) else ""
