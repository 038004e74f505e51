"""List interrupted jobs, and fetch their pictures without paying again.

A crash, a timeout or a lost connection interrupts a job: the request was sent, and its picture did
not arrive or was not stored. `recover` uses the bytes that are here, or asks the provider. Until
then the job stays counted. If neither helps, `settle` closes the job at the price that your account
at the provider shows, and `forget` at the quoted price.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable
from typing import Any

from limner.client import Limner
from limner.dollars import format_usd, usd_to_nano
from limner.errors import NANO_PER_USD, ImageError, LimnerError, UserError
from limner.frontends.cli.output import CommandResult, minute
from limner.frontends.cli.stderr import say
from limner.frontends.cli.terminal import Waiting, wait_for
from limner.money.paid_call import ALREADY_RECEIVED
from limner.money.records import JobRow
from limner.pictures.request import Progress
from limner.tools.generation_tool import picture_value

EXAMPLE = """\
examples:
  limner jobs list
  limner jobs recover                 every job with bytes here, or whose provider can be asked
  limner jobs recover job_1f0c…       this one
  limner jobs settle job_1f0c… --cost 0.04
  limner jobs forget job_1f0c…        its price stays counted, its bytes are deleted
"""
CANNOT_TELL = "its provider cannot tell what became of it; it stays counted"
CLOSE_HINT = "`limner jobs settle ID --cost USD` or `limner jobs forget ID` closes a job."
STILL_WAITING = "another process is waiting for it"


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("action", choices=[*_ACTIONS])
    parser.add_argument("job", nargs="?", metavar="ID", help="one job instead of all")
    parser.add_argument("--cost", metavar="USD", help="settle: what the provider charged")


def run(args: Namespace) -> CommandResult:
    """List, recover or close."""
    if (args.cost is not None) != (args.action == "settle"):
        raise UserError(
            "settle needs --cost, and no other action takes it",
            hint="For example: limner jobs settle job_1f0c… --cost 0.04",
        )
    if args.cost is not None:
        usd_to_nano(args.cost, field="--cost")
    if args.action in ("settle", "forget") and args.job is None:
        raise UserError(f"{args.action} needs the ID of a job", hint="limner jobs list shows them")
    return wait_for(lambda: _ACTIONS[args.action](args))


async def _list(args: Namespace) -> CommandResult:
    async with Limner() as lim:
        rows = await _rows(lim, args.job)
        states = {row.id: lim.job_state(row) for row in rows}
    return CommandResult(
        value={"jobs": [_as_json(row, states[row.id]) for row in rows]},
        text="\n".join(_line(row, states[row.id]) for row in rows),
        notes=() if rows else ("No job is open.",),
    )


async def _recover(args: Namespace) -> CommandResult:
    outcomes: list[dict[str, Any]] = []
    statuses: set[int] = set()
    async with Limner() as lim:
        for row in await _rows(lim, args.job):
            outcome: dict[str, Any] = {"job": row.id}
            try:
                outcome |= await _recover_one(lim, row)
            except LimnerError as error:
                if error.code == ALREADY_RECEIVED:
                    outcome |= {"state": "received", "reason": error.message}
                else:
                    outcome |= {"state": "failed", "error": error.as_json()}
                    if not (row.state == "settled" and isinstance(error, ImageError)):
                        statuses.add(error.exit_status)  # bytes known to be broken are no news
            outcomes.append(outcome)
            # Printed at once: an interruption must not hide the jobs recovered before it.
            say(f"{row.id}: {_describe(outcome)}")
    return CommandResult(
        value={"jobs": outcomes},
        text="\n".join(outcome["path"] for outcome in outcomes if "path" in outcome),
        notes=_recovery_notes(outcomes),
        status=_exit_status(statuses),
    )


def _recovery_notes(outcomes: list[dict[str, Any]]) -> tuple[str, ...]:
    if not outcomes:
        return ("Nothing to recover.",)
    return (CLOSE_HINT,) if any(one["state"] == "unknown" for one in outcomes) else ()


async def _close(args: Namespace) -> CommandResult:
    async with Limner() as lim:
        (row,) = await _rows(lim, args.job)
        await lim.close_job(row, cost_usd=args.cost)
        closed = await lim.money.job(row.id)
    assert closed is not None, "a closed job stays in the journal"
    counted = f"{format_usd(closed.cost_nano)} stays counted" if closed.cost_nano else "it was free"
    return CommandResult(
        value={
            "job": row.id,
            "state": "closed",
            "cost_usd": closed.cost_nano / NANO_PER_USD,
            "cost_source": closed.cost_source,
        },
        text=f"{row.id}: closed, {counted}",
    )


async def _recover_one(lim: Limner, row: JobRow) -> dict[str, Any]:
    if row.in_flight:
        return {"state": "waiting", "reason": STILL_WAITING}
    waiting = Waiting()
    waiting.progress(Progress(message=f"asking {row.provider} about {row.id}", elapsed_s=0.0))
    async with waiting.shown():
        drawn = await lim.recover(row, progress=waiting.progress)
    if drawn is None:
        return {"state": "unknown", "reason": CANNOT_TELL}
    return {"state": "recovered", **picture_value(drawn)}


async def _rows(lim: Limner, job_id: str | None) -> list[JobRow]:
    rows = await lim.money.unfinished_jobs()
    if job_id is None:
        return rows
    chosen = [row for row in rows if row.id == job_id]
    if not chosen:
        raise UserError(f"there is no open job {job_id!r}", hint="limner jobs list shows them")
    return chosen


def _line(row: JobRow, state: str) -> str:
    when, quoted = minute(row.created_ms), format_usd(row.quoted_nano)
    return f"{row.id}  {when}  {quoted}  {state}  {row.provider}"


def _as_json(row: JobRow, state: str) -> dict[str, Any]:
    return {
        "id": row.id,
        "provider": row.provider,
        "model": row.model,
        "remote_id": row.remote_id,
        "created_ms": row.created_ms,
        "state": state,
        "quoted_usd": row.quoted_nano / NANO_PER_USD,
    }


def _describe(outcome: dict[str, Any]) -> str:
    match outcome["state"]:
        case "recovered":
            return f"recovered to {outcome['path']}"
        case "failed":
            lines = (outcome["error"]["message"], outcome["error"]["hint"])
            return "\n  ".join(filter(None, lines))
        case _:
            return outcome["reason"]


def _exit_status(statuses: set[int]) -> int:
    """The status of the failures if it is the same for all of them, else the general one."""
    if not statuses:
        return 0
    return statuses.pop() if len(statuses) == 1 else LimnerError.exit_status


_ACTIONS: dict[str, Callable[[Namespace], Awaitable[CommandResult]]] = {
    "list": _list,
    "recover": _recover,
    "settle": _close,
    "forget": _close,
}
