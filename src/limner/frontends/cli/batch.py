"""Run many calls of tools from a manifest: each row once, within one budget.

A manifest is a file with one row per call: JSONL, CSV or Parquet. A row has a `key`, a `tool`
(default: image_generate) and the arguments of the tool. `run` and `resume` continue where the batch
stopped, and never pay for a row twice. Relative paths are relative to the working folder.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from limner.batches.export import check_export
from limner.batches.records import Batch, BatchStatus
from limner.batches.runner import WINDS_DOWN
from limner.client import Limner
from limner.dollars import format_usd
from limner.errors import LimnerError, UserError
from limner.frontends.cli.arguments import add_budget_flag
from limner.frontends.cli.output import CommandResult
from limner.frontends.cli.terminal import Waiting, ask, wait_for
from limner.pictures.request import Progress
from limner.tools.batches import BATCH_NAME, BatchManifest, BatchPlan, budget_of

EXAMPLE = """\
examples:
  limner batch plan rows.jsonl                 check every row, and say what all of them cost
  limner batch run rows.jsonl --budget 40 --rate openai=50/min
  limner batch status rows.jsonl
  limner batch resume rows.jsonl               go on; failed rows again, if they cost nothing
  limner batch cancel rows.jsonl
  limner batch export rows.jsonl --out results.csv

with a key:
  limner batch run rows.jsonl --lane cheap     half the price, within 24 hours

a row of a manifest:
  {"key": "fox", "prompt": "a fox under the moon", "output_path": "fox.png"}
