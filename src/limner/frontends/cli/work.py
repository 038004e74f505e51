"""Take rows of the open batches of this home, until none is left.

Any number of processes may work on one batch; each row runs in one of them. Every batch keeps its
budget and its rates, whichever process runs its rows.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from limner.client import Limner
from limner.frontends.cli.batch import RateMeter, describe
from limner.frontends.cli.output import CommandResult
from limner.frontends.cli.terminal import Waiting, wait_for

EXAMPLE = """\
examples:
  limner work
  limner work --json
"""


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments: it has none."""
    del parser


def run(args: Namespace) -> CommandResult:
    """Work until no batch has rows left."""
    del args
    return wait_for(_work)


async def _work() -> CommandResult:
    waiting, meter = Waiting(), RateMeter()
    async with Limner() as lim, waiting.shown():
        ended = await lim.batches.work(
            on_status=lambda status: waiting.progress(meter.progress(status))
        )
    return CommandResult(
        value={"batches": [status.as_json() for status in ended]},
        text="\n".join(f"{status.batch.name}: {describe(status)}" for status in ended),
        notes=() if ended else ("No batch has rows left.",),
    )
