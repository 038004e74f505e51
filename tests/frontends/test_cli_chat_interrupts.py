"""Ctrl-C in a chat: a press at any moment has an effect."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
import sys

import pytest
from tests.frontends.cli_process import GUARD_S

from limner.frontends.cli.interrupts import interrupts

# `interrupt_main` sets what a signal sets, but it interrupts no wait: so arrives a signal that
# comes after the prompt was written and before Python waits for a key.
AT_THE_PROMPT = """
import _thread, readline
from limner.frontends.cli.interrupts import interruptible_prompt
readline.set_pre_input_hook(_thread.interrupt_main)
try:
    with interruptible_prompt():
        input("> ")
except KeyboardInterrupt:
    raise SystemExit(7)
"""


def test_a_press_between_the_prompt_and_the_wait_for_a_key_is_not_lost() -> None:
    screen, terminal = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", AT_THE_PROMPT],
            check=False,
            stdin=terminal,
            stdout=terminal,
            stderr=subprocess.PIPE,
            env={"TERM": "xterm"},
            timeout=GUARD_S,
        )
    finally:
        os.close(screen)
        os.close(terminal)
    assert (done.returncode, done.stderr) == (7, b"")


def test_a_press_after_the_last_step_of_a_turn_goes_to_the_handler_before() -> None:
    stopped: list[int] = []

    async def turn() -> None:
        with interrupts(stopped.append):
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(0)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(turn())
    assert stopped == [1]
