"""Run Codex with limner's tools, for this run only: its settings stay as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from limner.errors import UserError
from limner.frontends.cli.output import CommandResult
from limner.frontends.mcp.client_env import passed_on
from limner.frontends.mcp.clients import AS_MODULE, CLIENTS
from limner.frontends.remote.discovery import find_codex, safe_environment

EXAMPLE = """\
examples:
  limner codex --                                  the terminal interface
  limner codex -- exec "what does plan.png say?"
  limner codex -- exec -c 'mcp_servers.limner.default_tools_approval_mode="approve"' "draw a fox"

limner passes everything after -- to Codex unchanged. Codex asks the user before it calls a tool
that draws. exec cannot ask, so it calls such a tool only with the setting in the last example.
"""
SEPARATOR = "--"


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.usage = "limner codex [-h] [--json] -- …"


def read(parser: ArgumentParser, words: Sequence[str]) -> Namespace:
    """The arguments; words after the separator are for Codex, whatever they look like."""
    given = list(words)
    at = given.index(SEPARATOR) if SEPARATOR in given else len(given)
    args = parser.parse_args(given[:at])
    args.words = given[at + 1 :]
    return args


def run(args: Namespace) -> CommandResult:
    """Become Codex."""
    entry = CLIENTS["codex"].entry([sys.executable, *AS_MODULE], variables=passed_on(os.environ))
    words = [find_codex(), *with_settings(args.words, settings(entry))]
    if sys.platform == "win32":
        # On Windows, replacing the process would return to the shell at once.
        status = subprocess.call(words, env=safe_environment())
        return CommandResult(value={"status": status}, status=status)
    try:
        os.execve(words[0], words, safe_environment())  # noqa: S606 - the whole purpose, and there is no shell
    except OSError as error:
        raise UserError(f"{words[0]} cannot be run: {error}") from error


def settings(entry: Mapping[str, Any]) -> list[str]:
    """The options of Codex that add limner's entry for one run."""
    return [word for setting in _flat(entry, "mcp_servers.limner") for word in ("-c", setting)]


def _flat(entry: Mapping[str, Any], before: str) -> Iterator[str]:
    """A setting for each value. Strings, lists of them and numbers are in TOML as in JSON."""
    for name, value in entry.items():
        if isinstance(value, Mapping):
            yield from _flat(cast("Mapping[str, Any]", value), f"{before}.{name}")
        else:
            yield f"{before}.{name}={json.dumps(value)}"


def with_settings(words: Sequence[str], ours: Sequence[str]) -> list[str]:
    """The user's words with our settings among them.

    If there are settings before and after a subcommand, Codex ignores those before it. So ours come
    directly before the user's last setting: both are then on the same side of the subcommand. Codex
    uses the later of two values, which is the user's.
    """
    end = words.index(SEPARATOR) if SEPARATOR in words else len(words)
    theirs = [at for at, word in enumerate(words[:end]) if _is_setting(word)]
    at = theirs[-1] if theirs else 0
    return [*words[:at], *ours, *words[at:]]


def _is_setting(word: str) -> bool:
    is_long = word == "--config" or word.startswith("--config=")
    return is_long or (word.startswith("-c") and not word.startswith("--"))
