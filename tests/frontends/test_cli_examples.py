"""Every command in help, the README and the guides works as typed, without a key or a network."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from PIL import Image

from limner.frontends.cli import main

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
GUARD_S = 120.0
WITH_KEY = "with a key:"
# These go on until the user stops them, need a terminal, Codex, an extra, an installed entry or
# a job that was interrupted; other tests run them.
ELSEWHERE = re.compile(
    r"limner (?:chat(?: --resume| \"[^\"]*\"(?: --budget 0\.50)?)?|codex\b.*"
    r"|mcp(?: --http .*| doctor \S+)?|app-server(?: --listen .*)?|jobs .*job_1f0c.*|COMMAND --help"
    r"|studio(?: --no-open.*)?|work --wait.*|fit report\.pdf.*|generate .*--provider atelier.*)"
    r"|.*--config .* app-server|LIMNER_MCP_TOKEN.*"
)
PICTURES = (
    *("photo.jpg", "room.png", "shirt.png", "logo.png", "style.png", "portrait.png", "fox.png"),
    *("screenshot.png", "plan.png", "before.png", "after.png", "receipt.jpg", "sofa.jpg"),
    "docs/images/cat.png",
)
COSTS = "start_time,amount_value,amount_currency\n1794700800,0,usd\n"
FILES = {
    "sales.json": '{"type": "bar", "labels": ["Q1", "Q2"], "values": [12, 18]}',
    "poster.svg": '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><circle r="5"/></svg>',
    "flow.mmd": "flowchart TD\n a --> b",
    "prompt.txt": "a fox",
    "rows.jsonl": '{"key": "fox", "prompt": "a fox", "size": "512x512"}',
    "request.txt": "draw a fox",
    "receipt.json": '{"type": "object"}',
    "predictions.json": '[{"id": "p", "status": "canceled", "created_at": "2026-11-15T12:00Z"}]',
    "costs.csv": COSTS,
    "cost_2026-11-01_2026-11-30.csv": COSTS,
}


def examples_of(text: str) -> Iterator[tuple[str, bool]]:
    """The commands of a help text, and whether they need a key."""
    needs_key = False
    for line in text.splitlines():
        if line.startswith("  "):
            yield re.split(r"\s{2,}", line.strip())[0], needs_key
        elif line.endswith(":"):
            needs_key = line == WITH_KEY


def help_examples() -> Iterator[tuple[str, bool]]:
    yield from examples_of(main.EXAMPLE)
    for name in main.COMMANDS:
        module = import_module(f"limner.frontends.cli.{name.replace('-', '_')}")
        yield from examples_of(module.EXAMPLE)


def page_examples() -> Iterator[tuple[str, bool]]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace(" \\\n", " ")
        for block in re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            for command in re.findall(r"^\$ (.*?)(?:\s+# .*)?$", block, re.MULTILINE):
                # A page says in words what needs a key.
                is_drawn = "house" in command or " cat.png" in command
                is_paid_edit = command.startswith("limner edit") and not is_drawn
                yield command, is_paid_edit or "--lane" in command


class Workshop:
    """A folder with the files that examples name, and a home in which something was drawn."""

    def __init__(self, folder: Path) -> None:
        self.cwd, self.limner_home = folder / "work", folder / ".limner"
        self.ids: dict[str, str] = {}
        bin_folder = folder / "bin"
        for made in (
            *(bin_folder, folder / "projects" / "site"),
            *(self.cwd / "docs" / "images", self.cwd / "scans"),
        ):
            made.mkdir(parents=True)
        program = bin_folder / "limner"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m limner "$@"\n')
        program.chmod(0o755)
        self.env = {"HOME": str(folder), "PATH": f"{bin_folder}:/usr/bin:/bin", "LANG": "C.UTF-8"}
        picture = Image.new("RGB", (3200, 700), "teal")
        for name in PICTURES:
            picture.save(self.cwd / name)
        # Above 100 megapixels, and not among the pictures that another example names by "*.png".
        Image.new("1", (20_000, 18_000)).save(self.cwd / "scans" / "site.png")
        for name, text in FILES.items():
            (self.cwd / name).write_text(text)
        assert self.type("limner batch run rows.jsonl").returncode == 0
        for words, file in (
            ("a cat on a beach", "cat.png"),
            ("a house and a tree in a meadow", "house.png"),
            ("a bar chart of sales: Q1 12, Q2 18, Q3 9", "chart-house.png"),
        ):
            assert self.type(f"limner generate '{words}' --out {file}").returncode == 0
        talk = json.loads(self.type("limner chat -p 'draw a fox' --json").stdout)
        self.ids = dict.fromkeys(("5f0c…", "3f2a9c0e…"), talk["images"][0]["handle"])
        self.ids["01a1dcb7"] = talk["session"]
        rollouts = folder / ".codex" / "sessions" / "2026" / "11" / "15"
        rollouts.mkdir(parents=True)
        other = json.loads(self.type("limner chat -p thanks --json").stdout)["session"]
        to_file = f"limner sessions export {other} --out {rollouts}/rollout-1.jsonl"
        assert self.type(f"{to_file} && limner sessions delete {other}").returncode == 0

    def type(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run what a user types."""
        for shown, real in self.ids.items():
            command = command.replace(shown, real)
        # No file of an earlier example is in the way.
        for name in re.findall(r"(?:--out|backup) (\S+\.\w+)", command):
            (self.cwd / name).unlink(missing_ok=True)
        return subprocess.run(
            ["sh", "-c", command],
            cwd=self.cwd,
            env=self.env,
            input="sk-test-0123456789\n",
            capture_output=True,
            text=True,
            check=False,
            timeout=GUARD_S,
        )


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("examples"))


def shown_commands() -> list[tuple[str, bool]]:
    """Every command that is shown and that this file can run, once."""
    shown = {**dict(page_examples()), **dict(help_examples())}
    return [
        (command, needs_key)
        for command, needs_key in shown.items()
        if re.match(r"(?:LIMNER_HOME=\S+ |echo .* \| )?limner ", command)
        and not ELSEWHERE.fullmatch(command)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "needs_key"), shown_commands())
def test_an_example_works_without_a_key_or_says_which_key_it_needs(
    workshop: Workshop, command: str, needs_key: bool
) -> None:
    done = workshop.type(command)
    told = done.stdout + done.stderr
    names_key = re.search(r"_API_KEY\b", told) is not None
    assert "Traceback" not in told
    # A check that fails, or cannot be determined, has a status of its own.
    fine = {0, 1, 6} if command.startswith("limner check") else {0}
    assert done.returncode in fine or (needs_key and names_key), told


def test_most_commands_are_run_here() -> None:
    shown = {**dict(page_examples()), **dict(help_examples())}
    assert (len(shown_commands()) > 75, len(shown) > 100) == (True, True)
