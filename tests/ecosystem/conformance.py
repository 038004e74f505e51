"""The official conformance suite -> the checks that fail over HTTP and stdio, and what each wants.

    make ecosystem ARGS="--only conformance"

A check that wants a tool, a prompt or a resource of the suite's own test server cannot pass. Any
other check that fails is a defect.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import msgspec
from tests.ecosystem.environments import NODE, PROGRAMS, npm_version
from tests.ecosystem.pages import ROOT
from tests.ecosystem.stdio_bridge import StdioBridge

PACKAGE, VERSION = "@modelcontextprotocol/conformance", "0.2.0-alpha.12"
REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
TASKS = "2026-07-28, tasks"
RECORD = Path(__file__).parent / "conformance.json"
PAGE = ROOT / "docs" / "mcp-conformance.md"
TRANSPORTS = ("HTTP", "stdio")
LIMIT_S = 600
# What HTTP alone has: status codes, headers, the Host header.
HTTP_ALONE = re.compile(r"http|host-rebinding|sep-2243|headers|mcp-name")
WANTED_TOOL = re.compile(r"(?:[Tt]ool:? ['\"]|tools/call for )([a-z_0-9]+)")
# The words of a failing check -> what it wants. The first that fits counts.
WANTS = (
    ("no task was created|routing-task", "a task of the tool `slow_compute`"),
    ("x-mcp-header", "a tool with an `x-mcp-header` argument"),
    ("prompt|non-tool-incomplete", "prompts, which limner does not have"),
    ("completion", "completions, which limner does not have"),
    ("logging", "the capability `logging`, which limner does not have"),
    ("subscribe", "resources that change, which limner does not have"),
    ("resources-(read|templates)", "a resource `test://…`"),
    ("multi-round", "the tool `test_input_required_result_multi_round`"),
    ("tampered", "the tool `test_input_required_result_tampered_state`"),
)
HEAD = """\
# Conformance of the MCP server

`make ecosystem ARGS="--only conformance"` ran the official suite on {day}, over HTTP and stdio:
`{package}` {version}. The suite speaks HTTP only. Over stdio a small bridge of the tests starts
`limner mcp` for each session and passes the messages on; the checks of what HTTP alone has (status
codes, headers, the Host header) do not count there. The scenarios of the tasks extension run with
`--force`.

