"""App-servers as processes, and clients that speak to them over pipes and sockets."""

from __future__ import annotations

import contextlib
import json
import queue
import re
import signal
import subprocess
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.frontends.appserver import probe_server
from tests.frontends.cli_process import LIMNER
from websockets.sync.client import ClientConnection, connect, unix_connect

GUARD_S = 60.0
PROBE = [LIMNER[0], "-W", "error", *LIMNER[1:], probe_server.__file__]
GREETING = {"clientInfo": {"name": "probe", "version": "0.0.1"}}


class Process:
    """A server in a folder of its own; standard error is read all the time."""

    def __init__(
        self, words: Sequence[str], folder: Path, *, env: dict[str, str] | None = None
    ) -> None:
        self.home, self.cwd = folder / "limner-home", folder / "work"
        self.makes_token = False
        self.cwd.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.cwd,
            env={"HOME": str(folder), "LIMNER_HOME": str(self.home), **(env or {})},
        )
        self._said: list[str] = []
        self._news: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._said.append(line.decode())
            self._news.put(line.decode())

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The first line of standard error from here on that matches."""
        while True:
            if found := re.search(pattern, self._news.get(timeout=GUARD_S)):
                return found

    @property
    def rss_bytes(self) -> int:
        """The most memory it has used so far."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        peak = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert peak
        return int(peak[1]) * 1024

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def end(self) -> tuple[int, str]:
        """Wait for the end: the status, and what was said on standard error."""
        status = self.process.wait(timeout=GUARD_S)
        self._listening.join(GUARD_S)
        return status, "".join(self._said)


class Client:
    """What every client can do, however it is connected."""

    def send_raw(self, data: bytes) -> None:
        raise NotImplementedError

    def receive_raw(self) -> bytes:
        raise NotImplementedError

    def send(self, message: object) -> None:
        self.send_raw(json.dumps(message).encode())

    def receive(self) -> dict[str, Any]:
        return json.loads(self.receive_raw())

    def call(self, number: int | str, method: str, params: object = None) -> dict[str, Any]:
        """Send a request and return the next message."""
        self.send({"id": number, "method": method, "params": {} if params is None else params})
        return self.receive()

    def greet(self, **capabilities: Any) -> dict[str, Any]:
        params = {**GREETING, "capabilities": capabilities}
        answer = self.call("hello", "initialize", params)
        self.send({"method": "initialized"})
        return answer["result"]


class PipeClient(Client):
    """The client that started the server."""

    def __init__(self, server: Process) -> None:
        assert server.process.stdin is not None
        assert server.process.stdout is not None
        self._to, self._from = server.process.stdin, server.process.stdout

    def send_raw(self, data: bytes) -> None:
        self._to.write(data + b"\n")
        self._to.flush()

    def receive_raw(self) -> bytes:
        line = self._from.readline()
        assert line.endswith(b"\n"), "the server ended"
        return line

    def close(self) -> None:
        self._to.close()

    def rest(self) -> list[dict[str, Any]]:
        """Everything the server still writes until its end."""
        return [json.loads(line) for line in self._from]


class SocketClient(Client):
    """A client that came over a web socket."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    def send_raw(self, data: bytes) -> None:
        self.socket.send(data, text=True)

    def receive_raw(self) -> bytes:
        received = self.socket.recv(timeout=GUARD_S, decode=False)
        assert isinstance(received, bytes)
        return received


@contextmanager
def running(
    words: Sequence[str], folder: Path, *, env: dict[str, str] | None = None
) -> Generator[Process]:
    """A server that is stopped at the end, if it has not ended before."""
    server = Process(words, folder, env=env)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()
        server._listening.join(GUARD_S)
        for stream in (server.process.stdin, server.process.stdout, server.process.stderr):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()


@contextmanager
def piped(folder: Path, *, words: Sequence[str] | None = None) -> Generator[Piped]:
    """A server on standard input and output, and its client."""
    with running(words or [*PROBE, "stdio://"], folder) as server:
        yield Piped(server)


class Piped(PipeClient):
    """A client and its own server."""

    def __init__(self, server: Process) -> None:
        super().__init__(server)
        self.server = server


class SocketServer:
    """A server that listens, and a way to it."""

    def __init__(self, server: Process, address: str) -> None:
        self.server, self.address = server, address
        self.headers: dict[str, str] = {}
        if address.startswith("ws://") and server.makes_token:
            self.token_file = Path(server.wait_for(r"clients send the bearer token in (\S+)")[1])
            self.headers = {"Authorization": f"Bearer {self.token_file.read_text()}"}

    @contextmanager
    def client(self, **options: Any) -> Generator[SocketClient]:
        common = {"compression": None, "max_size": None, "proxy": None}
        options = {**common, "additional_headers": self.headers, **options}
        if self.address.startswith("unix://"):
            options.pop("proxy")
            opening = unix_connect(self.address.removeprefix("unix://"), **options)
        else:
            opening = connect(self.address, **options)
        with opening as socket:
            yield SocketClient(socket)


@contextmanager
def listening(
    folder: Path,
    listen: str = "ws://127.0.0.1:0",
    *more: str,
    words: Sequence[str] = PROBE,
    env: dict[str, str] | None = None,
) -> Generator[SocketServer]:
    """A server on a socket."""
    with running([*words, listen, *more], folder, env=env) as server:
        server.makes_token = not more and not env
        yield SocketServer(server, server.wait_for(r"listening on (\S+)")[1])


def app_server(*words: str) -> list[str]:
    """The words that start the real command."""
    return [*LIMNER, "app-server", *words]
