"""`limner inspect`: a question about pictures at the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from PIL import Image
from tests.acceptance.conftest import OPENAI_KEY
from tests.frontends.cli_process import CommandLine

from limner.eyes.evidence import Evidence
from limner.testing.servers.http_server import Gate
from limner.testing.servers.model_server import ModelAnswer
from limner.testing.servers.openai_server import error_reply
from limner.testing.servers.responses_server import ResponsesServer

pytestmark = pytest.mark.slow

LONG = "\n".join(f"line {number}" for number in range(1, 31))


@pytest.fixture
def model() -> Iterator[ResponsesServer]:
    with ResponsesServer() as server:
        yield server


@pytest.fixture
def desk(cli: CommandLine, model: ResponsesServer) -> CommandLine:
    cli.studio.env |= {
        "OPENAI_API_KEY": OPENAI_KEY,
        "OPENAI_BASE_URL": model.base_url,
        "LIMNER_MODEL_ROLES_VISION": "openai/gpt-5.5",
    }
    draw(cli.studio.cwd / "pic.png")
    return cli


def draw(path: Path, width: int = 60, height: int = 40, colour: str = "red") -> None:
    Image.new("RGB", (width, height), colour).save(path)


def test_the_answer_is_all_of_standard_output(desk: CommandLine, model: ResponsesServer) -> None:
    model.model_answer = ModelAnswer(pieces=("A red ", "rectangle."))
    done = desk.run("inspect", "pic.png", "What is it?")
    assert (done.status, done.out) == (0, "A red rectangle.\n")
    assert done.err.splitlines()[0] == "openai/gpt-5.5 · image/png"


def test_json_has_text_and_details(desk: CommandLine, model: ResponsesServer) -> None:
    model.model_answer = ModelAnswer(pieces=("A red rectangle.",))
    done = desk.run("inspect", "pic.png", "What is it?", "--json")
    assert (done.status, done.err) == (0, "")
    assert [*done.json] == ["text", "details"]
    assert done.json["text"] == "A red rectangle."
    assert [*done.json["details"]][:3] == ["model", "imagePath", "mimeType"]
    assert done.json["details"]["imagePath"] == str(desk.studio.cwd / "pic.png")


def test_several_pictures_and_options_between_them(
    desk: CommandLine, model: ResponsesServer
) -> None:
    draw(desk.studio.cwd / "other.png")
    done = desk.run(
        "inspect", "pic.png", "other.png", "--model", "openai/gpt-5.4", "Which is larger?", "--json"
    )
    assert [Path(image["imagePath"]).name for image in done.json["details"]["images"]] == [
        "pic.png",
        "other.png",
    ]
    (request,) = model.sent("ask")
    assert request.json()["model"] == "gpt-5.4"
    assert request.json()["input"][0]["content"][2]["text"] == "Which is larger?"


def test_a_region_and_a_schema_are_passed_on(desk: CommandLine, model: ResponsesServer) -> None:
    draw(desk.studio.cwd / "plan.png", 3000, 2000)
    (desk.studio.cwd / "room.json").write_text('{"type": "object"}')
    model.model_answer = ModelAnswer(pieces=('{"room": ', '"kitchen"}'))
    done = desk.run(
        *("inspect", "plan.png", "Which room?", "--region", "2000,100,400,300"),
        *("--schema", "room.json", "--json"),
    )
    assert done.json["details"]["part"] == {"x": 2000, "y": 100, "width": 400, "height": 300}
    (request,) = model.sent("ask")
    assert request.json()["text"]["format"]["schema"]["type"] == "object"
    assert done.json["text"] == '{"room": "kitchen"}'


@pytest.mark.parametrize("text", ["[]", "{", ""])
def test_a_schema_that_is_none_is_bad_usage(desk: CommandLine, text: str) -> None:
    (desk.studio.cwd / "room.json").write_text(text)
    done = desk.run("inspect", "pic.png", "Which room?", "--schema", "room.json", "--json")
    assert (done.status, done.error["code"]) == (2, "USAGE")


def test_the_message_of_a_failure_is_the_specifications_own(desk: CommandLine) -> None:
    (desk.studio.cwd / "text.png").write_text("not a picture")
    done = desk.run("inspect", "text.png", "What is it?", "--json")
    assert (done.status, done.error["message"]) == (
        4,
        "inspect_image only supports PNG, JPEG, GIF, and WEBP files detected by file content.",
    )


def test_the_exit_status_says_who_failed(desk: CommandLine, model: ResponsesServer) -> None:
    model.script("ask", error_reply(401, "Who are you?"))
    done = desk.run("inspect", "pic.png", "What is it?", "--json")
    assert (done.status, done.error["code"], done.error["message"]) == (
        3,
        "MODEL_AUTH",
        "Who are you?",
    )
    blocked = desk.run(
        "inspect", "pic.png", "?", "--json", env={"LIMNER_IMAGES_BLOCK_IMAGES": "true"}
    )
    assert (blocked.status, blocked.error["code"]) == (2, "IMAGES_BLOCKED")
    poor = desk.run("inspect", "pic.png", "?", "--budget", "0", "--json")
    assert (poor.status, poor.error["code"]) == (5, "BUDGET_EXCEEDED")


def test_a_terminal_gets_the_whole_answer_wrapped(
    desk: CommandLine, model: ResponsesServer
) -> None:
    paragraph = "word " * 600
    model.model_answer = ModelAnswer(pieces=(f"{LONG}\n{paragraph}",))
    view = on_screen(desk, "inspect", "pic.png", "What does it say?")
    assert view[:30] == LONG.splitlines()
    lines = view[30 : view.index("openai/gpt-5.5 · image/png")]
    assert " ".join(" ".join(lines).split()) == paragraph.strip()
    assert max(map(len, lines)) < 80


def test_the_cause_of_a_failure_is_shown_beside_the_specified_sentence(
    desk: CommandLine, model: ResponsesServer
) -> None:
    model.script("ask", error_reply(500, "boom"))
    lines = desk.run("inspect", "pic.png", "What is it?").err.splitlines()
    assert lines[0] == "limner: boom"
    assert lines[1].startswith("  OpenAI answered 500: boom; the request may be billed")


def test_a_file_that_is_not_there_is_bad_input(desk: CommandLine) -> None:
    done = desk.run("inspect", "missing.png", "What is it?", "--json")
    assert (done.status, done.error["code"]) == (2, "FILE_NOT_FOUND")


@pytest.mark.parametrize("last", ["pic.png", "missing.jpg"])
def test_a_picture_at_the_end_is_no_question(
    desk: CommandLine, model: ResponsesServer, last: str
) -> None:
    done = desk.run("inspect", "pic.png", last)
    assert (done.status, done.out) == (2, "")
    assert done.err == (
        "limner: give a question\n"
        f'  For example: limner inspect pic.png {last} "What does the error say?"\n'
    )
    assert model.requests == []


def test_the_answer_streams_to_the_progress_display(
    desk: CommandLine, model: ResponsesServer
) -> None:
    gate = Gate()
    model.model_answer = ModelAnswer(pieces=("A red ", "rectangle."), gate=gate)
    terminal = desk.in_terminal("inspect", "pic.png", "What is it?")
    terminal.wait_until("openai/gpt-5.5: A red rectangle.")
    gate.open()
    done = terminal.end()
    assert (done.status, done.out) == (0, "A red rectangle.\n")


def test_ctrl_c_aborts_the_request(desk: CommandLine, model: ResponsesServer) -> None:
    model.model_answer = ModelAnswer(pieces=("A red ",), gate=Gate())
    terminal = desk.in_terminal("inspect", "pic.png", "What is it?")
    terminal.wait_until("openai/gpt-5.5: A red")
    terminal.interrupt()
    done = terminal.end()
    assert done.status == 130
    assert "limner: inspect_image request aborted." in done.err


def test_without_a_key_the_answer_says_where_it_comes_from(cli: CommandLine) -> None:
    draw(cli.studio.cwd / "pic.png", 300, 200, "blue")
    done = cli.run("inspect", "pic.png", "Which colours does it have?", "--json")
    assert done.status == 0
    assert done.json["details"]["model"] == "limner/eyes"
    assert "blue" in done.json["text"]


def on_screen(cli: CommandLine, *words: str) -> list[str]:
    """What is on the screen of somebody who types the command."""
    return cli.in_terminal(*words, piped=False).end().err.splitlines()


def test_the_evidence_of_a_picture_is_one_json_object(cli: CommandLine) -> None:
    draw(cli.studio.cwd / "pic.png")
    done = cli.run("inspect", "pic.png", "--evidence")
    typed = msgspec.json.decode(done.out, type=Evidence)
    assert (done.status, done.err, typed.measured.width, typed.page.lines) == (0, "", 60, ())
    assert cli.run("inspect", "pic.png", "--evidence", "--json").json == json.loads(done.out)


def test_a_picture_without_a_table_has_no_csv(cli: CommandLine) -> None:
    draw(cli.studio.cwd / "pic.png")
    done = cli.run("inspect", "--csv", "pic.png")
    assert (done.status, done.out, done.err) == (0, "", "limner: no table was found\n")


def test_evidence_takes_one_picture_and_no_question(cli: CommandLine) -> None:
    done = cli.run("inspect", "pic.png", "What is it?", "--evidence")
    assert (done.status, done.out) == (2, "")
    assert done.err == "limner: --evidence and --csv take one picture and no question\n"
