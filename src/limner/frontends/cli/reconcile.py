"""Compare the ledger with a provider's usage export, and list the differences.

The file is OpenAI's export of costs (the CSV file of its usage page, or the JSON of the costs API),
or Replicate's predictions as the JSON of its API. An export covers everything that the account has
spent, also by other programs.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

import msgspec

from limner.client import Limner
from limner.dollars import format_usd
from limner.errors import NANO_PER_USD, LimnerError, UserError
from limner.frontends.cli.output import CommandResult, counted
from limner.frontends.cli.terminal import wait_for
from limner.money.usage_exports import Difference, UsageExport, compare, parse_export

EXAMPLE = """\
examples:
  limner reconcile cost_2026-11-01_2026-11-30.csv     OpenAI, by day
  limner reconcile predictions.json --json            Replicate, by prediction
"""
MAX_BYTES = 256 * 1024 * 1024


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("file", type=Path, metavar="FILE", help="the export")


def run(args: Namespace) -> CommandResult:
    """List the differences; the status is 1 if there are any."""
    export = parse_export(_read(args.file))
    differences = wait_for(lambda: _compare(export))
    first, last = export.days
    covered = f"{export.service}, {first} to {last}"
    found = counted(len(differences), "difference") if differences else "no differences"
    return CommandResult(
        value={
            "service": export.service,
            "first_day": first,
            "last_day": last,
            "differences": msgspec.to_builtins(differences),
        },
        text="\n".join(map(_line, differences)),
        notes=(f"{covered}: {found}",),
        status=LimnerError.exit_status if differences else 0,
    )


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise UserError(f"{path} is larger than any export")
    return data.decode("utf-8-sig", "replace")


async def _compare(export: UsageExport) -> list[Difference]:
    async with Limner() as lim:
        first, last = export.days
        rows = await lim.money.usage(export.providers, first_day=first, last_day=last)
    return compare(export, rows)


def _line(difference: Difference) -> str:
    facts = [difference.day, difference.remote_id, difference.job]
    amounts = (("export", difference.export_usd), ("ledger", difference.ledger_usd))
    facts += [
        f"{name} {format_usd(round(usd * NANO_PER_USD))}"
        for name, usd in amounts
        if usd is not None
    ]
    return f"{'  '.join(filter(None, facts))}  {difference.problem}"
