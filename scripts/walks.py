"""Four real runs of limner -> how many modules each loads and calls, as one Markdown table.

Each walk is the real program in a child process with a profiler on every thread. A module counts
as called if one of its functions runs. A cross-module call is a call from one module of limner to
another one; the same pair of modules counts once as an edge. The illustrator's own drawing is left
out, so that the table shows the way of a picture and not how a fox is drawn.

    python scripts/walks.py            print the table
    python scripts/walks.py --json     print the numbers as JSON
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
LEFT_OUT = "limner.illustrator"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
MODEL = "openai/gpt-5.4"


# --- the child: one command under a profiler ------------------------------------------------------


class Tracer:
    """Counts the calls between modules of limner on every thread."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.edges: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        name = frame.f_globals.get("__name__", "")
        if not _counts(name) or not _is_function(frame):
            return
        caller = frame.f_back
        while caller is not None and not _is_ours(caller):
            caller = caller.f_back
        source = "" if caller is None else caller.f_globals.get("__name__", "")
        with self._lock:
            self.calls[name] += 1
            if source and source != name and _counts(source):
                self.edges[f"{source} {name}"] += 1


def _counts(name: object) -> bool:
    return isinstance(name, str) and name.startswith("limner") and not name.startswith(LEFT_OUT)


def _is_function(frame: FrameType) -> bool:
    """Whether it is a named function, and not a module, a class body or a comprehension."""
    code = frame.f_code
    return bool(code.co_flags & CO_OPTIMIZED) and not code.co_name.startswith("<")


def _is_ours(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__", "")
    return isinstance(name, str) and name.startswith("limner")


def trace(out: Path, words: list[str]) -> int:
    """Run one command of limner and write what it loaded and called."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    module, _, function = scripts["limner"].partition(":")
    tracer = Tracer()
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    try:
        return getattr(import_module(module), function)(words)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        loaded = sorted(name for name in sys.modules if name.split(".")[0] == "limner")
        found = {"loaded": loaded, "calls": tracer.calls, "edges": tracer.edges}
        out.write_text(json.dumps(found), encoding="utf-8")


# --- the parent: drives each command as a user or a client would ----------------------------------


class _Responses(BaseHTTPRequestHandler):
    """OpenAI's Responses API with two answers: a tool call if the tool is offered, then words."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        has_output = any(item.get("type") == "function_call_output" for item in body["input"])
        if body.get("tools") and not has_output:
            item = {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "look",
                "arguments": "{}",
                "status": "completed",
            }
        else:
            part = {"type": "output_text", "text": "A square.", "annotations": []}
            item = {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        response = {"id": "r", "status": "completed", "output": [item], "usage": usage}
        events = [
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response},
        ]
        data = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def _model_server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Responses)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


class _Program:
    """One command under the tracer, on pipes."""

    def __init__(self, folder: Path, words: list[str], env: dict[str, str]) -> None:
        self._out = folder / "trace.json"
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--trace", str(self._out), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={"HOME": str(folder), "LIMNER_HOME": str(folder / "home"), "PATH": os.defpath}
            | {"PYTHONPATH": str(ROOT / "src")}
            | env,
        )
        self._number = 0

    def send(self, **message: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
        self._process.stdin.flush()

    def messages(self) -> Iterator[dict[str, Any]]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            yield json.loads(line)

    def request(self, method: str, **params: Any) -> Any:
        self._number += 1
        self.send(id=self._number, method=method, params=params)
        for message in self.messages():
            if message.get("id") == self._number and "method" not in message:
                return message["result"]
        raise SystemExit(f"{method} got no response")

    def end(self) -> dict[str, Any]:
        self._process.communicate(timeout=60)
        if self._process.returncode:
            raise SystemExit(f"the command failed with {self._process.returncode}")
        return json.loads(self._out.read_text("utf-8"))


def generate(folder: Path, _: str) -> dict[str, Any]:
    """`limner generate`, offline."""
    return _Program(folder, ["generate", "a red fox in the snow", "--json"], {}).end()


def inspect(folder: Path, base_url: str) -> dict[str, Any]:
    """`limner inspect` with a model behind the Responses API."""
    (folder / "square.png").write_bytes(PNG)
    words = ["inspect", "square.png", "What is this?", "--json"]
    return _Program(folder, words, _openai(base_url)).end()


def app_server(folder: Path, base_url: str) -> dict[str, Any]:
    """`limner app-server`: one turn in which the client's tool answers with a picture."""
    program = _Program(folder, ["app-server"], _openai(base_url))
    client = {"name": "walks", "version": "1"}
    program.request("initialize", clientInfo=client, capabilities={"experimentalApi": True})
    program.send(method="initialized")
    schema = {"type": "object", "properties": {}}
    tool = {"type": "function", "name": "look", "description": "Look.", "inputSchema": schema}
    started = program.request("thread/start", dynamicTools=[tool])
    said = {"threadId": started["thread"]["id"], "input": [{"type": "text", "text": "look"}]}
    program.send(id="turn", method="turn/start", params=said)
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    for message in program.messages():
        match message:
            case {"method": "item/tool/call", "id": number}:
                items = [{"type": "inputImage", "imageUrl": url}]
                program.send(id=number, result={"contentItems": items, "success": True})
            case {"method": "turn/completed", "params": {"turn": {"status": status}}}:
                if status != "completed":
                    raise SystemExit(f"the turn ended as {status}")
                break
            case _:
                pass
    return program.end()


def mcp(folder: Path, _: str) -> dict[str, Any]:
    """`limner mcp`: one `image_generate` over stdio."""
    program = _Program(folder, ["mcp"], {})
    client = {"name": "walks", "version": "1"}
    program.request("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
    program.send(method="notifications/initialized")
    arguments = {"prompt": "a red fox in the snow"}
    result = program.request("tools/call", name="image_generate", arguments=arguments)
    if result.get("isError"):
        raise SystemExit(str(result))
    return program.end()


def _openai(base_url: str) -> dict[str, str]:
    key = "walks-key-0123456789abcdef"
    roles = {"LIMNER_MODEL_ROLES_VISION": MODEL, "LIMNER_MODEL_ROLES_DEFAULT": MODEL}
    return {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": base_url} | roles


WALKS: dict[str, Callable[[Path, str], dict[str, Any]]] = {
    "generate": generate,
    "inspect": inspect,
    "app-server turn": app_server,
    "MCP image_generate": mcp,
}


def measure() -> dict[str, dict[str, int]]:
    """The numbers of every walk."""
    numbers: dict[str, dict[str, int]] = {}
    with _model_server() as base_url:
        for name, walk in WALKS.items():
            with tempfile.TemporaryDirectory() as folder:
                found = walk(Path(folder), base_url)
            numbers[name] = {
                "modules loaded": len(found["loaded"]),
                "modules called": len(found["calls"]),
                "function calls": sum(found["calls"].values()),
                "cross-module calls": sum(found["edges"].values()),
                "edges": len(found["edges"]),
            }
    return numbers


def main() -> int:
    """Print the table, or be the child."""
    if sys.argv[1:2] == ["--trace"]:
        return trace(Path(sys.argv[2]), sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    as_json: bool = parser.parse_args().json
    numbers = measure()
    if as_json:
        print(json.dumps(numbers, indent=1))
        return 0
    columns = list(next(iter(numbers.values())))
    print("| walk | " + " | ".join(columns) + " |")
    print("|---|" + "--:|" * len(columns))
    for name, row in numbers.items():
        print(f"| {name} | " + " | ".join(f"{row[column]:,}" for column in columns) + " |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
