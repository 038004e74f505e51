"""`codex exec` with every core busy -> in how many runs the first request had limner's tools.

make ecosystem ARGS="--only race"
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tests.ecosystem.agents import AGENTS, Agent
from tests.ecosystem.environments import ALONE, environment, npm_version
from tests.ecosystem.programs import picture, variables
from tests.ecosystem.report import Race
from tests.ecosystem.runs import mcp_tools
from tests.ecosystem.scripted_model import ScriptedModel

RUNS = 10
REQUIRED = "required = true\n"
CODEX = next(agent for agent in AGENTS if agent.name == "Codex")


def run() -> tuple[Race, ...]:
    """Run Codex with the installed entry, and with one that Codex does not wait for."""
    version = npm_version(CODEX.package)
    races: list[Race] = []
    for entry, is_required in (("as installed", True), ("without `required = true`", False)):
        with _busy_cores() as cores:
            there = sum(_is_there(CODEX, is_required=is_required) for _ in range(RUNS))
        races.append(
            Race(
                version=version,
                entry=entry,
                runs=RUNS,
                there=there,
                cores=cores,
                day=datetime.now(UTC).date().isoformat(),
            )
        )
        print(races[-1].line(), flush=True)
    return tuple(races)


def _is_there(codex: Agent, *, is_required: bool) -> bool:
    limner = environment(ALONE).with_name("limner")
    with (
        tempfile.TemporaryDirectory(prefix="limner-ecosystem-") as name,
        ScriptedModel([], picture=picture()) as model,
    ):
        home = Path(name)
        setup = codex.set_up(limner, home, variables(model, home), model.origin)
        if not is_required:
            _do_not_require(home)
        setup.run()
        return bool(model.seen) and model.seen[0].tools_of(mcp_tools()) == {*mcp_tools()}


def _do_not_require(home: Path) -> None:
    file = home / "codex" / "config.toml"
    text = file.read_text()
    assert REQUIRED in text
    file.write_text(text.replace(REQUIRED, ""))


@contextmanager
def _busy_cores() -> Iterator[int]:
    cores = os.cpu_count() or 1
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]
    try:
        yield cores
    finally:
        for process in busy:
            process.kill()
            process.wait()
