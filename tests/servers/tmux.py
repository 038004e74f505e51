"""A real terminal, tmux: keys in, the screen out."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from tests.servers.components import skipped_without

GUARD_S = 60.0


def needs_tmux() -> pytest.MarkDecorator:
    """Skips a test if tmux is missing."""
    return skipped_without([] if shutil.which("tmux") else ["tmux"])


class Tmux:
    """A shell in a terminal of its own, in which `limner` is the program.

    What the screen is sent also goes into a pipe, so that waiting for words needs no clock.
    """

    def __init__(
        self, folder: Path, *, env: Mapping[str, str], columns: int = 100, rows: int = 40
    ) -> None:
        self._folder, self._size = folder, (columns, rows)
        path = os.pathsep.join((str(Path(sys.executable).parent), os.defpath))
        self._env = {"PATH": path, "LC_ALL": "C.UTF-8", **env}
        self._sent, self._seen = b"", 0

    def __enter__(self) -> Self:
        columns, rows = self._size
        size = ["-x", str(columns), "-y", str(rows)]
        self._tmux("-f", os.devnull, "new-session", "-d", *size, "-c", str(self._folder), "sh")
        pipe = self._folder / "screen.pipe"
        os.mkfifo(pipe)
        self._pipe = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self._tmux("pipe-pane", f"exec cat > '{pipe}'")
        # Written so that what is typed does not already look like the prompt.
        self.type("PS1='$'' '; clear")
        self.see("$ ")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._tmux("kill-server")
        os.close(self._pipe)

    def type(self, words: str) -> None:
        """Type words and press Enter."""
        self._tmux("send-keys", "-l", words)
        self.press("Enter")

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names for them: ``C-d``, ``Up``."""
        self._tmux("send-keys", *keys)

    def see(self, text: str) -> None:
        """Wait until the screen has been sent a text since the last one."""
        sought = text.encode()
        while (at := self._sent.find(sought, self._seen)) < 0:
            ready, _, _ = select.select([self._pipe], [], [], GUARD_S)
            assert ready, f"{text!r} did not appear on the screen:\n{self.screen()}"
            self._sent += os.read(self._pipe, 65536)
        self._seen = at + len(sought)

    def screen(self, *, styled: bool = False) -> str:
        """What can be seen now, with the colours where ``styled``."""
        return self._tmux("capture-pane", "-p", *(["-e"] if styled else [])).rstrip("\n")

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(self._folder / "tmux.socket"), *words],
            capture_output=True,
            text=True,
            check=True,
            timeout=GUARD_S,
            env=self._env,
        )
        return done.stdout
