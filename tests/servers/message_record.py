"""Every message between app-servers and their clients -> files that `codex_messages` judges.

As a program it is `limner`, or another Python program, that records what it sends and receives:
``message_record.py FOLDER [PROGRAM.py] WORDS…``.
"""

from __future__ import annotations

import itertools
import os
import runpy
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

# A test may send a message of 256 MB; a message of this size carries pictures.
MAX_BYTES = 16 * 1024 * 1024
RECORDING_COMMANDS = frozenset({"app-server", "codex"})
TO_CLIENT, TO_SERVER = b">", b"<"
AT_SERVER, AT_CLIENT = "server", "client"

_numbers = itertools.count()


class RecordingTransport:
    """A transport whose messages are written to a file, each before the other side has it."""

    def __init__(self, transport: Any, file: Path) -> None:
        self._transport, self._file = transport, file
        is_server = file.suffix == f".{AT_SERVER}"
        self._sent, self._received = (TO_CLIENT, TO_SERVER) if is_server else (TO_SERVER, TO_CLIENT)

    async def send(self, messages: Sequence[bytes]) -> None:
        self._record(self._sent, *messages)
        await self._transport.send(messages)

    async def receive(self) -> Any:
        message = await self._transport.receive()
        if isinstance(message, bytes | bytearray):
            self._record(self._received, message)
        return message

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _record(self, direction: bytes, *messages: bytes | bytearray) -> None:
        lines = (
            b"%b%d\n%b\n" % (direction, len(message), message)
            for message in messages
            if len(message) <= MAX_BYTES
        )
        # Opened for each message: a reader takes the file away. A test may fill the disk.
        with suppress(OSError), self._file.open("ab", buffering=0) as file:
            file.write(b"".join(lines))


def record_messages(folder: Path) -> None:
    """Record every connection of this process from now on."""
    from limner.frontends.appserver.connection import ClientConnection
    from limner.frontends.remote.connection import ServerPeer

    for kind, place in ((ClientConnection, AT_SERVER), (ServerPeer, AT_CLIENT)):
        _record_connections(kind, folder, place)


def _record_connections(kind: Any, folder: Path, place: str) -> None:
    plain = kind.__init__
    if plain.__name__ == "record":  # `sitecustomize` was first
        return

    def record(self: Any, transport: Any, *rest: Any, **options: Any) -> None:
        file = folder / f"{os.getpid()}-{next(_numbers)}.{place}"
        plain(self, RecordingTransport(transport, file), *rest, **options)

    kind.__init__ = record


def main() -> int:
    # The folder of this file is not part of the program.
    if not sys.flags.safe_path:
        del sys.path[0]
    folder = Path(sys.argv.pop(1))
    program = sys.argv[1] if sys.argv[1:2] and sys.argv[1].endswith(".py") else None
    if program is not None or RECORDING_COMMANDS.intersection(sys.argv):
        record_messages(folder)
    if program is not None:
        del sys.argv[0]
        runpy.run_path(program, run_name="__main__")
        return 0
    from limner import __file__ as package
    from limner.frontends.cli.main import main as run

    # As `python -m limner` sets it.
    sys.argv[0] = str(Path(package).with_name("__main__.py"))
    return run()


if __name__ == "__main__":
    raise SystemExit(main())
