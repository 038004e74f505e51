"""Serve limner's tools to an agent: any client of the Model Context Protocol.

Without options it speaks over standard input and output, as clients start it. `install` puts it
into a client's settings.
"""

from __future__ import annotations

import asyncio
import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Coroutine
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from limner.errors import MissingExtra, UserError
from limner.frontends.cli.output import CommandResult
from limner.frontends.mcp import install

EXAMPLE = """\
examples:
  limner mcp                                  for a client that starts it
  limner mcp install claude-code              put it into a client's settings
  limner mcp --http 127.0.0.1:8790            over HTTP, for this machine
  LIMNER_MCP_TOKEN=… limner mcp --http 0.0.0.0:8790 --allow-host studio.lan
"""
TOKEN_VARIABLE = "LIMNER_MCP_TOKEN"  # noqa: S105 - the name of a variable
MAX_TOKEN_CHARS = 4096
MAX_PORT = 65_535
_INSTALLING = {"install": install.run_install, "uninstall": install.run_uninstall}


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--http", type=_address, metavar="HOST:PORT", help="serve over HTTP, at /mcp"
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help=f"the secret that clients must send as a bearer token (default: {TOKEN_VARIABLE})",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="another name that clients use for this machine; may be given again",
    )
    parser.add_argument("--oauth-issuer", metavar="URL", help="accept the tokens of this issuer")
    parser.add_argument(
        "--oauth-jwks", metavar="FILE_OR_URL", help="the keys that the issuer signs with"
    )
    parser.add_argument(
        "--oauth-resource", metavar="URL", help="what the tokens must be for: our public address"
    )
    # The parser has no subcommands here: words and options may come in any order.
    parser.add_argument(
        "action", nargs="?", choices=[*_INSTALLING], help="set up a client instead of serving"
    )
    install.configure(parser)


def run(args: Namespace) -> CommandResult:
    """Serve until the process is stopped, or set up a client."""
    if args.action is not None:
        return _INSTALLING[args.action](args)
    if find_spec("mcp") is None:
        raise MissingExtra(
            "the MCP server needs a package that is not installed",
            hint="Install it: pip install 'limner[mcp]'",
        )
    serve = _over_standard_streams(args) if args.http is None else _over_http(args)
    server = import_module("limner.frontends.mcp.server")
    env = os.environ
    asyncio.run(serve(server.build_server(env=env, cwd=Path.cwd())))
    return CommandResult(value={})


Serve = Callable[[Any], Coroutine[Any, Any, None]]


def _over_standard_streams(args: Namespace) -> Serve:
    given = (args.token_file, args.oauth_issuer, args.oauth_jwks, args.oauth_resource)
    if any(given) or args.allow_host:
        raise UserError("tokens, issuers and hosts are for --http")
    return import_module("limner.frontends.mcp.stdio").serve


def _over_http(args: Namespace) -> Serve:
    http = import_module("limner.frontends.mcp.http")
    host, port = args.http
    listening = http.HttpOptions(
        host=host, port=port, token=_token(args), oauth=_oauth(args, http), names=args.allow_host
    )
    return lambda server: http.serve(server, listening)


def _oauth(args: Namespace, http: Any) -> Any:
    given = (args.oauth_issuer, args.oauth_resource, args.oauth_jwks)
    if not any(given):
        return None
    if not all(given):
        raise UserError("--oauth-issuer, --oauth-jwks and --oauth-resource belong together")
    issuer, resource, keys = given
    return http.OAuth(issuer=issuer, resource=resource, keys=keys)


def _token(args: Namespace) -> str | None:
    if args.token_file is None:
        return os.environ.get(TOKEN_VARIABLE, "").strip() or None
    path = Path(args.token_file)
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(MAX_TOKEN_CHARS).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the token file {str(path)!r} cannot be read: {error}") from error


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) <= MAX_PORT):
        raise ArgumentTypeError(f"{text!r} is not HOST:PORT, such as 127.0.0.1:8790")
    return host, int(port)
