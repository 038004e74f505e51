"""An app-server <-> the client that started it, over pipes: threads, turns, and how long they take.

The client does as little as it can: it looks at the head of a message and skips the rest, and the
pictures it answers with were encoded before.
"""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from benchmarks.app_server_model import MARK, SHOT, TOOL
from benchmarks.app_server_peers import Peer

BUFFER_BYTES = 1 << 20
EXIT_TIMEOUT_S = 10.0
HELLO = {
    "clientInfo": {"name": "benchmark", "title": None, "version": "1"},
    "capabilities": {"experimentalApi": True},
}
SCREENSHOT = {
    "type": "function",
    "name": TOOL,
    "description": "A picture of the screen as it is now.",
    "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
}


class Head(msgspec.Struct):
    """What a message is about."""

    id: int | str | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


class _Turn(msgspec.Struct):
    status: str


class _Completed(msgspec.Struct):
    turn: _Turn


class _Thread(msgspec.Struct):
    id: str


class _Started(msgspec.Struct):
    thread: _Thread


def answer_with(picture: bytes) -> bytes:
    """A tool's answer, all but the number of the question."""
    url = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    items = [
        {"type": "inputText", "text": "The screen:"},
        {"type": "inputImage", "imageUrl": url},
    ]
    return json.dumps({"contentItems": items, "success": True}).encode()


def thread_params(cwd: str) -> dict[str, Any]:
    """What every thread of these benchmarks is started with."""
    return {
        "cwd": cwd,
        "approvalPolicy": "never",
        "sandbox": "read-only",
        "dynamicTools": [SCREENSHOT],
    }


def turn_params(thread_id: str, words: str) -> dict[str, Any]:
    """What a turn is started with, marked so that the model finds it."""
    return {"threadId": thread_id, "input": [{"type": "text", "text": f"{MARK}{words}"}]}


class Client:
    """The client of one process."""

    _heads = msgspec.json.Decoder(Head)

    def __init__(self, peer: Peer, *, stderr: int = subprocess.DEVNULL) -> None:
        self.peer = peer
        self._asked = 0
        self._started = time.perf_counter()
        self.process = subprocess.Popen(
            peer.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            bufsize=BUFFER_BYTES,
            cwd=peer.cwd,
            env=peer.env,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._to, self._from = self.process.stdin, self.process.stdout

    def greet(self) -> float:
        """Introduce ourselves; the seconds from the start of the process to its answer."""
        self.request("initialize", HELLO)
        taken_s = time.perf_counter() - self._started
        self._send(b'{"method":"initialized"}')
        return taken_s

    def start_thread(self) -> str:
        """Open a thread with one tool; its id."""
        result = self.request("thread/start", thread_params(str(self.peer.cwd)))
        return msgspec.json.decode(result, type=_Started).thread.id

    def request(self, method: str, params: dict[str, Any]) -> msgspec.Raw:
        """Ask for something; what is answered. What comes in between is not heard."""
        number = self._ask(method, params)
        for head in self._messages():
            if head.method is None and head.id == number:
                assert head.result, bytes(head.error)
                return head.result
        raise AssertionError("the server ended")

    def text_turn(self, thread_id: str, number: int) -> float:
        """Have something said; the seconds it took."""
        return self._turn(thread_id, f"Say that this is number {number} of many.", answer=b"")

    def tool_turn(self, thread_id: str, number: int, *, answer: bytes) -> float:
        """Have a screenshot taken and looked at; the seconds it took."""
        return self._turn(thread_id, f"{SHOT}, which will be number {number}.", answer=answer)

    def close(self) -> None:
        """Let the process end by itself, else end it."""
        with contextlib.suppress(BrokenPipeError):
            self._to.close()
        try:
            self.process.wait(EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._from.close()

    def _turn(self, thread_id: str, words: str, *, answer: bytes) -> float:
        started, answered = time.perf_counter(), 0
        self._ask("turn/start", turn_params(thread_id, words))
        for head in self._messages():
            if head.method == "item/tool/call":
                answered += 1
                self._send(b'{"id":%d,"result":%b}' % (head.id, answer))
            elif head.method == "turn/completed":
                taken_s = time.perf_counter() - started
                status = msgspec.json.decode(head.params, type=_Completed).turn.status
                assert status == "completed", bytes(head.params)
                assert answered == bool(answer), answered
                return taken_s
            assert not head.error, bytes(head.error)
        raise AssertionError("the server ended")

    def _ask(self, method: str, params: dict[str, Any]) -> int:
        self._asked += 1
        message = {"id": self._asked, "method": method, "params": params}
        self._send(msgspec.json.encode(message))
        return self._asked

    def _send(self, message: bytes) -> None:
        self._to.write(message)
        self._to.write(b"\n")
        self._to.flush()

    def _messages(self) -> Iterator[Head]:
        while line := self._from.readline():
            yield self._heads.decode(line)


@contextmanager
def connected(peer: Peer) -> Generator[Client]:
    """A greeted server that ends with the block."""
    client = Client(peer)
    try:
        client.greet()
        yield client
    finally:
        client.close()
