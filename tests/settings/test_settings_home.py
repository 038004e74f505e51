"""The environment names limner's home folder, by one rule for the settings and for the storage."""

from __future__ import annotations

from pathlib import Path

import pytest

from limner.errors import SettingsError
from limner.settings import load
from limner.settings.home import find_home
from limner.storage.home import Home

ENVIRONMENTS = [
    ({"HOME": "/h"}, "/h/.limner"),
    ({"HOME": "/h", "LIMNER_HOME": "  "}, "/h/.limner"),
    ({"HOME": "/h", "LIMNER_HOME": "/elsewhere"}, "/elsewhere"),
    ({"LIMNER_HOME": "/elsewhere"}, "/elsewhere"),
    ({"HOME": "/h", "LIMNER_HOME": "~"}, "/h"),
    ({"HOME": "/h", "LIMNER_HOME": "~/pictures"}, "/h/pictures"),
    ({"HOME": "/h", "LIMNER_HOME": "here"}, "/project/here"),
]


@pytest.mark.parametrize(("env", "home"), ENVIRONMENTS)
def test_the_environment_names_the_home_folder(env: dict[str, str], home: str) -> None:
    assert find_home(env, cwd=Path("/project")) == Path(home)
    assert load(env=env, cwd=Path("/project")).home == Path(home)


@pytest.mark.parametrize("env", [env for env, _ in ENVIRONMENTS])
def test_the_storage_uses_the_same_rule_for_the_process(
    env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LIMNER_HOME", raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert Home.of_process() == Home(find_home(env, cwd=tmp_path))


def test_a_user_without_a_home_folder_is_told_what_to_set() -> None:
    with pytest.raises(SettingsError, match="cannot determine its home folder") as caught:
        find_home({"LIMNER_HOME": "~nobody-of-this-name/x"}, cwd=Path("/"))
    assert caught.value.hint == "Set LIMNER_HOME to a folder that limner may write."
