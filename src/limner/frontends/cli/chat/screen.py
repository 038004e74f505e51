"""The events of a turn -> the terminal: text as it comes, a line for each call, pictures."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import assert_never

from limner.agent.events import (
    Compacted,
    Compacting,
    Event,
    InputAdded,
    ItemAdded,
    Retrying,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UsageUpdated,
)
from limner.client import Limner
from limner.content import Picture
from limner.display_text import clean_text
from limner.dollars import format_usd
from limner.errors import LimnerError
from limner.frontends.cli.chat.tool_lines import collapsed, expanded, title
from limner.frontends.cli.output import failure
from limner.frontends.cli.preview import show
from limner.frontends.cli.stderr import CLEAR_LINE, is_live, size, wrapped, write
from limner.frontends.cli.terminal import SPINNER, TICK_S
from limner.frontends.cli.terminal_text import WordWrap, clipped
from limner.wires.base import Usage

THINKING = "Thinking"
_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"


class Screen:
    """Shows a turn. Control characters of models, tools and files are escaped.

    Args:
        lim: has the pictures.
        write_text: prints the model's text as it comes; None shows no text.
        shows_pictures: whether the pictures of tools are shown.
    """

    def __init__(
        self, lim: Limner, *, write_text: Callable[[str], None] | None, shows_pictures: bool
    ) -> None:
        self._lim, self._write_text, self._shows_pictures = lim, write_text, shows_pictures
        self._wrap = WordWrap(lambda: size().columns)
        self._is_free = asyncio.Event()
        self._is_free.set()
        self.is_verbose = False
        self.calls: list[ToolFinished] = []
        self._running: dict[str, str] = {}
        self._status: str | None = None
        self._status_began = 0.0
        self._has_spinner = self._is_mid_line = self._is_drawing = False
        self._message_id = ""
        self._usage: Usage | None = None

    async def show(self, event: Event) -> None:
        """Show one event, as soon as the user is not typing."""
        await self._is_free.wait()
        match event:
            case TurnStarted():
                self._start_turn()
            case TextDelta():
                self._show_text(event)
            case ToolStarted() | ToolProgress() | ToolFinished():
                await self._show_tool(event)
            case UsageUpdated():
                self._usage = event.total
            case Retrying() | Compacting() | Compacted():
                self._show_note(event)
            case TurnEnded():
                self._end_turn(event)
            case InputAdded() | ItemAdded():
                pass  # the user typed it, or its text was shown
            case _:
                assert_never(event)

    def line(self, text: str, *, dim: bool = False) -> None:
        """Show a text on lines of its own."""
        self._clear()
        clean = wrapped(clean_text(text), size().columns) if is_live() else clean_text(text)
        write(f"{_DIM}{clean}{_PLAIN}\n" if dim and is_live() else f"{clean}\n")

    def lines(self, texts: Iterable[str], *, dim: bool = False) -> None:
        """Show several texts, each on a line of its own."""
        for text in texts:
            self.line(text, dim=dim)

    def fail(self, error: LimnerError) -> None:
        """Show an error and its hint."""
        self.lines(failure(error).notes)

    async def wait_free(self) -> None:
        """Wait until the user is not typing."""
        await self._is_free.wait()

    def pause(self) -> None:
        """Stop the output at the beginning of a line, so that the user can type."""
        self._clear()
        self._is_free.clear()

    def resume(self) -> None:
        """Go on with the output."""
        self._is_free.set()

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[None]:
        """Show the current status on one line that is redrawn."""
        ticking = asyncio.create_task(self._tick()) if is_live() else None
        try:
            yield
        finally:
            if ticking is not None:
                ticking.cancel()
            self._status = None
            self._clear()

    def _start_turn(self) -> None:
        self.calls, self._running, self._usage, self._message_id = [], {}, None, ""
        self._set_status(THINKING)

    def _show_text(self, delta: TextDelta) -> None:
        is_new, self._message_id = delta.item_id != self._message_id, delta.item_id
        self._status = None
        if self._write_text is None:
            return
        if is_new or self._has_spinner:
            self._clear()
        text = clean_text(delta.text.replace("\r", ""))
        self._write_text(self._wrap.feed(text))
        if text:
            self._is_mid_line = not text.endswith("\n")

    async def _show_tool(self, event: ToolStarted | ToolProgress | ToolFinished) -> None:
        call = event.call
        if isinstance(event, ToolFinished):
            self._running.pop(call.call_id, None)
            self._set_status(next(iter(self._running.values()), THINKING))
            await self._show_finished(event)
            return
        status = title(call)
        if isinstance(event, ToolProgress):
            status = " ".join(event.progress.message.split())
        self._running[call.call_id] = status
        count = len(self._running)
        self._set_status(status if count == 1 else f"{count} calls: {status}")

    async def _show_finished(self, done: ToolFinished) -> None:
        self.calls.append(done)
        self.lines((expanded if self.is_verbose else collapsed)(done, columns=size().columns - 1))
        if not self._shows_pictures:
            return
        for part in done.result.content:
            if isinstance(part, Picture):
                await self.show_picture(part)

    async def show_picture(self, picture: Picture) -> None:
        """Show a stored picture; if that fails, show the error and go on."""
        self._clear()
        self._is_drawing = True
        try:
            await show(picture, self._lim)
        except LimnerError as error:
            self.fail(error)
        finally:
            self._is_drawing = False

    def _show_note(self, event: Retrying | Compacting | Compacted) -> None:
        match event:
            case Retrying():
                self.line(f"Retrying: {event.error.message}", dim=True)
            case Compacting():
                self._set_status("Summarizing the conversation")
            case Compacted():
                count = len(event.dropped)
                named = f"; it names {count} {'picture' if count == 1 else 'pictures'}"
                self.line(f"The conversation was summarized{named if count else ''}.", dim=True)
                self._set_status(THINKING)

    def _end_turn(self, ended: TurnEnded) -> None:
        self._status = None
        if ended.text and not self._message_id and self._write_text is not None:
            self._write_text(self._wrap.feed(clean_text(ended.text.replace("\r", ""))))
            self._is_mid_line = True
        self._clear()
        if ended.is_cut:
            self.line("The answer ends here: it reached its maximum length.", dim=True)
        if ended.error is not None:
            self.fail(ended.error)
        elif ended.status == "interrupted":
            self.line("Interrupted.")
        self.line(self._summary(ended), dim=True)

    def _summary(self, ended: TurnEnded) -> str:
        facts = [format_usd(ended.cost_nano), f"session {format_usd(ended.spent_nano)}"]
        usage = self._usage
        if usage is not None and (usage.input_tokens or usage.output_tokens):
            facts.append(f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out")
        return " · ".join(facts)

    def _set_status(self, status: str) -> None:
        if self._status is None:
            self._status_began = time.monotonic()
        self._status = status

    def _clear(self) -> None:
        """Go to the beginning of an empty line."""
        if self._has_spinner:
            write(CLEAR_LINE)
            self._has_spinner = False
        if self._is_mid_line and self._write_text is not None:
            self._write_text(f"{self._wrap.end()}\n")
            self._is_mid_line = False

    async def _tick(self) -> None:
        turn = 0
        while True:
            if self._status is not None and self._is_free.is_set() and not self._is_drawing:
                self._clear()
                waited = f" {time.monotonic() - self._status_began:.0f} s"
                # A line that wraps could not be cleared again.
                status = clipped(self._status, max(size().columns - len(waited) - 3, 1))
                write(f"{CLEAR_LINE}{SPINNER[turn % len(SPINNER)]} {status}{waited}")
                self._has_spinner = True
            turn += 1
            await asyncio.sleep(TICK_S)
