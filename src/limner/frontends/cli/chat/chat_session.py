"""Messages and pictures of a user -> turns that the user watches, steers and interrupts."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path

from limner.agent.events import Event
from limner.client import Limner
from limner.errors import Cancelled, LimnerError
from limner.frontends.cli.chat.attachments import find_picture, find_pictures, is_only_pictures
from limner.frontends.cli.chat.chat_agent import ChatAgent, ChatOptions
from limner.frontends.cli.chat.input_history import InputHistory
from limner.frontends.cli.chat.keyboard import Keyboard
from limner.frontends.cli.chat.screen import Screen
from limner.frontends.cli.interrupts import interrupts
from limner.frontends.cli.preview import can_show
from limner.frontends.cli.stderr import size, write
from limner.frontends.cli.terminal_text import clipped
from limner.models.registry import OFFLINE, KnownModel
from limner.tools.file_lookup import find_file

OFFLINE_NOTE = (
    f"This is {OFFLINE}: rules that draw and look, not a language model.\n"
    "Set OPENAI_API_KEY, or another key, to use one."
)


class Leave(Exception):
    """The user leaves the chat; ``status`` is the exit status."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status


class ChatSession:
    """A user at a terminal, and the agent that answers.

    Args:
        lim: has the pictures, the ledger and the settings.
        options: the options of the command line.
    """

    def __init__(self, lim: Limner, options: ChatOptions) -> None:
        self.lim = lim
        self.screen = Screen(lim, write_text=write, shows_pictures=can_show())
        self.keyboard = Keyboard(self.screen, InputHistory(lim.home.chat_history))
        self.agent = ChatAgent(lim, options, ask=self.keyboard.ask)
        self.queue: deque[str] = deque()
        self._attached: list[Path] = []
        self._steering: set[asyncio.Task[None]] = set()

    async def attach(self, name: str) -> None:
        """Attach a picture to the next message.

        Raises:
            LimnerError: it is not a picture, or out of reach.
        """
        context = self.lim.person()
        path = find_picture(name, context) or find_file(name, context)
        picture = await self.lim.take(path)
        if path not in self._attached:
            self._attached.append(path)
        self.screen.line(f"Attached: {path} ({picture.width}x{picture.height})", dim=True)

    async def send(self, message: str) -> None:
        """Run a turn for a message; paths alone are pictures for the next message.

        Raises:
            LimnerError: the turn could not start.
            Leave: the user pressed Ctrl-C twice.
        """
        context = self.lim.person()
        for path in find_pictures(message, context):
            try:
                await self.attach(str(path))
            except LimnerError as error:
                self.screen.line(f"Not attached: {path}: {error.message}")
        if is_only_pictures(message, context):
            self.screen.line("Now write a message about it.", dim=True)
            return
        images, self._attached = self._attached, []
        try:
            await self.watch(lambda: self.agent.current.run(message, images=images))
        except LimnerError:
            self._attached = images
            raise

    async def watch(self, start: Callable[[], AsyncGenerator[Event]]) -> None:
        """Show a turn to its end; Ctrl-C ends the turn, a second Ctrl-C the program.

        Raises:
            LimnerError: the turn could not start.
            Leave: the user pressed Ctrl-C twice.
        """
        has_started, presses = False, 0

        async def follow() -> None:
            nonlocal has_started
            listening = self.keyboard.listening(self._on_line, on_hangup=self._stop)
            async with self.screen.watched(), listening, aclosing(start()) as events:
                async for event in events:
                    has_started = True
                    await self.screen.show(event)

        turn = asyncio.ensure_future(follow())

        def interrupt(pressed: int) -> None:
            nonlocal presses
            presses = pressed
            self.keyboard.drop()
            if pressed == 1 and has_started:
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
                await self._wait_for_steering()

    def greet(self, model: KnownModel) -> None:
        """Show which model answers."""
        self.screen.line(f"{model.name}. /help lists the commands.", dim=True)
        if model.name == OFFLINE:
            self.screen.line(OFFLINE_NOTE, dim=True)

    async def show_session(self) -> None:
        """Show which session is continued."""
        about = await self.agent.about()
        if about is None:
            return
        title = f"Session {about.id}: {about.name or about.preview or 'no message yet'}"
        self.screen.line(clipped(title, max(size().columns - 1, 12)), dim=True)

    def _stop(self) -> None:
        self.agent.current.interrupt()

    def _on_line(self, line: str) -> None:
        """Steer the turn with a line; a command waits for the end of the turn."""
        if line.lstrip().startswith("/") and not find_pictures(line, self.lim.person()):
            self.queue.append(line)
            self.screen.line("The command will run after this turn.", dim=True)
            return
        task = asyncio.ensure_future(self._steer(line))
        self._steering.add(task)

    async def _steer(self, message: str) -> None:
        images = find_pictures(message, self.lim.person())
        try:
            await self.agent.current.steer(message, images=images)
        except LimnerError as error:
            if error.code not in ("NO_TURN", "TURN_IS_OVER"):
                self.screen.fail(error)
                return
            self.queue.append(message)  # too late for this turn: it is the next message

    async def _wait_for_steering(self) -> None:
        if self._steering:
            await asyncio.wait(self._steering)
            self._steering.clear()
