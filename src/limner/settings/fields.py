"""A raw value and its key -> the value of that setting, or an error with a hint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Literal, cast, get_args, get_origin

import msgspec
from msgspec import Meta

from limner.display_text import clean_line
from limner.dollars import MAX_USD
from limner.errors import SettingsError

PREFIX = "LIMNER_"
_SHOWN_CHARS = 80
_USERINFO = r"://.*@"  # what an address may have before its host


class ProjectRule(msgspec.Struct, frozen=True):
    """What a ``limner.toml`` that the user does not trust may do to a setting.

    A setting declares one of these in its annotation. A setting without one is closed.
    ``strictest_first`` has all values of a setting that may only become ``stricter``.
    """

    change: Literal["any", "lower", "shrink", "stricter"]
    strictest_first: tuple[object, ...] = ()

    def allows(self, value: Any, *, current: Any) -> bool:
        """Whether the file may replace the current value; None is a limit that is not set."""
        match self.change:
            case "any":
                return True
            case "lower":
                return current is None or value <= current
            case "shrink":
                return set(value) <= set(current)
            case "stricter":
                order = self.strictest_first
                return order.index(value) <= order.index(current)


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting: its key, its type and its default."""

    key: str
    annotation: Any
    default: Any

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return variable_of(self.key)

    @property
    def description(self) -> str:
        """What it does."""
        return next(m.description for m in self._metas() if m.description)

    @property
    def wanted(self) -> str:
        """What a value must be."""
        *_, outermost = (meta.title for meta in self._metas() if meta.title)
        return outermost

    @property
    def choices(self) -> list[str]:
        """The allowed words, if it is an enumeration."""
        return [part for part in _parts(self.annotation) if isinstance(part, str)]

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return self.item is not self.annotation

    @property
    def item(self) -> Any:
        """The type of one item of a list; for other settings their own type."""
        lists = (part for part in _parts(self.annotation) if get_origin(part) is tuple)
        return next((get_args(part)[0] for part in lists), self.annotation)

    @property
    def project_rule(self) -> ProjectRule | None:
        """What an untrusted ``limner.toml`` may do to it; None if it is closed."""
        rules = (part for part in _parts(self.annotation) if isinstance(part, ProjectRule))
        return next(rules, None)

    def _metas(self) -> Iterator[Meta]:
        return (part for part in _parts(self.annotation) if isinstance(part, Meta))


class Entry(msgspec.Struct, frozen=True):
    """A raw value with its key and its source: a file, a variable or the flags.

    ``is_text`` is True for a source that has only text, so that ``"3"`` may be a number.
    """

    source: str
    key: str
    raw: object
    is_text: bool = False


def file_entries(
    tables: Mapping[str, object], *, source: str, known: Mapping[str, Setting]
) -> Iterator[Entry]:
    """The entries of a file; the key of a value in a table starts with the table's name."""
    for name, value in tables.items():
        if isinstance(value, dict) and (value or _keys_in(snake(name), known)):
            for inner, raw in cast("dict[str, object]", value).items():
                yield Entry(source, f"{name}.{inner}", raw)
        else:
            yield Entry(source, name, cast("object", value))


def check_entries(
    entries: Iterable[Entry], known: Mapping[str, Setting]
) -> Iterator[tuple[str, str, Any]]:
    """Check each entry; yields its source, its key and its value.

    Keys may be spelt in camelCase.

    Raises:
        SettingsError: the key is unknown, a source has it twice, or the value has the wrong type or
            is out of range. The hint has the nearest valid key or value.
    """
    seen = set[tuple[str, str]]()
    for entry in entries:
        setting = _find(entry, known)
        if (entry.source, setting.key) in seen:
            raise SettingsError(f"{entry.source}: {setting.key} appears twice")
        seen.add((entry.source, setting.key))
        yield entry.source, setting.key, _convert(setting, entry)


def variable_of(key: str) -> str:
    """The environment variable that sets the setting with this key."""
    return PREFIX + key.upper().replace(".", "_")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The most similar known word, or None."""
    from difflib import get_close_matches  # noqa: PLC0415 - only an error needs it

    return next(iter(get_close_matches(shorten(word), list(known), n=1, cutoff=0.7)), None)


def snake(key: str) -> str:
    """A key in snake_case."""
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda match: f"_{match[0]}", key).lower()


def shorten(text: str) -> str:
    """The beginning of an untrusted text, short enough for a message."""
    return text[:_SHOWN_CHARS]


def hide_password(text: str) -> str:
    """An address without the user and the password before its host."""
    return re.sub(_USERINFO, "://…@", text)


def _find(entry: Entry, known: Mapping[str, Setting]) -> Setting:
    key = snake(entry.key)
    if key in known:
        return known[key]
    shown = clean_line(shorten(entry.key))
    if inner := _keys_in(key, known):
        raise SettingsError(
            f"{entry.source}: {shown} must be a table", hint=f"It has {', '.join(inner)}."
        )
    near = nearest(key, known)
    raise SettingsError(
        f"{entry.source}: {shown} is not a setting",
        hint=f"Did you mean {near}?" if near else f"The settings are {', '.join(known)}.",
    )


def _convert(setting: Setting, entry: Entry) -> Any:
    raw = entry.raw
    if entry.is_text and setting.is_list:
        raw = [part for part in map(str.strip, str(raw).split(",")) if part]
    try:
        value = msgspec.convert(raw, setting.annotation, strict=not entry.is_text)
        if isinstance(value, Decimal) and not _is_amount(value):
            raise ValueError(value)
    except (msgspec.ValidationError, ValueError, ArithmeticError) as error:
        raise _wrong_value(setting, entry, raw) from error
    return value


def _keys_in(section: str, known: Mapping[str, Setting]) -> list[str]:
    return [key for key in known if key.startswith(f"{section}.")]


def _is_amount(value: Decimal) -> bool:
    return value.is_finite() and 0 <= value <= MAX_USD and round(value, 9) == value


def _wrong_value(setting: Setting, entry: Entry, raw: object) -> SettingsError:
    bad = [raw]
    if isinstance(raw, list):
        bad = [word for word in cast("list[object]", raw) if not _is_valid(word, setting.item)]
    wrong = next((word for word in bad if isinstance(word, str)), None)
    shown = "" if wrong is None else f", not {shorten(hide_password(wrong))!r}"
    near = None if wrong is None else nearest(wrong, setting.choices)
    return SettingsError(
        f"{entry.source}: {setting.key} must be {setting.wanted}{shown}",
        hint=near and f"Did you mean {near}?",
    )


def _is_valid(word: object, annotation: Any) -> bool:
    try:
        msgspec.convert(word, annotation)
    except (msgspec.ValidationError, ValueError):
        return False
    return True


def _parts(annotation: object) -> Iterator[object]:
    """A type and everything in it: inner types, literals, annotations."""
    yield annotation
    for part in get_args(annotation):
        yield from _parts(part)
