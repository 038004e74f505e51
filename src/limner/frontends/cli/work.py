"""Take rows of the open batches of this home, until none is left or it is stopped.

Any number of processes may work on one batch; each row runs in one of them. Every batch keeps its
budget and its rates, whichever process runs its rows.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from limner.batches.records import BatchStatus
from limner.client import Limner
from limner.frontends.cli.batch import RateMeter, describe
from limner.frontends.cli.output import CommandResult
from limner.frontends.cli.terminal import Waiting, wait_for
from limner.frontends.json_log import add_log_option, log_to
from limner.frontends.metrics_option import MetricsAddress, add_metrics_option, metrics_served

EXAMPLE = """\
examples:
  limner work
  limner work --json
  limner work --wait --metrics 127.0.0.1:9464     a worker that stays
"""


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--wait", action="store_true", help="wait for new batches if no row is left, until Ctrl-C"
    )
    add_metrics_option(parser)
    add_log_option(parser)


def run(args: Namespace) -> CommandResult:
    """Work until no batch has rows left."""
    log_to(args.log_json)
    return wait_for(lambda: _work(args.metrics, waits=args.wait))


async def _work(metrics: MetricsAddress | None, *, waits: bool) -> CommandResult:
    waiting, meter = Waiting(), RateMeter()
    async with Limner() as lim, metrics_served(metrics, home=lim.home), waiting.shown():

        def on_status(status: BatchStatus) -> None:
            waiting.progress(meter.progress(status))

        if waits:
            await lim.batches.work_for_ever(on_status=on_status)
        ended = await lim.batches.work(on_status=on_status)
    return CommandResult(
        value={"batches": [status.as_json() for status in ended]},
        text="\n".join(f"{status.batch.name}: {describe(status)}" for status in ended),
        notes=() if ended else ("No batch has rows left.",),
    )
