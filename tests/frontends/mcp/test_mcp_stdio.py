"""Messages that come as lines, however long."""

from __future__ import annotations

import asyncio
import io
import json
import signal
import sys
from asyncio.subprocess import PIPE

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.acceptance.conftest import Studio
from tests.servers.mcp_process import WORDS, environment

from limner.frontends.mcp.stdio import BoundedLines

MOST = 64
REFUSED = {
    "jsonrpc": "2.0",
    "method": "limner/refuse",
    "params": {"why": "A message may have 64 bytes at most."},
}


def read(data: bytes) -> list[str]:
    lines = BoundedLines(io.BytesIO(data), max_bytes=MOST)
    found: list[str] = []
    while line := lines.readline():
        found.append(line)
    return found


def test_lines_are_read_as_they_are() -> None:
    assert read('{}\n\n["é"]\nlast'.encode()) == ["{}\n", "\n", '["é"]\n', "last"]


def test_a_line_that_is_too_long_is_refused_in_the_name_of_its_request() -> None:
    request = b'{"jsonrpc":"2.0","id":"a-7","method":"tools/call","params":"' + b"x" * 500
    first, second = read(request + b'"}\n{"id":8}\n')
    assert json.loads(first) == {**REFUSED, "id": "a-7"}
    assert second == '{"id":8}\n'


def test_a_long_line_without_an_id_is_refused_to_nobody() -> None:
    (line,) = read(b"x" * 1000)
    assert json.loads(line) == REFUSED


def test_bytes_that_are_no_text_are_for_the_parser_to_refuse() -> None:
    assert read(b"\xff\xfe\n") == ["\ufffd\ufffd\n"]


@given(st.lists(st.binary(max_size=3 * MOST).map(lambda data: data.replace(b"\n", b" "))))
def test_every_line_has_an_answer_and_none_is_longer_than_allowed(lines: list[bytes]) -> None:
    found = read(b"".join(line + b"\n" for line in lines))
    assert len(found) == len(lines)
    for line, told in zip(lines, found, strict=True):
        if len(line) < MOST:
            assert told == line.decode("utf-8", "replace") + "\n"
        else:
            assert json.loads(told)["method"] == "limner/refuse"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there a process is ended, not told to end")
async def test_a_server_at_a_terminal_ends_when_the_user_says_so(studio: Studio) -> None:
    """Its input stays open, as a terminal does."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *WORDS, stdin=PIPE, stdout=PIPE, env=environment(studio), cwd=studio.cwd
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    try:
        await process.stdout.readline()
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(30):
            assert await process.wait() == 130
    finally:
        if process.returncode is None:
            process.kill()
        process.stdin.close()
        await process.wait()
