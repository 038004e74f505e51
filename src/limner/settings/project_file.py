"""A ``limner.toml`` in the working folder -> what limner uses of it, and what it ignores.

The file comes with the folder, which may be a clone of a stranger's repository. Before the user
trusts the folder, the file can change a setting only as the setting's own `ProjectRule` allows, and
it cannot name models.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from limner.display_text import clean_line
from limner.settings.custom_models import MODELS
from limner.settings.documents import decode, parse_toml, read_settings_file
from limner.settings.fields import Setting
from limner.settings.trust import PROJECT_FILE, TrustedFolders

_reported: set[tuple[Path, tuple[str, ...]]] = set()


class ProjectFile(msgspec.Struct, frozen=True, kw_only=True):
    """The project file of a folder; ``data`` is None if there is none."""

    path: Path
    data: bytes | None
    is_trusted: bool

    @classmethod
    def read(cls, folder: Path, *, home: Path) -> ProjectFile:
        """Read it, and check whether the user trusts exactly these bytes."""
        path = folder / PROJECT_FILE
        data = read_settings_file(path)
        trusted = data is not None and TrustedFolders(home).accepts(folder, PROJECT_FILE, data)
        return cls(path=path, data=data, is_trusted=trusted)

    def tables(self) -> dict[str, object]:
        """Parse it."""
        if self.data is None:
            return {}
        return parse_toml(decode(self.data, path=self.path), path=self.path)

    def allows(self, setting: Setting, value: Any, *, current: Any) -> bool:
        """Whether it may replace the value that the user's own file or the default gives."""
        if self.is_trusted or value == current:
            return True
        rule = setting.project_rule
        return rule is not None and rule.allows(value, current=current)

    def take_ignored_models(self, tables: dict[str, object]) -> Iterator[str]:
        """Remove the models from an untrusted file; yields their key if there were some."""
        if not self.is_trusted and MODELS in tables:
            del tables[MODELS]
            yield MODELS


def report_ignored(path: Path, keys: tuple[str, ...]) -> None:
    """Warn about the keys that a file may not set, once per process."""
    if (path, keys) in _reported:
        return
    _reported.add((path, keys))
    import logging  # noqa: PLC0415 - few folders need the warning

    logging.getLogger("limner.settings").warning(
        "limner ignores %s in %s; run `limner trust` there if you trust this folder.",
        ", ".join(keys),
        clean_line(str(path)),
    )
