"""The guide for the first hour: its commands are typed again, in a clean environment."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.clean_environment import clean_environment
from tests.servers.codex_process import codex_program
from tests.servers.components import needs

pytestmark = [pytest.mark.slow, needs("codex_cli_bin")]

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "first-hour.md").read_text(encoding="utf-8")
GUARD_S = 240.0


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """The environment of a new user, whose `pip` finds packages without a network."""
    for folder in ("bin", "work", ".codex"):
        (tmp_path / folder).mkdir()
    python, packages = clean_environment(tmp_path / "venv")
    wheel = tmp_path / "wheel"
    words = ["-m", "hatchling", "build", "--target", "wheel", "--directory", str(wheel)]
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True, capture_output=True)
    [built] = wheel.glob("*.whl")
    install = f'"{sys.executable}" -m pip install -q --no-deps --no-index --no-build-isolation'
    programs = {
        "limner": f'exec "{python}" -m limner "$@"',
        "python": f'exec "{python}" "$@"',
        "codex": f'exec "{codex_program()}" "$@"',
        "pip": f'for word; do given="$word"; done\n[ -d "$given" ] || given="{built}"\n'
        f'exec {install} --target "{packages}" "$given"',
    }
    for name, line in programs.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "work" / "sales.json").write_text(blocks("json sales.json")[0])
    shutil.copytree(ROOT / "examples" / "plug_in", tmp_path / "work" / "plug_in")
    (tmp_path / "work" / "plug_in" / "pytest.ini").write_text("[pytest]\n")
    return {"HOME": str(tmp_path), "PATH": f"{tmp_path}/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


def test_the_first_hour_goes_as_the_guide_shows_it(shell: dict[str, str], tmp_path: Path) -> None:
    steps = [step for block in blocks("console") for step in re.split(r"^\$ ", block, flags=re.M)]
    for command, _, shown in (step.partition("\n") for step in steps if step):
        done = subprocess.run(
            ["sh", "-c", f"{command} 2>&1"],
            cwd=tmp_path / "work",
            env=shell,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=GUARD_S,
        )
        # Codex warns because the home of this test is a temporary folder.
        said = re.sub(r"^WARNING: proceeding.*\n", "", done.stdout, flags=re.M)
        pattern = ".*".join(map(re.escape, shown.split("…")))
        assert re.fullmatch(pattern, said, re.DOTALL), (command, said)
