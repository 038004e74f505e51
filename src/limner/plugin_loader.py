"""The entry points of installed packages -> their plug-ins, and those that cannot be used.

Python also finds packages in the working folder, if its search path has that folder. limner loads
such a plug-in only if the user trusts the folder.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from limner.net.redaction import redact
from limner.settings.trust import may_use

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
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        try:
            _check_place(entry)
            usable.append(check(entry.load()))
        except Exception as error:
            # A broken plug-in must not stop the others.
            broken.append(_broken(entry, error))
    return LoadedPlugins(usable=tuple(usable), broken=tuple(broken))


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
