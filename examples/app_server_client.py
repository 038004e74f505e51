"""Be a client of `limner app-server` in plain Python: your tool answers with a picture."""

import base64
import json
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from typing import Any

WORDS = " ".join(sys.argv[1:]) or "draw a red fox in the snow"
SERVER = [sys.executable, "-m", "limner", "app-server"]
COLOURS = {"red": (220, 50, 47), "gold": (230, 180, 30), "teal": (0, 128, 128)}
TOOLS = [
    {
        "type": "function",
        "name": "swatch",
        "description": "Paint a square of one colour, and show it.",
        "inputSchema": {
            "type": "object",
            "properties": {"colour": {"type": "string", "enum": list(COLOURS)}},
            "required": ["colour"],
        },
    }
]


def png(colour: tuple[int, int, int], edge: int = 64) -> bytes:
    """A square of one colour."""
    rows = (b"\0" + bytes(colour) * edge) * edge
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", edge, edge, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def swatch(colour: str) -> dict[str, Any]:
    """The answer of the tool: words, and a picture that the model sees."""
    data = base64.b64encode(png(COLOURS[colour])).decode()
    return {
        "contentItems": [
            {"type": "inputText", "text": f"A square of {colour}:"},
            {"type": "inputImage", "imageUrl": f"data:image/png;base64,{data}"},
        ],
        "success": True,
    }


class Client:
    """A server of our own: requests go to its standard input, everything else comes back."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._to, self._from = process.stdin, process.stdout
        self._asked = 0

    def send(self, **message: Any) -> None:
        self._to.write(json.dumps(message) + "\n")
        self._to.flush()

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request and wait for its answer; what else is said before that is left out."""
        self._asked += 1
        self.send(id=self._asked, method=method, params=params)
        for message in self.messages():
            if message.get("id") == self._asked and "method" not in message:
                if "error" in message:
                    raise SystemExit(message["error"]["message"])
                return message["result"]
        raise SystemExit("The server ended.")

    def messages(self) -> Iterator[dict[str, Any]]:
        for line in self._from:
            yield json.loads(line)


def run(client: Client) -> None:
    """Say the words, answer the calls of our tool, and show what comes."""
    client.ask(
        "initialize",
        clientInfo={"name": "example", "version": "1"},
        capabilities={"experimentalApi": True},  # tools of a client are an experiment upstream
    )
    client.send(method="initialized")
    thread_id = client.ask("thread/start", dynamicTools=TOOLS)["thread"]["id"]
    said = {"threadId": thread_id, "input": [{"type": "text", "text": WORDS}]}
    client.send(id="turn", method="turn/start", params=said)
    for message in client.messages():
        match message:
            case {"id": "turn", "error": error}:
                raise SystemExit(error["message"])
            case {"method": "item/tool/call", "id": number, "params": call}:
                client.send(id=number, result=swatch(call["arguments"]["colour"]))
            case {"method": "item/agentMessage/delta", "params": {"delta": words}}:
                print(words, end="", flush=True)
            case {
                "method": "item/completed",
                "params": {"item": {"type": "imageGeneration", "savedPath": str(path)}},
            }:
                print(path)
            case {"method": "turn/completed", "params": {"turn": turn}}:
                print(f"\n{turn['status']}")
                return
            case _:
                pass


with subprocess.Popen(
    SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
) as process:
    run(Client(process))
    assert process.stdin is not None
    process.stdin.close()  # the server ends when nobody talks to it any more
