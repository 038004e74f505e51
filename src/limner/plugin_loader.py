"""The entry points of installed packages -> their plug-ins, and those that cannot be used.

Python also finds packages in the working folder, if its search path has that folder. limner loads
such a plug-in only if the user trusts the folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from limner.net.redaction import redact
from limner.settings.trust import may_use

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class BrokenPlugin(msgspec.Struct, frozen=True, kw_only=True):
    """A plug-in that cannot be used.

    Attributes:
        name: its name in the entry point.
        target: the ``module:value`` that the entry point names.
        package: the installed package with its version.
        reason: why it cannot be used.
    """

    name: str
    target: str
    package: str
    reason: str


class LoadedPlugins(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """The plug-ins of one group of entry points."""

    usable: tuple[T, ...]
    broken: tuple[BrokenPlugin, ...]


def load_plugins(group: str, check: Callable[[object], T]) -> LoadedPlugins[T]:
    """Load every plug-in of a group, by name; ``check`` raises an error for one to refuse."""
    usable: list[T] = []
    broken: list[BrokenPlugin] = []
    for entry in _entry_points(group):
        try:
            _check_place(entry)
            usable.append(check(entry.load()))
        except Exception as error:
            # A broken plug-in must not stop the others.
            broken.append(_broken(entry, error))
    return LoadedPlugins(usable=tuple(usable), broken=tuple(broken))


def _entry_points(group: str) -> list[EntryPoint]:
    if not _may_exist(group):
        return []
    from importlib.metadata import entry_points  # noqa: PLC0415 - most users have no plug-in

    return sorted(entry_points(group=group), key=lambda entry: entry.name)


def _may_exist(group: str) -> bool:
    """False if no installed package has this group of entry points.

    It looks into the same files as `importlib.metadata`, but takes a tenth of its time. If a
    package may be in another place than a folder, the answer is True.
    """
    if any(hasattr(one, "find_distributions") and one is not PathFinder for one in sys.meta_path):
        return True
    header = f"[{group}]".encode()
    return any(_has_header(str(folder) or ".", header) for folder in sys.path)


def _has_header(folder: str, header: bytes) -> bool:
    try:
        names = os.listdir(folder)  # noqa: PTH208 - `pathlib` would double the time
    except (FileNotFoundError, PermissionError):
        return False
    except OSError:
        return True  # an archive
    is_egg = folder.lower().rstrip(os.sep).endswith(".egg")
    for name in names:
        if not is_egg and not name.lower().endswith((".dist-info", ".egg-info")):
            continue
        path = f"{folder}/{name}/entry_points.txt"
        if not os.access(path, os.F_OK):  # most packages have none, and an error takes longer
            continue
        try:
            with open(path, "rb", buffering=0) as file:  # noqa: PTH123
                if header in file.read():
                    return True
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue
    return False


def _check_place(entry: EntryPoint) -> None:
    if entry.dist is not None and not may_use(Path(str(entry.dist.locate_file("")))):
        raise PermissionError(
            "its package is in the working folder; run `limner trust` if you trust this folder"
        )


def _broken(entry: EntryPoint, error: Exception) -> BrokenPlugin:
    package = "" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
    return BrokenPlugin(
        name=entry.name, target=entry.value, package=package, reason=redact(repr(error))
    )
