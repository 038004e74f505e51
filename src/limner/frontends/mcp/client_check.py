"""A client's entry -> what happens if the client starts it: the tools, or what is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import time
from argparse import Namespace
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from typing import IO, Any, cast

import msgspec

from limner.errors import LimnerError
from limner.frontends.cli.output import CommandResult
from limner.frontends.mcp.clients import CLIENTS, ClientSetup, Launch, McpClient, Scope, launch_of
from limner.frontends.mcp.config_entry import is_ours
from limner.frontends.mcp.config_files import ConfigFile
from limner.frontends.mcp.protocol import SESSION_REVISIONS
from limner.net.redaction import redact
from limner.settings.config_syntax import Malformed, look_up, read

START_TIMEOUT_S = 60.0
SHOWN_CHARS = 400
# What every client passes on, also one that hides the other variables.
_COMMON = ("PATH", "HOME", "USER", "LANG", "TMPDIR", "APPDATA", "LOCALAPPDATA", "SYSTEMROOT")
_GREETING: tuple[dict[str, Any], ...] = (
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": SESSION_REVISIONS[-1],
            "capabilities": {},
            "clientInfo": {"name": "limner-doctor", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
    # It costs nothing, and fails if the settings are wrong.
    {"id": 3, "method": "tools/call", "params": {"name": "spend", "arguments": {}}},
)


class EntryCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What one entry does."""

    client: str
    scope: Scope
    path: str
    ok: bool
    detail: str


def check(args: Namespace) -> CommandResult:
    """Start the server as each configured client would, or as one of them would."""
    place = ClientSetup.here()
    names = [args.client] if args.client else [*CLIENTS]
    found = [
        one
        for name in names
        for scope in CLIENTS[name].files
        for one in _check_file(name, scope, args.name, place)
    ]
    lines = [f"{'ok  ' if one.ok else 'FAIL'} {one.client}: {one.detail}" for one in found]
    if not found:
        who = CLIENTS[args.client].title if args.client else "No client"
        has = "has no limner" if args.client else "has limner"
        lines = [f"{who} {has}. Run limner mcp install {args.client or 'CLIENT'}."]
    return CommandResult(
        value={"checks": [msgspec.to_builtins(one) for one in found]},
        text="\n".join(lines),
        status=0 if found and all(one.ok for one in found) else 1,
    )


def _check_file(name: str, scope: Scope, server: str, place: ClientSetup) -> list[EntryCheck]:
    """Check the entry with that name, and every entry that starts limner under another one."""
    client = CLIENTS[name]
    path = client.files[scope](place)
    if scope == "project" and path == client.files["user"](place):
        return []

    def result(ok: bool, detail: str) -> EntryCheck:
        return EntryCheck(client=name, scope=scope, path=str(path), ok=ok, detail=detail)

    try:
        text = ConfigFile(path).read()
        servers = None if text is None else look_up(read(client.syntax, text), (client.table,))
    except Malformed as problem:
        return [result(False, f"{path} cannot be read by the client: {problem}")]
    except LimnerError as error:
        return [result(False, error.message)]
    if not isinstance(servers, dict):
        return []
    entries = cast("dict[str, Any]", servers)
    return [
        result(*_check_entry(client, key, entry, path, place))
        for key, entry in entries.items()
        if key == server or is_ours(entry)
    ]


def _check_entry(
    client: McpClient, server: str, entry: Any, path: Path, place: ClientSetup
) -> tuple[bool, str]:
    if not is_ours(entry):
        return False, f"the server {server!r} in {path} does not start limner"
    fields = cast("Mapping[str, Any]", entry)
    if fields.get("enabled") is False or fields.get("disabled") is True:
        return False, f"the server {server!r} in {path} is disabled"
    launch = launch_of(fields)
    ok, detail = _start(launch, _environment(client, launch, place), place.cwd)
    return ok, f"{detail} ({server!r} in {path})"


def _environment(client: McpClient, launch: Launch, place: ClientSetup) -> dict[str, str]:
    names = (*_COMMON, *launch.passed_on) if client.hides_variables else place.env
    return {name: place.env[name] for name in names if name in place.env} | dict(launch.env)


def _start(launch: Launch, env: Mapping[str, str], cwd: Path) -> tuple[bool, str]:
    began_s = time.monotonic()
    with TemporaryFile() as errors:
        try:
            answers = _talk(launch, env, cwd, errors)
        except FileNotFoundError:
            return False, f"the program {launch.words[0]} does not exist: run install again"
        except OSError as error:
            return False, f"{launch.words[0]} cannot be started: {os.strerror(error.errno or 0)}"
        errors.seek(0)
        said = errors.read().decode("utf-8", "replace").strip() or "it printed nothing"
    took_s = time.monotonic() - began_s
    if took_s > START_TIMEOUT_S:
        return False, f"the server did not answer within {START_TIMEOUT_S:.0f} s"
    try:
        tools = [tool["name"] for tool in answers[2]["result"]["tools"]]
        version = answers[1]["result"]["serverInfo"]["version"]
        call = answers[3]
    except (KeyError, TypeError):
        return False, f"the server does not answer: {redact(said)[-SHOWN_CHARS:]}"
    if "error" in call:
        return False, f"the server starts, but no call works: {call['error']['message']}"
    return True, f"limner {version} answers with {len(tools)} tools after {took_s:.1f} s"


def _talk(
    launch: Launch, env: Mapping[str, str], cwd: Path, errors: IO[bytes]
) -> dict[Any, dict[str, Any]]:
    """Start a server and return its answers, by the ids of the requests."""
    answers: dict[Any, dict[str, Any]] = {}
    spoken = b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in _GREETING)
    with subprocess.Popen(
        launch.words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=dict(env),
        cwd=cwd,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        timer = Timer(START_TIMEOUT_S, server.kill)
        timer.start()
        # Not every program that a client starts reads its input, or answers with JSON.
        with suppress(BrokenPipeError, ValueError, AttributeError):
            server.stdin.write(spoken)
            server.stdin.flush()
            for line in server.stdout:
                answer = json.loads(line)
                answers[answer.get("id")] = answer
                if _GREETING[-1]["id"] in answers:
                    break
        with suppress(BrokenPipeError):
            server.stdin.close()
        server.wait()
        timer.cancel()
    return answers
