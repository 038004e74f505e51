"""A checkout -> the commit that a wheel or an sdist is made from, as a file in the package."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACES = {"wheel": "limner/commit.txt", "sdist": "src/limner/commit.txt"}


class CommitHook(BuildHookInterface):
    """Adds ``commit.txt``. An sdist has it already, and a copy without git has none."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the commit to a file outside of the source, and include that."""
        commit = _commit(Path(self.root))
        if commit is None or version == "editable":
            return
        file = Path(self.directory) / ".commit"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(commit + "\n", encoding="ascii")
        build_data["force_include"][str(file)] = PLACES[self.target_name]


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
