"""`limner mcp` and `limner app-server` as clients meet them -> listings, methods and schemas."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from tests.golden.internals import tables
from tests.golden.shapes import inlined, without_words

MCP_VERSION = "2025-11-25"
BUNDLE = "limner_app_server_protocol.schemas.json"

Json = Any


class _Server:
    """A server on pipes that is asked one thing after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._asked = 0

    def send(self, message: Json) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(message)}\n")
        self._process.stdin.flush()

    def ask(self, method: str, params: Json) -> Json:
        """The response to a request, be it a result or an error."""
        assert self._process.stdout is not None
        self._asked += 1
        self.send({"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params})
        while True:
            message = json.loads(self._process.stdout.readline())
            if message.get("id") == self._asked:
                return message


@contextmanager
def _serving(*words: str) -> Iterator[_Server]:
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "limner", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={"HOME": folder, "LIMNER_HOME": f"{folder}/limner-home", "PATH": os.defpath},
        )
        try:
            yield _Server(process)
        finally:
            process.communicate(timeout=60)
            assert process.returncode == 0


def mcp_listing() -> dict[str, Any]:
    """What an MCP client is offered, without the words that describe it."""
    client = {"name": "golden", "version": "1"}
    hello = {"protocolVersion": MCP_VERSION, "capabilities": {}, "clientInfo": client}
    with _serving("mcp") as server:
        greeting = server.ask("initialize", hello)["result"]
        server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        lists = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
        answers = {name: server.ask(name, {}) for name in lists}
    return {
        "initialize": {
            "protocolVersion": greeting["protocolVersion"],
            "capabilities": greeting["capabilities"],
            "serverInfo.name": greeting["serverInfo"]["name"],
            "members": sorted(greeting),
        },
        **{
            name: without_words(answer.get("result", answer.get("error")), "title", "message")
            for name, answer in answers.items()
        },
    }


@cache
def published() -> dict[str, Json]:
    """What `limner app-server generate-json-schema` writes: a schema by its file."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "schemas"
        words = ["app-server", "generate-json-schema", "--out", str(out)]
        subprocess.run(
            [sys.executable, "-m", "limner", *words],
            check=True,
            capture_output=True,
            cwd=folder,
            env={"HOME": folder, "LIMNER_HOME": f"{folder}/limner-home", "PATH": os.defpath},
        )
        return {
            path.relative_to(out).as_posix(): json.loads(path.read_text(encoding="utf-8"))
            for path in sorted(out.rglob("*.json"))
        }


def app_server_schemas() -> dict[str, Any]:
    """The published schemas. What a file defines beside its own type is in the bundle too."""
    files = dict(published())
    bundle = files.pop(BUNDLE)
    definitions = bundle["definitions"]
    for name, schema in files.items():
        for inner, one in schema.get("definitions", {}).items():
            assert definitions[inner] == one, (name, inner)
    return {
        "bundle": without_words({k: v for k, v in bundle.items() if k != "definitions"}),
        "files": sorted(files),
        "definitions": without_words(definitions),
    }


def app_server_methods() -> dict[str, Any]:
    """Every method, notification and request of the server, with the types of what it carries.

    A type of the second protocol is named as its published schema. Those of the first protocol
    have no such name, and are written out.
    """
    found = tables()
    return {
        "requests": {
            name: {"params": _title(row.params), "result": _title(row.result)}
            for name, row in found.requests.items()
        },
        "notifications": {name: _title(kind) for name, kind in found.notifications.items()},
        "server requests": {
            name: {"params": _title(row.params), "response": _title(row.response)}
            for name, row in found.server_requests.items()
        },
        "v1 requests": {
            name: {"params": _written_out(row.params), "result": _written_out(row.result)}
            for name, row in found.first_requests.items()
        },
        "v1 notifications": {
            name: _written_out(kind) for name, kind in found.first_notifications.items()
        },
        "served": _served([*found.requests, *found.first_requests]),
    }


def _title(kind: Any) -> str | None:
    """The name under which a type is published, if it is."""
    name = getattr(kind, "__name__", None)
    return name if name in published()[BUNDLE]["definitions"] else None


def _written_out(kind: Any) -> Json:
    (schema,), definitions = msgspec.json.schema_components([kind])
    return without_words(inlined(schema, definitions), "title")


def _served(names: list[str]) -> list[str]:
    """The methods that a server knows: it calls the name of any other unknown."""
    with _serving("app-server") as server:
        errors = {name: server.ask(name, None)["error"]["message"] for name in [*names, "nothing"]}
    assert "unknown variant" in errors["nothing"]
    return sorted(name for name, message in errors.items() if "unknown variant" not in message)
