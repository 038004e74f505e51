"""`limner mcp install` and `uninstall` -> the module that does it, loaded only then.

A client that starts the server waits for every module that is loaded beside it.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib import import_module

from limner.frontends.cli.output import CommandResult

CLIENTS = ("claude-code", "claude-desktop", "codex", "cursor", "vscode", "gemini-cli")


def configure(parser: ArgumentParser) -> None:
    """Add the arguments that ``install`` and ``uninstall`` share."""
    parser.add_argument("client", nargs="?", choices=CLIENTS, help="the program to set up")
    parser.add_argument(
        "--scope",
        choices=["user", "project"],
        default="user",
        help="for all your projects (default), or for the folder you are in",
    )
    parser.add_argument("--name", default="limner", help="the server's name there (limner)")
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would change, and change nothing"
    )


def run_install(args: Namespace) -> CommandResult:
    """Let a client start limner's server."""
    return import_module("limner.frontends.mcp.installer").install(args)


def run_uninstall(args: Namespace) -> CommandResult:
    """Take limner's server out of a client again."""
    return import_module("limner.frontends.mcp.installer").uninstall(args)
