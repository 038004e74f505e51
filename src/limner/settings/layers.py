"""Settings files, variables and flags -> the effective settings and the source of each value.

The layers, the strongest last: the defaults, ``$LIMNER_HOME/config.toml``, ``limner.toml`` in
the working folder, variables ``LIMNER_<KEY>`` with underscores for dots, flags. Files and flags may
spell keys in camelCase, as ``images.blockImages``. An unknown key is an error that names its source
and the nearest key. An unknown variable is an error only if it begins with a section
(``LIMNER_IMAGES_…``) or nearly spells a known one; any other ``LIMNER_…`` belongs to another
program. An empty variable counts as not set. The ``[[models]]`` of both files add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from limner.errors import SettingsError
from limner.settings.custom_models import take_custom_models
from limner.settings.documents import decode, parse_toml, read_settings_file
from limner.settings.fields import (
    PREFIX,
    Entry,
    check_entries,
    file_entries,
    nearest,
    variable_of,
)
from limner.settings.home import find_home
from limner.settings.project_file import ProjectFile, report_ignored
from limner.settings.trust import PROJECT_FILE
from limner.settings.values import ALONE, SECTIONS, Settings, all_settings, value_of
from limner.settings.variables import SERVER_TOKENS

# Variables that are not settings. Secrets stay out of files that users share.
_OTHER_VARIABLES = SERVER_TOKENS | {"LIMNER_HOME", "LIMNER_FUZZ"}


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """The settings, and the source of each value by key.

    ``values`` has all values of each source by key, the strongest source last. ``ignored`` has the
    keys that the project file may not set.
    """

    settings: Settings
    sources: Mapping[str, str]
    values: Mapping[str, Mapping[str, Any]]
    ignored: tuple[str, ...] = ()


def load(
    *, env: Mapping[str, str], cwd: Path, flags: Mapping[str, object] | None = None
) -> Settings:
    """Load the effective settings.

    A ``limner.toml`` in the working folder can set only what a setting declares as safe, until the
    user trusts the folder. One warning on the logger ``limner.settings`` names the ignored keys.

    Args:
        env: the environment.
        cwd: the folder that may contain a ``limner.toml``.
        flags: values by dotted key; None means not given.

    Raises:
        SettingsError: a key is unknown, or its value is not valid.
    """
    loaded = load_with_sources(env=env, cwd=cwd, flags=flags)
    if loaded.ignored:
        report_ignored(cwd / PROJECT_FILE, loaded.ignored)
    return loaded.settings


def load_with_sources(
    *, env: Mapping[str, str], cwd: Path, flags: Mapping[str, object] | None = None
) -> Loaded:
    """As `load`, with the source of each value, and without the warning.

    A source is a file, a variable, ``flags`` or ``default``.
    """
    home = find_home(env, cwd=cwd)
    project = ProjectFile.read(cwd, home=home)
    files = {home / "config.toml": _read_toml(home / "config.toml"), project.path: project.tables()}
    ignored = list(project.take_ignored_models(files[project.path]))
    models = take_custom_models(files)
    known = all_settings()
    entries = chain(
        *(file_entries(tables, source=str(path), known=known) for path, tables in files.items()),
        _env_entries(env),
        _flag_entries(flags or {}),
    )
    defaults = Settings(home=home)
    values = {key: value_of(defaults, key) for key in known}
    sources = dict.fromkeys(known, "default")
    by_source: dict[str, dict[str, Any]] = {}
    for source, key, value in check_entries(entries, known):
        by_source.setdefault(source, {})[key] = value
        is_project = source == str(project.path)
        if is_project and not project.allows(known[key], value, current=values[key]):
            ignored.append(key)
            continue
        values[key], sources[key] = value, source
    settings = _build(values, home=home, models=models)
    return Loaded(settings=settings, sources=sources, values=by_source, ignored=tuple(ignored))


def _build(values: Mapping[str, Any], **rest: Any) -> Settings:
    sections = {
        name: kind(**{field: values[f"{name}.{field}"] for field in kind.__struct_fields__})
        for name, kind in SECTIONS.items()
    }
    return Settings(**sections, **{key: values[key] for key in ALONE}, **rest)


def _read_toml(path: Path) -> dict[str, object]:
    data = read_settings_file(path)
    return {} if data is None else parse_toml(decode(data, path=path), path=path)


def _env_entries(env: Mapping[str, str]) -> Iterator[Entry]:
    keys = {variable_of(key): key for key in all_settings()}
    sections = tuple(f"{PREFIX}{section.upper()}_" for section in SECTIONS)
    for variable, text in sorted(env.items()):
        if not variable.startswith(PREFIX) or variable in _OTHER_VARIABLES:
            continue
        if variable not in keys:
            near = nearest(variable.removeprefix(PREFIX), [k.removeprefix(PREFIX) for k in keys])
            if near is not None or variable.startswith(sections):
                raise SettingsError(
                    f"{variable} is not a setting", hint=near and f"Did you mean {PREFIX}{near}?"
                )
        elif text.strip():
            yield Entry(variable, keys[variable], text.strip(), is_text=True)


def _flag_entries(flags: Mapping[str, object]) -> Iterator[Entry]:
    for key, raw in flags.items():
        if raw is not None:
            yield Entry("flags", key, raw, is_text=isinstance(raw, str))
