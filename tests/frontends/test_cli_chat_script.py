"""`limner chat -p`: one turn for a script, as words, as one JSON object, as lines of JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import picture
from tests.agent.talking import Talk
from tests.frontends.chatting import with_model
from tests.frontends.cli_process import CommandLine, Done
from tests.servers.scripted import calls, says

from limner.testing.servers.http_server import Gate
from limner.testing.servers.model_server import StreamError

pytestmark = pytest.mark.slow

DRAW = ("image_generate", '{"prompt": "a red fox", "output_path": "fox.png"}')
LOST = ("inspect_image", '{"path": "nowhere.png", "question": "What is it?"}')


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[tuple[Talk, CommandLine]]:
    with with_model(tmp_path) as made:
        yield made


def lines(done: Done) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.out.splitlines()]


def test_the_words_are_on_standard_output_and_the_rest_is_not(cli: CommandLine) -> None:
    done = cli.run("chat", "-p", "draw a red fox")
    (file,) = cli.studio.files
    assert (done.status, done.out) == (
        0,
        f"Here it is: {file} (1024 x 1024, free).\n\n"
        "(This is limner/offline: rules, not a language model.)\n",
    )
    told = re.sub(r"\d+\.\d s\n", "N s\n", done.err)
    told = re.sub(r"[0-9a-f-]{36}", "ID", told)
    assert told == (
        "This is limner/offline: rules that draw and look, not a language model.\n"
        "Set OPENAI_API_KEY, or another key, to use one.\n"
        "✓ image_generate  a red fox · $0.00 · N s\n"
        "$0.00 · session $0.00\n"
        "To resume: limner chat --resume ID\n"
    )


def test_json_is_one_object_with_everything_a_script_needs(
    scripted: tuple[Talk, CommandLine],
) -> None:
    model, cli = scripted
    model.script(calls(DRAW, LOST), says("One of the two."))
    done = cli.run("chat", "-p", "Draw and look.", "--json")
    assert (done.status, done.err) == (0, "")
    told = done.json
    drawn, lost = sorted(told.pop("calls"), key=lambda call: call["call_id"])
    handle = told["images"][0]["handle"]
    assert 0.013 < told["cost_usd"] == told["session_usd"]
    assert told == {
        "text": "One of the two.",
        "status": "completed",
        "session": told["session"],
        "model": "openai/gpt-5.4",
        "cost_usd": told["cost_usd"],
        "session_usd": told["session_usd"],
        "usage": {
            "input_tokens": 2400,
            "output_tokens": 90,
            "cache_read_tokens": 2048,
            "cache_write_tokens": 0,
            "reasoning_tokens": 40,
        },
        "images": [{"path": str(model.cwd / "fox.png"), "handle": handle}],
    }
    assert drawn == {
        "call_id": "call_1",
        "name": "image_generate",
        "ok": True,
        "cost_usd": drawn["cost_usd"],
        "cost_source": "computed",
        "duration_ms": drawn["duration_ms"],
    }
    assert (lost["name"], lost["ok"], lost["cost_usd"]) == ("inspect_image", False, 0.0)
    assert [*lost["error"]] == ["code", "message", "retryable", "billed", "hint"]


def test_a_session_goes_on_in_another_process_with_the_same_spend(
    scripted: tuple[Talk, CommandLine],
) -> None:
    model, cli = scripted
    model.script(calls(DRAW), says("A fox."))
    first = cli.run("chat", "-p", "Draw.", "--json").json
    model.script(says("It was a fox."))
    second = cli.run("chat", "-p", "What was it?", "--resume", "--json").json
    assert second["session"] == first["session"]
    assert second["session_usd"] == pytest.approx(first["session_usd"] + second["cost_usd"])
    assert "a red fox" in model.asked[-1]
    elsewhere = cli.run("chat", "-p", "What was it?", "--json").json
    assert elsewhere["session"] != first["session"]
    assert "a red fox" not in model.asked[-1]


def test_stream_is_a_line_for_each_event_and_the_result_at_the_end(
    scripted: tuple[Talk, CommandLine],
) -> None:
    model, cli = scripted
    model.script(calls(DRAW), says("A ", "fox."))
    done = cli.run("chat", "-p", "Draw.", "--json", "--stream")
    told = lines(done)
    progress = [line for line in told if line["type"] == "tool_progress"]
    assert [line["type"] for line in told if line not in progress] == [
        "turn_started",
        "input",
        "item",  # what it thought
        "item",  # what it calls
        "tool_started",
        "tool_finished",
        "usage",
        "text",
        "text",
        "item",
        "usage",
        "turn_ended",
        "result",
    ]
    assert progress[0]["message"] == "OpenAI is drawing"
    by_type = {line["type"]: line for line in told}
    assert by_type["tool_started"] == {
        "type": "tool_started",
        "call_id": "call_1",
        "name": "image_generate",
        "arguments": {"prompt": "a red fox", "output_path": "fox.png"},
    }
    finished = by_type["tool_finished"]
    assert finished["value"]["path"] == str(model.cwd / "fox.png")
    assert finished["images"] == by_type["result"]["images"]
    assert by_type["text"]["text"] == "fox."
    assert by_type["result"]["text"] == "A fox."


def test_standard_input_and_pictures_are_said_too(scripted: tuple[Talk, CommandLine]) -> None:
    model, cli = scripted
    model.script(says("Two colours."))
    (model.cwd / "fox.png").write_bytes(picture(64, 48))
    done = cli.run("chat", "-p", "-", "--image", "fox.png", stdin=b"What do\nyou see?\n")
    assert (done.status, done.out) == (0, "Two colours.\n")
    said = json.loads(model.asked[0])["input"][-1]["content"]
    assert said[-1]["text"] == "What do\nyou see?"
    assert [part["type"] for part in said].count("input_image") == 1


def test_a_turn_that_fails_has_the_status_of_its_error(
    scripted: tuple[Talk, CommandLine],
) -> None:
    model, cli = scripted
    model.script(says("Half a", error=StreamError(code="server_error", message="Broke.")))
    done = cli.run("chat", "-p", "Hello.", "--json")
    assert (done.status, done.json["status"]) == (3, "failed")
    assert done.json["error"]["code"].startswith("MODEL_")
    told = cli.run("chat", "-p", "Hello.")
    assert (told.status, told.out) == (3, "")
    assert "limner: " in told.err


def test_a_budget_is_for_the_session_and_a_failed_turn_says_so(
    scripted: tuple[Talk, CommandLine],
) -> None:
    model, cli = scripted
    model.script(says("Hello."))
    done = cli.run("chat", "-p", "Hello.", "--budget", "0", "--json")
    assert (done.status, done.json["error"]["code"]) == (5, "BUDGET_EXCEEDED")
    assert model.asked == []


def test_where_nobody_can_be_asked_the_flags_are_named(
    scripted: tuple[Talk, CommandLine],
) -> None:
    model, cli = scripted
    asking = ["chat", "-p", "Draw.", "--approval", "untrusted"]
    both = (("image_generate", '{"prompt": "a fox"}'), DRAW)
    model.script(calls(*both), says("Not allowed."))
    told = cli.run(*asking)
    assert (told.status, told.out) == (0, "Not allowed.\n")
    assert re.search(
        r"Not asked, since this is not a terminal: "
        r"A picture from openai-image costs \$0\.\d+\. Go on\?\n"
        r"  --budget USD sets a budget for the session; with --approval never ",
        told.err,
    )
    assert (
        "Not asked, since this is not a terminal: "
        f'Write the picture to "{model.cwd / "fox.png"}"?\n'
        "  --sandbox sets where the model may write; --approval on-request " in told.err
    )
    model.script(calls(*both), says("Not allowed."))
    value = cli.run(*asking, "--json").json
    assert [call["error"]["code"] for call in value["calls"]] == ["APPROVAL_DENIED"] * 2
    assert len(value["unasked"]) == 2
    assert model.drawer.requests == []


def test_somebody_at_the_keyboard_is_asked(scripted: tuple[Talk, CommandLine]) -> None:
    model, cli = scripted
    model.script(calls(DRAW), says("Drawn."))
    terminal = cli.in_terminal("chat", "-p", "Draw.", "--approval", "untrusted")
    terminal.wait_until('fox.png"? [y/N] ')
    terminal.type("y\n")
    terminal.wait_until("Go on? [y/N] ")
    terminal.type("y\n")
    done = terminal.end()
    assert (done.status, done.out) == (0, "Drawn.\n")
    assert (model.cwd / "fox.png").exists()


def test_words_stream_to_a_terminal(scripted: tuple[Talk, CommandLine]) -> None:
    model, cli = scripted
    gate = Gate()
    model.script(says("Once \x1b[2J", gate=gate))
    terminal = cli.in_terminal("chat", "-p", "A story.", piped=False)
    terminal.wait_until("Once \\u001b[2J")
    gate.open()
    assert terminal.end().status == 0
    assert "\x1b[2J" not in terminal.sent
    assert terminal.sent.count("Once") == 1


async def test_ctrl_c_ends_the_turn_and_what_happened_is_told(
    scripted: tuple[Talk, CommandLine],
) -> None:
    model, cli = scripted
    model.script(says("I will never", gate=Gate()))
    running = cli.start("chat", "-p", "Wait.", "--json")
    await model.model.wait_until("ask")
    running.interrupt()
    done = running.end()
    assert (done.status, done.json["status"]) == (130, "interrupted")
    assert cli.run("sessions", "show", done.json["session"]).status == 0


def test_a_reader_who_leaves_ends_the_turn(scripted: tuple[Talk, CommandLine]) -> None:
    model, cli = scripted
    model.script(calls(DRAW), says("Never asked for."))
    done = cli.run_unread("chat", "-p", "Draw.", "--json", "--stream")
    assert done.status == 130
    assert model.drawer.requests == []


MISTAKES = {
    ("chat", "-p", " "): "-p needs a message",
    ("chat", "--json"): "--json and --stream are for one turn",
    ("chat", "-p", "hello", "--json", "--budget", "much"): "'much' is not an amount in dollars",
    ("chat", "-p", "hello", "--json", "--cwd", "nowhere"): "--cwd: 'nowhere' is not a folder",
    ("chat", "-p", "hello", "--json", "--resume"): "No session is stored here yet.",
    ("chat", "-p", "hello", "--json", "--model", "x"): "There is no model 'x'.",
    ("chat", "-p", "hello", "--stream"): "--stream prints JSON",
    ("chat",): "limner chat needs a terminal",
}


def test_mistakes_are_told_before_anything_is_said(cli: CommandLine) -> None:
    for words, done in zip(MISTAKES, cli.run_all(*map(list, MISTAKES)), strict=True):
        told = done.error["message"] if "--json" in words else done.err.removeprefix("limner: ")
        assert done.status == 2, words
        assert told.startswith(MISTAKES[words]), words
    assert cli.run("sessions", "list", "--json").json["sessions"] == []
