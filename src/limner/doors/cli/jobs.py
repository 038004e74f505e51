"""Requests that were sent but whose picture never arrived, and how to bring them in.

A crash, a time-out or a lost connection leaves such a job. It stays counted at its quoted price
until `recover` finds out what became of it.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from typing import Any

from limner.client import Limner
from limner.doors.cli.terminal import Waiting, print_json, say, wait_for
from limner.errors import NANO_PER_USD, LimnerError, UserError
from limner.money.amounts import format_usd
from limner.money.records import JobRow
from limner.tools.image_generate import as_value

EXAMPLE = """\
examples:
  limner jobs list
  limner jobs recover                 every job whose service can be asked
  limner jobs recover job_1f0c…       this one
"""
CANNOT_ASK = "its service cannot be asked what became of it; it stays counted"


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("action", choices=["list", "recover"])
    parser.add_argument("job", nargs="?", metavar="ID", help="one job instead of all")


def run(args: Namespace) -> int:
    """List or recover."""
    return wait_for(lambda: _list(args) if args.action == "list" else _recover(args))


async def _list(args: Namespace) -> int:
    async with Limner() as lim:
        rows = await _rows(lim, args.job)
    if args.json:
        print_json({"jobs": [_as_json(row) for row in rows]})
        return 0
    for row in rows:
        when = datetime.fromtimestamp(row.created_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
        standing = "waiting" if row.in_flight else "open"
        print(f"{row.id}  {when}  {format_usd(row.quoted_nano)}  {standing}  {row.provider}")
    if not rows:
        say("Every request that was sent has been received.")
    return 0


async def _recover(args: Namespace) -> int:
    outcomes: list[dict[str, Any]] = []
    async with Limner() as lim:
        for row in await _rows(lim, args.job):
            if row.in_flight:
                outcomes.append({"job": row.id, "state": "waiting"})
                continue
            outcomes.append(await _recover_one(lim, row))
            if not args.json:
                _print_outcome(outcomes[-1])
    if args.json:
        print_json({"jobs": outcomes})
    elif not outcomes:
        say("Nothing to recover.")
    return 1 if any("error" in outcome for outcome in outcomes) else 0


async def _recover_one(lim: Limner, row: JobRow) -> dict[str, Any]:
    waiting = Waiting(f"asking {row.provider} about {row.id} …")
    try:
        async with waiting.shown():
            drawn = await lim.recover(row, progress=waiting.progress)
    except LimnerError as error:
        return {"job": row.id, "state": "failed", "error": error.as_json()}
    if drawn is None:
        return {"job": row.id, "state": "unknown", "reason": CANNOT_ASK}
    return {"job": row.id, "state": "recovered", **as_value(drawn)}


async def _rows(lim: Limner, job_id: str | None) -> list[JobRow]:
    rows = await lim.money.unfinished_jobs()
    if job_id is None:
        return rows
    chosen = [row for row in rows if row.id == job_id]
    if not chosen:
        raise UserError(f"there is no open job {job_id!r}", hint="limner jobs list shows them")
    return chosen


def _as_json(row: JobRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "provider": row.provider,
        "model": row.model,
        "remote_id": row.remote_id,
        "created_ms": row.created_ms,
        "state": "waiting" if row.in_flight else "open",
        "quoted_usd": row.quoted_nano / NANO_PER_USD,
    }


def _print_outcome(outcome: dict[str, Any]) -> None:
    match outcome["state"]:
        case "recovered":
            print(outcome["path"])
            say(f"{outcome['job']}: recovered")
        case "failed":
            say(f"{outcome['job']}: {outcome['error']['message']}")
        case _:
            say(f"{outcome['job']}: {outcome['reason']}")
