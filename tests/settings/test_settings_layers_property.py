from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from limner.errors import SettingsError
from limner.settings import Settings, all_settings, load, load_with_sources

KEYS = sorted(all_settings())
SECTIONS = sorted({key.partition(".")[0] for key in KEYS})

words = st.text(st.characters(codec="utf-8", exclude_characters="\x7f"), max_size=8)
scalars = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats().map(repr)
    | st.sampled_from(["0x" + "f" * 5_000, "1979-05-27", "07:32:00", "1e999"])
    | words.map(json.dumps)
)


def toml(value: Any) -> str:
    """One value as TOML; strings are TOML already."""
    match value:
        case bool():
            return str(value).lower()
        case list():
            return f"[{', '.join(map(toml, value))}]"
        case dict():
            return f"{{{', '.join(f'{json.dumps(k)} = {toml(v)}' for k, v in value.items())}}}"
        case _:
            return str(value)


values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
names = st.sampled_from([key.partition(".")[2] for key in KEYS]) | words
tables = st.dictionaries(names, values, max_size=3)
documents = st.dictionaries(st.sampled_from(SECTIONS) | words, tables | values, max_size=4)


@given(documents | st.text(), st.dictionaries(st.sampled_from(KEYS) | words, values, max_size=2))
def test_any_file_and_flags_give_settings_or_a_settings_error(
    document: dict[str, Any] | str, flags: dict[str, Any]
) -> None:
    if isinstance(document, str):
        text = document
    else:
        text = "\n".join(f"{json.dumps(name)} = {toml(v)}" for name, v in document.items())
    with tempfile.TemporaryDirectory() as folder:
        cwd = Path(folder)
        (cwd / "limner.toml").write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            loaded = load(env={"LIMNER_HOME": folder}, cwd=cwd, flags=flags)
        except SettingsError as error:
            assert len(error.message) < 1_000  # noqa: PT017 - either way is a pass
        else:
            assert isinstance(loaded, Settings)


@given(
    st.dictionaries(
        st.sampled_from([f"LIMNER_{key.upper().replace('.', '_')}" for key in KEYS])
        | st.text(st.characters(codec="ascii", categories=["Lu"])).map("LIMNER_{}".format),
        st.text(),
        max_size=3,
    )
)
def test_any_environment_gives_settings_or_a_settings_error(variables: dict[str, str]) -> None:
    env = {"HOME": "/nowhere", **variables}
    try:
        loaded = load(env=env, cwd=Path("/nowhere"))
    except SettingsError:
        return
    assert isinstance(loaded, Settings)


LAYERS = ["user", "project", "variable", "flags"]


@given(st.dictionaries(st.sampled_from(LAYERS), st.integers(1, 1024)))
def test_the_last_layer_that_speaks_is_heard(layers: dict[str, int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home, cwd = Path(folder, "home"), Path(folder, "cwd")
        env, flags = {"LIMNER_HOME": str(home)}, dict[str, object]()
        sources = {
            "user": str(home / "config.toml"),
            "project": str(cwd / "limner.toml"),
            "variable": "LIMNER_IMAGES_CONCURRENCY",
            "flags": "flags",
        }
        for layer, number in layers.items():
            match layer:
                case "variable":
                    env[sources[layer]] = str(number)
                case "flags":
                    flags["images.concurrency"] = number
                case _:
                    path = Path(sources[layer])
                    path.parent.mkdir()
                    path.write_text(f"[images]\nconcurrency = {number}\n", encoding="utf-8")
        loaded = load_with_sources(env=env, cwd=cwd, flags=flags)
    # The file in the working folder may only lower what the user has.
    if layers.get("project", 0) > layers.get("user", 8):
        del layers["project"]
    last = max(layers, key=LAYERS.index, default=None)
    assert loaded.settings.images.concurrency == (8 if last is None else layers[last])
    assert loaded.sources["images.concurrency"] == ("default" if last is None else sources[last])
