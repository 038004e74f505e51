"""Conversations that are stored here: look at them, bring them in, take them out, put them away.

ID may be the beginning of a session's id. Pictures are kept once, however many sessions name them.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from limner.agent.session import SessionAbout, StoredItem
from limner.agent.session_import import ImportedSession
from limner.client import Limner
from limner.content import format_bytes
from limner.dollars import format_usd
from limner.errors import NANO_PER_USD, LimnerError, UserError
from limner.frontends.cli.output import CommandResult, failure
from limner.frontends.cli.rendering import clipped
from limner.frontends.cli.terminal import Waiting, wait_for
from limner.pictures.request import Progress
from limner.wires.items import first_text, image_parts

EXAMPLE = """\
examples:
  limner sessions list
  limner sessions import ~/.codex/sessions/2026/11/15/rollout-*.jsonl
  limner sessions show 01a1dcb7
  limner sessions export 01a1dcb7 --out talk.jsonl          pictures in talk.pictures/
  limner sessions export 01a1dcb7 --out talk.jsonl --inline
  limner sessions fork 01a1dcb7 --before 12                 a copy that ends before item 12
  limner sessions archive 01a1dcb7                          --undo brings it back
  limner sessions delete 01a1dcb7                           and pictures that only it names
"""
LISTED, SHOWN = 50, 50
LINE_WIDTH, WORDS_WIDTH = 160, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _Action:
    """What may be asked for: what it takes after its name, and which options."""

    run: Callable[[Namespace], Awaitable[CommandResult]]
    takes: str | None
    options: tuple[str, ...] = ()


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("action", choices=[*ACTIONS])
    parser.add_argument("names", nargs="*", metavar="ID_OR_FILE", help="a session; import: files")
    parser.add_argument("--archived", action="store_true", help="list: those put away")
    parser.add_argument("--limit", type=_count, metavar="N", help="list, show: how many at most")
    parser.add_argument("--from", dest="start", type=_seq, metavar="N", help="show: first item")
    parser.add_argument("--out", metavar="PATH", help="export: where to; default ./<id>.jsonl")
    parser.add_argument("--inline", action="store_true", help="export: pictures as data URLs")
    parser.add_argument("--overwrite", action="store_true", help="export: replace the file")
    parser.add_argument("--before", type=_seq, metavar="N", help="fork: first item left out")
    parser.add_argument("--undo", action="store_true", help="archive: bring it back")


def run(args: Namespace) -> CommandResult:
    """Do the one thing asked."""
    action = ACTIONS[args.action]
    for option, value in _options(args):
        if value and option not in action.options:
            raise UserError(f"sessions {args.action} takes no --{option}")
    if action.takes is None and args.names:
        raise UserError(f"sessions {args.action} takes no {args.names[0]!r}")
    if action.takes == "ID" and len(args.names) != 1:
        raise UserError(
            f"say which session to {args.action}, by its id",
            hint="limner sessions list shows them",
        )
    if action.takes == "FILE" and not args.names:
        raise UserError(
            "say which files to import",
            hint="Codex keeps them in ~/.codex/sessions, as rollout-….jsonl or .jsonl.zst.",
        )
    return wait_for(lambda: action.run(args))


async def _list(args: Namespace) -> CommandResult:
    limit = args.limit or LISTED
    async with Limner() as lim:
        # One more than is shown tells whether there are more.
        found = await lim.sessions.list(archived=args.archived, limit=limit + 1)
    shown, more = found[:limit], len(found) > limit
    notes = [f"There are more: --limit {limit * 2} shows them."] if more else []
    if not shown:
        notes = ["No session is stored here. limner sessions import brings in those of Codex."]
    return CommandResult(
        value={"sessions": [_about_as_json(about) for about in shown], "more": more},
        text="\n".join(map(_about_line, shown)),
        notes=tuple(notes),
    )


async def _show(args: Namespace) -> CommandResult:
    limit = args.limit or SHOWN
    async with Limner() as lim:
        session = await lim.sessions.open(args.names[0])
        about = await session.about()
        start = max(0, about.items - limit) if args.start is None else args.start
        page = await session.page(from_seq=start, limit=limit)
    after = page[-1].seq + 1 if page else about.items
    lines = [*_about_lines(about), *(_item_line(stored) for stored in page)]
    return CommandResult(
        value={
            "session": _about_as_json(about),
            "items": [{"seq": one.seq, "at_ms": one.created_ms, "item": one.item} for one in page],
            "next": after if after < about.items else None,
        },
        text="\n".join(clipped(line, LINE_WIDTH) for line in lines),
        notes=(f"Goes on: --from {after}",) if after < about.items else (),
    )


async def _export(args: Namespace) -> CommandResult:
    async with Limner() as lim:
        session = await lim.sessions.open(args.names[0])
        waiting = Waiting()
        waiting.progress(Progress(message="Exporting", elapsed_s=0.0))
        async with waiting.shown():
            told = await lim.export_session(
                session.id,
                args.out or f"{session.id}.jsonl",
                inline=args.inline,
                overwrite=args.overwrite,
            )
    where = "" if told.folder is None else f" in {told.folder}"
    notes = [f"{_several(told.items, 'item')}, {_several(len(told.pictures), 'picture')}{where}"]
    if told.omitted:
        notes.append(f"{_several(len(told.omitted), 'picture')} could not be found any more.")
    return CommandResult(
        value={
            "path": str(told.path),
            "pictures_folder": None if told.folder is None else str(told.folder),
            "items": told.items,
            "pictures": sorted(told.pictures),
            "omitted": sorted(told.omitted),
        },
        text=str(told.path),
        notes=tuple(notes),
    )


async def _import(args: Namespace) -> CommandResult:
    outcomes: list[tuple[str, ImportedSession | LimnerError]] = []
    waiting = Waiting()
    async with Limner() as lim, waiting.shown():
        for number, name in enumerate(args.names, start=1):
            which = f" {number} of {len(args.names)}" if len(args.names) > 1 else ""

            def tell(told: ImportedSession, which: str = which) -> None:
                size = format_bytes(told.read_bytes)
                message = f"Importing{which}: {size}, {_several(len(told.pictures), 'picture')}"
                waiting.progress(Progress(message=message, elapsed_s=waiting.elapsed_s))

            tell(ImportedSession())
            try:
                outcomes.append((name, await lim.import_session(name, progress=tell)))
            except LimnerError as error:
                outcomes.append((name, error))
    return _told_import(outcomes)


def _told_import(outcomes: Sequence[tuple[str, ImportedSession | LimnerError]]) -> CommandResult:
    failures = [failure(told) for _, told in outcomes if isinstance(told, LimnerError)]
    if len(outcomes) == len(failures) == 1:
        return failures[0]
    done = [(name, told) for name, told in outcomes if isinstance(told, ImportedSession)]
    notes = [note for name, told in done for note in _import_notes(name, told)]
    return CommandResult(
        value={"imports": [_outcome_as_json(name, told) for name, told in outcomes]},
        text="\n".join(str(told.session_id) for _, told in done),
        notes=(*notes, *(note for found in failures for note in found.notes)),
        status=next((found.status for found in failures), 0),
    )


async def _fork(args: Namespace) -> CommandResult:
    async with Limner() as lim:
        session = await lim.sessions.open(args.names[0])
        about = await (await lim.sessions.fork(session.id, before=args.before)).about()
    notes = (f"{_several(about.items, 'item')} of {about.forked_from}",)
    return CommandResult(value={"session": _about_as_json(about)}, text=about.id, notes=notes)


async def _archive(args: Namespace) -> CommandResult:
    async with Limner() as lim:
        session = await lim.sessions.open(args.names[0])
        await (lim.sessions.unarchive if args.undo else lim.sessions.archive)(session.id)
        about = await session.about()
    done = "is back" if args.undo else "is archived; --undo brings it back"
    return CommandResult(value={"session": _about_as_json(about)}, notes=(f"{session.id} {done}.",))


async def _delete(args: Namespace) -> CommandResult:
    async with Limner() as lim:
        session = await lim.sessions.open(args.names[0])
        freed = await lim.delete_session(session.id)
    pictures, size = _several(freed.pictures, "picture"), format_bytes(freed.size_bytes)
    notes = [f"{session.id} is deleted, and {pictures} ({size})."]
    if freed.young:
        more = _several(freed.young, "picture")
        notes.append(f"{more} came in within the last minute: limner gc --all removes them later.")
    return CommandResult(
        value={
            "deleted": session.id,
            "pictures": freed.pictures,
            "bytes": freed.size_bytes,
            "young": freed.young,
        },
        notes=tuple(notes),
    )


ACTIONS = {
    "list": _Action(run=_list, takes=None, options=("archived", "limit")),
    "show": _Action(run=_show, takes="ID", options=("from", "limit")),
    "export": _Action(run=_export, takes="ID", options=("out", "inline", "overwrite")),
    "import": _Action(run=_import, takes="FILE"),
    "fork": _Action(run=_fork, takes="ID", options=("before",)),
    "archive": _Action(run=_archive, takes="ID", options=("undo",)),
    "delete": _Action(run=_delete, takes="ID"),
}


def _options(args: Namespace) -> Iterable[tuple[str, Any]]:
    names = ("archived", "limit", "out", "inline", "overwrite", "before", "undo")
    yield "from", args.start is not None
    for name in names:
        value = getattr(args, name)
        yield name, value is not None and value is not False


def _about_line(about: SessionAbout) -> str:
    when = _when(about.updated_ms)
    spent = f"  {format_usd(about.spent_nano)}" if about.spent_nano else ""
    title = clipped(about.name or about.preview or "", WORDS_WIDTH)
    return f"{about.id}  {when}  {_several(about.items, 'item'):>10}{spent}  {title}".rstrip()


def _about_lines(about: SessionAbout) -> Iterator[str]:
    yield about.id if about.name is None else f"{about.id}  {about.name}"
    rows = {
        "begun": f"{_when(about.created_ms)} UTC in {about.cwd or 'no folder'}",
        "last used": f"{_when(about.updated_ms)} UTC",
        "items": str(about.items),
        "spent": format_usd(about.spent_nano),
        "forked from": about.forked_from,
        "archived": about.archived_ms and f"{_when(about.archived_ms)} UTC",
        "compacted": about.sends_from and f"models are sent what follows item {about.sends_from}",
    }
    yield from (f"  {name:12}{value}" for name, value in rows.items() if value)


def _item_line(stored: StoredItem) -> str:
    item = stored.item
    kind = str(item.get("role") if item.get("type") == "message" else item.get("type"))
    words = first_text(item) or next(
        (str(item[name]) for name in ("name", "output") if isinstance(item.get(name), str)), ""
    )
    pictures = len(image_parts(item))
    seen = f" [{_several(pictures, 'picture')}]" if pictures else ""
    line = f"{stored.seq:5}  {kind:21} {clipped(' '.join(words.split()), WORDS_WIDTH)}{seen}"
    return line.rstrip()


def _about_as_json(about: SessionAbout) -> dict[str, Any]:
    return {
        "id": about.id,
        "name": about.name,
        "preview": about.preview,
        "cwd": about.cwd,
        "created_ms": about.created_ms,
        "updated_ms": about.updated_ms,
        "archived_ms": about.archived_ms,
        "forked_from": about.forked_from,
        "items": about.items,
        "sends_from": about.sends_from,
        "spent_usd": about.spent_nano / NANO_PER_USD,
        "settings": about.settings,
    }


def _outcome_as_json(name: str, told: ImportedSession | LimnerError) -> dict[str, Any]:
    if isinstance(told, LimnerError):
        return {"file": name, "error": told.as_json()}
    return {
        "file": name,
        "session": told.session_id,
        "items": told.items,
        "pictures": len(told.pictures),
        "omitted": told.omitted,
        "bad_lines": told.bad_lines,
        "warnings": told.warnings,
    }


def _import_notes(name: str, told: ImportedSession) -> Iterator[str]:
    items, pictures = _several(told.items, "item"), _several(len(told.pictures), "picture")
    yield f"{name}: {items}, {pictures}"
    if told.bad_lines:
        yield f"  {_several(told.bad_lines, 'line')} could not be read and stayed out."
    if told.omitted:
        yield f"  {_several(told.omitted, 'picture')} could not be taken in; words say why:"
    if told.bad_lines or told.omitted:
        yield from (f"    {warning}" for warning in told.warnings)


def _several(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _when(moment_ms: int) -> str:
    return datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def _seq(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise ArgumentTypeError("give the number of an item, as limner sessions show tells it")
    return int(text)


def _count(text: str) -> int:
    if (count := _seq(text)) == 0:
        raise ArgumentTypeError("give a number above 0")
    return count