"""
SHOWN_FAILURES = 10


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("action", choices=[*_ACTIONS])
    parser.add_argument(
        "manifest", metavar="MANIFEST", help="the file with the rows, or the id of a batch"
    )
    add_budget_flag(parser, "run: the most that all rows may cost together")
    parser.add_argument(
        "--rate",
        action="append",
        metavar="PROVIDER=N/min",
        help="run: send a provider no more requests than that; may be repeated",
    )
    parser.add_argument(
        "--lane",
        choices=["now", "cheap"],
        help="plan, run: cheap uses the vendors' batch APIs: half the price, within 24 hours",
    )
    parser.add_argument(
        "--out",
        metavar="PATH",
        help="run, resume, export: write the results there: .jsonl, .csv, .parquet, .tar "
        "(WebDataset), or a folder for the pictures",
    )


def run(args: Namespace) -> CommandResult:
    """Plan, run, resume, cancel or show a batch."""
    if args.action != "run" and args.rate is not None:
        raise UserError("only run takes --rate", hint="limner batch run MANIFEST --rate …")
    if args.action not in ("plan", "run") and args.lane is not None:
        raise UserError("only plan and run take --lane", hint="limner batch run MANIFEST --lane …")
    if args.action not in ("run", "resume") and args.budget_usd is not None:
        raise UserError("only run and resume take --budget")
    if (args.action == "export") and args.out is None:
        raise UserError("export needs --out", hint="limner batch export MANIFEST --out rows.csv")
    if args.out is not None and args.action not in ("run", "resume", "export"):
        raise UserError("only run, resume and export take --out")
    return wait_for(lambda: _ACTIONS[args.action](args))


async def _plan(args: Namespace) -> CommandResult:
    waiting = Waiting()
    async with Limner() as lim, waiting.shown():
        plan = await lim.batches.plan(
            _manifest(lim, args.manifest),
            lim.person(),
            lane=args.lane or "now",
            on_row=lambda rows: waiting.progress(
                Progress(message=f"{rows:,} rows checked", elapsed_s=waiting.elapsed_s)
            ),
        )
    return _planned(plan)


def _planned(plan: BatchPlan) -> CommandResult:
    notes = [f"{key}: {message}" for key, message in plan.problems]
    notes += [] if plan.savings is None else [plan.savings]
    if plan.wrong > len(plan.problems):
        notes.append(f"… and {plan.wrong - len(plan.problems):,} more")
    wrong = f", {plan.wrong:,} of them wrong" if plan.wrong else ""
    return CommandResult(
        value=plan.as_json(),
        text=f"{plan.rows:,} rows{wrong} · at most {format_usd(plan.quoted_nano)}",
        notes=tuple(notes),
        status=UserError.exit_status if plan.wrong else 0,
    )


async def _run(args: Namespace) -> CommandResult:
    async with Limner() as lim:
        check_export(out := _out(lim, args.out))
        budget_nano = budget_of(args.budget_usd)
        batch = await lim.batches.open(
            _manifest(lim, args.manifest),
            lim.person(ask=ask),
            budget_nano=budget_nano,
            rates=args.rate or (),
            lane=args.lane,
            approved=budget_nano is not None,
        )
        return await _go_on(lim, batch, out)


async def _resume(args: Namespace) -> CommandResult:
    async with Limner() as lim:
        check_export(out := _out(lim, args.out))
        batch = await lim.batches.reopen(
            _name(lim, args.manifest), budget_nano=budget_of(args.budget_usd)
        )
        return await _go_on(lim, batch, out)


async def _export(args: Namespace) -> CommandResult:
    async with Limner() as lim:
        out = _out(lim, args.out)
        assert out is not None
        rows = await lim.batches.export(_name(lim, args.manifest), out)
    return CommandResult(
        value={"path": str(out), "rows": rows}, text=str(out), notes=(f"{rows:,} rows",)
    )


async def _go_on(lim: Limner, batch: Batch, out: Path | None) -> CommandResult:
    waiting = Waiting()
    meter = RateMeter()

    def show(now: BatchStatus) -> None:
        waiting.progress(meter.progress(now))
        if now.stopped == WINDS_DOWN:
            waiting.say(f"{now.stopped} Press Ctrl-C again to stop them too.")

    try:
        async with waiting.shown():
            status = await lim.batches.run(batch, on_status=show)
    except BaseException as stop:
        if not isinstance(stop, LimnerError):
            vendors = " The vendors go on with what they have." if batch.lane == "cheap" else ""
            waiting.say(
                f"Stopped.{vendors} limner batch resume {batch.id} goes on; no row is paid twice."
            )
        raise
    if out is not None:
        await lim.batches.export(batch.id, out)
    return await _shown(lim, status)


async def _status(args: Namespace) -> CommandResult:
    async with Limner() as lim:
        return await _shown(lim, await lim.batches.status(_name(lim, args.manifest)))


async def _cancel(args: Namespace) -> CommandResult:
    async with Limner() as lim:
        waiting, meter = Waiting(), RateMeter()
        async with waiting.shown():
            status = await lim.batches.cancel(
                _name(lim, args.manifest),
                on_status=lambda now: waiting.progress(meter.progress(now)),
            )
        return await _shown(lim, status)


async def _shown(lim: Limner, status: BatchStatus) -> CommandResult:
    failed = [
        row
        async for row in lim.batches.queue.results(
            status.batch, state="failed", limit=SHOWN_FAILURES
        )
    ]
    failures: list[dict[str, Any]] = [row.as_json() for row in failed]
    notes = [f"{one['key']}: {one['error']['message']}" for one in failures]
    if status.counts.failed > len(failed):
        notes.append(f"… and {status.counts.failed - len(failed):,} more failed rows")
    notes += [str(remote) for remote in status.remote]
    if status.stopped is not None:
        notes.append(status.stopped)
    if status.counts.ended < status.counts.rows:
        notes.append(f"limner batch resume {status.batch.id} goes on with the rest.")
    elif status.counts.failed:
        notes.append(f"limner batch resume {status.batch.id} tries those again that cost nothing.")
    return CommandResult(
        value={**status.as_json(), "failed": failures},
        text=describe(status),
        notes=tuple(notes),
        status=LimnerError.exit_status if status.counts.failed or status.stopped else 0,
    )


def describe(status: BatchStatus) -> str:
    """A batch in one line."""
    counts = status.counts
    parts = [f"{counts.done:,} of {counts.rows:,} rows done"]
    parts += [f"{counts.failed:,} failed"] if counts.failed else []
    parts += [f"{counts.running:,} running"] if counts.running else []
    parts.append(f"{format_usd(status.spent_nano)} of {format_usd(status.batch.budget_nano)}")
    if status.unknown_nano:
        parts.append(f"{format_usd(status.unknown_nano)} of it uncertain")
    if status.remote:
        answered = sum(remote.done for remote in status.remote)
        parts.append(f"{answered:,} answered by vendors")
    if status.state == "cancelled":
        parts.append("cancelled")
    return " · ".join(parts)


class RateMeter:
    """Statuses of a batch -> progress with the rate and the time left."""

    def __init__(self) -> None:
        self._first: tuple[float, int] | None = None

    def progress(self, status: BatchStatus) -> Progress:
        """The progress to show for a status."""
        now_s, ended = time.monotonic(), status.counts.ended
        self._first = self._first or (now_s, ended)
        passed_s, rows = now_s - self._first[0], ended - self._first[1]
        words = describe(status)
        if rows > 0 and passed_s > 0:
            left_s = (status.counts.rows - ended) * passed_s / rows
            words += f" · {rows / passed_s:.1f} rows/s · {_duration(left_s)} left"
        return Progress(message=words, elapsed_s=passed_s)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _manifest(lim: Limner, path: str) -> BatchManifest:
    return BatchManifest.of_file(lim.person().reach.resolve_read(path, cwd=lim.cwd))


def _out(lim: Limner, path: str | None) -> Path | None:
    return None if path is None else lim.person().reach.resolve_write(path, cwd=lim.cwd)


def _name(lim: Limner, given: str) -> str:
    """The name of a batch: the path of its manifest, or its id or name."""
    if BATCH_NAME.fullmatch(given) and not Path(given).exists():
        return given
    return str(lim.person().reach.resolve_read(given, cwd=lim.cwd))


_ACTIONS: dict[str, Callable[[Namespace], Awaitable[CommandResult]]] = {
    "plan": _plan,
    "run": _run,
    "status": _status,
    "resume": _resume,
    "cancel": _cancel,
    "export": _export,
}
