"""The folder of the server and the roots of a client -> what a call may read and write.

A client's model chooses the paths. It gets what every model gets: the generated folder, the temp
folder, and the folder it works in. That folder is the one the server was started in, unless that
is the top or somebody's home; each root that the client names is another.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import msgspec
from msgspec.structs import replace

from limner.storage.home import Home
from limner.storage.reach import Reach

MAX_ROOTS = 16


class CallScope(msgspec.Struct, frozen=True, kw_only=True):
    """Where a call works: what relative paths are relative to, and how far it may go."""

    cwd: Path
    reach: Reach


class CallScopes:
    """The places of one server's clients; looked up once, since the floor takes some finding."""

    def __init__(self, *, home: Home, cwd: Path) -> None:
        self._home, self._cwd = home, cwd
        self._known: dict[tuple[Path, ...], CallScope] = {}

    def of(self, roots: tuple[Path, ...]) -> CallScope:
        """The place of a client with these roots."""
        if roots not in self._known:
            if len(self._known) >= MAX_ROOTS:
                self._known.clear()
            self._known[roots] = self._find(roots)
        return self._known[roots]

    def _find(self, roots: tuple[Path, ...]) -> CallScope:
        offered = (self._cwd, *roots)
        granted = [Reach.for_model(home=self._home.folder, cwd=folder) for folder in offered]
        reach = replace(
            granted[0],
            read=tuple(path for one in granted for path in one.read),
            write=tuple(path for one in granted for path in one.write),
        )
        narrow = (folder for folder in offered if Path(os.path.realpath(folder)) in reach.write)
        return CallScope(cwd=next(narrow, self._home.generated), reach=reach)


def folders_of(uris: Iterable[str]) -> tuple[Path, ...]:
    """The roots that are folders on this machine."""
    found = [path for uri in uris if (path := _folder(uri)) is not None]
    return tuple(dict.fromkeys(found))[:MAX_ROOTS]


def _folder(uri: str) -> Path | None:
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = Path(url2pathname(parts.path))
    try:
        return path if path.is_absolute() and path.is_dir() else None
    except (OSError, ValueError):
        return None
