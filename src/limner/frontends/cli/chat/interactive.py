"""A user at a terminal -> a chat, from the first prompt until the user leaves."""

from __future__ import annotations

import asyncio
import sys

from limner.client import Limner
from limner.errors import Cancelled, LimnerError, UserError
from limner.frontends.cli.chat.chat_agent import ChatOptions
from limner.frontends.cli.chat.chat_session import ChatSession, Leave
from limner.frontends.cli.chat.commands import is_command, run_command
from limner.frontends.cli.output import CommandResult
from limner.frontends.cli.stderr import write


def converse(options: ChatOptions, *, message: str, images: list[str]) -> CommandResult:
    """Chat until the user leaves.

    Args:
        options: the model and its limits.
        message: the first message, may be empty.
        images: its pictures.

    Raises:
        UserError: this is not a terminal; or there is no such session, model or personality.
    """
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UserError(
            "limner chat needs a terminal.",
            hint='In a script: limner chat -p "…"; limner chat -p - reads standard input.',
        )
    lim = Limner(cwd=options.cwd)
    # The event loop does not run while the prompt waits, so Ctrl-C there raises as usual.
    with asyncio.Runner() as runner:
        try:
            chat = ChatSession(lim, options)
            status = _run(chat, runner, message=message, images=images)
            return _result(chat.agent.session_id, status)
        finally:
            runner.run(lim.aclose())


def _run(chat: ChatSession, runner: asyncio.Runner, *, message: str, images: list[str]) -> int:
    """Run the chat; returns the exit status."""
    try:
        runner.run(_start(chat, images))
        if message.strip():
            chat.queue.append(message)
        while True:
            line = chat.queue.popleft() if chat.queue else chat.keyboard.prompt()
            if line.strip():
                runner.run(_handle(chat, line))
    except Leave as left:
        return left.status
    except EOFError:
        write("\n")
        return 0
    except KeyboardInterrupt:
        write("\n")
        return Cancelled.exit_status


async def _start(chat: ChatSession, images: list[str]) -> None:
    chat.greet(await chat.agent.open())
    await chat.show_session()
    for image in images:
        await chat.attach(image)


async def _handle(chat: ChatSession, line: str) -> None:
    """Handle a message or a command; an error is shown, and the chat goes on."""
    try:
        await (run_command if is_command(line) else ChatSession.send)(chat, line)
    except LimnerError as error:
        chat.screen.fail(error)


def _result(session_id: str | None, status: int) -> CommandResult:
    notes = () if session_id is None else (f"To resume: limner chat --resume {session_id}",)
    return CommandResult(value={"session": session_id}, notes=notes, status=status)
