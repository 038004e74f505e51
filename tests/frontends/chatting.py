"""`limner chat` at a terminal, and a scripted model that it talks with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.acceptance.conftest import Studio
from tests.agent.talking import Talk, talk
from tests.frontends.cli_process import GUARD_S, CommandLine, Done, Terminal

PROMPT = "\x1b[?2004h> "
"""How the prompt appears: it also asks the terminal to mark what is pasted."""


class Chat:
    """A person in front of `limner chat`."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._seen = 0

    @property
    def sent(self) -> str:
        """Everything that was sent so far, but for half a character."""
        return self._terminal._sent.decode(errors="ignore").replace("\r\n", "\n")

    def see(self, text: str) -> str:
        """Wait for a text; what was sent up to its end since the last one."""
        while text not in self.sent[self._seen :]:
            more = self._terminal._receive()
            assert more, f"the program ended before it said {text!r}: {self.sent!r}"
        begin, self._seen = self._seen, self.sent.index(text, self._seen) + len(text)
        return self.sent[begin : self._seen]

    def prompted(self) -> str:
        """Wait for the prompt; everything before it."""
        return self.see(PROMPT).removesuffix(PROMPT)

    def press(self, keys: str) -> None:
        self._terminal.type(keys)

    def say(self, message: str) -> str:
        """Type a message at the prompt; what the terminal was sent until the next one."""
        self.press(f"{message}\r")
        return self.prompted()

    def interrupt(self) -> None:
        """Ctrl-C."""
        self._terminal.interrupt()

    def hang_up(self) -> int:
        """Take the terminal away; the status of the program."""
        os.close(self._terminal._fd)
        return self._terminal._process.wait(timeout=GUARD_S)

    def end(self) -> Done:
        return self._terminal.end()

    def leave(self) -> Done:
        """Ctrl-D."""
        self.press("\x04")
        return self.end()


def chat(cli: CommandLine, *words: str, **how: object) -> Chat:
    """Start it; the prompt is there."""
    return Chat(cli.in_terminal("chat", *words, piped=False, **how))  # pyright: ignore


@contextmanager
def with_model(folder: Path, name: str = "openai/gpt-5.4") -> Iterator[tuple[Talk, CommandLine]]:
    """A scripted model and a service that draws, and a command line that leads to both."""
    with talk(name, folder) as made:
        (folder / "studio").mkdir()
        studio = Studio(folder / "studio")
        studio.home, studio.cwd = made.home, made.cwd
        studio.env = {**made.env, "LIMNER_MODEL_ROLES_DEFAULT": name}
        yield made, CommandLine(studio)
