"""A line that begins with a slash -> the command that it runs."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Mapping
from difflib import get_close_matches

import msgspec

from limner.agent.session_options import SessionOptions
from limner.content import format_bytes
from limner.dollars import format_usd
from limner.errors import UserError
from limner.frontends.cli.chat.chat_session import ChatSession, Leave
from limner.frontends.cli.chat.tool_lines import expanded
from limner.frontends.cli.output import minute
from limner.frontends.cli.preview import show_bytes
from limner.frontends.cli.stderr import is_live, size
from limner.frontends.cli.terminal_text import clipped
from limner.models.registry import EMBEDDED, OFFLINE

LISTED = 10
_LEAST_TITLE_CELLS = 12


class ChatCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command: its arguments, its help text, and its function."""

    arguments: str
    help: str
    run: Callable[[ChatSession, str], Awaitable[None]]


def is_command(line: str) -> bool:
    """Whether a line is a command, known or not; the path of a file is not one."""
    name = _name(line)
    return line.startswith("/") and (name in COMMANDS or "/" not in name)


async def run_command(chat: ChatSession, line: str) -> None:
    """Run a command.

    Raises:
        UserError: there is no such command, or it fails.
        Leave: the user leaves.
    """
    name, _, rest = line[1:].strip().partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        near = get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
        hint = f"Did you mean /{near[0]}?" if near else "/help lists the commands."
        raise UserError(f"There is no command /{name[:40]}.", hint=hint)
    await command.run(chat, rest.strip())


async def _help(chat: ChatSession, _: str) -> None:
    width = max(len(f"{name} {command.arguments}") for name, command in COMMANDS.items())
    chat.screen.lines(
        f"  /{f'{name} {command.arguments}':{width}}  {command.help}"
        for name, command in COMMANDS.items()
    )
    chat.screen.lines(
        (
            "A line that ends in \\ continues on the next. The path of a picture attaches it.",
            "What you type during a turn steers it. Ctrl-C stops the turn, Ctrl-D exits.",
        ),
        dim=True,
    )


async def _attach(chat: ChatSession, names: str) -> None:
    try:
        paths = shlex.split(names)
    except ValueError as error:
        raise UserError(f"The quotes do not match: {error}.") from error
    if not paths:
        raise UserError("/attach needs a path: /attach PATH…")
    for path in paths:
        await chat.attach(path)


async def _model(chat: ChatSession, name: str) -> None:
    if name:
        model = await chat.agent.change(SessionOptions(model=name))
        chat.screen.line(f"The model is now {model.name}.")
        return
    current = await chat.agent.model()
    models = chat.lim.models
    names = [model.name for model in models.available() if model.api != EMBEDDED]
    if models.find(OFFLINE) is not None:
        names.append(OFFLINE)
    if current.name not in names:
        names.insert(0, current.name)
    chat.screen.lines(f"{'*' if one == current.name else ' '} {one}" for one in names)


async def _personality(chat: ChatSession, name: str) -> None:
    if name:
        model = await chat.agent.change(SessionOptions(personality=name))
        chat.screen.line(f"The personality is now {name}, the model {model.name}.")
        return
    current = (
        await chat.agent.session_options()
    ).personality or chat.lim.settings.agent.personality
    found = chat.lim.personalities.all()
    chat.screen.lines(
        f"{'*' if one.id == current else ' '} {one.id}: {one.description}"
        for one in found.personalities
    )
    chat.screen.lines(problem.message for problem in found.problems)


async def _spend(chat: ChatSession, _: str) -> None:
    money, session_id = chat.lim.money, chat.agent.session_id
    session = 0 if session_id is None else await money.spent(session_id=session_id)
    spend, today = await money.spend(), await money.spent(day=chat.lim.clock().date())
    chat.screen.line(
        f"{format_usd(session)} in this session, {format_usd(today)} today, "
        f"{format_usd(spend.total_nano)} in all"
    )
    if spend.unknown_nano:
        uncertain = f"{format_usd(spend.unknown_nano)} of it may not have been charged"
        chat.screen.line(f"{uncertain}: limner jobs list")


