"""The value of ``--listen`` -> an open socket."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from limner.errors import UserError

BACKLOG = 1024
_OWNER_ONLY = 0o177
_HINT = "Use stdio://, ws://IP:PORT or unix://PATH."


@dataclass(frozen=True, slots=True)
class Tcp:
    """A web socket at an IP address and port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"ws://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Unix:
    """A web socket on a Unix socket file."""

    path: Path

    def __str__(self) -> str:
        return f"unix://{self.path}"


Address: TypeAlias = Tcp | Unix


def read_address(text: str, *, home: Path) -> Address:
    """Parse the address to listen on.

    Raises:
        UserError: it is not a supported address.
    """
    scheme, _, rest = text.partition("://")
    if scheme == "unix":
        return Unix(Path(rest).absolute() if rest else home / "app-server.sock")
    if scheme != "ws":
        raise UserError(f"--listen cannot be {text!r}", hint=_HINT)
    try:
        parts = urlsplit(text)
        host, port = str(ipaddress.ip_address(parts.hostname or "")), parts.port
    except ValueError as error:
        raise UserError(f"--listen {text}: {error}", hint=_HINT) from error
    if port is None or parts.path not in {"", "/"} or parts.username is not None:
        raise UserError(f"--listen {text} is not ws://IP:PORT", hint=_HINT)
    return Tcp(host, port)


@contextmanager
def bound(address: Address) -> Generator[socket.socket]:
    """A socket that listens at the address; a socket file is removed at the end.

    Raises:
        UserError: the address cannot be used.
    """
    try:
        listener = _bind_tcp(address) if isinstance(address, Tcp) else _bind_unix(address.path)
    except OSError as error:
        raise UserError(f"{address} cannot be listened on: {error.strerror or error}") from error
    with listener:
        made = None if isinstance(address, Tcp) else address.path.lstat().st_ino
        try:
            yield listener
        finally:
            if isinstance(address, Unix):
                _remove(address.path, inode=made)


def _bind_tcp(address: Tcp) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    return socket.create_server((address.host, address.port), family=family, backlog=BACKLOG)


def _bind_unix(path: Path) -> socket.socket:
    if not hasattr(socket, "AF_UNIX"):
        raise UserError("unix:// is not supported on this system", hint=_HINT)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_stale(path)
    listener = socket.socket(socket.AF_UNIX)
    # Other users must not be able to open it, not even for a moment.
    before = os.umask(_OWNER_ONLY)
    try:
        listener.bind(os.fspath(path))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(before)
    return listener


def _remove_stale(path: Path) -> None:
    """Remove the socket file of a server that was killed, and nothing else."""
    if not path.is_socket():
        return  # there is nothing, or a file that makes bind fail
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
        else:
            raise UserError(f"Another server is listening on {path}")


def _remove(path: Path, *, inode: int | None) -> None:
    with contextlib.suppress(OSError):
        found = path.lstat()
        if stat.S_ISSOCK(found.st_mode) and found.st_ino == inode:
            path.unlink()
