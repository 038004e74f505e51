"""`[[models]]` in settings files: read, checked, added up, and kept from giving keys away."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.settings.trusting import trust_folder

from limner.errors import SettingsError
from limner.settings import load
from limner.settings.custom_models import CustomModel


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    home, cwd = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    cwd.mkdir()
    return home, cwd


def models(
    folders: tuple[Path, Path], *, config: str = "", here: str = "", trusted: bool = False
) -> list[CustomModel]:
    home, cwd = folders
    (home / "config.toml").write_text(config)
    (cwd / "limner.toml").write_text(here)
    if trusted:
        trust_folder(home, cwd)
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


def test_the_models_of_the_users_file_and_of_a_trusted_folder_add_up(
    folders: tuple[Path, Path],
) -> None:
    config = CORP + "[images]\nembedded = false\n"
    corp = CustomModel(
        name="corp/gpt",
        api="openai-responses",
        base_url="https://llm.corp.example/v1",
        key_env="CORP_KEY",
    )
    assert models(folders, config=config, here=OLLAMA) == [corp]
    assert models(folders, config=config, here=OLLAMA, trusted=True) == [
        corp,
        CustomModel(name="home/llava", base_url="http://127.0.0.1:11434/v1"),
    ]
    assert models(folders) == []


def test_the_later_file_counts_for_a_model_that_both_have(folders: tuple[Path, Path]) -> None:
    other = OLLAMA.replace("11434", "8080")
    (found,) = models(folders, config=OLLAMA, here=other, trusted=True)
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


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "llm.corp.example"])
def test_a_file_in_an_untrusted_folder_names_no_model_and_no_key(
    host: str, folders: tuple[Path, Path]
) -> None:
    assert models(folders, here=CORP.replace("llm.corp.example", f"{host}:1")) == []
    known = CORP.replace("corp/gpt", "openai/gpt-5.4")
    assert models(folders, config=OLLAMA, here=known + OLLAMA.replace("11434", "1")) == [
        CustomModel(name="home/llava", base_url="http://127.0.0.1:11434/v1")
    ]
