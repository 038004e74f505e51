"""The name or path of a program, such as Codex -> the path of the program.

A name is looked up on the PATH. limner skips relative folders there, and folders inside the working
folder unless the user trusts it: a cloned repository may have programs with the usual names.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from limner.errors import MissingExtra, UserError
from limner.settings.trust import may_use

CODEX = "codex"


def find_codex(name: str | Path | None = None) -> str:
    """Find the real Codex: by its name or path, on the PATH, or in its Python package.

    Raises:
        MissingExtra: it is not installed; the hint says how to install it.
        UserError: only the working folder has one, and the user does not trust the folder.
    """
    wanted = CODEX if name is None else str(name)
    if wanted == CODEX and (packaged := _find_safe(CODEX) or _find_packaged()) is not None:
        return packaged
    found = find_program(wanted)
    if found is None:
        raise MissingExtra(
            f"The program {wanted!r} is not installed.",
            hint="Install Codex: npm install -g @openai/codex, or pip install openai-codex.",
        )
    return found


def find_program(name: str) -> str | None:
    """Find a program by its path, or by its name in a folder of the PATH that limner may use.

    Raises:
        UserError: only folders that limner may not use have it.
    """
    if Path(name).name != name:
        return shutil.which(name)
    found = _find_safe(name)
    if found is None and (refused := _find_in(os.get_exec_path(), name)) is not None:
        raise UserError(
            f"limner does not run {refused!r}: it is in the working folder, or a relative folder "
            "of the PATH leads to it",
            hint="Give its path, or run `limner trust` if you trust the working folder.",
        )
    return found


def safe_folders(env: Mapping[str, str]) -> list[str]:
    """The folders of the PATH in which limner looks for programs."""
    folders = os.get_exec_path(dict(env))
    return [folder for folder in folders if Path(folder).is_absolute() and may_use(Path(folder))]


def safe_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment in which a program finds others, such as its interpreter, only there too."""
    given = dict(os.environ if env is None else env)
    return {**given, "PATH": os.pathsep.join(safe_folders(given))} if "PATH" in given else given


def _find_safe(name: str) -> str | None:
    return _find_in(safe_folders(os.environ), name)


def _find_in(folders: list[str], name: str) -> str | None:
    # With a folder in its name, a program is looked for there and nowhere else, also on Windows.
    found = (shutil.which(Path(folder or os.curdir).absolute() / name) for folder in folders)
    return next((str(path) for path in found if path is not None), None)


def _find_packaged() -> str | None:
    try:
        module = import_module("codex_cli_bin")
    except ImportError:
        return None
    return str(module.bundled_codex_path())
