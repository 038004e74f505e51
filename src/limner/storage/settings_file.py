"""The user's ``config.toml`` and changed values -> the same file, its comments and layout kept."""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import msgspec

from limner.errors import SettingsError, UserError
from limner.settings import all_settings, config_toml
from limner.settings.config_syntax import Data, Keys, Malformed, look_up, put, read, remove
from limner.settings.custom_models import take_custom_models
from limner.settings.documents import decode, parse_toml, read_settings_file
from limner.settings.fields import check_entries, file_entries, snake
from limner.storage.files import locked_folder, write_new

SETTINGS_CHANGED = "SETTINGS_CHANGED"


class SettingsFile(msgspec.Struct, frozen=True):
    """The settings file of the user, which need not exist."""

    path: Path

    def version(self) -> str:
        """A name for the content of the file; it changes with the content.

        Raises:
            SettingsError: the file cannot be read.
        """
        return _version(read_settings_file(self.path) or b"")

    def change(self, changes: Mapping[str, Any], *, expected_version: str | None = None) -> str:
        """Set settings, and remove those whose value is None; return the new version.

        Args:
            changes: values by dotted key.
            expected_version: the version that the caller has read.

        Raises:
            UserError: the file has another version (``SETTINGS_CHANGED``).
            SettingsError: a key or a value is not valid, or the layout of the file does not allow
                the change. The file stays as it is.
            StorageError: the file cannot be written.
        """
        with locked_folder(self.path.parent, doing="write the settings in"):
            data = read_settings_file(self.path) or b""
            if expected_version not in (None, _version(data)):
                raise UserError(
                    f"{str(self.path)!r} was changed meanwhile.",
                    code=SETTINGS_CHANGED,
                    hint="Read the settings again.",
                )
            text = decode(data, path=self.path)
            for key, value in changes.items():
                text = self._edit(text, key, value)
            self._check(text)
            edited = text.encode()
            if edited != data:
                # The home may be behind a symlink of the user.
                path = Path(os.path.realpath(self.path))
                mode = path.stat().st_mode & 0o777 if path.exists() else 0o666
                write_new(path, edited, overwrite=True, mode=mode)
        return _version(edited)

    def _edit(self, text: str, key: str, value: Any) -> str:
        try:
            data = read(config_toml, text)
            keys = _as_spelt(data, key)
            is_set = look_up(data, keys) is not None
            if value is None:
                return remove(config_toml, text, keys) if is_set else text
            if look_up(data, keys[:-1]) is None:
                return put(config_toml, text, keys[:-1], {keys[-1]: value})
            return put(config_toml, text, keys, value)
        except Malformed as error:
            raise SettingsError(
                f"{key} cannot be changed in {str(self.path)!r}: {error}",
                hint="Edit the file yourself.",
            ) from error

    def _check(self, text: str) -> None:
        tables = parse_toml(text, path=self.path)
        take_custom_models({self.path: tables})
        known = all_settings()
        entries = file_entries(tables, source=str(self.path), known=known)
        for _ in check_entries(entries, known):
            pass


def _version(data: bytes) -> str:
    return f"sha256:{sha256(data).hexdigest()}"


def _as_spelt(data: Data, key: str) -> Keys:
    """The keys as the file spells them; a file may use camelCase."""
    spelt: list[str] = []
    table: Any = data
    for name in key.split("."):
        names = cast("Data", table) if isinstance(table, dict) else {}
        spelt.append(next((one for one in names if snake(one) == name), name))
        table = names.get(spelt[-1])
    return tuple(spelt)
