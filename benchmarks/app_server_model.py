"""A model that thinks of nothing: says what it was told, or asks for a screenshot where told to.

It runs in a process of its own and reads no more of a request than it must, so that what is
measured is the server in front of it: `python -m benchmarks.app_server_model [TOGETHER]`. Words
that begin with ``Together`` are answered when as many of them wait as the command line says.
"""

from __future__ import annotations

import itertools
import json
import socket
import socketserver
import sys
import threading
from collections.abc import Sequence
from typing import Any, ClassVar

TOOL = "take_screenshot"
# What the user says begins so, and nothing else in a request does.
MARK = "#! "
SHOT = "Take a screenshot"
TOGETHER = "Together"
PIECES = 4
HOLD_S = 120.0
USAGE = {
    "input_tokens": 1200,
    "input_tokens_details": {"cached_tokens": 1024},
    "output_tokens": 45,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 1245,
}


def last_words(body: bytes) -> str | None:
    """What the user said last; None where a tool has answered since.

    A request is a conversation of megabytes that ends with what matters, so it is looked at from
    its end and never parsed.
    """
    at = body.rfind(b'"' + MARK.encode())
    if at < body.rfind(b'"function_call_output"'):
        return None
    return body[at + 1 : body.index(b'"', at + 1)].decode().removeprefix(MARK)


class Model(socketserver.StreamRequestHandler):
    """One connection: requests, and their answers as server-sent events."""

    disable_nagle_algorithm = True
    rbufsize = 1 << 20
    numbers: ClassVar = itertools.count(1)
    gathering: ClassVar[threading.Barrier]

    def handle(self) -> None:
        while first := self.rfile.readline():
            headers = self._headers()
            body = self._body(headers)
            if first.startswith(b"POST /v1/responses "):
                self._answer(body)
            else:
                self.wfile.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    def _headers(self) -> dict[bytes, bytes]:
        headers: dict[bytes, bytes] = {}
        while (line := self.rfile.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            headers[name.lower()] = value.strip()
        return headers

    def _body(self, headers: dict[bytes, bytes]) -> bytes:
        if headers.get(b"transfer-encoding") != b"chunked":
            return self.rfile.read(int(headers.get(b"content-length", b"0")))
        pieces: list[bytes] = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _answer(self, body: bytes) -> None:
        words = last_words(body)
        if words is not None and words.startswith(TOGETHER):
            self.gathering.wait(HOLD_S)
        number = next(self.numbers)
        if words is not None and words.startswith(SHOT):
            events = _events(number, _call(number), deltas=())
        else:
            events = _saying(number, words or "There it is.")
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n"
        self.wfile.write(head % len(events) + events)


def _call(number: int) -> dict[str, Any]:
    return {
        "id": f"fc_{number}",
        "type": "function_call",
        "status": "completed",
        "call_id": f"call_{number}",
        "name": TOOL,
        "arguments": "{}",
    }


def _saying(number: int, words: str) -> bytes:
    item = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": words, "annotations": []}],
    }
    step = len(words) // PIECES + 1
    pieces = [words[start : start + step] for start in range(0, len(words), step)]
    at = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    deltas = [{"type": "response.output_text.delta", **at, "delta": piece} for piece in pieces]
    return _events(number, item, deltas=deltas)


def _events(number: int, item: dict[str, Any], *, deltas: Sequence[dict[str, Any]]) -> bytes:
    created = {"id": f"resp_{number}", "object": "response", "status": "in_progress", "output": []}
    ended = {**created, "status": "completed", "output": [item], "usage": USAGE}
    started = {**item, "status": "in_progress", "content": []} if deltas else item
    events = [
        {"type": "response.created", "response": created},
        {"type": "response.output_item.added", "output_index": 0, "item": started},
        *deltas,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": ended},
    ]
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
    )


class Server(socketserver.ThreadingTCPServer):
    """A thread for each connection."""

    request_queue_size = 1024
    daemon_threads = True

    def handle_error(self, request: socket.socket | tuple[bytes, socket.socket], _: Any) -> None:
        # A client that was killed in the middle is no news.
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, _)


def main(together: int) -> None:
    Model.gathering = threading.Barrier(together)
    with Server(("127.0.0.1", 0), Model) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
