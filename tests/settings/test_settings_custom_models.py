"""`[[models]]` in settings files: read, checked, added up, and kept from giving keys away."""

from __future__ import annotations

from pathlib import Path

import pytest

from limner.errors import SettingsError
from limner.settings import load
from limner.settings.custom_models import CustomModel


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    home, cwd = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    cwd.mkdir()
    return home, cwd


def models(folders: tuple[Path, Path], *, config: str = "", here: str = "") -> list[CustomModel]:
    home, cwd = folders
    (home / "config.toml").write_text(config)
    (cwd / "limner.toml").write_text(here)
    return list(load(env={"LIMNER_HOME": str(home)}, cwd=cwd).models)


OLLAMA = """
[[models]]
name = "home/llava"
base_url = "http://127.0.0.1:11434/v1"
"""
CORP = """
[[models]]
name = "corp/gpt"
api = "openai-responses"
base_url = "https://llm.corp.example/v1"
key_env = "CORP_KEY"
input = ["text", "image"]
"""


def test_the_models_of_both_files_add_up(folders: tuple[Path, Path]) -> None:
    found = models(folders, config=CORP + "[images]\nembedded = false\n", here=OLLAMA)
    assert found == [
        CustomModel(
            name="corp/gpt",
            api="openai-responses",
            base_url="https://llm.corp.example/v1",
            key_env="CORP_KEY",
        ),
        CustomModel(name="home/llava", base_url="http://127.0.0.1:11434/v1"),
    ]
    assert models(folders) == []


def test_the_later_file_speaks_for_a_model_that_both_have(folders: tuple[Path, Path]) -> None:
    (found,) = models(folders, config=OLLAMA, here=OLLAMA.replace("11434", "8080"))
    assert found.base_url == "http://127.0.0.1:8080/v1"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('[[models]]\nname = "x/y"\nurl = "z"', "unknown field `url`"),
        ('[[models]]\nbase_url = "http://h/v1"', "missing required field `name`"),
        ('[[models]]\nname = "gpt"', "name"),
        ('[[models]]\nname = "x/y"\napi = "soap"', "soap"),
        ('[[models]]\nname = "x/y"\ninput = ["smell"]', "smell"),
        ('[[models]]\nname = "x/y"\ninput = []', "input"),
        ('[[models]]\nname = "x/y"\nkey_env = "sk-abc"', "key_env"),
        ('[[models]]\nname = "x/y"\nbase_url = "localhost:80"', "base_url is not a web address"),
        ('[[models]]\nname = "x/y"\nbase_url = "http://["', "base_url is not a web address"),
        ('[[models]]\nname = "limner/eyes"', "is reserved for limner"),
        ('[[models]]\nname = "x/y"\n[[models]]\nname = "x/y"', "appears twice"),
        ("models = 5", "Expected `array`"),
        ("[models]\nname = 1", "Expected `array`"),
    ],
)
def test_a_mistake_names_the_file_and_what_is_wrong(
    table: str, words: str, folders: tuple[Path, Path]
) -> None:
    with pytest.raises(SettingsError) as caught:
        models(folders, config=table)
    assert "config.toml: [[models]]" in caught.value.message
    assert words in caught.value.message


def test_a_file_in_the_working_folder_sends_nothing_away(folders: tuple[Path, Path]) -> None:
    with pytest.raises(SettingsError, match=r"may not send anything to 'llm\.corp") as caught:
        models(folders, here=CORP)
    assert caught.value.hint == "Move the table to config.toml in limner's own folder."


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.8.8.8"])
def test_a_key_may_stay_on_this_machine(host: str, folders: tuple[Path, Path]) -> None:
    (found,) = models(folders, here=CORP.replace("https://llm.corp.example", f"http://{host}:1"))
    assert found.key_env == "CORP_KEY"
