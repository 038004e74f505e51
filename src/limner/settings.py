"""Files, environment and flags -> one `Settings` value, read once at the edge.

Layers, later ones winning: the defaults below, ``$LIMNER_HOME/config.toml``, ``limner.toml`` in
the working folder, variables ``LIMNER_<KEY>`` with dots as underscores, flags. Files and flags may
spell keys in camelCase, as ``images.blockImages``. Whatever is not a setting is an error that
names where it stands and the nearest key. Among variables that holds for those that begin with a
section (``LIMNER_IMAGES_…``) or nearly spell a known one; any other ``LIMNER_…`` is someone else's.
An empty variable counts as not set. The ``[[models]]`` of both files add up.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, cast, get_args, get_origin

import msgspec
from msgspec import Meta

from limner.errors import SettingsError
from limner.own_models import OwnModel, take_own_models

MAX_USD = 1_000_000
_MAX_FILE_BYTES = 256 * 1024
_SHOWN_CHARS = 80
_PREFIX = "LIMNER_"
_NOT_KEYS = frozenset({"LIMNER_HOME", "LIMNER_FUZZ"})

# The title of a type is what an error message asks for.
Switch = Annotated[bool, Meta(title="true or false")]
Words = Annotated[str, Meta(title="a text", min_length=1)]
Count = Annotated[int, Meta(title="a whole number from 1 to 1024", ge=1, le=1024)]
Seconds = Annotated[float, Meta(title="a number of seconds above 0", gt=0, le=1e9)]
Usd = Annotated[
    Decimal, Meta(title=f"an amount in dollars from 0 to {MAX_USD:,}, nine decimals at most")
]
Fit = Annotated[Literal["seed", "fast", "model"], Meta(title="seed, fast or model")]
Tile = Annotated[Literal["off", "auto"], Meta(title="off or auto")]
Policy = Annotated[
    Literal["untrusted", "on-failure", "on-request", "never"],
    Meta(title="untrusted, on-failure, on-request or never"),
]
Format = Literal["png", "jpeg", "gif", "webp", "avif", "bmp", "heic", "ico", "pdf", "svg", "tiff"]
Names = Annotated[tuple[Words, ...], Meta(title="a list of providers")]
Formats = Annotated[
    tuple[Format, ...], Meta(title=f"a list of {', '.join(get_args(Format))}", min_length=1)
]


class Images(msgspec.Struct, frozen=True, kw_only=True):
    """How pictures are made, taken in and sent."""

    block_images: Annotated[
        Switch, Meta(description="Send no picture to any model; `inspect_image` refuses.")
    ] = False
    auto_resize: Annotated[
        Switch, Meta(description="Make a picture smaller before it is sent to a model.")
    ] = True
    fit: Annotated[
        Fit,
        Meta(
            description="How a picture is made smaller: `seed` walks a fixed ladder of candidates, "
            "`fast` does less work, `model` aims at the limits of the model it is for."
        ),
    ] = "seed"
    embedded: Annotated[
        Switch, Meta(description="Draw and look with what limner carries, where no key is set.")
    ] = True
    provider: Annotated[
        Words, Meta(description="Who draws when a call names nobody; `auto` chooses.")
    ] = "auto"
    fallback: Annotated[
        Names,
        Meta(
            description="Who draws instead, one after the other, where `images.provider` fails "
            "and that cost nothing."
        ),
    ] = ()
    accept: Annotated[
        Formats, Meta(description="The formats taken in beside PNG, JPEG, GIF and WebP.")
    ] = ("png", "jpeg", "gif", "webp")
    concurrency: Annotated[Count, Meta(description="How many pictures are drawn at once.")] = 8
    metadata: Annotated[
        Switch, Meta(description="Write prompt, model and handle into the PNG files limner saves.")
    ] = True
    tile: Annotated[
        Tile,
        Meta(
            description="`auto` also sends a picture that would be shrunk to less than half in "
            "parts, at full detail."
        ),
    ] = "off"
    cache_answers: Annotated[
        Switch,
        Meta(
            description="Answer a question about a picture that was asked before, word for word, "
            "of the same model, with the answer it gave."
        ),
    ] = False


class ModelRoles(msgspec.Struct, frozen=True, kw_only=True):
    """Which model does what, as `provider/id`."""

    vision: Annotated[Words | None, Meta(description="The model that looks at pictures.")] = None
    default: Annotated[Words | None, Meta(description="The model for everything else.")] = None


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The most that may be spent. What would go over is not begun."""

    call_usd: Annotated[Usd | None, Meta(description="For one call.")] = None
    session_usd: Annotated[Usd | None, Meta(description="For one session.")] = None
    day_usd: Annotated[Usd | None, Meta(description="For one day (UTC), all sessions.")] = None


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """When the user is asked first."""

    policy: Annotated[
        Policy,
        Meta(
            description="`untrusted` asks before every paid call and every write outside the "
            "generated folder; `on-request` asks above `approval.above_usd` and outside the "
            "reach; `on-failure` asks once when something was denied; `never` asks nothing."
        ),
    ] = "on-request"
    above_usd: Annotated[
        Usd, Meta(description="The price of a call above which `on-request` asks.")
    ] = Decimal("1.00")


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for every tool."""

    timeout_s: Annotated[
        Seconds, Meta(description="How long a tool may run that names no limit of its own.")
    ] = 300


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be set. ``home`` is ``$LIMNER_HOME``, which no file can change."""

    home: Path
    images: Images = Images()
    model_roles: ModelRoles = ModelRoles()
    budget: Budget = Budget()
    approval: Approval = Approval()
    tools: Tools = Tools()
    models: tuple[OwnModel, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Settings, and for each key where its value came from."""

    settings: Settings
    sources: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row of the reference: a key, what it takes, what it is when nobody says."""

    key: str
    annotation: Any
    default: Any

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return _PREFIX + self.key.upper().replace(".", "_")

    @property
    def description(self) -> str:
        """What it does."""
        return next(m.description for m in self._metas() if m.description)

    @property
    def wanted(self) -> str:
        """What a value must be."""
        return next(m.title for m in self._metas() if m.title)

    @property
    def choices(self) -> list[str]:
        """The words it can be, where it is one of a few."""
        return [part for part in _parts(self.annotation) if isinstance(part, str)]

    @property
    def is_list(self) -> bool:
        """Whether it takes more than one word."""
        return any(get_origin(part) is tuple for part in _parts(self.annotation))

    def _metas(self) -> Iterator[Meta]:
        return (part for part in _parts(self.annotation) if isinstance(part, Meta))


_SECTIONS: Mapping[str, type[msgspec.Struct]] = {
    "images": Images,
    "model_roles": ModelRoles,
    "budget": Budget,
    "approval": Approval,
    "tools": Tools,
}


class _Entry(NamedTuple):
    source: str
    key: str
    raw: object
    is_text: bool = False


@cache
def all_settings() -> Mapping[str, Setting]:
    """Every setting by its key, in the order of the reference."""
    return {
        f"{name}.{field.name}": Setting(
            key=f"{name}.{field.name}", annotation=field.type, default=field.default
        )
        for name, section in _SECTIONS.items()
        for field in msgspec.structs.fields(section)
    }


def load(
    *, env: Mapping[str, str], cwd: Path, flags: Mapping[str, object] | None = None
) -> Settings:
    """The settings that hold here.

    Args:
        env: the environment.
        cwd: the folder that may hold a ``limner.toml``.
        flags: values by dotted key; None means not given.

    Raises:
        SettingsError: something is not a setting, or not a value for it.
    """
    return load_with_sources(env=env, cwd=cwd, flags=flags).settings


def load_with_sources(
    *, env: Mapping[str, str], cwd: Path, flags: Mapping[str, object] | None = None
) -> Loaded:
    """As `load`, with the source of each value: a file, a variable, ``flags`` or ``default``."""
    home = _home(env, cwd)
    files = {path: _read_toml(path) for path in (home / "config.toml", cwd / "limner.toml")}
    models = take_own_models(files, from_strangers=frozenset({cwd / "limner.toml"}))
    entries = chain(
        *(_from_file(path, tables) for path, tables in files.items()),
        _from_env(env),
        _from_flags(flags or {}),
    )
    values: dict[str, dict[str, Any]] = {name: {} for name in _SECTIONS}
    sources = dict.fromkeys(all_settings(), "default")
    for entry in entries:
        setting = _setting(entry)
        if sources[setting.key] == entry.source:
            raise SettingsError(f"{entry.source}: {setting.key} is there twice")
        section, _, name = setting.key.partition(".")
        values[section][name] = _value(setting, entry)
        sources[setting.key] = entry.source
    sections: dict[str, Any] = {name: kind(**values[name]) for name, kind in _SECTIONS.items()}
    settings = Settings(home=home, models=models, **sections)
    return Loaded(settings=settings, sources=sources)


def _home(env: Mapping[str, str], cwd: Path) -> Path:
    named = env.get("LIMNER_HOME", "").strip()
    try:
        if not named:
            return (_user_home(env) / ".limner").absolute()
        if named == "~" or named.startswith("~/"):
            return (_user_home(env) / named[2:]).absolute()
        return (cwd / Path(named).expanduser()).absolute()
    except RuntimeError as error:
        raise SettingsError(
            "limner's folder cannot be told: this user has no home folder",
            hint="Set LIMNER_HOME to a folder that limner may write.",
        ) from error


def _user_home(env: Mapping[str, str]) -> Path:
    return Path(env.get("USERPROFILE" if os.name == "nt" else "HOME") or Path.home())


def _from_file(path: Path, tables: Mapping[str, object]) -> Iterator[_Entry]:
    for section, table in tables.items():
        if isinstance(table, dict) and (table or _snake(section) in _SECTIONS):
            for name, raw in cast("dict[str, object]", table).items():
                yield _Entry(str(path), f"{section}.{name}", raw)
        else:
            yield _Entry(str(path), section, table)


def _read_toml(path: Path) -> dict[str, object]:
    try:
        if not path.is_file():
            return {}
        with path.open("rb") as file:
            data = file.read(_MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error
    if len(data) > _MAX_FILE_BYTES:
        raise SettingsError(f"{path} is longer than {_MAX_FILE_BYTES:,} bytes")

    import tomllib  # noqa: PLC0415 - most commands start without a settings file

    try:
        return tomllib.loads(data.decode("utf-8-sig"), parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise SettingsError(f"{path} is not valid TOML: {error}") from error


def _from_env(env: Mapping[str, str]) -> Iterator[_Entry]:
    keys = {setting.variable: key for key, setting in all_settings().items()}
    sections = tuple(f"{_PREFIX}{section.upper()}_" for section in _SECTIONS)
    for variable, text in sorted(env.items()):
        if not variable.startswith(_PREFIX) or variable in _NOT_KEYS:
            continue
        if variable not in keys:
            near = _nearest(variable.removeprefix(_PREFIX), [k[len(_PREFIX) :] for k in keys])
            if near is not None or variable.startswith(sections):
                raise SettingsError(
                    f"{variable} is not a setting", hint=near and f"Did you mean {_PREFIX}{near}?"
                )
        elif text.strip():
            yield _Entry(variable, keys[variable], text.strip(), is_text=True)


def _from_flags(flags: Mapping[str, object]) -> Iterator[_Entry]:
    for key, raw in flags.items():
        if raw is not None:
            yield _Entry("flags", key, raw, is_text=isinstance(raw, str))


def _setting(entry: _Entry) -> Setting:
    key, known = _snake(entry.key), all_settings()
    if key in known:
        return known[key]
    shown = entry.key[:_SHOWN_CHARS]
    if key in _SECTIONS:
        raise SettingsError(f"{entry.source}: {shown} must be a table", hint=f"Write [{key}].")
    near = _nearest(key, list(known))
    raise SettingsError(
        f"{entry.source}: {shown} is not a setting",
        hint=f"Did you mean {near}?" if near else f"The settings are {', '.join(known)}.",
    )


def _value(setting: Setting, entry: _Entry) -> object:
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


def _is_amount(value: Decimal) -> bool:
    return value.is_finite() and 0 <= value <= MAX_USD and round(value, 9) == value


def _wrong_value(setting: Setting, entry: _Entry, raw: object) -> SettingsError:
    words = cast("list[object]", raw if isinstance(raw, list) else [raw])
    wrong = [word for word in words if isinstance(word, str) and word not in setting.choices]
    shown = f", not {wrong[0][:_SHOWN_CHARS]!r}" if wrong else ""
    near = _nearest(wrong[0], setting.choices) if wrong else None
    return SettingsError(
        f"{entry.source}: {setting.key} must be {setting.wanted}{shown}",
        hint=near and f"Did you mean {near}?",
    )


def _nearest(word: str, known: list[str]) -> str | None:
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    return next(iter(get_close_matches(word[:_SHOWN_CHARS], known, n=1, cutoff=0.7)), None)


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda match: f"_{match[0]}", key).lower()


def _parts(annotation: object) -> Iterator[object]:
    """Everything a type is made of, itself included: inner types, words, notes."""
    yield annotation
    for part in get_args(annotation):
        yield from _parts(part)
