"""Any content of a personality's folder gives a personality or one clear error."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.agent.personality import Personalities, Personality
from limner.errors import InputInvalid, SettingsError
from limner.settings import Policy, Sandbox

FILES = ["SOUL.md", "config.toml", "config.yaml", "toolset.yaml"]
KEYS = ["name", "description", "model", "fs_reach", "sandbox", "approval", "budget_usd"]
INNER = ["read", "write", "fs_reach.read"]

words = st.text(st.characters(codec="utf-8", max_codepoint=0xFFFF), max_size=8)
values = st.recursive(
    words | st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(INNER) | words, inner, max_size=2)
    ),
    max_leaves=4,
)
configs = st.dictionaries(st.sampled_from([*KEYS, *INNER]) | words, values, max_size=4)
contents = (
    st.binary(max_size=60)
    | (configs | values).map(json.dumps).map(str.encode)
    | st.lists(words, max_size=4).map(json.dumps).map(str.encode)
    | configs.map(
        lambda tables: "\n".join(f"{json.dumps(k)} = {toml(v)}" for k, v in tables.items()).encode()
    )
)


def toml(value: Any) -> str:
    """One value as TOML."""
    match value:
        case list():
            return f"[{', '.join(map(toml, value))}]"
        case dict():
            return f"{{{', '.join(f'{json.dumps(k)} = {toml(v)}' for k, v in value.items())}}}"
        case _:
            return json.dumps(value)


@given(st.dictionaries(st.sampled_from(FILES), contents))
def test_any_folder_is_a_personality_or_a_settings_error(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "somebody")
        folder.mkdir()
        for name, data in {"SOUL.md": b"You paint.", **files}.items():
            (folder / name).write_bytes(data)
        try:
            found = Personalities(Path(place)).get("somebody")
        except SettingsError as error:
            assert error.message.startswith(str(folder))  # noqa: PT017 - either way is a pass
            assert len(error.message) < 1_000  # noqa: PT017
        else:
            assert isinstance(found, Personality)
            json.dumps([found.name, found.description, found.soul, found.toolset]).encode()


lines = st.text(
    st.characters(codec="utf-8", max_codepoint=0xFFFF, exclude_categories=["C", "Z"]),
    min_size=1,
    max_size=20,
)
folders = st.lists(lines, max_size=3)
right = st.fixed_dictionaries(
    {},
    optional={
        "name": lines,
        "description": lines,
        "model": lines,
        "fs_reach": st.fixed_dictionaries({}, optional={"read": folders, "write": folders}),
        "sandbox": st.sampled_from(get_args(get_args(Sandbox)[0])),
        "approval": st.sampled_from(get_args(get_args(Policy)[0])),
        "budget_usd": st.decimals(0, 1_000_000, places=2).map(str),
    },
)


@given(right)
def test_toml_and_yaml_with_the_same_content_are_the_same_personality(
    config: dict[str, Any],
) -> None:
    tables = "\n".join(f"{key} = {toml(value)}" for key, value in config.items())
    read: list[Personality] = []
    for name, text in {"config.toml": tables, "config.yaml": json.dumps(config)}.items():
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place, "somebody")
            folder.mkdir()
            (folder / "SOUL.md").write_text("You paint.", encoding="utf-8")
            (folder / name).write_text(text, encoding="utf-8")
            read.append(Personalities(Path(place)).get("somebody"))
    one, other = (
        (p.name, p.description, p.model, p.read, p.write, p.sandbox, p.approval, p.budget_usd)
        for p in read
    )
    assert one == other
    assert one[0] == config.get("name", "somebody")


@given(st.text() | st.text("./~a\\\0", max_size=5))
def test_no_id_leads_out_of_the_folders(personality_id: str) -> None:
    with pytest.raises(InputInvalid) as caught:
        Personalities(Path("/nowhere")).get(personality_id)
    assert caught.value.code == "NO_SUCH_PERSONALITY"
