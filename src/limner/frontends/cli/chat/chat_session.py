"""Words and pictures of a person -> turns that are watched, steered and interrupted."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path

from limner.agent.events import Event
from limner.client import Limner
from limner.errors import Cancelled, LimnerError
from limner.frontends.cli.chat.attachments import is_alone, named_picture, pictures_in
from limner.frontends.cli.chat.chat_agent import ChatAgent, ChatOptions
from limner.frontends.cli.chat.input_history import InputHistory
from limner.frontends.cli.chat.interrupts import interrupts
from limner.frontends.cli.chat.keyboard import Keyboard
from limner.frontends.cli.chat.screen import Screen
from limner.frontends.cli.rendering import clipped
from limner.frontends.cli.stderr import is_live, size, write
from limner.models.registry import OFFLINE, KnownModel
from limner.tools.file_lookup import find_file

OFFLINE_NOTE = (
    f"This is {OFFLINE}: rules that draw and look, and no language model.\n"
    "Set OPENAI_API_KEY, or another key, to talk with one."
)


class Leave(Exception):
    """The person leaves; the status is that of the program."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status


class ChatSession:
    """A person at a terminal, and who they talk with.

    Args:
        lim: whose pictures, ledger and settings are used.
        wishes: what the command line asks for.
    """

    def __init__(self, lim: Limner, wishes: ChatOptions) -> None:
        self.lim = lim
        self.screen = Screen(lim, speak=write, shows_pictures=is_live())
        self.keyboard = Keyboard(self.screen, InputHistory(lim.home.chat_history))
        self.partner = ChatAgent(lim, wishes, ask=self.keyboard.ask)
        self.queue: deque[str] = deque()
        self._attached: list[Path] = []
        self._steering: set[asyncio.Task[None]] = set()

    async def attach(self, name: str) -> None:
        """Take in a picture for the next message.

        Raises:
            LimnerError: it is no picture, or out of reach.
        """
        context = self.lim.person()
        path = named_picture(name, context) or find_file(name, context)
        taken = await self.lim.take(path)
        if path not in self._attached:
            self._attached.append(path)
        self.screen.line(f"Attached: {path} ({taken.width}x{taken.height})", dim=True)

    async def hear(self, words: str) -> None:
        """Take a turn about what a person said; paths alone are pictures for the next one.

        Raises:
            LimnerError: the turn could not begin.
            Left: the person pressed Ctrl-C twice.
        """
        context = self.lim.person()
        for path in pictures_in(words, context):
            try:
                await self.attach(str(path))
            except LimnerError as error:
                self.screen.line(f"Not attached: {path}: {error.message}")
        if is_alone(words, context):
            self.screen.line("Now say what about it.", dim=True)
            return
        images, self._attached = self._attached, []
        try:
            await self.watch(lambda: self.partner.agent.run(words, images=images))
        except LimnerError:
            self._attached = images
            raise

    async def watch(self, start: Callable[[], AsyncGenerator[Event]]) -> None:
        """Watch a turn to its end; Ctrl-C ends it, and twice ends the program.

        Raises:
            LimnerError: the turn could not begin.
            Left: the person pressed Ctrl-C twice.
        """
        has_begun, presses = False, 0

        async def follow() -> None:
            nonlocal has_begun
            listening = self.keyboard.listening(self._typed, hung_up=self._stop)
            async with self.screen.watched(), listening, aclosing(start()) as events:
                async for event in events:
                    has_begun = True
                    await self.screen.show(event)

        turn = asyncio.ensure_future(follow())

        def interrupt(pressed: int) -> None:
            nonlocal presses
            presses = pressed
            self.keyboard.drop()
            if pressed == 1 and has_begun:
                self._stop()
                self.screen.line("Stopping. Ctrl-C again leaves.", dim=True)
            else:
                turn.cancel()

        with interrupts(interrupt):
            try:
                await turn
            except asyncio.CancelledError:
                if presses > 1:
                    raise Leave(Cancelled.exit_status) from None
                self.screen.line("Interrupted.")
            finally:
                await self._settle_steering()

    def greet(self, model: KnownModel) -> None:
        """Say who is talked with."""
        self.screen.line(f"{model.name}. /help lists the commands.", dim=True)
        if model.name == OFFLINE:
            self.screen.line(OFFLINE_NOTE, dim=True)

    async def recall(self) -> None:
        """Say which session is gone on with, and where it was."""
        about = await self.partner.about()
        if about is None:
            return
        told = f"Session {about.id}: {about.name or about.preview or 'nothing said yet'}"
        self.screen.line(clipped(told, max(size().columns - 1, 12)), dim=True)

    def _stop(self) -> None:
        self.partner.agent.interrupt()

    def _typed(self, line: str) -> None:
        """A line in the middle of a turn steers it; a command waits for its end."""
        if line.lstrip().startswith("/") and not pictures_in(line, self.lim.person()):
            self.queue.append(line)
            self.screen.line("That waits for the end of this turn.", dim=True)
            return
        task = asyncio.ensure_future(self._steer(line))
        self._steering.add(task)

    async def _steer(self, words: str) -> None:
        images = pictures_in(words, self.lim.person())
        try:
            await self.partner.agent.steer(words, images=images)
        except LimnerError as error:
            if error.code not in ("NO_TURN", "TURN_IS_OVER"):
                self.screen.fail(error)
                return
            self.queue.append(words)  # it came too late, and is the next message

    async def _settle_steering(self) -> None:
        if self._steering:
            await asyncio.wait(self._steering)
            self._steering.clear()
