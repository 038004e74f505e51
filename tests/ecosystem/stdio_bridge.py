"""HTTP requests of the conformance suite -> lines for `limner mcp` on stdin, and its answers back.

The suite speaks HTTP only. Each session gets a process of its own; requests without a session share
one, as the stateless revision allows. The bridge answers no question of the server.
"""

from __future__ import annotations

import itertools
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

SESSION = "Mcp-Session-Id"
NO_QUESTION = {"code": -32601, "message": "The bridge answers no question."}
LIMIT_S = 60


class StdioServer:
    """One process of `limner mcp`, which several threads may ask."""

    def __init__(self, env: Mapping[str, str]) -> None:
        command = [sys.executable, "-m", "limner", "mcp"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(env), text=True
        )
        self._lock, self._ids = threading.Lock(), itertools.count(1)
        self._waiting: dict[int, queue.Queue[dict[str, Any]]] = {}
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, message: Mapping[str, Any]) -> None:
        """Write one line."""
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def ask(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The response to a request, after the notifications that came before it."""
        # Clients of a shared process may choose the same ids.
        own_id = next(self._ids)
        received = self._waiting[own_id] = queue.Queue()
        self.send({**request, "id": own_id})
        messages: list[dict[str, Any]] = []
        while not messages or messages[-1].get("id") != own_id:
            messages.append(received.get(timeout=LIMIT_S))
        del self._waiting[own_id]
        return [*messages[:-1], {**messages[-1], "id": request["id"]}]

    def close(self) -> None:
        """End the process as a client does: close its stdin."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(LIMIT_S)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if "method" not in message:
                self._waiting[message["id"]].put(message)
            elif "id" in message:
                self.send({"jsonrpc": "2.0", "id": message["id"], "error": NO_QUESTION})
            else:
                for received in [*self._waiting.values()]:
                    received.put(message)


class StdioBridge(ThreadingHTTPServer):
    """An MCP server over HTTP at ``url``, which passes everything on to processes."""

    daemon_threads = True

    def __init__(self, env: Mapping[str, str] = os.environ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/mcp"
        self.env = env
        self.sessions: dict[str, StdioServer] = {"": StdioServer(env)}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that closed its connection."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.shutdown()
        for server in self.sessions.values():
            server.close()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: StdioBridge
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        session = self.headers.get(SESSION, "")
        if message.get("method") == "initialize":
            session = f"session-{len(self.server.sessions)}"
            self.server.sessions[session] = StdioServer(self.server.env)
        server = self.server.sessions.get(session)
        if server is None:
            self._reply(404)
        elif "id" not in message or "method" not in message:
            server.send(message)
            self._reply(202)
        else:
            self._reply(200, server.ask(message), session)

    def do_DELETE(self) -> None:
        server = self.server.sessions.pop(self.headers.get(SESSION) or "none", None)
        if server is not None:
            server.close()
        self._reply(404 if server is None else 200)

    def do_GET(self) -> None:
        self._reply(405)

    def _reply(
        self, status: int, messages: Sequence[dict[str, Any]] = (), session: str = ""
    ) -> None:
        events = "".join(f"data: {json.dumps(message)}\n\n" for message in messages)
        body = events if len(messages) > 1 else json.dumps(messages[0]) if messages else ""
        kind = "text/event-stream" if len(messages) > 1 else "application/json"
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        if session:
            self.send_header(SESSION, session)
        self.end_headers()
        self.wfile.write(body.encode())
