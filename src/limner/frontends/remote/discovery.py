"""The name or path of Codex, or neither -> the program to run."""

from __future__ import annotations

import shutil
from importlib import import_module
from pathlib import Path

from limner.errors import MissingExtra

CODEX = "codex"


def find_codex(named: str | Path | None = None) -> str:
    """The real Codex: the one that is named, the one on the PATH, or that of its Python package.

    Raises:
        MissingExtra: there is none; the hint says how to install it.
    """
    found = shutil.which(CODEX if named is None else str(named))
    if found is None and named in (None, CODEX):
        found = _packaged()
    if found is None:
        raise MissingExtra(
            f"There is no program {str(named or CODEX)!r} here.",
            hint="Install Codex: npm install -g @openai/codex, or pip install openai-codex.",
        )
    return found


def _packaged() -> str | None:
    try:
        module = import_module("codex_cli_bin")
    except ImportError:
        return None
    return str(module.bundled_codex_path())
