"""Open a page on this machine that shows everything limner made, saw and spent.

The address has a secret that works once. The page then has a cookie, also after a restart.
"""

from __future__ import annotations

import asyncio
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from importlib import import_module
from importlib.util import find_spec

from limner.errors import MissingExtra
from limner.frontends.cli.output import CommandResult
from limner.frontends.json_log import add_log_option, log_to
from limner.frontends.metrics_option import add_metrics_option, metrics_served

MAX_PORT = 65_535
EXAMPLE = """\
examples:
  limner studio                       opens the page in your browser
  limner studio --no-open --port 0    prints the address only, with any free port
"""


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--port", type=_port, metavar="N", help="the port (default: 8799, or any free port)"
    )
    add_metrics_option(parser)
    add_log_option(parser)
    parser.add_argument("--no-open", action="store_true", help="do not open the browser")
    parser.add_argument(
        "--proxy",
        action="append",
        default=[],
        metavar="NAME",
        help="the host name of a proxy with TLS in front of this server; may be given again",
    )


def _port(text: str) -> int:
    port = int(text) if text.isascii() and text.isdecimal() else -1
    if not 0 <= port <= MAX_PORT:
        raise ArgumentTypeError(f"{text!r} is not a port: 0 to {MAX_PORT}")
    return port


def run(args: Namespace) -> CommandResult:
    """Serve until the process is stopped."""
    if any(find_spec(name) is None for name in ("starlette", "uvicorn", "websockets")):
        raise MissingExtra(
            "the studio needs packages that are not installed",
            hint="Install them: pip install 'limner[studio]'",
        )
    log_to(args.log_json)
    asyncio.run(_serve(args))
    return CommandResult(value={})


async def _serve(args: Namespace) -> None:
    server = import_module("limner.frontends.studio.server")
    options = server.StudioOptions(
        port=args.port, opens_browser=not args.no_open, proxy_names=args.proxy
    )
    # With --json, standard output is for the one object at the end.
    stream = sys.stderr if args.json else sys.stdout

    def show(url: str) -> None:
        print(url, file=stream, flush=True)

    async with server.Limner() as lim, metrics_served(args.metrics, home=lim.home):
        await server.serve(lim, options, show=show)