async def _resume(chat: ChatSession, session_id: str) -> None:
    if session_id:
        await chat.agent.resume(session_id)
        await chat.show_session()
        return
    found = await chat.lim.sessions.list(limit=LISTED)
    if not found:
        chat.screen.line("No session is stored here yet.")
    for about in found:
        mark = "*" if about.id == chat.agent.session_id else " "
        known = f"{mark} {about.id}  {minute(about.updated_ms)}  "
        room = max(size().columns - len(known) - 1, _LEAST_TITLE_CELLS)
        chat.screen.line((known + clipped(about.name or about.preview or "", room)).rstrip())


async def _fork(chat: ChatSession, _: str) -> None:
    await chat.agent.fork()
    chat.screen.line(f"You are now in a copy, {chat.agent.session_id}. The original is unchanged.")


async def _compact(chat: ChatSession, _: str) -> None:
    if chat.agent.session_id is None:
        raise UserError("There is nothing to summarize yet.", hint="Send a message first.")
    await chat.watch(chat.agent.current.compact)


async def _show(chat: ChatSession, name: str) -> None:
    if not name:
        raise UserError("/show needs a picture: /show HANDLE or /show PATH")
    shown = await chat.lim.picture_info.show(name, chat.lim.person())
    if is_live():
        size_px = (shown.width, shown.height)
        await show_bytes(shown.data, mime=shown.mime, size=size_px, lim=chat.lim)
    weight = format_bytes(len(shown.data))
    chat.screen.line(f"{shown.mime}  {shown.width}x{shown.height}  {weight}")


async def _expand(chat: ChatSession, _: str) -> None:
    if not chat.screen.calls:
        chat.screen.line("The last turn called no tool.")
    for done in chat.screen.calls:
        chat.screen.lines(expanded(done, columns=size().columns - 1))


async def _verbose(chat: ChatSession, _: str) -> None:
    chat.screen.is_verbose = not chat.screen.is_verbose
    how = "in full" if chat.screen.is_verbose else "in one line"
    chat.screen.line(f"Calls are now shown {how}.")


async def _new(chat: ChatSession, _: str) -> None:
    await chat.agent.start_over()
    chat.screen.line("The next message starts a new session.")


async def _quit(_: ChatSession, __: str) -> None:
    raise Leave(0)


def _name(line: str) -> str:
    return line[1:].strip().partition(" ")[0]


COMMANDS: Mapping[str, ChatCommand] = {
    "help": ChatCommand(arguments="", help="this list", run=_help),
    "attach": ChatCommand(
        arguments="PATH…", help="attach pictures to the next message", run=_attach
    ),
    "model": ChatCommand(
        arguments="[NAME]", help="choose the model, or list the models", run=_model
    ),
    "personality": ChatCommand(
        arguments="[NAME]", help="choose the personality, or list them", run=_personality
    ),
    "spend": ChatCommand(arguments="", help="show what was spent", run=_spend),
    "resume": ChatCommand(
        arguments="[ID]", help="continue another session, or list the last ones", run=_resume
    ),
    "fork": ChatCommand(arguments="", help="continue in a copy of this session", run=_fork),
    "compact": ChatCommand(arguments="", help="summarize the conversation", run=_compact),
    "show": ChatCommand(arguments="HANDLE|PATH", help="show a picture", run=_show),
    "expand": ChatCommand(
        arguments="", help="show the calls of the last turn in full", run=_expand
    ),
    "verbose": ChatCommand(
        arguments="", help="show every call in full, or stop that", run=_verbose
    ),
    "new": ChatCommand(arguments="", help="start a new session", run=_new),
    "quit": ChatCommand(arguments="", help="exit; so does Ctrl-D", run=_quit),
}
