"""Every example runs offline, as it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.servers.codex_messages import RECORDING

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
DAILY = {"draw", "look_and_measure"}
# Programs that run until they are stopped; other tests start them.
SERVERS = {"web_service"}


# Large programs of others: an example that needs one says so, and acceptance tests run it with one.
ABSENT = ("codex_cli_bin",)


@pytest.fixture
def without_others(tmp_path: Path) -> Path:
    """A folder that makes Python believe that these packages are not installed."""
    folder = tmp_path / "absent"
    folder.mkdir()
    for name in ABSENT:
        (folder / f"{name}.py").write_text("raise ImportError\n")
    return folder


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(path, id=path.stem, marks=[] if path.stem in DAILY else pytest.mark.slow)
        for path in EXAMPLES
        if path.stem not in SERVERS
    ],
)
def test_the_example_runs_and_makes_a_picture(
    example: Path, tmp_path: Path, without_others: Path
) -> None:
    env = {"HOME": str(tmp_path), "PATH": "", "PYTHONPATH": str(without_others)}
    if "app-server" in example.read_text():
        folders = (RECORDING["PYTHONPATH"], str(without_others))
        env |= {**RECORDING, "PYTHONPATH": os.pathsep.join(folders)}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    made = [Path(word) for word in done.stdout.split() if word.endswith(".png")]
    assert made
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in made)
