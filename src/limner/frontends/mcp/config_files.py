"""A client's configuration file -> its text; an edited text -> the file, and a backup of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from limner.errors import SettingsError, StorageError
from limner.storage.files import open_plain, write_new
from limner.storage.os_errors import disk_errors

_MAX_BYTES = 64 * 1024 * 1024
_NEW_FILE_MODE = 0o666


class ConfigFile:
    """One file, which may not exist; a symlink is followed.

    Args:
        path: the path that the client reads.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # Users keep such files in their own repository and link to them.
        self._real = Path(os.path.realpath(path))
        self.backup = self._real.with_name(f"{self._real.name}.limner-backup")

    def read(self) -> str | None:
        """Return the text, or None if there is no file.

        Raises:
            SettingsError: it is not UTF-8, or too large for a configuration.
            StorageError: it cannot be read.
        """
        return _read(self._real)

    def read_backup(self) -> str | None:
        """Return the text of the backup, or None if there is no backup. Raises as ``read``."""
        return _read(self.backup)

    def keep_backup(self) -> None:
        """Copy the file to the backup path and replace an earlier backup.

        Raises:
            StorageError: it cannot be written.
        """
        mode = self._mode()
        with disk_errors(doing="read", path=self._real):
            content = self._real.read_bytes()
        write_new(self.backup, content, overwrite=True, mode=mode)

    def drop_backup(self) -> None:
        """Remove the backup; the file has the same content again."""
        with disk_errors(doing="remove", path=self.backup):
            self.backup.unlink(missing_ok=True)

    def write(self, text: str | None, *, over: str | None) -> None:
        """Replace the file atomically and keep its mode; None removes it.

        Args:
            text: the new content.
            over: the content when the file was read.

        Raises:
            SettingsError: the text cannot be written as UTF-8.
            StorageError: the file cannot be written, or has changed since it was read.
        """
        if self.read() != over:
            raise StorageError(
                f"Another program has just changed {str(self.path)!r}.",
                hint="Nothing was written. Run the command again.",
                retryable=True,
            )
        if text is None:
            with disk_errors(doing="remove", path=self._real):
                self._real.unlink()
            return
        mode = self._mode()
        write_new(self._real, _encoded(text, self.path), overwrite=True, mode=mode)
        if over is not None:
            with disk_errors(doing="write", path=self._real):
                self._real.chmod(mode)  # the umask may have removed bits from a new file

    def _mode(self) -> int:
        try:
            return stat.S_IMODE(self._real.stat().st_mode)
        except FileNotFoundError:
            return _NEW_FILE_MODE


def _read(path: Path) -> str | None:
    try:
        file = open_plain(path)
    except StorageError as error:
        if error.code == "FILE_NOT_FOUND":
            return None
        raise
    with file, disk_errors(doing="read", path=path):
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise SettingsError(f"{str(path)!r} is too large for a configuration file.")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise SettingsError(f"{str(path)!r} is not valid UTF-8 at byte {error.start}.") from None


def _encoded(text: str, path: Path) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise SettingsError(
            f"Nothing was written to {str(path)!r}: limner's own path is not valid UTF-8.",
            hint="Install limner in a folder whose path is valid UTF-8.",
        ) from None
