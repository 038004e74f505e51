"""What happens in a turn -> the terminal: words as they come, a line for each call, pictures."""

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
from limner.dollars import format_usd
from limner.errors import LimnerError
from limner.frontends.cli.chat.tool_lines import collapsed, expanded, title
from limner.frontends.cli.output import failure
from limner.frontends.cli.preview import show
from limner.frontends.cli.rendering import clipped
from limner.frontends.cli.stderr import CLEAR_LINE, harmless, is_live, size, write
from limner.frontends.cli.terminal import SPINNER, TICK_S
from limner.wires.base import Usage

THINKING = "Thinking"
_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"


class Screen:
    """Where a turn is watched. Everything that models, tools and files say is made harmless.

    Args:
        lim: who has the pictures.
        speak: gets the model's words as they come, ready to be printed; None keeps them back.
        shows_pictures: whether the pictures of tools are shown.
    """

    def __init__(
        self, lim: Limner, *, speak: Callable[[str], None] | None, shows_pictures: bool
    ) -> None:
        self._lim, self._speak, self._shows_pictures = lim, speak, shows_pictures
        self._is_free = asyncio.Event()
        self._is_free.set()
        self.is_verbose = False
        self.calls: list[ToolFinished] = []
        self._running: dict[str, str] = {}
        self._news: str | None = None
        self._news_began = 0.0
        self._has_spinner = self._is_mid_line = self._is_drawing = False
        self._speaking = ""
        self._used: Usage | None = None

    async def show(self, event: Event) -> None:
        """Show one event, once nobody else has the terminal."""
        await self._is_free.wait()
        match event:
            case TurnStarted():
                self._begin()
            case TextDelta():
                self._hear(event)
            case ToolStarted() | ToolProgress() | ToolFinished():
                await self._follow(event)
            case UsageUpdated():
                self._used = event.total
            case Retrying() | Compacting() | Compacted():
                self._note(event)
            case TurnEnded():
                self._end(event)
            case InputAdded() | ItemAdded():
                pass  # the person typed it, or the pieces of it were shown
            case _:
                assert_never(event)

    def line(self, text: str, *, dim: bool = False) -> None:
        """Say something on lines of its own."""
        self._clear()
        clean = harmless(text)
        write(f"{_DIM}{clean}{_PLAIN}\n" if dim and is_live() else f"{clean}\n")

    def lines(self, texts: Iterable[str], *, dim: bool = False) -> None:
        """Say several things, each on a line of its own."""
        for text in texts:
            self.line(text, dim=dim)

    def fail(self, error: LimnerError) -> None:
        """Say what went wrong, and what to do about it."""
        self.lines(failure(error).notes)

    async def freed(self) -> None:
        """Wait until nobody has the terminal."""
        await self._is_free.wait()

    def give(self) -> None:
        """Leave the terminal to a person who types, from the beginning of a line on."""
        self._clear()
        self._is_free.clear()

    def take_back(self) -> None:
        """Go on with what has happened meanwhile."""
        self._is_free.set()

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[None]:
        """Show what is being waited for, on a line that is replaced again and again."""
        ticking = asyncio.create_task(self._tick()) if is_live() else None
        try:
            yield
        finally:
            if ticking is not None:
                ticking.cancel()
            self._news = None
            self._clear()

    def _begin(self) -> None:
        self.calls, self._running, self._used, self._speaking = [], {}, None, ""
        self._wait_for(THINKING)

    def _hear(self, piece: TextDelta) -> None:
        is_new, self._speaking = piece.item_id != self._speaking, piece.item_id
        self._news = None
        if self._speak is None:
            return
        if is_new or self._has_spinner:
            self._clear()
        text = harmless(piece.text.replace("\r", ""))
        self._speak(text)
        if text:
            self._is_mid_line = not text.endswith("\n")

    async def _follow(self, event: ToolStarted | ToolProgress | ToolFinished) -> None:
        call = event.call
        if isinstance(event, ToolFinished):
            self._running.pop(call.call_id, None)
            self._wait_for(next(iter(self._running.values()), THINKING))
            await self._finished(event)
            return
        news = title(call)
        if isinstance(event, ToolProgress):
            news = " ".join(event.progress.message.split())
        self._running[call.call_id] = news
        self._wait_for(news if len(self._running) == 1 else f"{len(self._running)} calls: {news}")

    async def _finished(self, done: ToolFinished) -> None:
        self.calls.append(done)
        self.lines((expanded if self.is_verbose else collapsed)(done, columns=size().columns - 1))
        if not self._shows_pictures:
            return
        for part in done.result.content:
            if isinstance(part, Picture):
                await self.show_picture(part)

    async def show_picture(self, picture: Picture) -> None:
        """Show a stored picture; one that cannot be shown is no reason to stop."""
        self._clear()
        self._is_drawing = True
        try:
            await show(picture, self._lim)
        except LimnerError as error:
            self.fail(error)
        finally:
            self._is_drawing = False

    def _note(self, event: Retrying | Compacting | Compacted) -> None:
        match event:
            case Retrying():
                self.line(f"Once more: {event.error.message}", dim=True)
            case Compacting():
                self._wait_for("Summing up the conversation")
            case Compacted():
                count = len(event.dropped)
                left = f"; {count} {'picture is' if count == 1 else 'pictures are'} named in it"
                self.line(f"The conversation was summed up{left if count else ''}.", dim=True)
                self._wait_for(THINKING)

    def _end(self, ended: TurnEnded) -> None:
        self._news = None
        if ended.text and not self._speaking and self._speak is not None:
            self._speak(harmless(ended.text.replace("\r", "")))
            self._is_mid_line = True
        self._clear()
        if ended.is_cut:
            self.line("The answer ends here because it may not be longer.", dim=True)
        if ended.error is not None:
            self.fail(ended.error)
        elif ended.status == "interrupted":
            self.line("Interrupted.")
        self.line(self._summary(ended), dim=True)

    def _summary(self, ended: TurnEnded) -> str:
        facts = [format_usd(ended.cost_nano), f"session {format_usd(ended.spent_nano)}"]
        used = self._used
        if used is not None and (used.input_tokens or used.output_tokens):
            facts.append(f"{used.input_tokens:,} tokens in, {used.output_tokens:,} out")
        return " · ".join(facts)

    def _wait_for(self, news: str) -> None:
        if self._news is None:
            self._news_began = time.monotonic()
        self._news = news

    def _clear(self) -> None:
        """Go to the beginning of an empty line."""
        if self._has_spinner:
            write(CLEAR_LINE)
            self._has_spinner = False
        if self._is_mid_line and self._speak is not None:
            self._speak("\n")
            self._is_mid_line = False

    async def _tick(self) -> None:
        turn = 0
        while True:
            if self._news is not None and self._is_free.is_set() and not self._is_drawing:
                self._clear()
                waited = f" {time.monotonic() - self._news_began:.0f} s"
                # A line that wraps could not be cleared again.
                news = clipped(self._news, max(size().columns - len(waited) - 3, 1))
                write(f"{CLEAR_LINE}{SPINNER[turn % len(SPINNER)]} {news}{waited}")
                self._has_spinner = True
            turn += 1
            await asyncio.sleep(TICK_S)
