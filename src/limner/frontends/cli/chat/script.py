"""One message of a script -> one turn: its text or its JSON on standard output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, nullcontext
from typing import Any

import msgspec

from limner.agent.events import Event, ToolFinished, TurnEnded, UsageUpdated, images_of
from limner.client import Limner
from limner.errors import ApprovalDenied, Cancelled
from limner.frontends.cli import terminal
from limner.frontends.cli.chat.attachments import find_pictures
from limner.frontends.cli.chat.chat_agent import ChatAgent, ChatOptions
from limner.frontends.cli.chat.chat_session import OFFLINE_NOTE
from limner.frontends.cli.chat.screen import Screen
from limner.frontends.cli.interrupts import interrupts
from limner.frontends.cli.output import CommandResult, emit, is_note_due, speak
from limner.frontends.cli.preview import shows_pictures
from limner.frontends.cli.stderr import is_live, say
from limner.frontends.cli.terminal import wait_for
from limner.models.registry import OFFLINE
from limner.tools.base import Question
from limner.wires.base import Usage

# The flags with which a script answers questions in advance.
MONEY_FLAGS = (
    "--budget USD sets a budget for the session; with --approval never the budget decides."
)
PATH_FLAGS = "--sandbox sets where the model may write; --approval on-request asks only outside."


class OutputForm(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn is printed: as text, as one JSON object, or as a line of JSON for each event."""

    as_json: bool = False
    is_streamed: bool = False


def run_turn(
    options: ChatOptions, *, message: str, images: list[str], form: OutputForm
) -> CommandResult:
    """Send one message and return its result.

    Raises:
        LimnerError: the turn could not start. If it fails later, the result says so.
    """
    return wait_for(lambda: _run(options, message, images, form))


async def _run(
    options: ChatOptions, message: str, images: list[str], form: OutputForm
) -> CommandResult:
    async with Limner(cwd=options.cwd) as lim:
        approval = _Approval()
        agent = ChatAgent(lim, options, ask=approval.ask)
        model = await agent.open()
        is_offline = model.name == OFFLINE and not form.as_json
        if is_offline and is_note_due(lim.home, lim.clock().date()):
            say(OFFLINE_NOTE)
        screen = approval.screen = _make_screen(lim, form)
        summary = _TurnSummary()
        # The person typed these paths, so the model may see the pictures wherever they are.
        typed = [str(path) for path in find_pictures(message, lim.person())]
        events = agent.current.run(message, images=list(dict.fromkeys([*images, *typed])))
        with interrupts(_stopper(agent)):
            try:
                await _follow(events, summary, screen, form)
            except asyncio.CancelledError:
                hint = "limner spend shows what was spent."
                raise Cancelled("Interrupted.", hint=hint) from None
        return _result(summary, approval, form, session=agent.session_id, model=model.name)


async def _follow(
    events: AsyncGenerator[Event], summary: _TurnSummary, screen: Screen | None, form: OutputForm
) -> None:
    shown = nullcontext() if screen is None else screen.watched()
    async with shown, aclosing(events) as happening:
        async for event in happening:
            summary.add(event)
            if form.is_streamed:
                emit(event.as_json())
            if screen is not None:
                await screen.show(event)


class _TurnSummary(msgspec.Struct):
    """Collects the result of a turn from its events."""

    calls: list[ToolFinished] = []
    usage: Usage | None = None
    ended: TurnEnded | None = None

    def add(self, event: Event) -> None:
        """Take account of one event."""
        match event:
            case ToolFinished():
                self.calls.append(event)
            case UsageUpdated():
                self.usage = event.total
            case TurnEnded():
                self.ended = event
            case _:
                pass

    def as_json(self, *, session: str | None, model: str) -> dict[str, Any]:
        """The result of a turn that has ended."""
        assert self.ended is not None
        ended = self.ended.as_json()
        del ended["type"], ended["turn"]
        return {
            **ended,
            "session": session,
            "model": model,
            "usage": msgspec.to_builtins(self.usage),
            "calls": [call.call_as_json() for call in self.calls],
            "images": images_of(self.calls),
        }


class _Approval:
    """Asks the user at the terminal, and remembers the questions if there is no terminal."""

    def __init__(self) -> None:
        self.screen: Screen | None = None
        self.unasked: list[Question] = []
        self._lock = asyncio.Lock()

    async def ask(self, question: Question) -> bool:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            self.unasked.append(question)
            return False
        async with self._lock:
            if self.screen is None:
                return await terminal.ask(question)
            self.screen.pause()
            try:
                return await terminal.ask(question)
            finally:
                self.screen.resume()


def _make_screen(lim: Limner, form: OutputForm) -> Screen | None:
    """Show the turn; with JSON, only at a terminal."""
    if form.as_json:
        return Screen(lim, write_text=None, shows_pictures=False) if is_live() else None
    write_text = speak if sys.stdout.isatty() else None
    return Screen(lim, write_text=write_text, shows_pictures=shows_pictures())


def _stopper(agent: ChatAgent) -> Callable[[int], None]:
    task = asyncio.current_task()
    assert task is not None

    def stop(pressed: int) -> None:
        agent.current.interrupt()
        if pressed > 1:
            task.cancel()

    return stop


def _result(
    summary: _TurnSummary, approval: _Approval, form: OutputForm, *, session: str | None, model: str
) -> CommandResult:
    ended = summary.ended
    assert ended is not None
    notes: list[str] = []
    for question in approval.unasked:
        flags = PATH_FLAGS if question.amount_nano is None else MONEY_FLAGS
        notes += [f"Not asked, since this is not a terminal: {question.text}", f"  {flags}"]
        if isinstance(ended.error, ApprovalDenied):
            ended.error.hint = flags
    value = summary.as_json(session=session, model=model)
    if approval.unasked:
        value["unasked"] = [question.text for question in approval.unasked]
    status = Cancelled.exit_status if ended.status == "interrupted" else 0
    if ended.error is not None:
        status = ended.error.exit_status
    return CommandResult(
        value={"type": "result", **value} if form.is_streamed else value,
        # A terminal has shown the text already.
        text="" if sys.stdout.isatty() else ended.text,
        notes=(*notes, f"To resume: limner chat --resume {session}"),
        status=status,
    )
