"""A wire to a PostgreSQL server that breaks at a COMMIT, before or after the server got it."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal
from urllib.parse import quote

SOCKET = ".s.PGSQL.5432"
# lost: the server never gets the COMMIT. kept: only its answer is lost. gone: so it is, all other
# connections end too, and the server cannot be reached until `mend`.
Break = Literal["lost", "kept", "gone"]


class PostgresWire:
    """Listens in a folder and hands on to the server of another folder."""

    def __init__(self, folder: Path, *, server: Path) -> None:
        self._folder, self._server = folder, server
        self._lock = threading.Lock()
        self._left = 0
        self._break: Break | None = None
        self._is_gone = False
        self._ends = list[socket.socket]()
        self.broke = False

    def url(self, schema: str) -> str:
        """The address of a database by this wire."""
        host, options = quote(str(self._folder), safe=""), quote(f"-csearch_path={schema}")
        return f"postgresql://limner@/postgres?host={host}&options={options}"

    def break_at(self, number: int, kind: Break) -> None:
        """Break at the COMMIT of this number, counted from now on."""
        with self._lock:
            self._left, self._break, self.broke = number, kind, False

    def mend(self) -> None:
        """Let clients reach the server again."""
        with self._lock:
            self._is_gone, self._break = False, None

    @contextmanager
    def running(self) -> Iterator[PostgresWire]:
        """Listen until the block ends."""
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(self._folder / SOCKET))
            listening.listen(64)
            threading.Thread(target=self._accept, args=(listening,), daemon=True).start()
            yield self
            listening.shutdown(socket.SHUT_RDWR)

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                if self._is_gone:
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server / SOCKET))
                self._ends += client, server
                for work in (self._to_server, self._to_client):
                    threading.Thread(target=work, args=(client, server), daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        """Hand on what the client says; it commits by a plain query or a prepared one."""
        commits = set[bytes]()

        def is_commit(kind: bytes, body: bytes) -> bool:
            names = body.split(b"\0")
            if kind == b"P" and names[1] == b"COMMIT":
                commits.add(names[0])
            return (kind == b"Q" and names[0] == b"COMMIT") or (
                kind == b"B" and names[1] in commits
            )

        def is_due(kind: bytes, body: bytes) -> bool:
            return is_commit(kind, body) and self._is_due("lost")

        _copy(client, server, is_due, is_started=False)

    def _to_client(self, client: socket.socket, server: socket.socket) -> None:
        """Hand on what the server says, until it says that the COMMIT to break at is done."""

        def is_due(kind: bytes, body: bytes) -> bool:
            return (kind, body) == (b"C", b"COMMIT\0") and self._is_due("kept", "gone")

        _copy(server, client, is_due, is_started=True)

    def _is_due(self, *kinds: Break) -> bool:
        with self._lock:
            if self._break not in kinds:
                return False
            self._left -= 1
            if self._left:
                return False
            self._is_gone = self._break == "gone"
            self._break, self.broke = None, True
        if self._is_gone:
            _shut(*self._ends)
            self._ends.clear()
        return True


def _copy(
    source: socket.socket,
    target: socket.socket,
    is_due: Callable[[bytes, bytes], bool],
    *,
    is_started: bool,
) -> None:
    """Hand on messages, and close both ends if one is due or an end is closed."""
    with source, target:
        with suppress(OSError, struct.error):
            while True:
                kind = _read(source, 1) if is_started else b""
                (length,) = struct.unpack("!I", _read(source, 4))
                body = _read(source, length - 4)
                if is_due(kind, body):
                    break
                target.sendall(kind + struct.pack("!I", length) + body)
                is_started = True
        _shut(source, target)


def _shut(*ends: socket.socket) -> None:
    """End connections; a thread that waits for one of them wakes up."""
    for end in ends:
        with suppress(OSError):  # it has ended already
            end.shutdown(socket.SHUT_RDWR)


def _read(source: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        piece = source.recv(count - len(found))
        if not piece:
            raise OSError("the connection has ended")
        found += piece
    return found
