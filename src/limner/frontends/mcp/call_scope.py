"""The folder of the server and more folders -> what a call may read and write.

A client's model chooses the paths. It may use what every model may use: the folder of generated
pictures, the temp folder, and the folder in which the server was started, unless that is the root
folder or a user's home. More folders are allowed too: over stdio the roots that the client names,
over HTTP the folders that the owner of the server lists. A relative path starts from the first of
these: a root or a listed folder, the folder of the server, the folder of generated pictures. A file
to read is looked for in all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import msgspec
from msgspec.structs import replace

from limner.errors import ReachDenied, UserError
from limner.storage.home import Home
from limner.storage.reach import Reach

MAX_ROOTS = 16


class CallScope(msgspec.Struct, frozen=True, kw_only=True):
    """The folders that relative paths start from, and the files that a call may use."""

    folders: tuple[Path, ...]
    reach: Reach

    @property
    def cwd(self) -> Path:
        """The folder that a path to write starts from."""
        return self.folders[0]


class CallScopes:
    """The scopes of one server's clients. They are cached, since a lookup reads the disk."""

    def __init__(self, *, home: Home, cwd: Path) -> None:
        self._home, self._cwd = home, cwd
        self._known: dict[tuple[Path, ...], CallScope] = {}

    def of(self, roots: tuple[Path, ...]) -> CallScope:
        """Return the scope of a client with these roots."""
        if roots not in self._known:
            if len(self._known) >= MAX_ROOTS:
                self._known.clear()
            self._known[roots] = self._find(roots)
        return self._known[roots]

    def _find(self, roots: tuple[Path, ...]) -> CallScope:
        offered = (*roots, self._cwd)
        granted = [Reach.for_model(home=self._home, cwd=folder) for folder in offered]
        reach = replace(
            granted[0],
            read=tuple(path for one in granted for path in one.read),
            write=tuple(path for one in granted for path in one.write),
        )
        narrow = [folder for folder in offered if Path(os.path.realpath(folder)) in reach.write]
        return CallScope(folders=(*narrow, self._home.generated), reach=reach)


def owned_folders(paths: Iterable[Path], *, home: Home) -> tuple[Path, ...]:
    """The folders that the owner of a server lists.

    Raises:
        UserError: one is not a folder, or is closed to every model.
    """
    folders = tuple(Path(os.path.realpath(path.expanduser())) for path in paths)
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"--allow-folder {folder} is not a folder")
        reach = Reach.for_model(home=home, cwd=folder)
        try:
            reach.resolve_write(folder / "picture.png", cwd=folder)
        except ReachDenied as error:
            raise UserError(
                f"--allow-folder {folder} is closed to models",
                hint="Choose a folder inside your home, not the home itself or a system folder.",
            ) from error
    return folders


def folders_of(uris: Iterable[str]) -> tuple[Path, ...]:
    """Return the roots that are folders on this machine."""
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
