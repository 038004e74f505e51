"""A home and a folder -> the record that `limner trust` writes."""

from __future__ import annotations

from pathlib import Path

import msgspec

from limner.settings.trust import TrustedFolders, folder_record


def trust_folder(home: Path, folder: Path, *names: str) -> Path:
    """Trust a folder with its `limner.toml` and further files; returns the record."""
    record = TrustedFolders(home).path(folder)
    record.parent.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / name for name in ("limner.toml", *names)}
    files = {name: path.read_bytes() for name, path in paths.items() if path.exists()}
    record.write_bytes(msgspec.json.encode(folder_record(folder, files)))
    record.chmod(0o600)
    return record
