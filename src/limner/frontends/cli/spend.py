"""What was spent, by day and by model, and what is still open. Days and times are UTC."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator

from limner.client import Limner
from limner.dollars import format_usd
from limner.frontends.cli.output import CommandResult, counted, minute
from limner.frontends.cli.terminal import wait_for
from limner.money.records import LedgerRow, Spend, SpendLine

EXAMPLE = """\
examples:
  limner spend
  limner spend --json --limit 100
  limner spend --json --after 5210    the sessions after those of another page: its "next"
"""
LISTED = 50


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--limit",
        type=_number,
        default=LISTED,
        metavar="N",
        help=f"how many days and sessions at most (default: {LISTED})",
    )
    parser.add_argument(
        "--after",
        type=_number,
        metavar="N",
        help="only sessions after those of another page, by its `next`",
    )


def run(args: Namespace) -> CommandResult:
    """Tell the whole ledger's sums."""
    spend = wait_for(lambda: _spend(args.limit, args.after))
    return CommandResult(value=spend.as_json(), text="\n".join(_lines(spend)))


async def _spend(limit: int, after: int | None) -> Spend:
    async with Limner() as lim:
        return await lim.spend(limit=limit, after=after)


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 18 or int(text) == 0:
        raise ArgumentTypeError("give a number above 0")
    return int(text)


def _lines(spend: Spend) -> Iterator[str]:
    yield f"{format_usd(spend.total_nano)} in all"
    if spend.unknown_nano:
        yield f"{format_usd(spend.unknown_nano)} of it may not have been charged: limner jobs list"
    if spend.in_flight_nano:
        yield f"{format_usd(spend.in_flight_nano)} more is set aside for calls in flight"
    for title, lines in (
        ("by day", [_sum(line) for line in spend.by_day]),
        ("by model", [_sum(line) for line in spend.by_model]),
        ("last calls", [_call(row) for row in spend.recent]),
    ):
        if lines:
            yield from ("", title, *lines)


def _sum(line: SpendLine) -> str:
    return f"  {format_usd(line.nano):>12}  {line.name}  ({counted(line.calls, 'call')})"


def _call(row: LedgerRow) -> str:
    when = minute(row.created_ms)
    became = row.path or row.error_code or ""
    cost = format_usd(row.cost_nano)
    return f"  {cost:>12}  {when}  {row.state:8}  {row.provider:14}  {became}".rstrip()
