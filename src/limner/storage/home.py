"""limner's home folder -> the path of each file and folder in it."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

import msgspec

from limner.settings.home import find_home
from limner.settings.trust import RECORDS


class Home(msgspec.Struct, frozen=True):
    """The folder that limner keeps its files in. Making this value does not touch the disk.

    ``shared_blobs`` is the folder outside of it that has the bytes of pictures, if there is one.
    """

    folder: Path
    shared_blobs: Path | None = None

    @classmethod
    def of_process(cls) -> Home:
        """The home folder of this process's environment; raises as `find_home`."""
        shared = shared_folder(os.environ.get("LIMNER_BLOBS", "").strip())
        return cls(find_home(os.environ, cwd=Path.cwd()), shared)

    @property
    def generated(self) -> Path:
        """The folder of pictures for which the caller names no path."""
        return self.folder / "generated"

    @property
    def blobs(self) -> Path:
        """The bytes of every picture, by handle."""
        return self.folder / "blobs"

    @property
    def blob_copies(self) -> Path:
        """Copies of blobs that are stored elsewhere, which can be fetched again."""
        return self.folder / "blob-copies"

    @property
    def thumbnails(self) -> Path:
        """Small pictures for lists, which can be made again."""
        return self.folder / "thumbnails"

    @property
    def incoming(self) -> Path:
        """The bytes that services delivered and that are not yet pictures, by job."""
        return self.folder / "incoming"

    @property
    def database(self) -> Path:
        """Sessions, ledger, jobs and pictures."""
        return self.folder / "limner.db"

    @property
    def mark(self) -> Path:
        """The id of the database, and how many writes it has."""
        return self.folder / "home-id"

    @property
    def path_locks(self) -> Path:
        """One byte for each path that a call will write, locked by the process of the call."""
        return self.folder / "path-locks"

    @property
    def backups(self) -> Path:
        """The daily copies of the database, and damaged ones that were put aside."""
        return self.folder / "backups"

    @property
    def damage_report(self) -> Path:
        """What the daily check found wrong with the database; missing if nothing."""
        return self.folder / "damage-report"

    @property
    def note_day(self) -> Path:
        """The day on which the user last read the note about keys."""
        return self.folder / "note-day"

    @property
    def keys(self) -> Path:
        """The keys that ``limner keys set`` stored."""
        return self.folder / "keys.toml"

    @property
    def tokens(self) -> Path:
        """The tokens of the servers that run, a file for each."""
        return self.folder / "tokens"

    @property
    def config(self) -> Path:
        """The user's settings."""
        return self.folder / "config.toml"

    @property
    def trusted(self) -> Path:
        """The folders that the user trusts, as `limner trust` recorded them."""
        return self.folder / RECORDS

    @property
    def chat_history(self) -> Path:
        """What the user typed into `limner chat`."""
        return self.folder / "chat_history"

    @property
    def personalities(self) -> Path:
        """The user's own personalities."""
        return self.folder / "personalities"


def shared_folder(address: str | None) -> Path | None:
    """The folder of an address ``file:///…``; None for every other address."""
    if not address or not address.startswith("file:"):
        return None
    return Path(unquote(address.removeprefix("file://")))


def user_home() -> Path:
    """The user's home folder, or the filesystem root for a user who has none."""
    try:
        return Path.home()
    except RuntimeError:  # an anonymous user of a container: no HOME and no entry in passwd
        return Path("/")
