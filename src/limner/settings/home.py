"""The environment -> the folder that limner keeps its files in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from limner.errors import SettingsError


def find_home(env: Mapping[str, str], *, cwd: Path) -> Path:
    """``$LIMNER_HOME`` if it is set and not blank, else ``~/.limner``.

    A relative folder starts at ``cwd``.

    Raises:
        SettingsError: the user has no home folder.
    """
    named = env.get("LIMNER_HOME", "").strip()
    try:
        if not named:
            return (_user_home(env) / ".limner").absolute()
        if named == "~" or named.startswith("~/"):
            return (_user_home(env) / named[2:]).absolute()
        return (cwd / Path(named).expanduser()).absolute()
    except RuntimeError as error:
        raise SettingsError(
            "limner cannot determine its home folder: this user has no home folder",
            hint="Set LIMNER_HOME to a folder that limner may write.",
        ) from error


def _user_home(env: Mapping[str, str]) -> Path:
    return Path(env.get("USERPROFILE" if os.name == "nt" else "HOME") or Path.home())
