"""Changes in the user's settings file: comments and layout stay, and a wrong change is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from limner.errors import SettingsError, UserError
from limner.storage.settings_file import SettingsFile


def test_a_file_is_made_changed_and_emptied(tmp_path: Path) -> None:
    file = SettingsFile(tmp_path / "home" / "config.toml")
    empty = file.version()
    first = file.change({"images.fit": "fast", "budget.day_usd": 1.5})
    assert file.path.read_text() == '[images]\nfit = "fast"\n\n[budget]\nday_usd = 1.5\n'
    assert file.change({"images.fit": "fast"}, expected_version=first) == first
    file.change({"budget.day_usd": None, "agent.compact_at": None})
    assert "day_usd" not in file.path.read_text()
    assert file.version() not in (empty, first)


def test_a_key_in_camel_case_and_the_rights_of_the_file_stay(tmp_path: Path) -> None:
    file = SettingsFile(tmp_path / "config.toml")
    file.path.write_text("[images]\nblockImages = false # no\n")
    file.path.chmod(0o640)
    file.change({"images.block_images": True})
    assert file.path.read_text() == "[images]\nblockImages = true # no\n"
    assert file.path.stat().st_mode & 0o777 == 0o640


def test_what_cannot_be_written_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    file = SettingsFile(tmp_path / "config.toml")
    text = 'images.fit = "fast"\n'
    file.path.write_text(text)
    with pytest.raises(SettingsError, match=r"images\.tile cannot be changed"):
        file.change({"images.tile": "off"})
    with pytest.raises(SettingsError, match="must be a number above 0"):
        file.change({"agent.compact_at": 3})
    with pytest.raises(UserError, match="was changed meanwhile"):
        file.change({"agent.compact_at": 0.5}, expected_version="sha256:0")
    assert file.path.read_text() == text
