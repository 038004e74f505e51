"""A line that begins with a slash -> what it does to the conversation."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches

import msgspec

from limner.agent.session_options import SessionOptions
from limner.content import format_bytes
from limner.dollars import format_usd
from limner.errors import UserError
from limner.frontends.cli.chat.chat_session import ChatSession, Leave
from limner.frontends.cli.chat.tool_lines import expanded
from limner.frontends.cli.preview import show_bytes
from limner.frontends.cli.rendering import clipped
from limner.frontends.cli.stderr import is_live, size
from limner.models.registry import EMBEDDED, OFFLINE

LISTED = 10
_LEAST_TITLE_CELLS = 12


class ChatCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What one may type: what it takes after its name, what it is for, and what it does."""

    takes: str
    about: str
    run: Callable[[ChatSession, str], Awaitable[None]]


def is_command(line: str) -> bool:
    """Whether a line is a command, known or not; the path of a file is none."""
    name = _name(line)
    return line.startswith("/") and (name in COMMANDS or "/" not in name)


async def obey(talk: ChatSession, line: str) -> None:
    """Do what a command says.

    Raises:
        UserError: there is no such command, or it cannot be done.
        Left: the person leaves.
    """
    name, _, rest = line[1:].strip().partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        near = get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
        hint = f"Did you mean /{near[0]}?" if near else "/help lists the commands."
        raise UserError(f"There is no command /{name[:40]}.", hint=hint)
    await command.run(talk, rest.strip())


async def _help(talk: ChatSession, _: str) -> None:
    width = max(len(f"{name} {command.takes}") for name, command in COMMANDS.items())
    talk.screen.lines(
        f"  /{f'{name} {command.takes}':{width}}  {command.about}"
        for name, command in COMMANDS.items()
    )
    talk.screen.lines(
        (
            "A line that ends in \\ goes on in the next. The path of a picture attaches it.",
            "What you type while a turn runs steers it. Ctrl-C stops the turn, Ctrl-D leaves.",
        ),
        dim=True,
    )


async def _attach(talk: ChatSession, names: str) -> None:
    try:
        paths = shlex.split(names)
    except ValueError as error:
        raise UserError(f"The quotes do not match: {error}.") from error
    if not paths:
        raise UserError("Say which pictures: /attach PATH…")
    for path in paths:
        await talk.attach(path)


async def _model(talk: ChatSession, name: str) -> None:
    if name:
        model = await talk.partner.change(SessionOptions(model=name))
        talk.screen.line(f"From now on {model.name} answers.")
        return
    now = await talk.partner.model()
    models = talk.lim.models
    names = [model.name for model in models.available() if model.api != EMBEDDED]
    if models.find(OFFLINE) is not None:
        names.append(OFFLINE)
    if now.name not in names:
        names.insert(0, now.name)
    talk.screen.lines(f"{'*' if one == now.name else ' '} {one}" for one in names)


async def _personality(talk: ChatSession, name: str) -> None:
    if name:
        model = await talk.partner.change(SessionOptions(personality=name))
        talk.screen.line(f"From now on this is {name}, and {model.name} answers.")
        return
    now = (await talk.partner.terms()).personality or talk.lim.settings.agent.personality
    everyone = talk.lim.personalities.all()
    talk.screen.lines(
        f"{'*' if one.id == now else ' '} {one.id}: {one.description}"
        for one in everyone.personalities
    )
    talk.screen.lines(problem.message for problem in everyone.problems)


async def _spend(talk: ChatSession, _: str) -> None:
    money, session_id = talk.lim.money, talk.partner.session_id
    session = 0 if session_id is None else await money.spent(session_id=session_id)
    spend, today = await money.spend(), await money.spent(day=talk.lim.clock().date())
    talk.screen.line(
        f"{format_usd(session)} in this session, {format_usd(today)} today, "
        f"{format_usd(spend.total_nano)} in all"
    )
    if spend.unknown_nano:
        unsure = f"{format_usd(spend.unknown_nano)} of it may not have been charged"
        talk.screen.line(f"{unsure}: limner jobs list")


async def _resume(talk: ChatSession, session_id: str) -> None:
    if session_id:
        await talk.partner.resume(session_id)
        await talk.recall()
        return
    found = await talk.lim.sessions.list(limit=LISTED)
    if not found:
        talk.screen.line("No session is stored here yet.")
    for about in found:
        moment = datetime.fromtimestamp(about.updated_ms / 1000, UTC)
        mark = "*" if about.id == talk.partner.session_id else " "
        known = f"{mark} {about.id}  {moment:%Y-%m-%d %H:%M}  "
        room = max(size().columns - len(known) - 1, _LEAST_TITLE_CELLS)
        talk.screen.line((known + clipped(about.name or about.preview or "", room)).rstrip())


async def _fork(talk: ChatSession, _: str) -> None:
    await talk.partner.fork()
    talk.screen.line(f"This is a copy now, {talk.partner.session_id}; the other is as it was.")


async def _compact(talk: ChatSession, _: str) -> None:
    if talk.partner.session_id is None:
        raise UserError("There is nothing to sum up yet.", hint="Say something first.")
    await talk.watch(talk.partner.agent.compact)


async def _show(talk: ChatSession, name: str) -> None:
    if not name:
        raise UserError("Say which picture: /show HANDLE or /show PATH")
    shown = await talk.lim.showing.show(name, talk.lim.person())
    if is_live():
        size_px = (shown.width, shown.height)
        await show_bytes(shown.data, mime=shown.mime, size=size_px, lim=talk.lim)
    size_told = format_bytes(len(shown.data))
    talk.screen.line(f"{shown.mime}  {shown.width}x{shown.height}  {size_told}")


async def _expand(talk: ChatSession, _: str) -> None:
    if not talk.screen.calls:
        talk.screen.line("The last turn called no tool.")
    for done in talk.screen.calls:
        talk.screen.lines(expanded(done, columns=size().columns - 1))


async def _verbose(talk: ChatSession, _: str) -> None:
    talk.screen.is_verbose = not talk.screen.is_verbose
    how = "in full" if talk.screen.is_verbose else "in one line"
    talk.screen.line(f"From now on calls are shown {how}.")


async def _new(talk: ChatSession, _: str) -> None:
    await talk.partner.renew()
    talk.screen.line("The next message begins a new session.")


async def _quit(_: ChatSession, __: str) -> None:
    raise Leave(0)


def _name(line: str) -> str:
    return line[1:].strip().partition(" ")[0]


COMMANDS: Mapping[str, ChatCommand] = {
    "help": ChatCommand(takes="", about="this list", run=_help),
    "attach": ChatCommand(takes="PATH…", about="pictures for the next message", run=_attach),
    "model": ChatCommand(takes="[NAME]", about="who answers, or who could", run=_model),
    "personality": ChatCommand(takes="[NAME]", about="who they are, or could be", run=_personality),
    "spend": ChatCommand(takes="", about="what was spent", run=_spend),
    "resume": ChatCommand(takes="[ID]", about="another session, or the last ones", run=_resume),
    "fork": ChatCommand(takes="", about="go on in a copy of this session", run=_fork),
    "compact": ChatCommand(takes="", about="sum the conversation up", run=_compact),
    "show": ChatCommand(takes="HANDLE|PATH", about="a picture", run=_show),
    "expand": ChatCommand(takes="", about="the calls of the last turn in full", run=_expand),
    "verbose": ChatCommand(takes="", about="show every call in full, or no longer", run=_verbose),
    "new": ChatCommand(takes="", about="begin a new session", run=_new),
    "quit": ChatCommand(takes="", about="leave; so does Ctrl-D", run=_quit),
}
