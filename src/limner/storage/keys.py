"""A key's name -> its secret value, from the environment or a file that only its owner can read."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from limner.errors import InputInvalid, SettingsError
from limner.settings.variables import Lookup
from limner.storage.files import locked_folder, write_new
from limner.storage.os_errors import disk_errors

_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_OTHERS_MAY = 0o077
_HEADING = (
    "# Secrets of limner. Change them with `limner keys set NAME` and `limner keys remove NAME`.\n"
)


class KeyEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A key that is set, safe to show: the value is masked."""

    name: str
    source: Literal["environment", "file"]
    masked: str


class Keys:
    """The keys of one limner home. Making this value does not read the file.

    Args:
        path: the key file, which need not exist.
        env: the environment, which wins over the file; a blank variable counts as not set.
    """

    def __init__(self, path: Path, env: Lookup) -> None:
        self._path = path
        self._env = env

    def get(self, name: str) -> str | None:
        """The value of a key, or None if it is not set.

        Raises:
            SettingsError: the key file is malformed, or other users can read it.
        """
        return self._from_environment(name) or self._from_file().get(name)

    def set(self, name: str, value: str) -> None:
        """Store a key in the file.

        Raises:
            InputInvalid: the name or the value is not valid.
            SettingsError: as ``get``.
            StorageError: the file cannot be written.
        """
        if _NAME.fullmatch(name) is None:
            raise InputInvalid(
                f"{name[:80]!r} is not the name of a key.",
                field="name",
                hint="Names look like OPENAI_API_KEY: capitals, digits and underscores.",
            )
        value = value.strip()
        if not value or not value.isprintable():
            # Even a wrong value is a secret, so it is not shown.
            raise InputInvalid(
                f"The value given for {name} is empty or holds characters that do not print.",
                field="value",
                hint="Paste the key as one line of text.",
            )
        with locked_folder(self._path.parent, doing="write the keys in"):
            self._save({**self._from_file(), name: value})

    def is_stored(self, name: str) -> bool:
        """Whether the file has a key. Raises as ``get``."""
        return name in self._from_file()

    def remove(self, name: str) -> bool:
        """Remove a key from the file; False if it was not there. Raises as ``set``."""
        if name not in self._from_file():
            return False
        with locked_folder(self._path.parent, doing="write the keys in"):
            kept = self._from_file()
            kept.pop(name, None)
            self._save(kept)
        return True

    def listing(self, known: Iterable[str] = ()) -> list[KeyEntry]:
        """The keys that are set, by name, with masked values.

        Args:
            known: names to look for in the environment; the keys of the file are always listed.
        """
        stored = self._from_file()
        entries: list[KeyEntry] = []
        for name in sorted({*stored, *known}):
            if value := self._from_environment(name):
                entries.append(KeyEntry(name=name, source="environment", masked=mask(value)))
            elif value := stored.get(name):
                entries.append(KeyEntry(name=name, source="file", masked=mask(value)))
        return entries

    def _from_environment(self, name: str) -> str | None:
        return self._env.get(name, "").strip() or None

    def _from_file(self) -> dict[str, str]:
        with disk_errors(doing="read the keys in", path=self._path):
            try:
                file = self._path.open("rb")
            except FileNotFoundError:
                return {}
            with file:
                self._check_private(os.fstat(file.fileno()).st_mode)
                text = file.read()
        import tomllib  # noqa: PLC0415 - many users have no such file

        try:
            table = tomllib.loads(text.decode())
        except ValueError:
            # The parser's own message would quote the line, and with it the secret.
            raise self._malformed("it is not TOML") from None
        for name, value in table.items():
            if _NAME.fullmatch(name) is None or not isinstance(value, str):
                raise self._malformed(f'{name[:80]!r} is not a line like NAME = "value"')
        return table

    def _check_private(self, mode: int) -> None:
        if sys.platform != "win32" and mode & _OTHERS_MAY:
            raise SettingsError(
                f"Other users than its owner can use the key file {str(self._path)!r}.",
                hint=f"Run: chmod 600 {str(self._path)!r}",
            )

    def _malformed(self, problem: str) -> SettingsError:
        return SettingsError(
            f"The key file {str(self._path)!r} cannot be used: {problem}.",
            hint="Correct the line, or delete the file and set the keys again.",
        )

    def _save(self, table: Mapping[str, str]) -> None:
        lines = [f"{name} = {_quoted(value)}\n" for name, value in sorted(table.items())]
        text = _HEADING + "".join(lines)
        # The home may be behind a symlink of the user; no other caller chooses this path.
        write_new(Path(os.path.realpath(self._path)), text.encode(), overwrite=True, mode=0o600)


def mask(value: str) -> str:
    """A small part of a secret, so that the user recognises it: ``sk-…9f2c``."""
    return f"{value[:3]}…{value[-4:]}" if len(value) >= 20 else "…"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
