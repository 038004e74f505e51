"""What a `limner.toml` in the working folder may decide: it may tighten, and never loosen."""

from __future__ import annotations

import logging
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.errors import SettingsError
from limner.settings import all_settings, load, load_with_sources
from limner.settings.project_file import GUARDED, STRICTEST_FIRST, USERS_ONLY

HELD = sorted(GUARDED | USERS_ONLY)


def toml(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case _:
            return str(value)


def written(folder: Path, name: str, key: str, value: object) -> Path:
    section, _, field = key.partition(".")
    path = folder / name
    path.write_text(f"[{section}]\n{field} = {toml(value)}\n", encoding="utf-8")
    return path


def held(home: Path, cwd: Path, key: str, **variables: str) -> tuple[Any, str]:
    """The value of a key, and who set it."""
    loaded = load_with_sources(env={"LIMNER_HOME": str(home), **variables}, cwd=cwd)
    section, _, field = key.partition(".")
    return getattr(getattr(loaded.settings, section), field), loaded.sources[key]


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    home, cwd = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    cwd.mkdir()
    return home, cwd


@pytest.mark.parametrize(
    ("key", "own", "asked"),
    [
        ("budget.session_usd", Decimal(2), Decimal("2.01")),
        ("budget.call_usd", Decimal(0), Decimal("0.01")),
        ("approval.policy", "untrusted", "on-request"),
        ("approval.policy", "on-request", "never"),
        ("approval.above_usd", Decimal("0.5"), Decimal(1)),
        ("agent.sandbox", "read-only", "workspace-write"),
        ("agent.max_calls", 10, 11),
        ("images.block_images", True, False),
        ("agent.personality", "alt-text", "limner"),
    ],
)
def test_what_would_loosen_is_ignored_with_a_warning(
    folders: tuple[Path, Path],
    caplog: pytest.LogCaptureFixture,
    key: str,
    own: object,
    asked: object,
) -> None:
    home, cwd = folders
    user = written(home, "config.toml", key, own)
    strange = written(cwd, "limner.toml", key, asked)
    assert held(home, cwd, key) == (own, str(user))
    assert caplog.record_tuples == [
        (
            "limner.settings",
            logging.WARNING,
            f"{strange}: {key} is ignored: a file in the working folder may not loosen it. "
            "Set it in config.toml in limner's own folder, or by a variable.",
        )
    ]


@pytest.mark.parametrize(
    ("key", "asked"),
    [
        ("approval.policy", "never"),
        ("approval.above_usd", Decimal("1.01")),
        ("agent.sandbox", "danger-full-access"),
        ("agent.max_requests", 101),
        ("agent.personality", "reckless"),
    ],
)
def test_the_defaults_are_not_loosened_either(
    folders: tuple[Path, Path], caplog: pytest.LogCaptureFixture, key: str, asked: object
) -> None:
    home, cwd = folders
    written(cwd, "limner.toml", key, asked)
    assert held(home, cwd, key) == (all_settings()[key].default, "default")
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("key", "asked"),
    [
        ("budget.day_usd", Decimal(1_000_000)),
        ("approval.policy", "untrusted"),
        ("approval.above_usd", Decimal(0)),
        ("agent.sandbox", "read-only"),
        ("agent.max_requests", 1),
        ("images.block_images", True),
        ("agent.personality", "limner"),
        ("agent.compact_at", 1.0),
    ],
)
def test_what_tightens_or_guards_nothing_is_heard(
    folders: tuple[Path, Path], caplog: pytest.LogCaptureFixture, key: str, asked: object
) -> None:
    home, cwd = folders
    strange = written(cwd, "limner.toml", key, asked)
    assert held(home, cwd, key) == (asked, str(strange))
    assert caplog.records == []


def test_a_variable_or_a_flag_may_loosen_what_the_folder_tightened(
    folders: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    home, cwd = folders
    written(cwd, "limner.toml", "agent.sandbox", "read-only")
    env = {"LIMNER_HOME": str(home)}
    variable = {"LIMNER_AGENT_SANDBOX": "danger-full-access"}
    flags = {"agent.sandbox": "workspace-write"}
    assert load(env=env | variable, cwd=cwd).agent.sandbox == "danger-full-access"
    assert load(env=env | variable, cwd=cwd, flags=flags).agent.sandbox == "workspace-write"
    assert caplog.records == []


def test_a_key_that_is_ignored_is_still_checked(folders: tuple[Path, Path]) -> None:
    home, cwd = folders
    path = cwd / "limner.toml"
    path.write_text('[approval]\npolicy = "never"\n"Policy" = "never"\n')
    with pytest.raises(SettingsError) as twice:
        held(home, cwd, "approval.policy")
    assert twice.value.message == f"{path}: approval.policy appears twice"
    path.write_text("[agent]\nmax_calls = 100000\n")
    with pytest.raises(SettingsError) as wrong:
        held(home, cwd, "agent.max_calls")
    assert wrong.value.message == (f"{path}: agent.max_calls must be a whole number from 1 to 1024")


def test_every_guarded_key_is_a_setting_and_every_word_of_it_is_ranked() -> None:
    assert set(HELD) <= set(all_settings())
    ranked = {key: sorted(order, key=str) for key, order in STRICTEST_FIRST.items()}
    assert ranked == {
        key: sorted(all_settings()[key].choices) or [False, True] for key in STRICTEST_FIRST
    }


dollars = st.decimals(0, 1_000_000, places=2)
counts = st.integers(1, 1024)


def values_of(key: str) -> st.SearchStrategy[Any]:
    if key in STRICTEST_FIRST:
        return st.sampled_from(STRICTEST_FIRST[key])
    if key in USERS_ONLY:
        return st.sampled_from(["limner", "alt-text"])
    return dollars if key.endswith("_usd") else counts


def strictness(key: str, value: Any) -> Any:
    """Larger is stricter; no cap is the least strict of all."""
    if key in STRICTEST_FIRST:
        return -STRICTEST_FIRST[key].index(value)
    return Decimal("-Infinity") if value is None else -value


@given(
    st.sampled_from(HELD).flatmap(
        lambda key: st.tuples(st.just(key), st.none() | values_of(key), values_of(key))
    )
)
def test_whatever_the_folder_asks_for_nothing_becomes_looser(
    case: tuple[str, Any, Any],
) -> None:
    key, own, asked = case
    with tempfile.TemporaryDirectory() as folder:
        home, cwd = Path(folder, "home"), Path(folder, "here")
        home.mkdir()
        cwd.mkdir()
        if own is not None:
            written(home, "config.toml", key, own)
        before, _ = held(home, cwd, key)
        written(cwd, "limner.toml", key, asked)
        after, _ = held(home, cwd, key)
    if key in USERS_ONLY:
        assert after == before
    else:
        assert strictness(key, after) == max(strictness(key, before), strictness(key, asked))
