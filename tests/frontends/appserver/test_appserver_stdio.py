"""A server and the one client that started it, over pipes."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.frontends.appserver.appserver_process import (
    GREETING,
    GUARD_S,
    PROBE,
    app_server,
    piped,
)
from tests.servers.components import needs

from limner import __version__
from limner.frontends.appserver.server import WARM_AFTER_S, Host
from limner.net.jsonrpc_peer import MAX_UNSENT_BYTES


def test_the_handshake_is_upstreams(tmp_path: Path) -> None:
    with piped(tmp_path, words=app_server("--listen", "stdio://")) as client:
        hello = client.greet(experimentalApi=True, optOutNotificationMethods=["x"])
        assert hello.pop("userAgent").startswith("probe/0.166.0 (Linux ")
        assert hello == {
            "codexHome": str(client.server.home),
            "platformFamily": "unix",
            "platformOs": "linux",
        }
        again = client.call(2, "initialize", GREETING)
        assert again == {"error": {"code": -32600, "message": "Already initialized"}, "id": 2}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "Invalid request: missing field `clientInfo`"),
        ({"clientInfo": {"name": "a"}}, "Invalid request: missing field `version`"),
        (
            {"clientInfo": {"name": "bad\rname", "version": "1"}},
            "Invalid clientInfo.name: 'bad\rname'. Must be a valid HTTP header value.",
        ),
    ],
)
def test_an_introduction_that_fails_may_be_tried_again(
    tmp_path: Path, params: object, message: str
) -> None:
    with piped(tmp_path, words=app_server()) as client:
        refusal = {"error": {"code": -32600, "message": message}, "id": 1}
        assert client.call(1, "initialize", params) == refusal
        named = {"clientInfo": {"name": "é x", "version": "1\r\n"}}
        agent = client.call(2, "initialize", named)["result"]["userAgent"]
        assert agent.startswith("é x/0.166.0 (")
        assert agent.endswith(f") limner/{__version__} (é x; 1)")


OFFICIAL = """
import sys
from openai_codex import CodexConfig
from openai_codex.client import CodexClient
overrides = ('model="gpt-5.5"', "budget.day_usd=5")
client = CodexClient(CodexConfig(codex_bin=sys.argv[1], config_overrides=overrides))
client.start()
print(client.initialize().userAgent)
client.close()
"""


@pytest.mark.slow
@needs("openai_codex")
def test_the_official_client_is_content_with_the_handshake(tmp_path: Path) -> None:
    program = tmp_path / "limner"
    program.write_text(f'#!/bin/sh\nexec {" ".join(app_server()[:-1])} "$@"\n')
    program.chmod(0o700)
    done = subprocess.run(
        [sys.executable, "-c", OFFICIAL, program],
        capture_output=True,
        check=True,
        env={"LIMNER_HOME": str(tmp_path)},
        timeout=GUARD_S,
    )
    assert done.stdout.startswith(b"codex_python_sdk/0.166.0 ")


def test_requests_before_the_end_of_the_input_are_answered(tmp_path: Path) -> None:
    lines = [{"id": 1, "method": "initialize", "params": GREETING}, {"id": 2, "method": "x"}]
    # The last line has no end but the end of the input.
    text = "\n\n".join(map(json.dumps, lines))
    done = subprocess.run(
        app_server(),
        input=text.encode(),
        capture_output=True,
        check=True,
        env={"LIMNER_HOME": str(tmp_path)},
        timeout=GUARD_S,
    )
    first, second = map(json.loads, done.stdout.splitlines())
    assert (first["id"], second["id"], done.stderr) == (1, 2, b"")


def test_a_file_can_be_the_input(tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"id": 1, "method": "initialize", "params": GREETING}))
    with script.open("rb") as file:
        done = subprocess.run(
            app_server(),
            stdin=file,
            capture_output=True,
            check=True,
            env={"LIMNER_HOME": str(tmp_path)},
            timeout=GUARD_S,
        )
    assert json.loads(done.stdout)["id"] == 1


@pytest.mark.slow
def test_the_end_of_the_input_is_the_end_in_good_order(tmp_path: Path) -> None:
    with piped(tmp_path) as client:
        client.greet()
        client.send({"id": 1, "method": "forever", "params": {}})
        client.close()
        assert client.rest() == []
        assert client.server.end() == (0, "")


def test_sigterm_is_the_end_in_good_order(tmp_path: Path) -> None:
    with piped(tmp_path) as client:
        client.greet()
        client.send({"id": 1, "method": "forever", "params": {}})
        client.server.terminate()
        assert client.rest() == []
        assert client.server.end() == (0, "")


def test_closing_and_sigterm_at_once_are_the_end_too(tmp_path: Path) -> None:
    with piped(tmp_path, words=app_server()) as client:
        client.greet()
        client.close()
        client.server.terminate()
        assert client.server.end() == (0, "")


def test_ctrl_c_interrupts(tmp_path: Path) -> None:
    with piped(tmp_path, words=app_server()) as client:
        client.greet()
        client.server.process.send_signal(signal.SIGINT)
        assert client.server.end() == (130, "limner: Interrupted.\n")


async def test_a_server_that_closes_loads_nothing_more(tmp_path: Path) -> None:
    host = Host(env={"LIMNER_HOME": str(tmp_path)}, cwd=tmp_path, config={})
    host.warm_soon()
    later = asyncio.Event()
    asyncio.get_running_loop().call_later(WARM_AFTER_S, later.set)
    await host.closing.aclose()
    await later.wait()
    assert "threads" not in vars(host)


def test_standard_output_carries_the_protocol_alone(tmp_path: Path) -> None:
    with piped(tmp_path) as client:
        client.greet()
        assert client.call(1, "say") == {"id": 1, "result": {"child": 0}}
        client.close()
        assert client.rest() == []
        assert client.server.end() == (
            0,
            "from Python\nfrom the system\nfrom a child that read ''\n",
        )


def test_messages_keep_the_order_in_which_they_were_produced(tmp_path: Path) -> None:
    with piped(tmp_path) as client:
        client.greet(optOutNotificationMethods=["flood"])
        client.send({"id": 1, "method": "turn", "params": {"name": "a", "count": 50}})
        client.send({"id": 2, "method": "flood", "params": {"megabytes": 1}})
        received = [client.receive() for _ in range(52)]
        assert received[0] == {"id": 1, "result": {"turn": "a"}}
        steps = [m["params"]["number"] for m in received if m.get("method") == "turn/step"]
        assert steps == [*range(50)]
        assert {"id": 2, "result": None} in received


def test_failures_are_reported_without_secrets_and_the_server_goes_on(tmp_path: Path) -> None:
    with piped(tmp_path) as client:
        client.greet()
        mistake = client.call(1, "mistake")["error"]
        assert (mistake["code"], mistake["message"]) == (-32600, "The colour is unknown.")
        assert mistake["data"] == {
            "code": "INPUT_INVALID",
            "message": "The colour is unknown.",
            "retryable": False,
            "billed": False,
            "cost_usd": 0.0,
            "hint": "Say red.",
        }
        assert client.call(2, "bug")["error"] == {
            "code": -32603,
            "message": "Internal error: LookupError: token=•••",
        }
        assert client.call(3, "late_bug") == {"id": 3, "result": {}}
        assert client.call(4, "unspeakable")["error"]["code"] == -32603
        assert client.call(5, "echo", {"a": 1}) == {"id": 5, "result": {"a": 1}}
        client.close()
        status, said = client.server.end()
    assert status == 0
    assert "limner: bug failed:\nTraceback" in said
    assert "LookupError: token=•••\n" in said
    assert "limner: late_bug failed after its answer: Internal error: LookupError" in said


def test_the_server_asks_and_waits_for_the_answer(tmp_path: Path) -> None:
    with piped(tmp_path) as client:
        client.greet()
        asked = client.call(0, "ask", {"a": 1})
        assert asked == {"method": "tool/call", "id": 0, "params": {"a": 1}}
        client.send({"id": 99, "result": "unknown"})
        client.send({"id": 0, "result": {"seen": True}})
        assert client.receive() == {"id": 0, "result": {"seen": True}}
        client.send({"id": 0, "result": "late"})
        assert client.call(1, "ask", {"timeout_s": 0.01})["id"] == 1
        assert client.receive()["error"]["code"] == -32603
        client.close()
        _, said = client.server.end()
    assert "limner: an answer to 99, which is not expected, is ignored\n" in said
    assert "limner: an answer to 0, which is not expected, is ignored\n" in said


@pytest.mark.slow
def test_a_picture_of_30_megabytes_goes_both_ways(tmp_path: Path) -> None:
    picture = "A" * 30_000_000
    with piped(tmp_path) as client:
        client.greet()
        assert client.call(1, "echo", {"picture": picture})["result"] == {"picture": picture}
        assert client.server.rss_bytes < 400_000_000


@pytest.mark.slow
def test_a_line_without_end_is_skipped_and_refused(tmp_path: Path) -> None:
    with piped(tmp_path) as client:
        client.greet()
        block = b"x" * 1024 * 1024
        client._to.write(b'{"id":7,"method":"echo","params":{"a":"')
        for _ in range(300):
            client._to.write(block)
        client.send_raw(b"")
        refusal = {"code": -32600, "message": "Invalid request: longer than 268,435,456 bytes"}
        assert client.receive() == {"error": refusal, "id": 7}
        assert client.call(8, "echo") == {"id": 8, "result": {}}
        # One line of the longest kind, and no second copy of it.
        assert client.server.rss_bytes < 500_000_000


def test_a_client_that_does_not_read_is_cut_off_before_the_memory_is_full(tmp_path: Path) -> None:
    with piped(tmp_path) as client:
        client.greet()
        client.send({"id": 1, "method": "flood", "params": {"megabytes": 2000}})
        client.server.wait_for("the other side is cut off: it has left 256.0MB unread")
        assert client.server.rss_bytes < MAX_UNSENT_BYTES + 200_000_000
        assert client.server.process.wait(GUARD_S) == 1


@pytest.mark.slow
def test_a_log_that_is_not_read_stops_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*PROBE, "stdio://"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"LIMNER_HOME": str(tmp_path)},
    )
    request = json.dumps({"id": 1, "method": "initialize", "params": GREETING}).encode()
    out, _ = process.communicate(b"rubbish\n" * 20_000 + request, timeout=GUARD_S)
    assert json.loads(out)["id"] == 1


def overrides(tmp_path: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [*app_server()[:-1], *words],
        input=b"",
        capture_output=True,
        check=False,
        env={"LIMNER_HOME": str(tmp_path)},
        timeout=GUARD_S,
    )
    assert done.stdout == b""
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--config", "budget.day_usd=5", "app-server"], 0, ""),
        (["--config", "images={fit='fast', tile='auto'}", "app-server"], 0, ""),
        (["--config", "images.fit=fast", "--config", "images.fit=model", "app-server"], 0, ""),
        (["app-server", "--config", "images.accept=['png']", "--stdio"], 0, ""),
        (["-c", "budget.day_usd=5", "app-server", "-c", "images.fit=fast"], 0, ""),
        *(
            (words, 0, "limner: --config features.apps is not a setting of limner\n")
            for words in (["--enable", "apps", "app-server"], ["app-server", "--disable", "apps"])
        ),
        (
            ["--config", "model=o3", "app-server"],
            0,
            "limner: --config model is not a setting of limner\n",
        ),
        (
            ["--config", "images.fit=loose", "app-server"],
            2,
            "limner: flags: images.fit must be seed, fast or model, not 'loose'\n",
        ),
        (
            ["--config", "images.fit", "app-server"],
            2,
            "limner: --config 'images.fit' is not KEY=VALUE\n",
        ),
        (
            ["--config", "a=b", "models"],
            2,
            "limner: unrecognized arguments: --config a=b\n  See: limner models --help\n",
        ),
        (["app-server", "--out", "x"], 2, "limner: --out belongs to generate-json-schema\n"),
        (
            ["app-server", "generate-json-schema"],
            2,
            "limner: generate-json-schema needs --out DIR\n",
        ),
        (
            ["app-server", "generate-json-schema", "--out", "/dev/null/schemas"],
            1,
            "limner: Could not write '/dev/null/schemas': a part of the path is a file, not a "
            "folder.\n  Choose another path.\n",
        ),
        (
            ["app-server", "--listen", "http://x"],
            2,
            "limner: --listen cannot be 'http://x'\n  Use stdio://, ws://IP:PORT or unix://PATH.\n",
        ),
    ],
)
def test_settings_may_stand_before_the_command_as_in_codex(
    tmp_path: Path, words: list[str], status: int, said: str
) -> None:
    assert overrides(tmp_path, *words) == (status, said)


def test_a_thread_is_started_without_the_modules_that_only_a_turn_needs() -> None:
    needless = {
        "httpx2",
        "yaml",
        "limner.agent.loop",
        "limner.money.ledger",
        "limner.tools.registry",
    }
    code = (
        "import sys, limner.frontends.appserver.server, limner.frontends.appserver.thread_opener; "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert needless & set(done.stdout.split()) == set()
