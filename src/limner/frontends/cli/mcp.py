"""Serve limner's tools to an agent: any client of the Model Context Protocol.

Without options it speaks over standard input and output, as clients start it. `install` puts it
into a client's settings.
"""

from __future__ import annotations

import asyncio
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Coroutine
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from limner.errors import MissingExtra, UserError
from limner.frontends.cli.output import CommandResult
from limner.frontends.json_log import add_log_option, log_to
from limner.frontends.mcp import install
from limner.frontends.metrics_option import add_metrics_option, metrics_served, parse_host_port
from limner.settings.home import find_home
from limner.storage.home import Home

EXAMPLE = """\
examples:
  limner mcp                                  for a client that starts it
  limner mcp install claude-code              put it into a client's settings
  limner mcp install --print                  the entry for a client that is not in the list
  limner mcp doctor                           start it as the configured clients would
  limner mcp --http 127.0.0.1:8790            over HTTP, with a token that it makes
  LIMNER_MCP_TOKEN=… limner mcp --http 0.0.0.0:8790 --allow-host studio.lan
"""
TOKEN_VARIABLE = "LIMNER_MCP_TOKEN"  # noqa: S105 - the name of a variable
_INSTALLING = {
    "install": install.run_install,
    "uninstall": install.run_uninstall,
    "doctor": install.run_doctor,
}


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--http", type=parse_host_port, metavar="HOST:PORT", help="serve over HTTP, at /mcp"
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        type=Path,
        help=f"the bearer token that clients must send (default: {TOKEN_VARIABLE}, or a new one)",
    )
    parser.add_argument("--no-token", action="store_true", help="serve every user of this machine")
    parser.add_argument(
        "--allow-folder",
        action="append",
        type=Path,
        default=[],
        metavar="DIR",
        help="a folder that clients may read and write; may be given again",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="another name that clients use for this machine; may be given again",
    )
    add_metrics_option(parser)
    add_log_option(parser)
    parser.add_argument("--oauth-issuer", metavar="URL", help="accept the tokens of this issuer")
    parser.add_argument(
        "--oauth-jwks", metavar="FILE_OR_URL", help="the keys that the issuer signs with"
    )
    parser.add_argument(
        "--oauth-resource", metavar="URL", help="what the tokens must be for: our public address"
    )
    parser.add_argument(
        "--oauth-scope",
        action="append",
        default=[],
        metavar="NAME",
        help="a scope that the tokens must have; may be given again",
    )
    # The parser has no subcommands here: words and options may come in any order.
    parser.add_argument(
        "action",
        nargs="?",
        choices=[*_INSTALLING],
        help="set up a client, or check how it starts the server, instead of serving",
    )
    install.configure(parser)


def run(args: Namespace) -> CommandResult:
    """Serve until the process is stopped, or set up a client."""
    if args.action is not None:
        return _INSTALLING[args.action](args)
    log_to(args.log_json)
    serve, folders = _over_standard_streams(args) if args.http is None else _over_http(args)
    server = import_module("limner.frontends.mcp.server").McpServer(
        env=os.environ, cwd=Path.cwd(), folders=folders
    )

    async def serve_all() -> None:
        async with metrics_served(args.metrics, home=Home(find_home(os.environ, cwd=Path.cwd()))):
            await serve(server)

    asyncio.run(serve_all())
    return CommandResult(value={})


Serve = Callable[[Any], Coroutine[Any, Any, None]]
# How to serve, and the folders that calls may use; None means those that the client names.
Serving = tuple[Serve, tuple[Path, ...] | None]


def _over_standard_streams(args: Namespace) -> Serving:
    given = (args.token_file, args.no_token, args.oauth_issuer, args.oauth_jwks)
    if any((*given, args.oauth_resource, args.oauth_scope, args.allow_host, args.allow_folder)):
        raise UserError("tokens, issuers, hosts and folders are for --http")
    return import_module("limner.frontends.mcp.stdio").serve, None


def _over_http(args: Namespace) -> Serving:
    if find_spec("uvicorn") is None or find_spec("jwt") is None:
        raise MissingExtra(
            "the MCP server over HTTP needs packages that are not installed",
            hint="Install them: pip install 'limner[mcp]'. Over stdio the server needs none.",
        )
    http = import_module("limner.frontends.mcp.http")
    host, port = args.http
    token = http.TokenOptions.read(
        file=args.token_file, variable=TOKEN_VARIABLE, env=os.environ, is_off=args.no_token
    )
    listening = http.HttpOptions(
        host=host, port=port, token=token, oauth=_oauth(args, http), names=args.allow_host
    )
    home = http.Home(find_home(os.environ, cwd=Path.cwd()))
    scopes = import_module("limner.frontends.mcp.call_scope")
    folders = scopes.owned_folders(args.allow_folder, home=home)
    return lambda server: http.serve(server, listening, home=home), folders


def _oauth(args: Namespace, http: Any) -> Any:
    given = (args.oauth_issuer, args.oauth_resource, args.oauth_jwks)
    if not any((*given, args.oauth_scope)):
        return None
    if not all(given):
        raise UserError("--oauth-issuer, --oauth-jwks and --oauth-resource belong together")
    issuer, resource, keys = given
    return http.OAuth(issuer=issuer, resource=resource, keys=keys, scopes=args.oauth_scope)
