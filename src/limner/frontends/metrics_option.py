"""The option ``--metrics HOST:PORT`` of commands that run for long -> a server, if it is given."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from limner.storage.home import Home

PATH = "/metrics"
TOKEN_VARIABLE = "LIMNER_METRICS_TOKEN"  # noqa: S105 - the name of a variable
MAX_PORT = 65_535

MetricsAddress: TypeAlias = tuple[str, int]


def add_metrics_option(parser: ArgumentParser) -> None:
    """Add the option to a command."""
    parser.add_argument(
        "--metrics",
        type=parse_host_port,
        metavar="HOST:PORT",
        help=f"serve metrics for Prometheus there, at {PATH}; the bearer token is in "
        f"{TOKEN_VARIABLE}, or a new one",
    )


def parse_host_port(text: str) -> MetricsAddress:
    """Parse the value of an option that takes HOST:PORT; port 0 is any free one."""
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) <= MAX_PORT):
        from argparse import ArgumentTypeError  # noqa: PLC0415 - loaded by then

        raise ArgumentTypeError(f"{text!r} is not HOST:PORT, such as 127.0.0.1:8790")
    return host, int(port)


@asynccontextmanager
async def metrics_served(address: MetricsAddress | None, *, home: Home) -> AsyncGenerator[None]:
    """Serve the metrics while the block runs; without an address nothing happens.

    Raises:
        LimnerError: as `metrics_server.serve_metrics`.
    """
    if address is None:
        yield
        return
    from limner.frontends.metrics_server import serve_metrics  # noqa: PLC0415 - few ask for it

    async with serve_metrics(address, home=home):
        yield
