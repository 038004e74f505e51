"""What was spent, by day and by model, and what is still open."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime

from limner.client import Limner
from limner.doors.cli.terminal import print_json, wait_for
from limner.money.amounts import format_usd
from limner.money.records import Spend

EXAMPLE = """\
examples:
  limner spend
  limner spend --json
"""


def configure(parser: ArgumentParser) -> None:
    """The command takes no arguments of its own."""


def run(args: Namespace) -> int:
    """Print the whole ledger's sums."""

    async def work() -> Spend:
        async with Limner() as lim:
            return await lim.money.spend()

    spend = wait_for(work)
    if args.json:
        print_json(spend.as_json())
        return 0
    print(f"{format_usd(spend.total_nano)} in all")
    if spend.unknown_nano:
        print(f"{format_usd(spend.unknown_nano)} of it may not have been charged: limner jobs list")
    if spend.in_flight_nano:
        print(f"{format_usd(spend.in_flight_nano)} more is set aside for calls in flight")
    for title, lines in (("by day", spend.by_day), ("by model", spend.by_model)):
        if lines:
            print(f"\n{title}")
        for line in lines:
            calls = "1 call" if line.calls == 1 else f"{line.calls} calls"
            print(f"  {format_usd(line.nano):>10}  {line.name}  ({calls})")
    if spend.recent:
        print("\nlast calls")
    for row in spend.recent:
        when = datetime.fromtimestamp(row.created_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
        where = row.path or row.error_code or ""
        print(f"  {when}  {format_usd(row.cost_nano):>10}  {row.state:8}  {row.provider}  {where}")
    return 0
