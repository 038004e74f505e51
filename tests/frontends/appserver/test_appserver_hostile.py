"""Lines that nobody means well, on every transport: the server answers and stays small."""

from __future__ import annotations

import json
import random
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.frontends.appserver.appserver_process import GUARD_S, Client, Process, listening, piped
from tests.fuzz import IS_LONG

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")

CASES = 20_000 if IS_LONG else 2_000
BATCH = 250
HUNDRED_MB = 100_000_000
# Three copies of the longest line, and the program.
MAX_RSS_BYTES = 480_000_000

METHODS = ["initialize", "echo", "new", "bare", "nope", "", "\n`x`", "turn"]
WRONG: list[Callable[[random.Random], object]] = [
    lambda _: None,
    lambda dice: dice.random() * 10.0 ** dice.randrange(-300, 300),
    lambda dice: dice.randrange(-(10**40), 10**40),
    lambda dice: dice.choice([True, False]),
    lambda dice: "x" * dice.randrange(0, 2000),
    lambda dice: "".join(map(chr, dice.sample(range(0xD7FF), 20))),
    lambda dice: [WRONG[dice.randrange(len(WRONG) - 2)](dice) for _ in range(dice.randrange(5))],
    lambda dice: {"a": WRONG[dice.randrange(len(WRONG) - 2)](dice), "": None},
]


def noise(dice: random.Random) -> bytes:
    return dice.randbytes(dice.randrange(1, 300)).replace(b"\n", b" ")


def nesting(dice: random.Random) -> bytes:
    depth = dice.choice([50, 999, 1001, 20_000, 200_000])
    opening = dice.choice([b"[", b'{"a":'])
    closing = (b"]" if opening == b"[" else b"}") * dice.choice([0, depth])
    return b'{"id":1,"method":"echo","params":' + opening * depth + b"1" + closing + b"}"


def numbers(dice: random.Random) -> bytes:
    huge = dice.choice(
        [b"9" * 5000, b"1e999", b"-1e999", b"1" + b"0" * 400 + b".5", b"-0", b"1e-9999"]
    )
    member = dice.choice([b"id", b"params", b"method", b"result"])
    return b'{"id":1,"method":"echo","' + member + b'":' + huge + b"}"


def wrong_types(dice: random.Random) -> bytes:
    names = dice.sample(["id", "method", "params", "result", "error", "jsonrpc", "trace"], 4)
    return json.dumps({name: dice.choice(WRONG)(dice) for name in names}).encode()


def calls(dice: random.Random) -> bytes:
    message = {"id": dice.choice([1, "x", None]), "method": dice.choice(METHODS)}
    if dice.random() < 0.8:
        message["params"] = dice.choice(WRONG)(dice)
    return json.dumps(message).encode()


def answers(dice: random.Random) -> bytes:
    kind = dice.choice(["result", "error"])
    return json.dumps({"id": dice.randrange(-2, 5), kind: dice.choice(WRONG)(dice)}).encode()


def halves(dice: random.Random) -> bytes:
    whole = calls(dice)
    return whole[: dice.randrange(len(whole))]


def escapes(dice: random.Random) -> bytes:
    text = dice.choice(['"\\ud800"', '"\\u00"', '"\\x"', '"\t"', '"\\udc00\\ud800"', '"\x00"'])
    return f'{{"id":{text},"method":"echo","params":{text}}}'.encode()


KINDS = [noise, nesting, numbers, wrong_types, calls, answers, halves, escapes]


def hostile_lines(count: int) -> Iterator[bytes]:
    """The same lines in every run: each is drawn from its own number."""
    for number in range(count):
        dice = random.Random(number)
        yield KINDS[number % len(KINDS)](dice)


def giants() -> Iterator[bytes]:
    """Lines of 100 MB: one text, one of nothing but structure, one that is neither."""
    yield b'{"id":1,"method":"nope","params":"' + b"x" * HUNDRED_MB + b'"}'
    yield b'{"id":1,"method":"echo","params":{"a":[' + b"[]," * (HUNDRED_MB // 3) + b"0]}}"
    yield b"{" * HUNDRED_MB


def answers_still(client: Client, number: int) -> None:
    """Ask something, and read on until that is answered."""
    wanted = f"alive {number}"
    client.send({"id": wanted, "method": "echo", "params": {"n": number}})
    while (message := client.receive()).get("id") != wanted:
        assert "error" in message or "result" in message or "method" in message
    assert message == {"id": wanted, "result": {"n": number}}


def attack(client: Client, server: Process) -> None:
    client.greet()
    for number, line in enumerate(hostile_lines(CASES)):
        client.send_raw(line)
        if number % BATCH == BATCH - 1:
            answers_still(client, number)
    small = server.rss_bytes
    for number, line in enumerate(giants()):
        client.send_raw(line)
        answers_still(client, number)
    assert small < 150_000_000
    assert server.rss_bytes < MAX_RSS_BYTES


Transport = Callable[[Path], AbstractContextManager[tuple[Client, Process]]]


@contextmanager
def over_pipes(folder: Path) -> Iterator[tuple[Client, Process]]:
    with piped(folder) as client:
        yield client, client.server


@contextmanager
def over_tcp(folder: Path) -> Iterator[tuple[Client, Process]]:
    with listening(folder) as server, server.client() as client:
        yield client, server.server


@contextmanager
def over_unix(folder: Path) -> Iterator[tuple[Client, Process]]:
    with listening(folder, "unix://") as server, server.client() as client:
        yield client, server.server


@pytest.mark.slow
@pytest.mark.parametrize("transport", [over_pipes, over_tcp, over_unix])
def test_hostile_lines_leave_a_server_that_answers_and_is_small(
    tmp_path: Path, transport: Transport
) -> None:
    with transport(tmp_path) as (client, server):
        attack(client, server)
        server.terminate()
        assert server.end()[0] == 0


def test_hostile_lines_of_every_kind_leave_a_server_that_answers(tmp_path: Path) -> None:
    with piped(tmp_path) as client:
        client.greet()
        for line in hostile_lines(400):
            client.send_raw(line)
        answers_still(client, 400)
        assert client.server.rss_bytes < 150_000_000


HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def hostile_opening(dice: random.Random) -> bytes:
    return dice.choice(
        [
            dice.randbytes(200),
            b"POST / HTTP/1.1\r\n\r\n",
            HANDSHAKE[: dice.randrange(1, len(HANDSHAKE))],
            b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5000,
            b"GET /" + b"x" * 100_000,
            HANDSHAKE + dice.randbytes(300),
            # A frame that says it is as long as the memory.
            HANDSHAKE + b"\x81\xff" + (2**40).to_bytes(8, "big") + dice.randbytes(100),
            HANDSHAKE + b"\x01\x80AAAA" * 50,
        ]
    )


def test_a_client_that_does_not_speak_the_protocol_disturbs_no_other(tmp_path: Path) -> None:
    with listening(tmp_path) as server, server.client() as client:
        client.greet()
        parts = urlsplit(server.address)
        for number in range(CASES // 20):
            with socket.create_connection((parts.hostname, parts.port), timeout=GUARD_S) as knock:
                knock.sendall(hostile_opening(random.Random(number)))
        answers_still(client, 1)
        assert server.server.rss_bytes < 150_000_000
        server.server.terminate()
        status, said = server.server.end()
        assert status == 0
        assert said.startswith(f"limner: listening on {server.address}\n")
        assert said.count("\n") == 2