"""
CLIENTS = """
The suite has no scenario for 2024-11-05. The official Python clients of four releases, the first of
that revision, call the same server over stdio: see
[what reaches the model](ecosystem.md#official-clients).
"""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A check that fails: what it wants, or None if limner is wrong; and the runs that have it."""

    scenario: str
    id: str
    wants: str | None
    runs: tuple[str, ...]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the whole suite: the numbers of checks that pass and fail, and what fails."""

    version: str
    day: date
    counts: dict[str, tuple[int, int]]
    failures: tuple[Check, ...]

    @property
    def is_good(self) -> bool:
        """Whether every check that fails wants something of the suite's own."""
        return all(check.wants is not None for check in self.failures)


def run_suite() -> Record:
    """Run every scenario over both transports."""
    version = npm_version(PACKAGE, wanted=VERSION)
    program = str(PROGRAMS / "conformance")
    counts: dict[str, tuple[int, int]] = {}
    found: dict[tuple[str, str], tuple[str | None, list[str]]] = {}
    for transport, serving in zip(TRANSPORTS, (_over_http, _over_stdio), strict=True):
        with tempfile.TemporaryDirectory() as home, serving(_env(home)) as url:
            for name, options in _runs(program):
                checks = _checks([program, "server", "--url", url], options)
                if transport == "stdio":
                    checks = [one for one in checks if not HTTP_ALONE.search(one[1]["id"])]
                run = f"{transport} {name}"
                failed = [one for one in checks if one[1]["status"] == "FAILURE"]
                passed = [one for one in checks if one[1]["status"] == "SUCCESS"]
                counts[run] = (len(passed), len(failed))
                print(run, counts[run], flush=True)
                for scenario, check in failed:
                    key = (scenario, check["id"])
                    found.setdefault(key, (wants(scenario, check), []))[1].append(run)
    failures = tuple(
        Check(scenario=scenario, id=check_id, wants=wanted, runs=tuple(dict.fromkeys(runs)))
        for (scenario, check_id), (wanted, runs) in sorted(found.items())
    )
    return Record(version=version, day=datetime.now(UTC).date(), counts=counts, failures=failures)


def wants(scenario: str, check: Mapping[str, Any]) -> str | None:
    """The fixture that a failing check wants, or None if it wants nothing of the suite's own."""
    message = str(check.get("errorMessage") or "")
    if tool := WANTED_TOOL.search(message):
        return f"the tool `{tool[1]}`"
    words = f"{check['id']} {message}"
    return next((wanted for words_of, wanted in WANTS if re.search(words_of, words)), None)


def write_record(record: Record) -> None:
    """Write the record and its page."""
    RECORD.write_bytes(msgspec.json.format(msgspec.json.encode(record)) + b"\n")
    PAGE.write_text(page(record), encoding="utf-8")


def read_record() -> Record:
    """The record of the last run."""
    return msgspec.json.decode(RECORD.read_bytes(), type=Record)


def page(record: Record) -> str:
    """The page of a record."""
    lines = [
        "| revision | passes over HTTP | fails | passes over stdio | fails |",
        "|---|--:|--:|--:|--:|",
    ]
    for name in (*REVISIONS, TASKS):
        numbers = [number for way in TRANSPORTS for number in record.counts[f"{way} {name}"]]
        lines.append(f"| {name} | {' | '.join(map(str, numbers))} |")
    lines += [
        "",
        "Every check that fails wants a fixture of the suite's own test server, or a part of the"
        " protocol that limner does not offer:",
        "",
        "| scenario | check | wants | in |",
        "|---|---|---|---|",
    ]
    for check in record.failures:
        cells = (check.scenario, f"`{check.id}`", check.wants or "**a defect**", _where(check.runs))
        lines.append(f"| {' | '.join(cells)} |")
    head = HEAD.format(package=PACKAGE, version=record.version, day=record.day)
    return head + "\n".join(lines) + "\n" + CLIENTS


def _where(runs: Sequence[str]) -> str:
    names = {run.partition(" ")[2]: [] for run in runs}
    for run in runs:
        transport, _, name = run.partition(" ")
        names[name].append(transport)
    return "; ".join(
        name if len(ways) == len(TRANSPORTS) else f"{name} ({ways[0]})"
        for name, ways in names.items()
    )


def _runs(program: str) -> Iterator[tuple[str, list[list[str]]]]:
    """The name of each run, and the options of the commands that it needs."""
    for revision in REVISIONS:
        yield revision, [["--suite", "all", "--spec-version", revision]]
    listed = _node([program, "list", "--server"])
    forced = ["--spec-version", REVISIONS[-1], "--force", "--scenario"]
    yield TASKS, [[*forced, name] for name in re.findall(r"- (tasks-[\w-]+)", listed)]


def _checks(
    command: Sequence[str], options: Sequence[Sequence[str]]
) -> list[tuple[str, dict[str, Any]]]:
    """The checks of some commands, each with its scenario."""
    found: list[tuple[str, dict[str, Any]]] = []
    for words in options:
        with tempfile.TemporaryDirectory() as folder:
            _node([*command, *words, "-o", folder])
            for file in sorted(Path(folder).rglob("checks.json")):
                scenario = re.sub(r"^server-|-\d{4}-\d\d-\d\dT.*$", "", file.parent.name)
                found += [(scenario, check) for check in json.loads(file.read_text())]
    return found


def _node(words: Sequence[str]) -> str:
    node = str(NODE / "node")
    done = subprocess.run(
        [node, *words], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    return done.stdout


def _env(home: str) -> dict[str, str]:
    return {**os.environ, "HOME": home, "LIMNER_HOME": f"{home}/limner"}


@contextmanager
def _over_http(env: Mapping[str, str]) -> Iterator[str]:
    command = [sys.executable, "-m", "limner", "mcp", "--http", "127.0.0.1:0", "--no-token"]
    with subprocess.Popen(command, env=dict(env), stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            yield server.stderr.readline().split()[2]
        finally:
            server.terminate()
            server.communicate()


@contextmanager
def _over_stdio(env: Mapping[str, str]) -> Iterator[str]:
    with StdioBridge(env) as bridge:
        yield bridge.url
