"""``$LIMNER_HOME`` -> the place of each thing limner keeps."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec


class Home(msgspec.Struct, frozen=True):
    """The folder limner keeps its things in. Making this value touches nothing."""

    folder: Path

    @classmethod
    def default(cls) -> Home:
        """``$LIMNER_HOME`` where it is set and not blank, else ``~/.limner``."""
        named = os.environ.get("LIMNER_HOME", "").strip()
        return cls(Path(named).expanduser().absolute() if named else user_home() / ".limner")

    @property
    def generated(self) -> Path:
        """Where pictures go when nobody names a path."""
        return self.folder / "generated"

    @property
    def blobs(self) -> Path:
        """The bytes of every picture, by handle."""
        return self.folder / "blobs"

    @property
    def database(self) -> Path:
        """Sessions, ledger, jobs and pictures."""
        return self.folder / "limner.db"

    @property
    def keys(self) -> Path:
        """The secrets that ``limner keys set`` stored."""
        return self.folder / "keys.toml"

    @property
    def config(self) -> Path:
        """The user's settings."""
        return self.folder / "config.toml"

    @property
    def chat_history(self) -> Path:
        """What was typed into `limner chat`."""
        return self.folder / "chat_history"

    @property
    def personalities(self) -> Path:
        """The user's own personalities."""
        return self.folder / "personalities"


def user_home() -> Path:
    """The user's own folder, or the filesystem root for a user who has none."""
    try:
        return Path.home()
    except RuntimeError:  # a container's anonymous user: no HOME and no entry in passwd
        return Path("/")
