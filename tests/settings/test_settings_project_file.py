"""What a `limner.toml` in the working folder may set: what a setting declares, and else nothing."""

from __future__ import annotations

import logging
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta
from tests.settings.trusting import trust_folder

from limner.errors import SettingsError
from limner.settings import all_settings, load, load_with_sources
from limner.settings.fields import ProjectRule, Setting
from limner.settings.project_file import ProjectFile
from limner.settings.trust import TrustedFolders, may_use
from limner.settings.values import Switch

EVERYTHING = """
[images]
block_images = true
auto_resize = false
fit = "model"
embedded = false
provider = "bfl-flux"
fallback = ["openai-image"]
accept = ["png", "svg", "pdf"]
concurrency = 1024
metadata = false
tile = "auto"
cache_answers = true
[model_roles]
vision = "openai/gpt-5.4"
default = "openai/gpt-5.4"
[budget]
call_usd = 1
session_usd = 1000
day_usd = 1000
[approval]
policy = "never"
above_usd = 1000
[tools]
timeout_s = 0.1
[services]
timeout_s = 0.1
[agent]
personality = "evil"
max_requests = 1024
max_calls = 1024
sandbox = "danger-full-access"
compact_at = 0.01
[appserver]
tool_timeout_s = 1
[mcp]
answer_within_s = 5
[[models]]
name = "openai/gpt-5.4"
base_url = "http://127.0.0.1:18080/v1"
key_env = "AWS_SECRET_ACCESS_KEY"
"""


