"""Runs `limner` many times in little time: a process that has loaded it forks for each run.

Each line of standard input is a JSON object with ``words``, ``cwd``, ``env`` and ``stdin``; each
line of standard output says how that run ended, as an object with ``status``, ``out`` and ``err``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, NoReturn, Self

from tests.golden.internals import ROOT, command


class Ended(NamedTuple):
    """How a run ended, and what it wrote."""

    status: int
    out: str
    err: str


class Runner:
    """The process that runs commands."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.golden.forked"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={"PATH": os.defpath, "LC_ALL": "C", "PYTHONPATH": str(ROOT)},
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.communicate(timeout=60)

    def run(self, words: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: str) -> Ended:
        """Run one command to its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        job = {"words": words, "cwd": str(cwd), "env": env, "stdin": stdin}
        self._process.stdin.write(f"{json.dumps(job)}\n")
        self._process.stdin.flush()
        return Ended(**json.loads(self._process.stdout.readline()))


def _serve() -> None:
    main = command()
    for line in sys.stdin:
        told = _run(main, json.loads(line))
        sys.stdout.write(f"{json.dumps(told)}\n")
        sys.stdout.flush()


def _run(main: Any, job: Mapping[str, Any]) -> dict[str, Any]:
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        tempfile.TemporaryFile() as loaded,
    ):
        given.write(job["stdin"].encode())
        given.seek(0)
        child = os.fork()
        if child == 0:
            _become(main, job, (given, out, err), loaded)
        _, ended = os.waitpid(child, 0)
        # What this run had to load, the next one finds loaded.
        for name in _text(loaded).split():
            import_module(name)
        status = os.waitstatus_to_exitcode(ended)
        return {"status": status, "out": _text(out), "err": _text(err)}


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def _become(
    main: Any, job: Mapping[str, Any], streams: Sequence[IO[bytes]], loaded: IO[bytes]
) -> NoReturn:
    status = 70
    try:
        for fd, stream in enumerate(streams):
            os.dup2(stream.fileno(), fd)
        sys.stdin = os.fdopen(0, "r", closefd=False)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        os.environ.clear()
        os.environ.update(job["env"])
        os.chdir(job["cwd"])
        sys.argv = ["limner", *job["words"]]
        try:
            status = main(job["words"])
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
        ours = [name for name in sys.modules if name.partition(".")[0] == "limner"]
        loaded.write("\n".join(ours).encode())
        loaded.flush()
    finally:
        os._exit(status)


if __name__ == "__main__":
    _serve()
