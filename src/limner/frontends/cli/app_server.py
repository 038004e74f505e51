"""Serve clients that bring their own tools, as the Codex app-server does.

A client starts this program, opens a thread and answers tool calls with text and pictures. On
standard input and output it is one client, with one JSON message on each line.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from limner.errors import UserError
from limner.frontends.appserver.server import STDIO, serve
from limner.frontends.cli.output import CommandResult
from limner.storage.os_errors import disk_errors

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EXAMPLE = """\
examples:
  limner app-server
  limner app-server --listen ws://127.0.0.1:4500          needs limner[websocket]
  limner app-server --listen unix://                      a socket in limner's folder
  limner --config budget.day_usd=5 app-server             --config may stand in front, as in Codex
  limner app-server generate-json-schema --out schemas    the messages, for code generators
"""
SCHEMA = "generate-json-schema"


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    # A server without options, for which a client waits, needs none of these.
    from limner.frontends.json_log import add_log_option  # noqa: PLC0415
    from limner.frontends.metrics_option import add_metrics_option  # noqa: PLC0415

    parser.add_argument("action", nargs="?", choices=[SCHEMA], help="write the messages' schemas")
    parser.add_argument(
        "--listen", default=STDIO, metavar="URL", help="stdio:// (default), ws://IP:PORT, unix://"
    )
    parser.add_argument("--stdio", action="store_const", dest="listen", const=STDIO)
    parser.add_argument(
        "-c",
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting, for this server only",
    )
    for flag, value in (("--enable", "true"), ("--disable", "false")):
        parser.add_argument(
            flag,
            action="append",
            dest="config",
            type=f"features.{{}}={value}".format,
            metavar="FEATURE",
            help="a feature of Codex; limner has none of them",
        )
    parser.add_argument(
        "--ws-token-file",
        type=Path,
        metavar="PATH",
        help="the token that clients must send (default: LIMNER_APP_SERVER_TOKEN, or a new one)",
    )
    parser.add_argument("--no-token", action="store_true", help="serve every user of this machine")
    add_metrics_option(parser)
    add_log_option(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="the folder for the schemas")


def run_plain() -> CommandResult:
    """Serve as without any option."""
    serve(STDIO)
    return CommandResult(value={"listen": STDIO})


def run(args: Namespace) -> CommandResult:
    """Serve, or write the schemas."""
    if args.action == SCHEMA:
        if args.out is None:
            raise UserError(f"{SCHEMA} needs --out DIR")
        with disk_errors(doing="write", path=args.out):
            import_module("limner.frontends.appserver.schema").write(args.out)
        return CommandResult(value={"out": str(args.out)}, text=f"The schemas are in {args.out}")
    if args.out is not None:
        raise UserError(f"--out belongs to {SCHEMA}")
    from limner.frontends.json_log import log_to  # noqa: PLC0415 - as above

    log_to(args.log_json)
    serve(
        args.listen,
        overrides=args.config,
        token_file=args.ws_token_file,
        no_token=args.no_token,
        metrics=args.metrics,
    )
    return CommandResult(value={"listen": args.listen})
