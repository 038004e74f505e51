"""The README: its first commands print what it shows, and its programs run, all without a key."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
GUARD_S = 240.0
# Programs on the page may wait at their outermost level, as in a notebook.
RUN = """\
import ast, asyncio, sys
from pathlib import Path
from PIL import Image

def draw_bars(values):
    Image.new("RGB", (len(values), 8), "teal").save("bars.png")
    return Path("bars.png")

code = compile(sys.stdin.read(), "README", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
asyncio.run(eval(code, {"Path": Path, "draw_bars": draw_bars}))
"""


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def environment(home: Path) -> dict[str, str]:
    """An environment without keys, in which `limner` is the one of this checkout."""
    program = home / "bin" / "limner"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m limner "$@"\n')
    program.chmod(0o755)
    return {"HOME": str(home), "PATH": f"{program.parent}:/usr/bin:/bin", "LANG": "C.UTF-8"}


def without_measures(text: str) -> str:
    """The text without the time that a picture took and the shares of its colours."""
    return re.sub(r"[0-9.]+ (s|%)", r"N \1", text)


@pytest.mark.slow
def test_the_first_commands_print_what_the_readme_shows(tmp_path: Path) -> None:
    env = environment(tmp_path)
    first = blocks("console")[0]
    assert first.count("$ limner") == 3
    for part in first.split("$ ")[1:]:
        command, _, shown = part.partition("\n")
        done = subprocess.run(
            ["sh", "-c", f"{command} 2>&1"],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=True,
            timeout=GUARD_S,
        )
        # Once a day a note says which key to set for a model that paints anything.
        lines = [line for line in done.stdout.splitlines() if not line.startswith("Drawn offline")]
        expected = shown.replace("…/", f"{tmp_path}/").splitlines()
        if expected[-1] == "…":
            expected.pop()
            lines = lines[: len(expected)]
        assert without_measures("\n".join(lines)) == without_measures("\n".join(expected))


@pytest.mark.slow
def test_the_programs_of_the_readme_run_one_after_the_other(tmp_path: Path) -> None:
    program = "\n".join(blocks("python"))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUN],
        input=program,
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=GUARD_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, *events = done.stdout.splitlines()
    assert first.endswith(".png 1024x1792 0.0")
    assert any("TurnEnded" in line and "completed" in line for line in events)
