"""The pytest plug-in: cheap to load, and its fixture needs no more than its name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
    (tmp_path / "test_fox.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "limner.testing.pytest_plugin"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout
