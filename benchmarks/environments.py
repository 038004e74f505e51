"""Requirements -> the Python of an environment that has them, made once under ``.bench``.

A peer has its own packages, so that none of them meets limner's.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
HOME = ROOT / ".bench"
# What the environments of this process have, for its record.
requirements_used: list[str] = []


def python_with(name: str, *requirements: str) -> str:
    """The path of that Python.

    Raises:
        subprocess.CalledProcessError: pip cannot install them.
    """
    requirements_used.extend(requirements)
    folder = bench_folder() / name
    python = folder / "bin" / "python"
    wanted = "\n".join(requirements)
    stamp = folder / "requirements.txt"
    if not stamp.is_file() or stamp.read_text() != wanted:
        print(f"installing {', '.join(requirements)}, once", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", *requirements]
        subprocess.run(install, check=True)
        stamp.write_text(wanted)
    return str(python)


def python_if_possible(name: str, *requirements: str) -> str | None:
    """As `python_with`; None if pip cannot install them, so that the others are still measured."""
    try:
        return python_with(name, *requirements)
    except subprocess.CalledProcessError as error:
        print(f"{name} is left out: {error}", file=sys.stderr, flush=True)
        return None


def bench_folder() -> Path:
    """The folder for what benchmarks install and make; git ignores it."""
    HOME.mkdir(exist_ok=True)
    (HOME / ".gitignore").write_text("*\n")
    return HOME
