"""A personality's folder -> the system prompt of a model, its tools and what it may do.

A folder ``<id>/`` has a ``SOUL.md``, the system prompt, and may have a ``toolset.yaml``, a list of
tools, and a ``config.toml`` or ``config.yaml``. Its author is not trusted: its files must be small,
must be inside the folder, and can only set the keys below.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast

import msgspec
from msgspec import Meta

from limner.errors import InputInvalid, LimnerError, SettingsError
from limner.settings import Policy, Sandbox
from limner.settings.documents import decode, parse_toml, read_bounded
from limner.settings.fields import Entry, Setting, check_entries, file_entries, shorten
from limner.settings.values import Usd, Words
from limner.storage.files import open_plain

SHIPPED = Path(__file__).with_name("personalities")

_MAX_FILE_BYTES = 64 * 1024
_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_CONFIGS = ("config.toml", "config.yaml")
_FILES = ("SOUL.md", "toolset.yaml", *_CONFIGS)
# Clocks of file systems are coarser than this.
_SETTLED_NS = 2_000_000_000

# For the folder and each of its files: what the system says about it, or None if there is none.
_Signature = tuple[tuple[int, ...] | None, ...]

Line = Annotated[
    str,
    Meta(
        title="one line of text, 300 characters at most",
        pattern=r"\A[^\x00-\x1f\x7f-\x9f\u2028\u2029]+\Z",
        max_length=300,
    ),
]
Folders = Annotated[tuple[Words, ...], Meta(title="a list of folders")]
ToolName = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_-]{1,64}\Z")]
ToolNames = Annotated[tuple[ToolName, ...], Meta(title="a list of tool names")]

_KEYS: Mapping[str, Setting] = {
    key: Setting(key=key, annotation=annotation, default=None)
    for key, annotation in {
        "name": Line,
        "description": Line,
        "model": Line,
        "fs_reach.read": Folders,
        "fs_reach.write": Folders,
        "sandbox": Sandbox,
        "approval": Policy,
        "budget_usd": Usd,
    }.items()
}
_TOOLSET = Setting(key="toolset", annotation=ToolNames, default=None)


class Personality(msgspec.Struct, frozen=True, kw_only=True):
    """The role of a model in a conversation; None is left to the settings.

    Attributes:
        id: the name of its folder.
        name: what people call it.
        description: what it is for, in a line.
        soul: the system prompt.
        folder: its folder, which is ``${self}`` in its reach.
        toolset: the names of the tools it is offered; None is all of them.
        model: ``provider/id``.
        read: the folders it may read, as `Reach.from_lists` takes them.
        write: the folders it may write.
        sandbox: what it may write.
        approval: when the user is asked.
        budget_usd: the most a session with it may cost.
    """

    id: str
    name: str
    description: str
    soul: str
    folder: Path
    toolset: tuple[str, ...] | None = None
    model: str | None = None
    read: tuple[str, ...] | None = None
    write: tuple[str, ...] | None = None
    sandbox: Sandbox | None = None
    approval: Policy | None = None
    budget_usd: Decimal | None = None


class PersonalityListing(NamedTuple):
    """The valid personalities, and the problems of the others."""

    personalities: list[Personality]
    problems: list[SettingsError]


class Personalities:
    """The personalities of a user, and those that limner ships.

    Args:
        folder: the user's own personalities, which replace limner's; it need not exist.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[Path, tuple[_Signature, Personality]] = {}

    def get(self, personality_id: str) -> Personality:
        """The personality with this id; its files are read again if they have changed.

        Raises:
            InputInvalid: NO_SUCH_PERSONALITY; the hint has those with a similar id.
            SettingsError: something in its folder is not valid.
        """
        folders = self._folders()
        if personality_id in folders:
            return self._read(folders[personality_id])
        ids = sorted(filter(_ID.fullmatch, folders))
        from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

        near = get_close_matches(shorten(personality_id).lower(), ids, n=3, cutoff=0.7)
        raise InputInvalid(
            f"There is no personality {shorten(personality_id)!r}.",
            field="personality",
            code="NO_SUCH_PERSONALITY",
            hint=f"Did you mean {' or '.join(near)}?" if near else f"There are {', '.join(ids)}.",
        )

    def all(self) -> PersonalityListing:
        """Every personality, by id; one that is not valid is listed as a problem.

        Raises:
            SettingsError: the user's folder cannot be read.
        """
        listing = PersonalityListing([], [])
        for _, folder in sorted(self._folders().items()):
            try:
                listing.personalities.append(_read(folder))
            except SettingsError as problem:
                listing.problems.append(problem)
        return listing

    def _read(self, folder: Path) -> Personality:
        signature = _sign(folder)
        known = self._known.get(folder)
        if known is not None and known[0] == signature:
            return known[1]
        personality = _read(folder)
        if signature is not None:
            self._known[folder] = signature, personality
        return personality

    def _folders(self) -> dict[str, Path]:
        return {
            folder.name: folder
            for where in (SHIPPED, self._folder)
            for folder in _subfolders(where)
        }


