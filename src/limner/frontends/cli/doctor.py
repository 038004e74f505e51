"""Check that everything limner needs works here, and say what to do if something does not.

The exit status is 0 if every check passed and 1 if one failed. --scrub hashes every stored picture,
not just a sample. --repair puts a damaged database aside, starts from the newest good daily copy,
adds what can still be read, and brings back each picture whose bytes are in the home. Then it
checks everything. No other limner process may be running. The last lines say which protections of
the sandbox hold on this system, and do not change the exit status.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from limner.client import Limner
from limner.errors import LimnerError, SettingsError
from limner.frontends.cli.output import CommandResult
from limner.frontends.cli.terminal import Waiting, wait_for
from limner.frontends.health import LISTED, HealthReport, check_version, examine, failed_check
from limner.pictures.repair import HomeRepair
from limner.pictures.request import Progress

EXAMPLE = """\
examples:
  limner doctor
  limner doctor --json
  limner doctor --scrub               hash every stored picture
  limner doctor --repair              after a crash of the disk; deletes nothing
"""
_WORDS = {True: "ok  ", False: "FAIL", None: "none"}


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--scrub", action="store_true", help="hash every stored picture")
    parser.add_argument(
        "--repair",
        action="store_true",
        help="repair the database and bring back pictures; hashes every stored picture",
    )


def run(args: Namespace) -> CommandResult:
    """Run every check; the exit status is 1 when one failed."""
    return wait_for(lambda: _examine(args))


async def _examine(args: Namespace) -> CommandResult:
    waiting = Waiting()

    def tell(what: str, done: int, of: int) -> None:
        message = f"{what} {done:,} of {of:,}"
        waiting.progress(Progress(message=message, elapsed_s=waiting.elapsed_s, fraction=done / of))

    try:
        lim = Limner()
    except SettingsError as error:
        checks = [check_version(), failed_check("settings", error)]
        return _result(HealthReport(usable="", checks=checks))
    async with lim, waiting.shown():
        repair = await lim.repairer.repair(tell=tell) if args.repair else None
        return _result(await examine(lim, scrub=args.scrub, tell=tell), repair)


def _result(report: HealthReport, repair: HomeRepair | None = None) -> CommandResult:
    lines = [] if repair is None else [*_repair_lines(repair)]
    lines += [report.usable] if report.usable else []
    lines += [f"{_WORDS[one.ok]}  {one.name:10}  {one.detail}" for one in report.checks]
    lines += [
        f"{'ok  ' if one.holds else 'none'}  {one.name:10}  {one.detail}"
        for one in report.sandbox or ()
    ]
    extras = {"repair": repair, "sandbox": report.sandbox, "scrub": report.scrub}
    return CommandResult(
        value={
            "ok": report.ok,
            "checks": report.checks,
            **{name: value for name, value in extras.items() if value is not None},
        },
        text="\n".join(lines),
        status=0 if report.ok else LimnerError.exit_status,
    )


def _repair_lines(repair: HomeRepair) -> Iterator[str]:
    database = repair.database
    if database.put_aside is not None:
        yield f"done  database    the damaged file is in {database.put_aside}"
    start = database.started_from or "a new database"
    yield f"done  database    started from {start}, added {database.salvaged_rows:,} rows"
    ledger = f"{database.ledger_rows:,} calls in the ledger"
    if database.ledger_rows_missing:
        ledger += f", {database.ledger_rows_missing:,} between them are lost"
    yield f"done  ledger      {ledger}: compare `limner spend` with the bills of your providers"
    yield (
        f"done  pictures    {repair.pictures:,} are whole: {repair.recorded:,} recorded anew, "
        f"{repair.restored:,} restored from generated files"
    )
    lost = {"damaged": repair.damaged, "missing": repair.missing, "no picture": repair.unreadable}
    for what, handles in lost.items():
        yield from (f"lost  {what:10}  {handle}" for handle in handles[:LISTED])
