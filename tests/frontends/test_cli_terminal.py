"""What a person sees: progress, questions and previews."""

from __future__ import annotations

import asyncio
import base64
import io
import re
import sys

import pytest
from PIL import Image
from tests.acceptance.conftest import picture
from tests.frontends.cli_process import CLEAR_LINE, CommandLine, Done

from limner.frontends.cli import terminal as line
from limner.pictures.request import Progress
from limner.testing.servers.http_server import Gate, Reply
from limner.testing.servers.openai_server import OpenAIServer

pytestmark = pytest.mark.slow

PAID = ["generate", "a fox", "--provider", "openai-image"]
ASKING = {"LIMNER_APPROVAL_POLICY": "untrusted"}
QUESTION = "A picture from openai-image costs $0.013515. Go on? [y/N] "


def facts(done: Done) -> str:
    return re.sub(r"\d+\.\d s\n", "N s\n", done.err)


FACTS = "1024x1024 · openai-image (gpt-image-2.5-flare) · $0.01342 · N s\n"


def test_a_line_tells_what_is_going_on_and_is_gone_at_the_end(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    cli.studio.connect(openai)
    gate = Gate()
    openai.script("generate", Reply(hold=gate, pieces=(b"{}",)))
    terminal = cli.in_terminal(*PAID)
    terminal.wait_until(f"{CLEAR_LINE}⠹ OpenAI is drawing ")
    gate.open()
    done = terminal.end()
    assert done.status == 4
    assert done.err.startswith("limner: ")


async def test_what_a_model_says_cannot_drive_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    waiting = line.Waiting()
    waiting.progress(Progress(message="a model: \x1b[2J\x1b]0;owned\x07", elapsed_s=0))
    ticking = asyncio.ensure_future(waiting._tick())
    await asyncio.sleep(0)
    ticking.cancel()
    assert "\x1b[2J" not in written.getvalue()
    assert "\x07" not in written.getvalue()
    assert "a model: \\u001b[2J" in written.getvalue()


def test_the_line_is_cut_to_the_width_of_the_terminal(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    cli.studio.connect(openai)
    openai.always("generate", Reply(hold=Gate()))
    terminal = cli.in_terminal(*PAID, columns=12)
    terminal.wait_until(f"{CLEAR_LINE}⠙ OpenAI is{CLEAR_LINE}")
    terminal.interrupt()
    assert terminal.end().status == 130


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"PYTHONIOENCODING": "ascii"}])
def test_a_terminal_that_cannot_redraw_is_spared(
    cli: CommandLine, openai: OpenAIServer, env: dict[str, str]
) -> None:
    cli.studio.connect(openai)
    terminal = cli.in_terminal(*PAID, env=env)
    assert terminal.end().status == 0
    assert "\x1b" not in terminal.sent


def test_debug_lines_stand_above_the_line(cli: CommandLine, openai: OpenAIServer) -> None:
    cli.studio.connect(openai)
    terminal = cli.in_terminal(*PAID, "--debug")
    *lines, summary, end = terminal.end().err.split("\n")
    assert [line.split("127.0.0.1")[0] for line in lines if line.startswith(("> ", "< "))] == [
        "> POST http://",
        "< 200 POST http://",
    ]
    assert (summary[:10], end) == ("1024x1024 ", "")


def test_yes_buys(cli: CommandLine, openai: OpenAIServer) -> None:
    cli.studio.connect(openai)
    terminal = cli.in_terminal(*PAID, env=ASKING)
    terminal.wait_until(QUESTION)
    assert openai.requests == []
    terminal.type("y\n")
    done = terminal.end()
    assert (done.status, done.out) == (0, f"{cli.studio.files[0]}\n")
    assert facts(done) == f"{QUESTION}y\n{FACTS}"


@pytest.mark.parametrize("keys", ["n\n", "\x04"])
def test_anything_else_does_not(cli: CommandLine, openai: OpenAIServer, keys: str) -> None:
    cli.studio.connect(openai)
    terminal = cli.in_terminal(*PAID, env=ASKING)
    terminal.wait_until(QUESTION)
    terminal.type(keys)
    done = terminal.end()
    asked, message, *_ = done.err.split("\n")
    assert (done.status, done.out) == (5, "")
    assert asked == f"{QUESTION}{keys.strip(chr(10) + chr(4))}"
    assert message.startswith("limner: A picture from openai-image costs $0.013515 and needs")
    assert openai.requests == []


def test_interrupting_a_question_ends_the_program(cli: CommandLine, openai: OpenAIServer) -> None:
    cli.studio.connect(openai)
    terminal = cli.in_terminal(*PAID, "--json", env=ASKING)
    terminal.wait_until(QUESTION)
    terminal.interrupt()
    done = terminal.end()
    assert (done.status, done.error["code"], done.err) == (130, "CANCELLED", f"{QUESTION}\n")


