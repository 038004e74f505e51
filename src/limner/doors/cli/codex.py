"""Run Codex with limner's tools, for this run only: its settings stay as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Sequence
from importlib.util import find_spec

from limner.client import Limner
from limner.doors.cli.answer import Answer
from limner.doors.remote.finding import find_codex
from limner.errors import MissingExtra, UserError

EXAMPLE = """\
examples:
  limner codex --                                  the terminal interface
  limner codex -- exec "draw a fox and look at it"
  limner codex -- resume --last

Everything after -- goes to Codex as it is.
"""
# A picture may take minutes, and a question about it waits for a person.
TOOL_TIMEOUT_S = 600
# -P: a folder named limner, where this happens to run, is not what is meant.
SERVER = ("-P", "-m", "limner.doors.cli.main", "mcp")
SEPARATOR = "--"


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.usage = "limner codex [-h] [--json] -- …"


def read(parser: ArgumentParser, words: Sequence[str]) -> Namespace:
    """The arguments; words after the separator are none of ours, whatever they look like."""
    given = list(words)
    at = given.index(SEPARATOR) if SEPARATOR in given else len(given)
    args = parser.parse_args(given[:at])
    args.words = given[at + 1 :]
    return args


def run(args: Namespace) -> Answer:
    """Become Codex."""
    if find_spec("mcp") is None:
        raise MissingExtra(
            "Codex reaches limner's tools over MCP, which is not installed.",
            hint="pip install 'limner[mcp]'",
        )
    words = [find_codex(), *overrides(passed_on(os.environ)), *args.words]
    if sys.platform == "win32":
        # Replacing the process there would hand the terminal back to the shell at once.
        status = subprocess.call(words)
        return Answer(value={"status": status}, status=status)
    try:
        os.execv(words[0], words)  # noqa: S606 - the whole purpose, and there is no shell
    except OSError as error:
        raise UserError(f"{words[0]} cannot be run: {error}") from error


def overrides(variables: Collection[str]) -> list[str]:
    """The options of Codex that add limner's tools for one run."""
    settings = {
        "command": sys.executable,
        "args": SERVER,
        "env_vars": sorted(variables),
        "tool_timeout_sec": TOOL_TIMEOUT_S,
    }
    # Strings, lists of them and numbers are the same in TOML as in JSON.
    return [
        word
        for name, value in settings.items()
        for word in ("-c", f"mcp_servers.limner.{name}={json.dumps(value)}")
    ]


def passed_on(environment: Collection[str]) -> set[str]:
    """The names of the variables that limner reads: Codex hides all others from its servers."""
    lim = Limner()
    known = {name for spec in lim.specs.values() for name in (spec.key_env, spec.base_url_env)}
    known |= {name for spec in lim.specs.values() for name in spec.variables}
    known |= {name for model in lim.models.known() for name in (model.key_env, model.base_url_from)}
    return {name for name in environment if name in known or name.startswith("LIMNER_")}
