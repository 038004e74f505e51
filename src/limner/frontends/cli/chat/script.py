"""One message of a script -> one turn: its words or its JSON on standard output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, nullcontext

import msgspec

from limner.agent.events import Event
from limner.client import Limner
from limner.errors import ApprovalDenied, Cancelled
from limner.frontends.cli import terminal
from limner.frontends.cli.chat.chat_agent import ChatAgent, ChatOptions
from limner.frontends.cli.chat.chat_session import OFFLINE_NOTE
from limner.frontends.cli.chat.event_json import TurnSummary, event_as_json
from limner.frontends.cli.chat.interrupts import interrupts
from limner.frontends.cli.chat.screen import Screen
from limner.frontends.cli.output import CommandResult, emit, speak
from limner.frontends.cli.preview import shows_pictures
from limner.frontends.cli.stderr import is_live, say
from limner.frontends.cli.terminal import wait_for
from limner.models.registry import OFFLINE
from limner.tools.base import Question

# What a script can say beforehand, where nobody is there to be asked.
MONEY_FLAGS = (
    "--budget USD sets money aside for the session; --approval never leaves the rest to it."
)
PATH_FLAGS = "--sandbox says what may be written; --approval on-request asks only outside of it."


class OutputForm(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn is told: as words, as one JSON object, or as a line of JSON for each event."""

    as_json: bool = False
    is_streamed: bool = False


def take_turn(
    wishes: ChatOptions, *, words: str, images: list[str], form: OutputForm
) -> CommandResult:
    """Say one thing and tell what came of it.

    Raises:
        LimnerError: the turn could not begin. What goes wrong in the turn is in the answer.
    """
    return wait_for(lambda: _take(wishes, words, images, form))


async def _take(
    wishes: ChatOptions, words: str, images: list[str], form: OutputForm
) -> CommandResult:
    async with Limner(cwd=wishes.cwd) as lim:
        asking = _Asking()
        partner = ChatAgent(lim, wishes, ask=asking.ask)
        model = await partner.begin()
        if model.name == OFFLINE and not form.as_json:
            say(OFFLINE_NOTE)
        screen = asking.screen = _screen(lim, form)
        summary = TurnSummary()
        events = partner.agent.run(words, images=images)
        with interrupts(_stopper(partner)):
            try:
                await _follow(events, summary, screen, form)
            except asyncio.CancelledError:
                hint = "limner spend shows what was spent."
                raise Cancelled("Interrupted.", hint=hint) from None
        return _told(summary, asking, form, session=partner.session_id, model=model.name)


async def _follow(
    events: AsyncGenerator[Event], summary: TurnSummary, screen: Screen | None, form: OutputForm
) -> None:
    shown = nullcontext() if screen is None else screen.watched()
    async with shown, aclosing(events) as happening:
        async for event in happening:
            summary.add(event)
            if form.is_streamed:
                emit(event_as_json(event))
            if screen is not None:
                await screen.show(event)


class _Asking:
    """Puts questions to whoever is at the keyboard, and remembers that nobody was."""

    def __init__(self) -> None:
        self.screen: Screen | None = None
        self.unasked: list[Question] = []
        self._one_at_a_time = asyncio.Lock()

    async def ask(self, question: Question) -> bool:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            self.unasked.append(question)
            return False
        async with self._one_at_a_time:
            if self.screen is None:
                return await terminal.ask(question)
            self.screen.give()
            try:
                return await terminal.ask(question)
            finally:
                self.screen.take_back()


def _screen(lim: Limner, form: OutputForm) -> Screen | None:
    """Who watches: with JSON, only a person at a terminal."""
    if form.as_json:
        return Screen(lim, speak=None, shows_pictures=False) if is_live() else None
    streams = sys.stdout.isatty()
    return Screen(lim, speak=speak if streams else None, shows_pictures=shows_pictures())


def _stopper(partner: ChatAgent) -> Callable[[int], None]:
    task = asyncio.current_task()
    assert task is not None

    def stop(pressed: int) -> None:
        partner.agent.interrupt()
        if pressed > 1:
            task.cancel()

    return stop


def _told(
    summary: TurnSummary, asking: _Asking, form: OutputForm, *, session: str | None, model: str
) -> CommandResult:
    ended = summary.ended
    assert ended is not None
    notes: list[str] = []
    for question in asking.unasked:
        flags = PATH_FLAGS if question.amount_nano is None else MONEY_FLAGS
        notes += [f"Nobody could be asked: {question.text}", f"  {flags}"]
        if isinstance(ended.error, ApprovalDenied):
            ended.error.hint = flags
    value = summary.as_json(session=session, model=model)
    if asking.unasked:
        value["unasked"] = [question.text for question in asking.unasked]
    status = Cancelled.exit_status if ended.status == "interrupted" else 0
    if ended.error is not None:
        status = ended.error.exit_status
    return CommandResult(
        value={"type": "result", **value} if form.is_streamed else value,
        # What a terminal was told already is not told again.
        text="" if sys.stdout.isatty() else ended.text,
        notes=(*notes, f"To go on: limner chat --resume {session}"),
        status=status,
    )
