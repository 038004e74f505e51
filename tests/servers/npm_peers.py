"""Programs of others from npm, installed once beside the tools of this checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.servers.components import skipped_without

INSTALL_S = 300.0


def folder_of(package: str) -> Path:
    """Where a package of that name and version is kept."""
    return Path(sys.prefix, "npm", package.strip("@").replace("/", "-"))


def needs_npm(package: str) -> pytest.MarkDecorator:
    """Skips a test if a package is not installed yet."""
    return skipped_without([] if folder_of(package).exists() else [package])


def program(package: str, name: str) -> Path:
    """A program of a package, which is installed if it is not."""
    return installed_file(package, f".bin/{name}")


def installed_file(package: str, name: str) -> Path:
    """A file below `node_modules`, of a package that is installed if it is not."""
    folder = folder_of(package)
    found = folder / "node_modules" / name
    if not found.exists():
        npm = shutil.which("npm")
        assert npm is not None, "npm is not installed"
        folder.mkdir(parents=True, exist_ok=True)
        words = [npm, "install", "--no-audit", "--no-fund", "--loglevel=error", package]
        subprocess.run(words, cwd=folder, check=True, timeout=INSTALL_S)
    return found
