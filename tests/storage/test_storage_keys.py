"""Secrets: where they come from, how they are kept, and that they are never shown."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import SHARED_FIXTURE

from limner.errors import InputInvalid, ReachDenied, SettingsError
from limner.storage.keys import KeyEntry, Keys, mask
from limner.storage.reach import Reach

SECRET = "sk-proj-abcdefghijklmnop9f2c"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "keys.toml"


def test_a_key_is_kept_in_a_file_only_its_owner_can_read(path: Path) -> None:
    keys = Keys(path, {})
    assert keys.get("OPENAI_API_KEY") is None
    assert not path.parent.exists()
    keys.set("OPENAI_API_KEY", f" {SECRET}\n")
    keys.set("REPLICATE_API_TOKEN", "r8_short")
    assert (keys.get("OPENAI_API_KEY"), keys.get("REPLICATE_API_TOKEN")) == (SECRET, "r8_short")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in path.parent.iterdir()] == ["keys.toml"]


def test_the_environment_wins_unless_it_is_blank(path: Path) -> None:
    Keys(path, {}).set("OPENAI_API_KEY", "from-file")
    assert Keys(path, {"OPENAI_API_KEY": " from-env\n"}).get("OPENAI_API_KEY") == "from-env"
    assert Keys(path, {"OPENAI_API_KEY": "  "}).get("OPENAI_API_KEY") == "from-file"


def test_removing_says_whether_there_was_something(path: Path) -> None:
    keys = Keys(path, {})
    assert keys.remove("OPENAI_API_KEY") is False
    assert not path.parent.exists()
    keys.set("OPENAI_API_KEY", SECRET)
    assert keys.remove("OPENAI_API_KEY") is True
    assert keys.get("OPENAI_API_KEY") is None
    assert SECRET not in path.read_text()


def test_a_listing_names_the_source_and_masks_the_value(path: Path) -> None:
    env = {"GEMINI_API_KEY": "AIza" + "x" * 30 + "1234", "PATH": "/bin", "BLANK": " "}
    keys = Keys(path, env)
    keys.set("OPENAI_API_KEY", SECRET)
    keys.set("SHORT", "tiny")
    assert keys.listing(["GEMINI_API_KEY", "BLANK", "MISSING"]) == [
        KeyEntry(name="GEMINI_API_KEY", source="environment", masked="AIz…1234"),
        KeyEntry(name="OPENAI_API_KEY", source="file", masked="sk-…9f2c"),
        KeyEntry(name="SHORT", source="file", masked="…"),
    ]


@given(st.text(min_size=1))
def test_property_a_mask_never_shows_more_than_seven_characters_nor_most_of_a_value(
    value: str,
) -> None:
    shown = len(mask(value)) - 1
    assert shown <= 7
    assert shown * 2 <= len(value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_file_that_others_can_read_is_refused_with_the_command_that_mends_it(
    path: Path, mode: int
) -> None:
    keys = Keys(path, {})
    keys.set("OPENAI_API_KEY", SECRET)
    path.chmod(mode)
    for attempt in (
        lambda: keys.get("OPENAI_API_KEY"),
        lambda: keys.set("OTHER", "x"),
        keys.listing,
    ):
        with pytest.raises(SettingsError) as caught:
            attempt()
        assert caught.value.hint == f"Run: chmod 600 {str(path)!r}"
    assert Keys(path, {"OPENAI_API_KEY": "env"}).get("OPENAI_API_KEY") == "env"


@pytest.mark.parametrize(
    "text",
    [
        f"OPENAI_API_KEY = {SECRET}\n",
        f'OPENAI_API_KEY = "{SECRET}\n',
        f'[table]\nOPENAI_API_KEY = "{SECRET}"\n',
        "OPENAI_API_KEY = 7\n",
        f'openai = "{SECRET}"\n',
    ],
)
def test_a_malformed_file_is_named_without_showing_its_secrets(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(SettingsError) as caught:
        Keys(path, {}).get("OPENAI_API_KEY")
    assert str(path) in caught.value.message
    assert SECRET not in str(caught.value.as_json())
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("name", ["", "lower", "1KEY", "KEY-X", "KEY\n", "A.B", "ÄKEY", "_KEY"])
def test_a_name_is_capitals_digits_and_underscores(path: Path, name: str) -> None:
    with pytest.raises(InputInvalid) as caught:
        Keys(path, {}).set(name, SECRET)
    assert caught.value.field == "name"
    assert not path.exists()


@pytest.mark.parametrize(
    "value", ["", " \n", "a\nb", "a\tb", "a\x00b", "a\x7fb", "a\u200bb", "\ud800"]
)
def test_a_value_is_one_printable_line_and_is_not_shown(path: Path, value: str) -> None:
    with pytest.raises(InputInvalid) as caught:
        Keys(path, {}).set("OPENAI_API_KEY", value + "secret" if value.strip() else value)
    assert caught.value.field == "value"
    assert "secret" not in str(caught.value.as_json())
    assert not path.exists()


NAMES = st.from_regex(r"[A-Z][A-Z0-9_]{0,20}", fullmatch=True)
VALUES = st.one_of(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1),
    st.text(min_size=1).filter(lambda text: text.isprintable() and bool(text.strip())),
)


@pytest.mark.slow
@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=5))
@settings(max_examples=100, suppress_health_check=SHARED_FIXTURE)
def test_property_every_legal_key_survives_the_round_trip(
    path: Path, table: dict[str, str]
) -> None:
    path.unlink(missing_ok=True)
    keys = Keys(path, {})
    for name, value in table.items():
        keys.set(name, value)
    stripped = {name: value.strip() for name, value in table.items()}
    assert {name: keys.get(name) for name in table} == stripped
    assert tomllib.loads(path.read_text(encoding="utf-8")) == stripped


def test_a_key_file_behind_a_symlink_is_changed_where_it_is(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles"
    real.mkdir()
    (tmp_path / "home").symlink_to(real)
    (real / "keys.toml").symlink_to("secrets.toml")
    Keys(tmp_path / "home" / "keys.toml", {}).set("OPENAI_API_KEY", SECRET)
    assert (real / "keys.toml").is_symlink()
    assert tomllib.loads((real / "secrets.toml").read_text()) == {"OPENAI_API_KEY": SECRET}


def test_processes_that_set_keys_at_once_lose_none(path: Path) -> None:
    script = """
        import sys
        from pathlib import Path
        from limner.storage.keys import Keys
        for n in range(10):
            Keys(Path(sys.argv[1]), {}).set(f"KEY_{sys.argv[2]}_{n}", f"value-{n}")
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(path)]
    processes = [subprocess.Popen([*command, str(n)]) for n in range(4)]
    assert [process.wait(timeout=60) for process in processes] == [0] * 4
    expected = {f"KEY_{p}_{n}": f"value-{n}" for p in range(4) for n in range(10)}
    assert tomllib.loads(path.read_text()) == expected


def test_a_key_file_is_never_within_anybodys_reach(path: Path) -> None:
    Keys(path, {}).set("OPENAI_API_KEY", SECRET)
    path.with_name("innocent.png").symlink_to(path)
    for name in ("keys.toml", "innocent.png", "KEYS.TOML"):
        with pytest.raises(ReachDenied):
            Reach.for_person(home=path.parent).resolve_read(name, cwd=path.parent)
