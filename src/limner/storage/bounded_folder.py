"""A folder of files that can be made again -> the same folder within a size.

The files that were used last stay. The time of a file is that of its last use.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

# A refused deletion must not make the folder grow: this much is freed at a time.
_KEPT_PART = 0.8


class BoundedFolder:
    """Deletes the least recently used files of a folder. Making this value touches nothing.

    A file that was used within the last ``in_use_s`` seconds stays, even if the folder is too
    large: a process or a client may be about to open it.
    """

    def __init__(self, folder: Path, *, max_bytes: int, in_use_s: float = 0) -> None:
        self._folder, self._max_bytes, self._in_use_s = folder, max_bytes, in_use_s
        self._lock = threading.Lock()
        self._held_bytes: int | None = None

    def count(self, size_bytes: int) -> None:
        """Count a new file, and delete old ones if the folder is too large now."""
        with self._lock:
            if self._held_bytes is None:
                self._held_bytes = sum(size for size, _, _ in self._files())
            else:
                self._held_bytes += size_bytes
            if self._held_bytes > self._max_bytes:
                self._held_bytes = self._drop_oldest()

    def _drop_oldest(self) -> int:
        """Delete the oldest files; returns how many bytes are left."""
        files = sorted(self._files(), key=lambda one: one[1])
        held = sum(size for size, _, _ in files)
        in_use_since_s = time.time() - self._in_use_s
        for size, used_at_s, file in files:
            if held <= self._max_bytes * _KEPT_PART or (
                self._in_use_s and used_at_s > in_use_since_s
            ):
                break
            with suppress(OSError):
                file.unlink()
                held -= size
        return held

    def _files(self) -> list[tuple[int, float, Path]]:
        found: list[tuple[int, float, Path]] = []
        for folder, _, names in os.walk(self._folder):
            for name in names:
                file = Path(folder, name)
                with suppress(OSError):
                    about = file.stat()
                    found.append((about.st_size, about.st_mtime, file))
        return found
