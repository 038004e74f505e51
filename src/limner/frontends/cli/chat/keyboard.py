"""A user's keys -> messages at the prompt, and lines and answers while a turn runs.

While a turn runs, the terminal sends each key at once and echoes none. The typed text has a line
of its own, and the output of the turn waits until that line is done.
"""

from __future__ import annotations

import asyncio
import codecs
import functools
import os
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import wcwidth

from limner.display_text import clean_text
from limner.frontends.cli import terminal
from limner.frontends.cli.chat.input_history import InputHistory
from limner.frontends.cli.chat.line_editor import LineEditor
from limner.frontends.cli.chat.screen import Screen
from limner.frontends.cli.interrupts import interruptible_prompt
from limner.frontends.cli.stderr import CLEAR_LINE, size, write
from limner.tools.base import Question

try:
    import readline
    import termios
except ImportError:  # Windows: a plain prompt, and no input while a turn runs
    readline = termios = None

PROMPT, CONTINUED = "> ", "  "
STEERING, ANSWER = "» ", "[y/N] "
_PASTING, _NOT_PASTING = "\x1b[?2004h", "\x1b[?2004l"
_READ_BYTES = 4096


class Keyboard:
    """Reads what a user types, at the prompt and during a turn.

    Args:
        screen: pauses its output while the user types.
        history: the messages of earlier chats.
    """

    def __init__(self, screen: Screen, history: InputHistory) -> None:
        self._screen, self._history = screen, history
        self._draft = LineEditor()
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        self._on_line: Callable[[str], None] | None = None
        self._on_hangup: Callable[[], None] = lambda: None
        self._asking = asyncio.Lock()
        self._reply: asyncio.Future[str] | None = None
        self._is_typing = False
        if (reconfigure := getattr(sys.stdin, "reconfigure", None)) is not None:
            # Half a character must not end the chat.
            reconfigure(errors="replace")
        if readline is not None:
            # Python turns it off for its own prompt; libedit ignores the setting.
            readline.parse_and_bind("set enable-bracketed-paste on")
            readline.set_auto_history(False)
            for message in history.load():
                readline.add_history(message)

    def prompt(self) -> str:
        """Wait for a message; a line that ends in a backslash continues on the next.

        Raises:
            EOFError: Ctrl-D, or the terminal is gone.
            KeyboardInterrupt: Ctrl-C.
        """
        lines = [_edit_line(PROMPT, draft=self._draft.take())]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(_edit_line(CONTINUED))
        message = "\n".join(lines)
        if message.strip():
            self._history.add(message)
            if readline is not None:
                readline.add_history(message)
        return message

    @asynccontextmanager
    async def listening(
        self, on_line: Callable[[str], None], *, on_hangup: Callable[[], None]
    ) -> AsyncGenerator[None]:
        """Pass on each line that the user types during a turn; an unfinished one is kept."""
        if termios is None:
            yield
            return
        loop, keys = asyncio.get_running_loop(), sys.stdin.fileno()
        self._on_line, self._on_hangup = on_line, on_hangup
        with _unbuffered(keys):
            loop.add_reader(keys, self._read)
            try:
                yield
            finally:
                loop.remove_reader(keys)
                self._on_line = None
                self._stop_typing()

    async def ask(self, question: Question) -> bool:
        """Ask the user one question at a time; any answer but yes is no."""
        if self._on_line is None:
            return await terminal.ask(question)
        async with self._asking:
            # What the user is typing now is not meant as an answer.
            await self._screen.wait_free()
            self._screen.pause()
            write(f"{question.text}\n{ANSWER}")
            self._reply = asyncio.get_running_loop().create_future()
            is_answered = False
            try:
                reply = await self._reply
                is_answered = True
            finally:
                self._reply = None
                self._draft.take()
                if not is_answered:
                    write("\n")
                self._screen.resume()
        return reply.strip().lower() in {"y", "yes"}

    def drop(self) -> None:
        """Discard what the user is typing."""
        self._draft.take()
        if self._reply is None:
            self._stop_typing()

    def _read(self) -> None:
        try:
            data = os.read(sys.stdin.fileno(), _READ_BYTES)
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            self._on_hangup()
            return
        for line in self._draft.feed(self._decoder.decode(data)):
            self._enter(line)
        self._redraw()

    def _enter(self, line: str) -> None:
        if self._reply is not None:
            write(f"{CLEAR_LINE}{ANSWER}{_one_line(line)}\n")
            if not self._reply.done():
                self._reply.set_result(line)
        elif line.strip() and self._on_line is not None:
            self._start_typing()
            write(f"{CLEAR_LINE}{STEERING}{_one_line(line)}\n")
            self._stop_typing(is_clear=True)
            self._on_line(line)

    def _redraw(self) -> None:
        text = self._draft.text
        if self._reply is not None:
            if not self._reply.done():
                write(f"{CLEAR_LINE}{ANSWER}{_tail(text, len(ANSWER))}")
        elif text:
            self._start_typing()
            write(f"{CLEAR_LINE}{STEERING}{_tail(text, len(STEERING))}")
        else:
            self._stop_typing()

    def _start_typing(self) -> None:
        if not self._is_typing:
            self._screen.pause()
            self._is_typing = True

    def _stop_typing(self, *, is_clear: bool = False) -> None:
        if self._is_typing:
            if not is_clear:
                write(CLEAR_LINE)
            self._is_typing = False
            self._screen.resume()


@contextmanager
def _unbuffered(keys: int) -> Generator[None]:
    """Make the terminal send each key at once and not show it; Ctrl-C still interrupts."""
    assert termios is not None
    try:
        before = termios.tcgetattr(keys)
    except termios.error:  # the terminal is gone: the next read says so
        yield
        return
    mode: list[Any] = [*before[:6], [*before[6]]]
    mode[0] &= ~termios.ICRNL
    mode[3] &= ~(termios.ECHO | termios.ICANON)
    mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
    # Not TCSAFLUSH: what the user typed ahead is kept.
    termios.tcsetattr(keys, termios.TCSADRAIN, mode)
    write(_PASTING)
    try:
        yield
    finally:
        write(_NOT_PASTING)
        with suppress(termios.error):
            termios.tcsetattr(keys, termios.TCSADRAIN, before)


def _edit_line(prompt: str, *, draft: str = "") -> str:
    """Let the user edit a line, of which they may have typed a part before."""
    if readline is None:
        return input(prompt)
    # Not a function in Python: a Ctrl-C that comes while one runs here is lost.
    readline.set_startup_hook(functools.partial(readline.insert_text, draft) if draft else None)
    with interruptible_prompt():
        return input(prompt)


def _one_line(text: str) -> str:
    return clean_text(text.replace("\n", "⏎").replace("\t", " "))


def _tail(text: str, used: int) -> str:
    """As much of the end of a text as fits on a line of which some cells are used."""
    shown = _one_line(text)
    room = max(size().columns - used - 1, 1)
    width = wcwidth.width(shown)
    return shown if width <= room else wcwidth.clip(shown, width - room, width)
