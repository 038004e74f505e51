"""The name or path of Codex, or None -> the path of the program."""

from __future__ import annotations

import shutil
from importlib import import_module
from pathlib import Path

from limner.errors import MissingExtra

CODEX = "codex"


def find_codex(name: str | Path | None = None) -> str:
    """Find the real Codex: by its name or path, on the PATH, or in its Python package.

    Raises:
        MissingExtra: it is not installed; the hint says how to install it.
    """
    found = shutil.which(CODEX if name is None else str(name))
    if found is None and name in (None, CODEX):
        found = _find_packaged()
    if found is None:
        raise MissingExtra(
            f"The program {str(name or CODEX)!r} is not installed.",
            hint="Install Codex: npm install -g @openai/codex, or pip install openai-codex.",
        )
    return found


def _find_packaged() -> str | None:
    try:
        module = import_module("codex_cli_bin")
    except ImportError:
        return None
    return str(module.bundled_codex_path())