def toml(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case tuple():
            return f"[{', '.join(map(toml, value))}]"
        case _:
            return str(value)


def written(folder: Path, name: str, key: str, value: object) -> Path:
    section, _, field = key.partition(".")
    path = folder / name
    path.write_text(f"[{section}]\n{field} = {toml(value)}\n", encoding="utf-8")
    return path


def held(home: Path, cwd: Path, key: str, **variables: str) -> tuple[Any, str]:
    """The value of a key, and who set it."""
    env = {"LIMNER_HOME": str(home), **variables}
    load(env=env, cwd=cwd)  # this one warns
    loaded = load_with_sources(env=env, cwd=cwd)
    section, _, field = key.partition(".")
    return getattr(getattr(loaded.settings, section), field), loaded.sources[key]


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    home, cwd = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    cwd.mkdir()
    return home, cwd


def test_every_setting_is_closed_unless_it_declares_what_the_file_may_do() -> None:
    rules = {key: setting.project_rule for key, setting in all_settings().items()}
    assert {key: rule.change for key, rule in rules.items() if rule} == {
        "images.block_images": "stricter",
        "images.auto_resize": "stricter",
        "images.accept": "shrink",
        "images.concurrency": "lower",
        "images.max_megapixels": "lower",
        "images.metadata": "stricter",
        "images.tile": "stricter",
        "budget.call_usd": "lower",
        "budget.session_usd": "lower",
        "budget.day_usd": "lower",
        "approval.policy": "stricter",
        "approval.above_usd": "lower",
        "agent.max_requests": "lower",
        "agent.max_calls": "lower",
        "agent.sandbox": "stricter",
        "mcp.answer_within_s": "any",
    }


def test_a_new_setting_is_closed(tmp_path: Path) -> None:
    new = Setting(
        key="images.new", annotation=Annotated[Switch, Meta(description="New.")], default=False
    )
    project = ProjectFile(path=tmp_path / "limner.toml", data=b"", is_trusted=False)
    assert new.project_rule is None
    assert not project.allows(new, True, current=False)
    assert project.allows(new, False, current=False)


def test_what_is_ignored_is_reported_once_in_one_sentence(
    folders: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    home, cwd = folders
    path = cwd / "limner.toml"
    path.write_text(EVERYTHING)
    env = {"LIMNER_HOME": str(home)}
    settings, *_ = [load(env=env, cwd=cwd) for _ in range(3)]
    assert caplog.record_tuples == [
        (
            "limner.settings",
            logging.WARNING,
            "limner ignores models, images.auto_resize, images.fit, images.embedded, "
            "images.provider, images.fallback, images.accept, images.concurrency, images.tile, "
            "images.cache_answers, model_roles.vision, model_roles.default, approval.policy, "
            "approval.above_usd, tools.timeout_s, services.timeout_s, agent.personality, "
            "agent.max_requests, agent.max_calls, agent.sandbox, agent.compact_at, "
            f"appserver.tool_timeout_s in {path}; run `limner trust` there if you trust this "
            "folder.",
        )
    ]
    path.unlink()
    default = load(env=env, cwd=cwd)
    replace = msgspec.structs.replace
    assert settings == replace(
        default,
        images=replace(default.images, block_images=True, metadata=False),
        budget=replace(
            default.budget, call_usd=Decimal(1), session_usd=Decimal(1000), day_usd=Decimal(1000)
        ),
        mcp=replace(default.mcp, answer_within_s=5),
    )


def test_the_warning_shows_a_folder_name_without_control_characters(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cwd = tmp_path / "\x1b[2J\u202eevil"
    cwd.mkdir()
    written(cwd, "limner.toml", "images.provider", "bfl-flux")
    load(env={"LIMNER_HOME": str(tmp_path / "home")}, cwd=cwd)
    assert caplog.messages == [
        f"limner ignores images.provider in {tmp_path}/\\u001b[2J\\u202eevil/limner.toml; "
        "run `limner trust` there if you trust this folder."
    ]


def test_a_trusted_file_sets_everything(
    folders: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    home, cwd = folders
    (cwd / "limner.toml").write_text(EVERYTHING)
    trust_folder(home, cwd)
    settings = load(env={"LIMNER_HOME": str(home)}, cwd=cwd)
    assert caplog.records == []
    assert (settings.images.provider, settings.approval.policy) == ("bfl-flux", "never")
    assert [model.key_env for model in settings.models] == ["AWS_SECRET_ACCESS_KEY"]


def test_a_changed_file_is_closed_again(folders: tuple[Path, Path]) -> None:
    home, cwd = folders
    path = written(cwd, "limner.toml", "images.provider", "bfl-flux")
    trust_folder(home, cwd)
    assert held(home, cwd, "images.provider") == ("bfl-flux", str(path))
    written(cwd, "limner.toml", "images.provider", "replicate-flux")
    assert held(home, cwd, "images.provider") == ("auto", "default")
    written(cwd, "limner.toml", "images.provider", "bfl-flux")
    assert held(home, cwd, "images.provider") == ("bfl-flux", str(path))


def test_the_record_counts_for_its_folder_only(folders: tuple[Path, Path], tmp_path: Path) -> None:
    home, cwd = folders
    written(cwd, "limner.toml", "images.provider", "bfl-flux")
    record = trust_folder(home, cwd)
    other = tmp_path / "other"
    other.mkdir()
    written(other, "limner.toml", "images.provider", "bfl-flux")
    assert held(home, other, "images.provider") == ("auto", "default")
    # A copy of the record under the other folder's name does not help.
    copy = TrustedFolders(home).path(other)
    copy.write_bytes(record.read_bytes())
    copy.chmod(0o600)
    assert held(home, other, "images.provider") == ("auto", "default")


def test_a_record_that_other_users_could_write_or_that_is_broken_counts_for_nothing(
    folders: tuple[Path, Path],
) -> None:
    home, cwd = folders
    written(cwd, "limner.toml", "images.provider", "bfl-flux")
    record = trust_folder(home, cwd)
    record.chmod(0o644)  # as `git clone` makes files
    assert held(home, cwd, "images.provider") == ("auto", "default")
    for broken in (b"", b"{}", b"\xff", b'{"folder": 1, "files": {}}'):
        record.write_bytes(broken)
        record.chmod(0o600)
        assert held(home, cwd, "images.provider") == ("auto", "default")


def test_programs_and_plug_ins_of_the_working_folder_need_trust(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, cwd = folders
    program = cwd / "bin" / "codex"
    monkeypatch.setenv("LIMNER_HOME", str(home))
    monkeypatch.chdir(cwd)
    assert [may_use(Path(path)) for path in (program, "bin/codex", "/usr/bin/codex")] == [
        False,
        False,
        True,
    ]
    (cwd / "limner.toml").write_text("")
    trust_folder(home, cwd)
    assert may_use(program)
    (cwd / "limner.toml").write_text("[images]\n")
    assert not may_use(program)
    # Everything is in the user's home and in the root: they are no projects.
    monkeypatch.setenv("HOME", str(cwd))
    assert may_use(program)
    monkeypatch.chdir("/")
    assert may_use(program)


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
        ("images.accept", ("png",), ("png", "tiff")),
        ("images.provider", "openai-image", "bfl-flux"),
    ],
)
def test_a_change_in_the_other_direction_is_ignored_with_a_warning(
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
            f"limner ignores {key} in {strange}; run `limner trust` there if you trust this "
            "folder.",
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
        ("images.accept", ("svg",)),
        ("agent.compact_at", 1.0),
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
        ("images.accept", ("png", "webp")),
        ("mcp.answer_within_s", 1_000),
    ],
)
def test_a_change_in_the_declared_direction_is_used(
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


OPEN = {key: one.project_rule for key, one in all_settings().items() if one.project_rule}


def test_every_value_of_a_setting_that_may_become_stricter_is_ranked() -> None:
    ranked = {key: rule for key, rule in OPEN.items() if rule.change == "stricter"}
    assert {key: sorted(rule.strictest_first, key=str) for key, rule in ranked.items()} == {
        key: sorted(all_settings()[key].choices) or [False, True] for key in ranked
    }


def values_of(key: str) -> st.SearchStrategy[Any]:
    rule = OPEN[key]
    if rule.change == "stricter":
        return st.sampled_from(rule.strictest_first)
    if rule.change == "shrink":
        formats = st.sampled_from(["png", "jpeg", "svg", "pdf"])
        return st.lists(formats, min_size=1, unique=True).map(tuple)
    return st.decimals(0, 1_000_000, places=2) if key.endswith("_usd") else st.integers(1, 1024)


def is_looser(rule: ProjectRule, value: Any, than: Any) -> bool:
    match rule.change:
        case "any":
            return False
        case "lower":
            return than is not None and (value is None or value > than)
        case "shrink":
            return not set(value) <= set(than)
        case "stricter":
            order = rule.strictest_first
            return order.index(value) > order.index(than)


@given(
    st.sampled_from(sorted(OPEN)).flatmap(
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
    assert after == (before if is_looser(OPEN[key], asked, before) else asked)
