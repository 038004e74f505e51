"""The pytest plug-in: cheap to load, and its fixture needs no more than its name."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEST = """
import limner

def test_a_fox_is_drawn(limner_fake):
    limner_fake.images.refuse()
    try:
        limner.generate("a fox")
    except limner.LimnerError as error:
        assert error.code == "IMAGE_GEN_REJECTED"
    assert limner.generate("a fox").cost_usd == limner_fake.bill().cost_usd
"""


def test_the_plug_in_imports_nothing_of_limner_but_itself() -> None:
    code = "import limner.testing.pytest_plugin, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = [name for name in done.stdout.split() if name.split(".")[0] == "limner"]
    assert loaded == ["limner", "limner.testing", "limner.testing.pytest_plugin"]


@pytest.mark.slow
def test_a_test_of_a_program_uses_the_fixture(tmp_path: Path) -> None:
    # A checkout may have been installed before it declared the entry point.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ((name, module),) = project["entry-points"]["pytest11"].items()
    installed = tmp_path / "limner_declared-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: limner-declared\nVersion: 1\n"
    )
    (installed / "entry_points.txt").write_text(f"[pytest11]\n{name} = {module}\n")
    (tmp_path / "test_fox.py").write_text(TEST)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr
