"""`make ecosystem`: every framework, each in its own environment -> what reached the model.

    python -m tests.ecosystem [--slow SECONDS] [NAME]…

Without names it runs every page and every agent. The rows go to results.json, and docs/ecosystem.md
is made of these. The environments stay in .ecosystem/, so that a second run is quick.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

import msgspec
from msgspec.structs import replace
from tests.ecosystem.agents import AGENTS, Agent
from tests.ecosystem.pages import ROOT, Page, all_pages
from tests.ecosystem.programs import SCRIPT, picture, run_program, variables
from tests.ecosystem.report import Row, read_rows, write_rows, write_slow
from tests.ecosystem.scripted_model import ScriptedModel

CACHE = ROOT / ".ecosystem"
ALONE = Page(name="limner", title="limner", packages=(), programs=())
Subject = Agent | tuple[Page, str]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-qq")


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a program or an agent."""

    row: Row
    printed: str


def build_wheel() -> Path:
    """The wheel of this tree."""
    folder = CACHE / "dist"
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return max(folder.glob("*.whl"), key=lambda path: path.stat().st_mtime)


@cache
def environment(page: Page, wheel: Path) -> Path:
    """The Python of a page's environment, with the packages that the page names, and limner."""
    folder = CACHE / "venvs" / page.name
    python, stamp = folder / "bin" / "python", folder / "packages"
    wanted = "\n".join(page.packages)
    pip = (*PIP, "--python", str(python), "install")
    if not stamp.exists() or stamp.read_text() != wanted:
        subprocess.run(
            [sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder)], check=True
        )
        subprocess.run([*pip, *page.packages, str(wheel)], check=True)
        stamp.write_text(wanted)
    subprocess.run([*pip, "--no-deps", "--force-reinstall", str(wheel)], check=True)
    return python


def run_page(page: Page, program: str, wheel: Path, model: ScriptedModel, folder: Path) -> Run:
    """Run one program of a page."""
    python = environment(page, wheel)
    printed = run_program(program, python=python, model=model, folder=folder)
    costs = [float(one) for one in re.findall(r"cost: ([\d.]+) USD", printed)]
    link = f"guides/frameworks/{page.name}.md"
    row = Row.of(page, _version(page, python), model, link=link, cost_usd=sum(costs))
    return Run(row=row, printed=printed)


def run_agent(agent: Agent, wheel: Path, model: ScriptedModel, folder: Path) -> Run:
    """Run an agent that uses ``limner mcp``."""
    programs = CACHE / "npm" / "node_modules"
    if not (programs / ".bin" / agent.program).exists():
        npm = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(CACHE / "npm")]
        subprocess.run([*npm, agent.package], check=True)
    version = json.loads((programs / agent.package / "package.json").read_text())["version"]
    limner = environment(ALONE, wheel).with_name("limner")
    env = variables(model, folder)
    done = agent.run(programs / ".bin", limner, folder, env, model.origin)
    page = Page(name=agent.name, title=agent.name, packages=(), programs=())
    cost_usd = model.seen[-1].cost_usd if model.seen else 0
    row = Row.of(page, version, model, link="guides/mcp-clients.md", cost_usd=cost_usd)
    return Run(row=row, printed=done.stdout)


def try_once(subject: Subject, wheel: Path, *, image_wait_s: float = 0) -> Row:
    """Run a program or an agent, and print its row."""
    script = SCRIPT[1:] if image_wait_s else SCRIPT
    with (
        tempfile.TemporaryDirectory(prefix="limner-ecosystem-") as name,
        ScriptedModel(script, picture=picture(), image_wait_s=image_wait_s) as model,
    ):
        if isinstance(subject, Agent):
            run = run_agent(subject, wheel, model, Path(name))
        else:
            run = run_page(*subject, wheel, model, Path(name))
    row = run.row
    if image_wait_s:
        fate = "delivered" if row.picture or row.is_known_drop else "lost"
        calls = f"{len(model.seen) - 1} calls" if len(model.seen) > 2 else "1 call"
        row = replace(row, slow=f"{image_wait_s:g} s: paid {row.drawn}x, {fate}, {calls}")
    print(row.line())
    if not row.is_good or os.environ.get("VERBOSE"):
        print(run.printed[-3000:])
        print(*model.seen, sep="\n")
    return row


def _version(page: Page, python: Path) -> str:
    name = page.packages[0].partition("[")[0]
    code = f"from importlib.metadata import version; print(version({name!r}))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def main() -> int:
    """Run what was asked for, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.ecosystem")
    parser.add_argument("names", nargs="*", help="pages and agents; all of them if left out")
    parser.add_argument("--slow", type=float, default=0, help="the seconds that a picture takes")
    asked = parser.parse_args()
    pages = [page for page in all_pages() if not asked.names or page.name in asked.names]
    agents = [agent for agent in AGENTS if not asked.names or agent.name in asked.names]
    wheel = build_wheel()
    if asked.slow:
        for page in [ALONE, *pages]:
            environment(page, wheel)
        # These mostly wait, so they run side by side.
        subjects: list[Subject] = [*((page, page.programs[0]) for page in pages), *agents]
        with ThreadPoolExecutor(6) as pool:
            slow = partial(try_once, wheel=wheel, image_wait_s=asked.slow)
            rows = list(pool.map(slow, subjects))
        write_slow({(row.page, row.wire): row.slow for row in rows})
    else:
        programs = [(page, program) for page in pages for program in page.programs]
        rows = [try_once(subject, wheel) for subject in [*programs, *agents]]
        write_rows(read_rows(), rows, today=datetime.now(UTC).date())
    return 0 if all(row.is_good for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