def test_where_nobody_can_be_asked_the_answer_is_no(cli: CommandLine, openai: OpenAIServer) -> None:
    cli.studio.connect(openai)
    done = cli.run(*PAID, "--json", stdin=b"y\n", env=ASKING)
    assert (done.status, done.error["code"], openai.requests) == (5, "APPROVAL_DENIED", [])


def rotated(png: bytes) -> bytes:
    """The same picture with its left side up."""
    file = io.BytesIO()
    Image.open(io.BytesIO(png)).transpose(Image.Transpose.ROTATE_270).save(file, "PNG")
    return file.getvalue()


def _name(red: str, blue: str) -> str:
    return "red" if int(red) > int(blue) else "blue"


def cells(line: str) -> list[tuple[str, str]]:
    """The colours of the upper and the lower half of each character."""
    code = r"\x1b\[38;2;(\d+);\d+;(\d+)m\x1b\[48;2;(\d+);\d+;(\d+)m▀"
    assert re.fullmatch(rf"({code})+\x1b\[0m", line)
    return [
        (_name(upper_red, upper_blue), _name(lower_red, lower_blue))
        for upper_red, upper_blue, lower_red, lower_blue in re.findall(code, line)
    ]


def test_a_preview_in_half_blocks_shows_two_pixels_a_character(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    cli.studio.connect(openai)
    done = cli.in_terminal(*PAID, "--show", columns=8).end()
    lines = facts(done).split("\n")
    row = [("red", "red")] * 4 + [("blue", "blue")] * 4
    assert [cells(line) for line in lines[:4]] == [row] * 4
    assert " ".join(lines[4:]).split() == FACTS.split()


def test_a_preview_fits_into_the_lowest_terminal(cli: CommandLine, openai: OpenAIServer) -> None:
    openai.picture = rotated(picture())
    cli.studio.connect(openai)
    done = cli.in_terminal(*PAID, "--show", rows=1).end()
    line, *rest = facts(done).split("\n")
    assert cells(line) == [("red", "blue")] * 2
    assert rest == [FACTS.strip(), ""]


def kitty_picture(sent: str) -> tuple[str, bytes]:
    """The control words of the first chunk, and the picture in all of them."""
    chunks = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", sent)
    assert [control.rpartition("m=")[2] for control, _ in chunks] == ["1"] * (len(chunks) - 1) + [
        "0"
    ]
    assert all(len(data) <= 4096 for _, data in chunks)
    return chunks[0][0], base64.b64decode("".join(data for _, data in chunks))


@pytest.mark.parametrize(
    ("width", "height", "control"),
    [(1024, 1024, "a=T,f=100,r=24,m=1"), (1792, 1024, "a=T,f=100,c=60,m=1")],
)
def test_kitty_is_sent_the_picture_itself_unasked(
    cli: CommandLine, openai: OpenAIServer, width: int, height: int, control: str
) -> None:
    openai.picture = picture(width, height)
    cli.studio.connect(openai)
    terminal = cli.in_terminal(*PAID, "--size", f"{width}x{height}", env={"TERM": "xterm-kitty"})
    assert terminal.end().status == 0
    assert kitty_picture(terminal.sent) == (control, openai.picture)


def test_iterm_is_sent_the_picture_itself_unasked(cli: CommandLine, openai: OpenAIServer) -> None:
    cli.studio.connect(openai)
    terminal = cli.in_terminal(*PAID, env={"TERM_PROGRAM": "iTerm.app"})
    assert terminal.end().status == 0
    (sent,) = re.findall(r"\x1b\]1337;File=([^\x07]*)\x07", terminal.sent)
    control, _, data = sent.partition(":")
    assert control == f"inline=1;size={len(openai.picture)};width=60;height=24"
    assert base64.b64decode(data) == openai.picture


@pytest.mark.parametrize(
    ("words", "env"),
    [
        (["--json"], {"TERM": "xterm-kitty"}),
        ([], {"TERM": "xterm-kitty", "TMUX": "/tmp/tmux"}),
        ([], {"TERM": "xterm-256color"}),
    ],
)
def test_nothing_is_shown_unasked_to_programs_and_other_terminals(
    cli: CommandLine, openai: OpenAIServer, words: list[str], env: dict[str, str]
) -> None:
    cli.studio.connect(openai)
    terminal = cli.in_terminal(*PAID, *words, env=env)
    assert terminal.end().status == 0
    assert "\x1b_G" not in terminal.sent
    assert "▀" not in terminal.sent


def test_a_preview_without_a_terminal_is_said_to_be_missing(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    cli.studio.connect(openai)
    done = cli.run(*PAID, "--show", env={"TERM": "xterm-kitty"})
    assert done.out == f"{cli.studio.files[0]}\n"
    assert facts(done) == (
        f"The picture is not shown: standard error is not a terminal that can.\n{FACTS}"
    )
