"""A folder and the bytes of its files -> whether the user trusts them.

`limner trust` writes one record for a folder into limner's home: the digest of its ``limner.toml``
and of the other files that limner reads from it. Changed bytes are not trusted. Only the command
writes records: no tool, client or library call can. The user may remove one on the page too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from limner.settings.documents import read_settings_file
from limner.settings.home import find_home

PROJECT_FILE = "limner.toml"
RECORDS = "trusted"
_OTHERS_MAY = 0o077
_MAX_FILE_BYTES = 1024 * 1024


class TrustRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that the user trusts, and the digests of its files by name."""

    folder: str
    files: Mapping[str, str]


class TrustedFolders:
    """The records in one home. Making this value does not touch the disk."""

    def __init__(self, home: Path) -> None:
        self._records = home / RECORDS

    def path(self, folder: Path) -> Path:
        """The file with the record of a folder."""
        return self._records / f"{digest(os.fsencode(_real(folder)))}.json"

    def get(self, folder: Path) -> TrustRecord | None:
        """The record of a folder, whether or not its files have changed since."""
        record = _read(self.path(folder))
        return record if record is not None and record.folder == _real(folder) else None

    def accepts(self, folder: Path, name: str, data: bytes) -> bool:
        """Whether the user trusts exactly these bytes as the file ``name`` of the folder."""
        record = self.get(folder)
        return record is not None and record.files.get(name) == digest(data)

    def trusts(self, folder: Path) -> bool:
        """Whether the user trusts the folder, and its ``limner.toml`` is as it was then.

        Raises:
            SettingsError: that file cannot be read.
        """
        record = self.get(folder)
        return record is not None and PROJECT_FILE not in self.changed(record)

    def changed(self, record: TrustRecord) -> list[str]:
        """The files of a folder that are no longer as they were when it was trusted.

        Raises:
            SettingsError: one cannot be read.
        """
        now = {
            name: read_settings_file(Path(record.folder, name), max_bytes=_MAX_FILE_BYTES)
            for name in sorted({PROJECT_FILE, *record.files})
        }
        return [
            name
            for name, data in now.items()
            if record.files.get(name) != (None if data is None else digest(data))
        ]

    def remove(self, folder: Path) -> None:
        """Trust a folder no longer.

        Raises:
            OSError: the record cannot be removed.
        """
        self.path(folder).unlink(missing_ok=True)

    def all(self) -> list[TrustRecord]:
        """Every record, by folder."""
        try:
            paths = sorted(self._records.iterdir())
        except OSError:
            return []
        records = (_read(path) for path in paths if path.suffix == ".json")
        return sorted((one for one in records if one is not None), key=lambda one: one.folder)


def folder_record(folder: Path, files: Mapping[str, bytes]) -> TrustRecord:
    """The record that accepts these files of a folder, as they are now."""
    return TrustRecord(
        folder=_real(folder), files={name: digest(data) for name, data in files.items()}
    )


def accepts_relative(name: str, data: bytes) -> bool:
    """Whether this process may use a file that a variable names relative to the working folder."""
    cwd = Path.cwd()
    return TrustedFolders(find_home(os.environ, cwd=cwd)).accepts(cwd, name, data)


def may_use(path: Path) -> bool:
    """Whether this process may run or load ``path``: it is not in the working folder, or trusted.

    Python's own environment is allowed, because it often is a folder of the project. A working
    folder that contains everything, such as the root or the user's home, is no project.
    """
    cwd, file = Path.cwd(), Path(_real(path))
    is_project = _real(cwd) not in (cwd.anchor, _real(Path("~").expanduser()))
    if not is_project or not file.is_relative_to(_real(cwd)):
        return True
    if any(file.is_relative_to(_real(Path(prefix))) for prefix in (sys.prefix, sys.base_prefix)):
        return True
    return TrustedFolders(find_home(os.environ, cwd=cwd)).trusts(cwd)


def digest(data: bytes) -> str:
    """The SHA-256 of some bytes."""
    import hashlib  # noqa: PLC0415 - most folders have no file to check

    return hashlib.sha256(data).hexdigest()


def _read(path: Path) -> TrustRecord | None:
    """One record; None if there is none, or if other users than its owner could have made it."""
    try:
        with path.open("rb") as file:
            if sys.platform != "win32" and os.fstat(file.fileno()).st_mode & _OTHERS_MAY:
                return None
            return msgspec.json.decode(file.read(), type=TrustRecord)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _real(folder: Path) -> str:
    return os.path.realpath(folder)
