"""`make ecosystem`: every framework, each in its own environment -> what reached the model.

    python -m tests.ecosystem [PAGE]…

Without arguments it runs every page. The rows go to results.json, and docs/ecosystem.md is made of
these. The environments stay in .ecosystem/, so that a second run is quick.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from PIL import Image
from tests.ecosystem.pages import ROOT, Page, all_pages
from tests.ecosystem.report import Row, read_rows, write_rows
from tests.ecosystem.scripted_model import ScriptedModel

CACHE = ROOT / ".ecosystem"
LIMIT_S = 300
# The first call is wrong, so that the run shows how the framework reports an error to the model.
SCRIPT = [
    ("image_generate", {"prompt": "a red fox under the moon", "size": "huge"}),
    ("image_generate", {"prompt": "a red fox under the moon", "quality": "standard"}),
]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")


@cache
def picture() -> bytes:
    """A PNG as an image service draws it."""
    file = io.BytesIO()
    with Image.open(ROOT / "docs" / "images" / "cat.png") as cat:
        cat.convert("RGB").resize((1024, 1024)).save(file, "PNG")
    return file.getvalue()


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


def variables(model: ScriptedModel, home: Path) -> dict[str, str]:
    """The environment of a program: every service is the scripted one."""
    address = model.origin
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LIMNER_HOME": str(home / "limner"),
        "LIMNER_IMAGES_PROVIDER": "openai-image",
        "OPENAI_API_KEY": "sk-scripted-0123456789",
        "OPENAI_BASE_URL": f"{address}/v1",
        "OPENAI_API_BASE": f"{address}/v1",
        "ANTHROPIC_API_KEY": "scripted-0123456789",
        "ANTHROPIC_BASE_URL": address,
        "GOOGLE_API_KEY": "scripted-0123456789",
        "GOOGLE_GEMINI_BASE_URL": address,
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "CREWAI_DISABLE_TELEMETRY": "true",
        "OTEL_SDK_DISABLED": "true",
    }


def run_program(program: str, *, python: Path, model: ScriptedModel, folder: Path) -> str:
    """Run a program of a page; returns what it printed."""
    file = folder / "program.py"
    file.write_text(program, encoding="utf-8")
    try:
        done = subprocess.run(
            [str(python), str(file)],
            cwd=folder,
            env=variables(model, folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return f"it ran for more than {LIMIT_S} s\n{error.stdout!r}"
    return done.stdout if done.returncode == 0 else f"{done.stdout}\nexit status {done.returncode}"


def try_page(page: Page, python: Path) -> list[Row]:
    """The rows of a page, one for each of its programs."""
    rows: list[Row] = []
    version = _version(page, python)
    for program in page.programs:
        with (
            tempfile.TemporaryDirectory(prefix="limner-ecosystem-") as name,
            ScriptedModel(SCRIPT, picture=picture()) as model,
        ):
            printed = run_program(program, python=python, model=model, folder=Path(name))
            costs = [float(one) for one in re.findall(r"cost: ([\d.]+) USD", printed)]
            row = Row.of(page, version, model, cost_usd=sum(costs))
        rows.append(row)
        print(row.line())
        if not row.is_good or os.environ.get("VERBOSE"):
            print(printed[-3000:])
            print(*model.seen, sep="\n")
    return rows


def _version(page: Page, python: Path) -> str:
    name = page.packages[0].partition("[")[0]
    code = f"from importlib.metadata import version; print(version({name!r}))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def main(names: Sequence[str]) -> int:
    """Run the pages, and write the table."""
    pages = [page for page in all_pages() if not names or page.name in names]
    wheel = build_wheel()
    rows = [row for page in pages for row in try_page(page, environment(page, wheel))]
    write_rows(read_rows(), rows, today=datetime.now(UTC).date())
    return 0 if all(row.is_good for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
