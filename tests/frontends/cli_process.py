"""The command line as a process: words, keys and signals in; a status and what was said out."""

from __future__ import annotations

import errno
import json
import os
import pty
import select
import signal
import subprocess
import termios
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict

from tests.acceptance.conftest import Studio
from tests.servers.codex_messages import LIMNER

CLEAR_LINE = "\r\x1b[2K"
GUARD_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Done:
    """How a run ended, and what it wrote where."""

    status: int
    out: str = ""
    err: str = ""

    @property
    def json(self) -> Any:
        """The one JSON object that is all of standard output."""
        assert self.out.count("\n") == 1, self
        assert self.out.endswith("\n")
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value

    @property
    def error(self) -> dict[str, Any]:
        """The error that is all of standard output."""
        assert [*self.json] == ["error"]
        return self.json["error"]


class Place(TypedDict):
    """Where a program runs, for `subprocess`."""

    cwd: Path
    env: dict[str, str]


class Streams(TypedDict):
    """Where its output goes."""

    stdout: int
    stderr: int


class CommandLine:
    """`limner`, run in a studio's folder with a studio's environment and nothing else."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio

    def run(
        self, *words: str | bytes, stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> Done:
        """Run to the end."""
        done = subprocess.run(
            [*LIMNER, *words],
            input=stdin,
            capture_output=True,
            check=False,
            timeout=GUARD_S,
            **self._place(env),
        )
        return Done(status=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())

    def run_all(self, *commands: list[str]) -> list[Done]:
        """Run several commands to their ends, a few at a time."""
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda words: self.run(*words), commands))

    def run_unread(self, *words: str, unread: Literal["stdout", "stderr"] = "stdout") -> Done:
        """Run to the end with a pipe on one stream whose reader has left."""
        reader, writer = os.pipe()
        os.close(reader)
        streams: Streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        streams[unread] = writer
        process = subprocess.Popen([*LIMNER, *words], **streams, **self._place(None))
        os.close(writer)
        out, err = process.communicate(timeout=GUARD_S)
        return Done(status=process.returncode, out=(out or b"").decode(), err=(err or b"").decode())

    def shell(self, line: str) -> Done:
        """Run a line of shell in which `limner` is the program."""
        script = f'limner() {{ {" ".join(LIMNER)} "$@"; }}\n{line}'
        done = subprocess.run(
            ["/bin/bash", "-c", script],
            capture_output=True,
            check=False,
            timeout=GUARD_S,
            **self._place({"PATH": os.defpath}),
        )
        return Done(status=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())

    def start(self, *words: str) -> Running:
        """Run in the background."""
        return Running(
            subprocess.Popen(
                [*LIMNER, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                **self._place(None),
            )
        )

    def in_terminal(
        self,
        *words: str,
        env: Mapping[str, str] | None = None,
        columns: int = 80,
        rows: int = 40,
        piped: bool = True,
    ) -> Terminal:
        """Run with a terminal for keyboard and standard error.

        Standard output is a pipe; with ``piped`` False it is the terminal too.
        """
        screen, program = pty.openpty()
        termios.tcsetwinsize(program, (rows, columns))
        process = subprocess.Popen(
            [*LIMNER, *words],
            stdin=program,
            stdout=subprocess.PIPE if piped else program,
            stderr=program,
            # Away from the terminal the tests themselves may run in.
            start_new_session=True,
            **self._place({"TERM": "xterm", **(env or {})}),
        )
        os.close(program)
        return Terminal(process, screen)

    def _place(self, env: Mapping[str, str] | None) -> Place:
        # The locale is C, where Python itself changes to UTF-8: nothing depends on the machine's.
        return {"cwd": self.studio.cwd, "env": {**self.studio.env, "LC_ALL": "C", **(env or {})}}


class Running:
    """A program in the background."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def interrupt(self, presses: int | None = 1) -> None:
        """Ctrl-C; if the number of presses is None, until the program ends."""
        while presses != 0 and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            presses = None if presses is None else presses - 1

    def kill(self) -> None:
        """The way no program can prepare for."""
        self._process.kill()
        self._process.communicate(timeout=GUARD_S)

    def end(self) -> Done:
        """Wait for its end."""
        out, err = self._process.communicate(timeout=GUARD_S)
        return Done(status=self._process.returncode, out=out.decode(), err=err.decode())


class Terminal:
    """A person's view of a program: what the screen was sent, and a keyboard."""

    def __init__(self, process: subprocess.Popen[bytes], fd: int) -> None:
        self._process, self._fd = process, fd
        self._sent = b""

    @property
    def sent(self) -> str:
        """Everything that was sent to the screen so far."""
        return self._sent.decode().replace("\r\n", "\n")

    @property
    def lines(self) -> list[str]:
        """What can be read on the screen: of a line that was cleared, only what came after."""
        return [line.rpartition(CLEAR_LINE)[2] for line in self.sent.split("\n")]

    def wait_until(self, text: str) -> None:
        """Wait for the screen to have been sent a text."""
        while text not in self.sent:
            assert self._receive(), f"the program ended before it said {text!r}: {self.sent!r}"

    def type(self, keys: str) -> None:
        """Press keys; "\\x04" is Ctrl-D."""
        os.write(self._fd, keys.encode())

    def interrupt(self) -> None:
        """Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    def end(self) -> Done:
        """Wait for the end; what went to the screen is what was said on standard error."""
        while self._receive():
            pass
        os.close(self._fd)
        out, _ = self._process.communicate(timeout=GUARD_S)
        err = "\n".join(self.lines)
        return Done(status=self._process.returncode, out=(out or b"").decode(), err=err)

    def _receive(self) -> bool:
        ready, _, _ = select.select([self._fd], [], [], GUARD_S)
        assert ready, f"nothing more was said after {self.sent!r}"
        try:
            data = os.read(self._fd, 65536)
        except OSError as error:
            if error.errno != errno.EIO:  # how Linux says that the other side is closed
                raise
            data = b""
        self._sent += data
        return bool(data)
