"""`limner mcp install` and `uninstall` -> `installer`, which is imported only for them.

Every module that the server imports delays the client that starts it.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib import import_module

from limner.frontends.cli.output import CommandResult

CLIENTS = (
    "claude-code",
    "claude-desktop",
    "codex",
    "cursor",
    "vscode",
    "gemini-cli",
    "opencode",
    "goose",
    "zed",
    "windsurf",
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments that ``install`` and ``uninstall`` share."""
    parser.add_argument("client", nargs="?", choices=CLIENTS, help="the client to configure")
    parser.add_argument(
        "--scope",
        choices=["user", "project"],
        default="user",
        help="for all your projects (default), or for the folder you are in",
    )
    parser.add_argument("--name", default="limner", help="the server's name there (limner)")
    parser.add_argument(
        "--dry-run", action="store_true", help="show the changes without making them"
    )
    parser.add_argument(
        "--print", action="store_true", help="print the entry, for this client or for any other"
    )


def run_install(args: Namespace) -> CommandResult:
    """Add limner's server to a client."""
    return import_module("limner.frontends.mcp.installer").install(args)


def run_doctor(args: Namespace) -> CommandResult:
    """Start the server as the configured clients would, and say what is wrong."""
    return import_module("limner.frontends.mcp.client_check").check(args)


def run_uninstall(args: Namespace) -> CommandResult:
    """Remove limner's server from a client."""
    return import_module("limner.frontends.mcp.installer").uninstall(args)
