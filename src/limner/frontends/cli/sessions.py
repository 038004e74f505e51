"""Stored conversations: list, show, import, export, fork, archive and delete them.

ID may be the beginning of a session's id. Pictures are stored once, for all sessions together.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from limner.agent.session import SessionAbout, StoredItem
from limner.agent.session_import import ImportedSession
from limner.client import Limner
from limner.content import format_bytes
from limner.display_text import clean_line
from limner.dollars import format_usd
from limner.errors import NANO_PER_USD, LimnerError, UserError
from limner.frontends.cli.output import CommandResult, counted, failure, minute
from limner.frontends.cli.terminal import Waiting, wait_for
from limner.frontends.cli.terminal_text import clipped
from limner.pictures.request import Progress
from limner.wires.items import first_text, image_parts

EXAMPLE = """\
examples:
  limner sessions list
  limner sessions import ~/.codex/sessions/2026/11/15/rollout-*.jsonl
  limner sessions show 01a1dcb7
  limner sessions export 01a1dcb7 --out talk.jsonl          Codex reads it too
  limner sessions fork 01a1dcb7 --before 12                 a copy that ends before item 12
  limner sessions archive 01a1dcb7                          --undo brings it back
  limner sessions delete 01a1dcb7                           and the pictures that only it uses
"""
LISTED, SHOWN = 50, 50
LINE_WIDTH, WORDS_WIDTH = 160, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _Action:
    """An action: what it takes after its name, and its options."""

    run: Callable[[Namespace], Awaitable[CommandResult]]
    takes: str | None
    options: tuple[str, ...] = ()


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("action", choices=[*ACTIONS])
    parser.add_argument("names", nargs="*", metavar="ID_OR_FILE", help="a session; import: files")
    parser.add_argument("--archived", action="store_true", help="list: the archived ones")
    parser.add_argument("--limit", type=_count, metavar="N", help="list, show: how many at most")
    parser.add_argument("--from", dest="start", type=_seq, metavar="N", help="show: first item")
    parser.add_argument("--out", metavar="PATH", help="export: where to; default ./<id>.jsonl")
    parser.add_argument("--overwrite", action="store_true", help="export: replace the file")
    parser.add_argument("--before", type=_seq, metavar="N", help="fork: first item left out")
    parser.add_argument("--undo", action="store_true", help="archive: bring it back")


def run(args: Namespace) -> CommandResult:
    """Run the action."""
    action = ACTIONS[args.action]
    for option, value in _options(args):
        if value and option not in action.options:
            raise UserError(f"sessions {args.action} takes no --{option}")
    if action.takes is None and args.names:
        raise UserError(f"sessions {args.action} takes no {args.names[0]!r}")
    if action.takes == "ID" and len(args.names) != 1:
        raise UserError(
            f"give the id of the session to {args.action}",
            hint="limner sessions list shows them",
        )
    if action.takes == "FILE" and not args.names:
        raise UserError(
            "give the files to import",
            hint="Codex keeps them in ~/.codex/sessions, as rollout-….jsonl or .jsonl.zst.",
        )
    return wait_for(lambda: action.run(args))


async def _list(args: Namespace) -> CommandResult:
    limit = args.limit or LISTED
    async with Limner() as lim:
        # One more than is shown, to know whether there are more.
        found = await lim.sessions.list(archived=args.archived, limit=limit + 1)
    shown, more = found[:limit], len(found) > limit
    notes = [f"There are more: --limit {limit * 2} shows them."] if more else []
    if not shown:
        notes = ["No session is stored here. limner sessions import imports those of Codex."]
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
        notes=(f"More: --from {after}",) if after < about.items else (),
    )


async def _export(args: Namespace) -> CommandResult:
    async with Limner() as lim:
        session = await lim.sessions.open(args.names[0])
        waiting = Waiting()
        waiting.progress(Progress(message="Exporting", elapsed_s=0.0))
        async with waiting.shown():
            exported = await lim.export_session(
                session.id,
                args.out or f"{session.id}.jsonl",
                overwrite=args.overwrite,
            )
    notes = [f"{counted(exported.items, 'item')}, {counted(len(exported.pictures), 'picture')}"]
    if exported.omitted:
        notes.append(f"{counted(len(exported.omitted), 'picture')} could not be found.")
    return CommandResult(
        value={
            "path": str(exported.path),
            "items": exported.items,
            "pictures": sorted(exported.pictures),
            "omitted": sorted(exported.omitted),
        },
        text=str(exported.path),
        notes=tuple(notes),
    )


async def _import(args: Namespace) -> CommandResult:
    outcomes: list[tuple[str, ImportedSession | LimnerError]] = []
    waiting = Waiting()
    async with Limner() as lim, waiting.shown():
        for number, name in enumerate(args.names, start=1):
            which = f" {number} of {len(args.names)}" if len(args.names) > 1 else ""

            def tell(imported: ImportedSession, which: str = which) -> None:
                size = format_bytes(imported.read_bytes)
                message = f"Importing{which}: {size}, {counted(len(imported.pictures), 'picture')}"
                waiting.progress(Progress(message=message, elapsed_s=waiting.elapsed_s))

            tell(ImportedSession())
            try:
                outcomes.append((name, await lim.import_session(name, progress=tell)))
            except LimnerError as error:
                outcomes.append((name, error))
    return _import_result(outcomes)


def _import_result(outcomes: Sequence[tuple[str, ImportedSession | LimnerError]]) -> CommandResult:
    failures = [failure(outcome) for _, outcome in outcomes if isinstance(outcome, LimnerError)]
    if len(outcomes) == len(failures) == 1:
        return failures[0]
    done = [(name, outcome) for name, outcome in outcomes if isinstance(outcome, ImportedSession)]
    notes = [note for name, outcome in done for note in _import_notes(name, outcome)]
    return CommandResult(
        value={"imports": [_outcome_as_json(name, outcome) for name, outcome in outcomes]},
        text="\n".join(str(outcome.session_id) for _, outcome in done),
        notes=(*notes, *(note for found in failures for note in found.notes)),
        status=next((found.status for found in failures), 0),
    )


async def _fork(args: Namespace) -> CommandResult:
    async with Limner() as lim:
        session = await lim.sessions.open(args.names[0])
        about = await (await lim.sessions.fork(session.id, before=args.before)).about()
    notes = (f"{counted(about.items, 'item')} of {about.forked_from}",)
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
    pictures, size = counted(freed.pictures, "picture"), format_bytes(freed.size_bytes)
    notes = [f"{session.id} is deleted, and {pictures} ({size})."]
    if freed.young:
        more = counted(freed.young, "picture")
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
    "export": _Action(run=_export, takes="ID", options=("out", "overwrite")),
    "import": _Action(run=_import, takes="FILE"),
    "fork": _Action(run=_fork, takes="ID", options=("before",)),
    "archive": _Action(run=_archive, takes="ID", options=("undo",)),
    "delete": _Action(run=_delete, takes="ID"),
}


def _options(args: Namespace) -> Iterable[tuple[str, Any]]:
    names = ("archived", "limit", "out", "overwrite", "before", "undo")
    yield "from", args.start is not None
    for name in names:
        value = getattr(args, name)
        yield name, value is not None and value is not False


def _about_line(about: SessionAbout) -> str:
    when = minute(about.updated_ms)
    spent = f"  {format_usd(about.spent_nano)}" if about.spent_nano else ""
    title = clipped(about.name or about.preview or "", WORDS_WIDTH)
    return f"{about.id}  {when}  {counted(about.items, 'item'):>10}{spent}  {title}".rstrip()


def _about_lines(about: SessionAbout) -> Iterator[str]:
    yield about.id if about.name is None else f"{about.id}  {clean_line(about.name)}"
    rows = {
        "started": f"{minute(about.created_ms)} UTC in {clean_line(about.cwd) or 'no folder'}",
        "last used": f"{minute(about.updated_ms)} UTC",
        "items": str(about.items),
        "spent": format_usd(about.spent_nano),
        "forked from": about.forked_from,
        "archived": about.archived_ms and f"{minute(about.archived_ms)} UTC",
        "compacted": about.sends_from and f"models get what follows item {about.sends_from}",
    }
    yield from (f"  {name:12}{value}" for name, value in rows.items() if value)


def _item_line(stored: StoredItem) -> str:
    item = stored.item
    kind = str(item.get("role") if item.get("type") == "message" else item.get("type"))
    words = first_text(item) or next(
        (str(item[name]) for name in ("name", "output") if isinstance(item.get(name), str)), ""
    )
    pictures = len(image_parts(item))
    seen = f" [{counted(pictures, 'picture')}]" if pictures else ""
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


def _outcome_as_json(name: str, outcome: ImportedSession | LimnerError) -> dict[str, Any]:
    if isinstance(outcome, LimnerError):
        return {"file": name, "error": outcome.as_json()}
    return {
        "file": name,
        "session": outcome.session_id,
        "items": outcome.items,
        "pictures": len(outcome.pictures),
        "omitted": outcome.omitted,
        "bad_lines": outcome.bad_lines,
        "warnings": outcome.warnings,
    }


def _import_notes(name: str, imported: ImportedSession) -> Iterator[str]:
    items, pictures = counted(imported.items, "item"), counted(len(imported.pictures), "picture")
    yield f"{clean_line(name)}: {items}, {pictures}"
    if imported.bad_lines:
        yield f"  {counted(imported.bad_lines, 'line')} could not be read: left out."
    if imported.omitted:
        yield f"  {counted(imported.omitted, 'picture')} could not be stored; a note says why:"
    if imported.bad_lines or imported.omitted:
        yield from (f"    {clean_line(warning)}" for warning in imported.warnings)


def _seq(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise ArgumentTypeError("give the number of an item, as limner sessions show prints it")
    return int(text)


def _count(text: str) -> int:
    if (count := _seq(text)) == 0:
        raise ArgumentTypeError("give a number above 0")
    return count
