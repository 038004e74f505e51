"""A new virtual environment with the dependencies of the tests, and without limner."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import NamedTuple


class CleanEnvironment(NamedTuple):
    """Its Python, and the folder into which `pip --target` installs."""

    python: Path
    packages: Path


def clean_environment(folder: Path) -> CleanEnvironment:
    """Make one in a new folder; it needs no network."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    [packages] = folder.glob("lib/python*/site-packages")
    others = metadata.distribution("msgspec").locate_file("")
    (packages / "dependencies.pth").write_text(f"{others}\n")
    return CleanEnvironment(folder / "bin" / "python", packages)
