"""ComfyUI's queue on this machine, its web socket included."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
import json
import struct
from typing import Any

from limner.testing.servers.http_server import (
    LocalServer,
    ReceivedRequest,
    Reply,
    bytes_reply,
    json_reply,
)

CHECKPOINTS = ["sd_xl_base_1.0.safetensors", "flux/dev-fp8.safetensors"]
WS_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
EMPTY = bytes_reply(b"", headers={"Content-Type": "application/octet-stream"})


def invalid_prompt(details: str) -> Reply:
    """What a graph that cannot run is answered with."""
    error = {
        "type": "prompt_outputs_failed_validation",
        "message": "Prompt outputs failed validation",
        "details": details,
        "extra_info": {},
    }
    return json_reply({"error": error, "node_errors": {}}, status=400)


def preview(picture: bytes) -> bytes:
    """An unfinished picture as it is sent: what it is, its format, its bytes."""
    return struct.pack(">II", 1, 1) + picture


class ComfyServer(LocalServer):
    """Runs graphs.

    Routes: "create", "history", "list", "queue", "order", "upload", "models", "file" and "ws".

    Attributes:
        looks: how often the history is asked before a job is in it.
        waiting: how many of the first looks find the job still waiting.
        messages: what the status of a job that has ended says, as name and further data.
        status: "success" or "error".
        outputs: what the graph has left.
    """

    def __init__(self, picture: bytes, **rest: Any) -> None:
        super().__init__(**rest)
        self.file = bytes_reply(picture, headers={"Content-Type": "image/png"})
        self.looks = 0
        self.waiting = 0
        self.status = "success"
        self.messages: list[tuple[str, dict[str, Any]]] = [
            ("execution_start", {"timestamp": 1_000}),
            ("execution_success", {"timestamp": 4_500}),
        ]
        kept = {"filename": "limner_00001_.png", "subfolder": "", "type": "output"}
        shown = {"filename": "ComfyUI_temp_00001_.png", "subfolder": "", "type": "temp"}
        self.outputs: Any = {"shown": {"images": [shown]}, "saved": {"images": [kept]}}
        self.jobs: dict[str, list[Any]] = {}
        self.removed: set[str] = set()
        self.names = list(CHECKPOINTS)
        self._looked: dict[str, int] = {}
        self._ids = itertools.count(1)
        self._sockets: list[asyncio.StreamWriter] = []

    @property
    def base_url(self) -> str:
        return self.origin

    def route(self, seen: ReceivedRequest) -> str:
        match seen.method, seen.path.strip("/").split("/"):
            case "POST", ["prompt"]:
                return "create"
            case "GET", ["history", _]:
                return "history"
            case "GET", ["history"]:
                return "list"
            case "GET", ["queue"]:
                return "queue"
            case "POST", ["queue" | "interrupt"]:
                return "order"
            case "POST", ["upload", "image"]:
                return "upload"
            case "GET", ["models", "checkpoints"]:
                return "models"
            case "GET", ["view"]:
                return "file"
            case "GET", ["ws"]:
                return "ws"
            case _:
                return "unknown"

    def answer(self, seen: ReceivedRequest) -> Reply:
        match self.route(seen):
            case "create":
                return self._create(seen.json())
            case "history":
                return self._history(seen.path.rpartition("/")[2])
            case "list":
                return json_reply(
                    {one: self._entry(one) for one in self.jobs if self._is_done(one)}
                )
            case "queue":
                return self._queue()
            case "order":
                return self._order(seen.json())
            case "upload":
                return json_reply({"name": "whatever.png", "subfolder": "", "type": "input"})
            case "models":
                return json_reply(self.names)
            case "file":
                return self.file
            case _:
                return bytes_reply(b"404: Not Found", status=404)

    def add(self, job_id: str, **extra: Any) -> None:
        """A job, as if it had been put into the queue."""
        self.jobs[job_id] = [len(self.jobs), job_id, {}, extra, ["saved"]]
        self._looked[job_id] = 0

    def answer_create(self, **extra: Any) -> Reply:
        """The answer to a graph that is put into the queue, which it is at once."""
        return self._create({"client_id": "", "extra_data": extra})

    def say(self, *messages: dict[str, Any] | bytes) -> None:
        """Send messages to everybody who listens."""
        frames = b"".join(map(_frame, messages))
        for socket in self._sockets:
            self._loop.call_soon_threadsafe(socket.write, frames)

    def _create(self, asked: dict[str, Any]) -> Reply:
        job_id = f"00000000-0000-4000-8000-{next(self._ids):012d}"
        self.add(job_id, **asked.get("extra_data", {}), client_id=asked["client_id"])
        return json_reply({"prompt_id": job_id, "number": 0, "node_errors": {}})

    def _history(self, job_id: str) -> Reply:
        if job_id not in self.jobs:
            return json_reply({})
        self._looked[job_id] += 1
        return json_reply({job_id: self._entry(job_id)} if self._is_done(job_id) else {})

    def _is_done(self, job_id: str) -> bool:
        return self._looked[job_id] > self.looks and job_id not in self.removed

    def _entry(self, job_id: str) -> dict[str, Any]:
        status = {
            "status_str": self.status,
            "completed": self.status == "success",
            "messages": [(name, data | {"prompt_id": job_id}) for name, data in self.messages],
        }
        return {"prompt": self.jobs[job_id], "outputs": self.outputs, "status": status, "meta": {}}

    def _queue(self) -> Reply:
        here = [job for one, job in self.jobs.items() if not self._is_done(one)]
        here = [job for job in here if job[1] not in self.removed]
        waiting = [job for job in here if self._looked[job[1]] <= self.waiting]
        running = [job for job in here if job not in waiting]
        return json_reply({"queue_running": running, "queue_pending": waiting[::-1]})

    def _order(self, asked: dict[str, Any]) -> Reply:
        for one in asked.get("delete", []):
            if self._looked.get(one, 0) <= self.waiting:
                self.removed.add(one)
        return EMPTY

    async def _exchange(
        self, seen: ReceivedRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        if self.route(seen) != "ws" or "ws" in self._always:
            return await super()._exchange(seen, reader, writer)
        key = seen.headers["sec-websocket-key"] + WS_GUID
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        writer.write(f"{head}Sec-WebSocket-Accept: {accept}\r\n\r\n".encode())
        writer.write(_frame({"type": "status", "data": {"sid": seen.query["clientId"][0]}}))
        self._sockets.append(writer)
        with self._changed:
            self.requests.append(seen)
            self._changed.notify_all()
        # All that a client says here is good-bye.
        if await reader.read(1):
            writer.write(b"\x88\x00")
        return False


def _frame(message: dict[str, Any] | bytes) -> bytes:
    kind, data = (2, message) if isinstance(message, bytes) else (1, json.dumps(message).encode())
    size = len(data)
    length = bytes([size]) if size < 126 else b"\x7e" + struct.pack(">H", size)
    return bytes([0x80 | kind]) + length + data
