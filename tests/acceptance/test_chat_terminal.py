"""`limner chat` in a real terminal on a machine with no key: draw, look, resume, spend."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.acceptance.conftest import Studio
from tests.servers.tmux import Tmux, needs_tmux

pytestmark = [needs_tmux(), pytest.mark.slow]
PROMPT = "\x1b[?2004h> "
SESSION = re.compile(r"To resume: (limner chat --resume [0-9a-f-]{36})")


@pytest.fixture
def terminal(studio: Studio, tmp_path: Path) -> Tmux:
    env = {**studio.env, "TERM": "xterm-256color"}
    return Tmux(tmp_path, env=env, columns=180, rows=48)


def lines(terminal: Tmux) -> list[str]:
    """The screen without what is different each time."""
    screen = re.sub(r"\d+\.\d s$", "N s", terminal.screen(), flags=re.MULTILINE)
    return [line.rstrip() for line in screen.splitlines()]


def test_draw_look_resume_and_spend_without_a_key(studio: Studio, terminal: Tmux) -> None:
    with terminal:
        terminal.type("limner chat")
        terminal.see(PROMPT)
        terminal.type("draw a red fox in the snow")
        terminal.see("session $0.00")
        terminal.see(PROMPT)
        (file,) = studio.files
        screen = lines(terminal)
        assert "✓ image_generate  a red fox in the snow · $0.00 · N s" in screen
        assert f"Here it is: {file} (1024 x 1024, free)." in screen
        assert len([line for line in screen if set(line) == {"▀"}]) == 24
        # The fox is there in its colours, not only in its characters.
        assert len(set(re.findall(r"\x1b\[[0-9;]*48;2;[\d;]+m", terminal.screen(styled=True)))) > 50

        terminal.type("what colours are in it?")
        terminal.see("session $0.00")
        terminal.see(PROMPT)
        assert "✓ inspect_image  what colours are in it? · $0.00 · N s" in lines(terminal)
        assert any(line.startswith("Answer: The colours are ") for line in lines(terminal))

        terminal.press("C-d")
        terminal.see("To resume: ")
        terminal.see("$ ")
        resume = SESSION.search(" ".join(terminal.screen().splitlines()))
        assert resume is not None, terminal.screen()

        terminal.type("clear")
        terminal.see("$ ")
        terminal.type(resume[1])
        terminal.see(": draw a red fox in the snow")
        terminal.see(PROMPT)
        terminal.type("make it wider")
        terminal.see("session $0.00")
        terminal.see(PROMPT)
        assert len(studio.files) == 2

        terminal.type("/spend")
        terminal.see("$0.00 in this session, $0.00 today, $0.00 in all")
        terminal.see(PROMPT)
        # Here Ctrl-C is the terminal's own: a key, and a signal to whoever has the foreground.
        terminal.press("C-c")
        terminal.see("To resume: ")
        terminal.see("$ ")
        terminal.type("echo status $?")
        terminal.see("\nstatus 130")
