"""A checkout -> files that a package has besides: the commit, and the catalogue as JSON."""

from __future__ import annotations

import json
import subprocess
import tomllib
import zlib
from decimal import Decimal
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACES = {"wheel": "limner/commit.txt", "sdist": "src/limner/commit.txt"}
CATALOGUE = "limner/catalogue"


class PackageHook(BuildHookInterface):
    """Adds ``commit.txt``, and to a wheel the files of the catalogue as JSON.

    An sdist has the commit already, and a copy without git has none. All files are written outside
    of the source, unless the package is installed to be edited: then it is used from there.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the files, and include them."""
        source = Path(self.root, "src")
        if version == "editable":
            compile_catalogue(source / CATALOGUE, source / CATALOGUE)
            return
        included, made = build_data["force_include"], Path(self.directory, ".made")
        made.mkdir(parents=True, exist_ok=True)
        if (commit := _commit(Path(self.root))) is not None:
            (made / "commit").write_text(commit + "\n", encoding="ascii")
            included[str(made / "commit")] = PLACES[self.target_name]
        if self.target_name == "wheel":
            for file in compile_catalogue(source / CATALOGUE, made):
                included[str(file)] = f"{CATALOGUE}/{file.relative_to(made)}"


def compile_catalogue(catalogue: Path, target: Path) -> list[Path]:
    """Write each TOML file of the catalogue as JSON, under the name that `data_file` reads."""
    written: list[Path] = []
    for file in sorted(catalogue.rglob("*.toml")):
        data, folder = file.read_bytes(), target / file.parent.relative_to(catalogue)
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{file.stem}-????????.json"):
            old.unlink()
        compiled = folder / f"{file.stem}-{zlib.crc32(data):08x}.json"
        rows = tomllib.loads(data.decode(), parse_float=Decimal)
        # Decimals and dates become text, which is read as what it was.
        compiled.write_text(json.dumps(rows, default=str), encoding="utf-8")
        written.append(compiled)
    return written


def _commit(root: Path) -> str | None:
    if not (root / ".git").exists():
        return None
    try:
        commit = _git(root, "rev-parse", "--short=12", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{commit}-changed" if changed else commit


def _git(root: Path, *words: str) -> str:
    command = ["git", *words]  # from the PATH of the developer
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()