def _subfolders(where: Path) -> list[Path]:
    try:
        return [path for path in where.iterdir() if path.is_dir() and path.name[0] != "."]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SettingsError(f"{where} cannot be read: {error.strerror}") from error


def _sign(folder: Path) -> _Signature | None:
    """What differs after any change of a personality's files; None if that is not certain."""
    signature: list[tuple[int, ...] | None] = []
    for name in ("", *_FILES):
        try:
            found = os.lstat(os.path.join(folder, name))  # noqa: PTH118 - for each turn
        except FileNotFoundError:
            signature.append(None)
            continue
        except OSError:
            return None
        # The target of a link changes by itself. A file that was written just now may be written
        # once more at what the system takes for the same time.
        age_ns = time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns)
        if stat.S_ISLNK(found.st_mode) or age_ns < _SETTLED_NS:
            return None
        signature.append((found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
    return tuple(signature)


def _read(folder: Path) -> Personality:
    if not _ID.fullmatch(folder.name):
        raise SettingsError(
            f"{folder.parent}: {folder.name!r} cannot be the name of a personality",
            hint="Use the letters a to z, digits, - and _, 64 of them at most.",
        )
    soul = _text(folder / "SOUL.md")
    if soul is None:
        raise SettingsError(
            f"{folder} has no SOUL.md", hint="Write the system prompt of the personality there."
        )
    if not soul.strip():
        raise SettingsError(f"{folder / 'SOUL.md'} is empty")
    values = _config(folder)
    return Personality(
        id=folder.name,
        name=values.pop("name") or folder.name,
        description=values.pop("description") or "",
        soul=soul.strip(),
        folder=folder,
        toolset=_toolset(folder / "toolset.yaml"),
        read=values.pop("fs_reach.read"),
        write=values.pop("fs_reach.write"),
        **values,
    )


def _config(folder: Path) -> dict[str, Any]:
    """The values of the folder's config file, with None for every other key."""
    texts = {path: _text(path) for path in (folder / name for name in _CONFIGS)}
    there = {path: text for path, text in texts.items() if text is not None}
    if len(there) > 1:
        raise SettingsError(
            f"{folder} has both {' and '.join(_CONFIGS)}", hint="Keep one of the two."
        )
    values: dict[str, Any] = dict.fromkeys(_KEYS)
    for path, text in there.items():
        document = _parse(text, path)
        if not isinstance(document, dict):
            raise SettingsError(f"{path} must be a table of keys")
        entries = file_entries(cast("dict[str, object]", document), source=str(path), known=_KEYS)
        values |= {key: value for _, key, value in check_entries(entries, _KEYS)}
    return values


def _toolset(path: Path) -> tuple[str, ...] | None:
    text = _text(path)
    if text is None:
        return None
    entry = Entry(str(path), _TOOLSET.key, _parse(text, path))
    ((_, _, names),) = check_entries([entry], {_TOOLSET.key: _TOOLSET})
    return tuple(dict.fromkeys(names))


def _parse(text: str, path: Path) -> object:
    if path.suffix == ".toml":
        return parse_toml(text, path=path)

    from limner.settings.yaml_documents import parse_yaml  # noqa: PLC0415 - few files are YAML

    return parse_yaml(text, path=path)


def _text(path: Path) -> str | None:
    """The text of a file of a personality; None if there is no such file.

    Raises:
        SettingsError: it is outside of the folder, is not a plain file, or is too long.
    """
    if not os.path.lexists(path):
        return None
    folder, real = (Path(os.path.realpath(each)) for each in (path.parent, path))
    if not real.is_relative_to(folder):
        raise SettingsError(f"{path} is a symlink that leads out of its folder")
    try:
        with open_plain(real) as file:
            data = read_bounded(file, path=path, max_bytes=_MAX_FILE_BYTES)
    except SettingsError:
        raise
    except LimnerError as error:
        raise SettingsError(f"{path} cannot be read: {error.message}") from error
    return decode(data, path=path)
