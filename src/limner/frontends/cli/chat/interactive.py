"""A person at a terminal -> a conversation, from the first prompt until they leave."""

from __future__ import annotations

import asyncio
import sys

from limner.client import Limner
from limner.errors import Cancelled, LimnerError, UserError
from limner.frontends.cli.chat.chat_agent import ChatOptions
from limner.frontends.cli.chat.chat_session import ChatSession, Leave
from limner.frontends.cli.chat.commands import is_command, obey
from limner.frontends.cli.output import CommandResult
from limner.frontends.cli.stderr import write


def converse(wishes: ChatOptions, *, words: str, images: list[str]) -> CommandResult:
    """Talk until the person leaves.

    Args:
        wishes: who is talked with, and how far they may go.
        words: the first message, if there is one.
        images: pictures for it.

    Raises:
        UserError: nobody is at a terminal; or there is no such session, model or personality.
    """
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UserError(
            "limner chat talks with a person at a terminal, and this is none.",
            hint='In a script: limner chat -p "…"; limner chat -p - reads standard input.',
        )
    lim = Limner(cwd=wishes.cwd)
    # The loop stands still while the prompt waits, so that Ctrl-C there is an ordinary one.
    with asyncio.Runner() as runner:
        try:
            talk = ChatSession(lim, wishes)
            status = _hold(talk, runner, words=words, images=images)
            return _farewell(talk.partner.session_id, status)
        finally:
            runner.run(lim.aclose())


def _hold(talk: ChatSession, runner: asyncio.Runner, *, words: str, images: list[str]) -> int:
    """Hold the conversation; the exit status."""
    try:
        runner.run(_begin(talk, images))
        if words.strip():
            talk.queue.append(words)
        while True:
            line = talk.queue.popleft() if talk.queue else talk.keyboard.prompt()
            if line.strip():
                runner.run(_take(talk, line))
    except Leave as left:
        return left.status
    except EOFError:
        write("\n")
        return 0
    except KeyboardInterrupt:
        write("\n")
        return Cancelled.exit_status


async def _begin(talk: ChatSession, images: list[str]) -> None:
    talk.greet(await talk.partner.begin())
    await talk.recall()
    for image in images:
        await talk.attach(image)


async def _take(talk: ChatSession, line: str) -> None:
    """One message or command; what goes wrong is told, and the conversation goes on."""
    try:
        await (obey if is_command(line) else ChatSession.hear)(talk, line)
    except LimnerError as error:
        talk.screen.fail(error)


def _farewell(session_id: str | None, status: int) -> CommandResult:
    notes = () if session_id is None else (f"To come back: limner chat --resume {session_id}",)
    return CommandResult(value={"session": session_id}, notes=notes, status=status)
