"""One worker process, seen from the host: a job goes in, an answer or an obituary comes out.

Everything here blocks and belongs on a thread. The answer is read as carefully as any other
outside data, since what sent it has met hostile bytes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import IO, Any

import msgspec

from limner.errors import (
    CorruptImage,
    ImageError,
    ImageTooLarge,
    LimnerError,
    UnrecognizedImage,
    UnsafeSvg,
)
from limner.imaging import pipe
from limner.imaging.limits import WorkerLimits

if sys.platform == "linux":
    import fcntl

# The programs a worker process may run: one decodes and draws, one reads text, and one checks
# where a picture says it comes from.
WORKER = "limner.imaging.worker"
READER = "limner.imaging.ocr_worker"
NOTARY = "limner.imaging.c2pa_worker"

_START_TIMEOUT_S = 60.0
_EXIT_TIMEOUT_S = 5.0
_PIPE_BYTES = 1 << 20
_CPU_TIME_SPENT = -signal.SIGXCPU if hasattr(signal, "SIGXCPU") else None
_ABORTED = -signal.SIGABRT

# All of the host's environment that a worker gets: where Windows and odd installations of Python
# keep their libraries. No key may ever be among it.
_PASSED_ON = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")

_ERRORS: dict[str, type[ImageError]] = {
    error.__name__: error for error in (UnrecognizedImage, CorruptImage, ImageTooLarge, UnsafeSvg)
}


class WorkerJob(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is asked: the header names the operation, the payload is the bytes."""

    header: Mapping[str, Any]
    payload: bytes


class WorkerReply(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says of a job that went well: facts, and bytes."""

    value: Mapping[str, Any]
    payload: bytes


class _Head(msgspec.Struct):
    """The header of an answer: a value, or the class and the text of an error."""

    value: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    error: str | None = None
    message: str = ""
    hint: str | None = None


class WorkerProcess:
    """A warm worker, running the module that is named; it does one job at a time."""

    def __init__(self, limits: WorkerLimits, module: str = WORKER) -> None:
        self._limits = limits
        self._doomed = False
        self._expired = False
        self._process = _spawn(limits, module)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._jobs: IO[bytes] = self._process.stdin
        self._answers: IO[bytes] = self._process.stdout
        _widen(self._jobs)
        _widen(self._answers)
        try:
            with self._deadline(_START_TIMEOUT_S):
                pipe.receive(self._answers, max_payload_bytes=0)
        except EOFError:
            self.close()
            raise LimnerError(
                f"the imaging worker ended with status {self._process.returncode} at its start",
                hint=f"see why: {sys.executable} -m {module} '{{}}'",
            ) from None

    @property
    def alive(self) -> bool:
        """Whether the process can take a job."""
        return not self._doomed and self._process.poll() is None

    def do(self, job: WorkerJob) -> WorkerReply:
        """Send one job and wait for its answer.

        Raises:
            ImageError: what the worker answered, or what became of it.
        """
        try:
            with self._deadline(self._limits.timeout_s):
                pipe.send(self._jobs, job.header, job.payload)
                head, payload = pipe.receive(
                    self._answers, max_payload_bytes=self._limits.max_answer_bytes
                )
            said = msgspec.json.decode(head, type=_Head)
        except (OSError, EOFError):
            raise self._obituary() from None
        except OverflowError:
            self.close()
            mebibytes = self._limits.max_answer_bytes >> 20
            raise ImageTooLarge(f"the result has more than {mebibytes} MiB") from None
        except msgspec.DecodeError:
            self.close()
            raise CorruptImage("the picture confused its decoder") from None
        if said.error is not None:
            raise _ERRORS.get(said.error, CorruptImage)(said.message, hint=said.hint)
        return WorkerReply(value=said.value, payload=payload)

    def kill(self) -> None:
        """End the process now; a thread that waits for its answer wakes up."""
        # A killed process is still seen alive for a moment.
        self._doomed = True
        self._process.kill()

    def close(self) -> None:
        """End the process and leave nothing of it behind."""
        self._process.kill()
        self._process.wait()
        for stream in (self._jobs, self._answers):
            # What is left in the buffer has nobody to go to.
            with contextlib.suppress(OSError):
                stream.close()

    @contextlib.contextmanager
    def _deadline(self, seconds: float) -> Generator[None]:
        # A pipe read has no time limit of its own on every system; a kill ends it on all of them.
        timer = threading.Timer(seconds, self._expire)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            # A timer caught in the act must not strike at the next job.
            timer.join()

    def _expire(self) -> None:
        self._expired = True
        self.kill()

    def _obituary(self) -> ImageError:
        """Why the worker is gone, as the error of the job it had."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_TIMEOUT_S)
        status = self._process.poll()
        self.close()
        limits = self._limits
        if self._expired:
            return ImageTooLarge(f"the picture took more than {limits.timeout_s:g} s")
        if status == _CPU_TIME_SPENT:
            return ImageTooLarge(f"the picture took more than {limits.cpu_s} s of processor time")
        too_much = f"the picture needs more than {limits.memory_bytes >> 20} MiB of memory"
        if status == pipe.EXIT_OUT_OF_MEMORY:
            return ImageTooLarge(too_much)
        if status == _ABORTED:
            # Rust and C++ abort for want of memory, but also where they find their own mistakes.
            return ImageTooLarge(f"the decoder gave up, most likely because {too_much}")
        return CorruptImage(f"the picture crashed its decoder (status {status})")


def _spawn(limits: WorkerLimits, module: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", module, json.dumps(msgspec.to_builtins(limits))]
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=Path(sys.executable).anchor,
            env=_environment(),
            # Ctrl-C at the terminal is for the host, which decides what becomes of the job.
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError as error:
        raise LimnerError(f"the imaging worker could not be started: {error}") from error


def _environment() -> dict[str, str]:
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    # The worker has another working directory, so relative entries would name other places.
    search = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
    return {**passed_on, "PYTHONPATH": search}


def _widen(stream: IO[bytes]) -> None:
    """Let a whole picture through in a few writes, where the system can."""
    if sys.platform == "linux":
        # Beyond a quota of its user the system says no, and the pipe works as it is.
        with contextlib.suppress(OSError):
            fcntl.fcntl(stream, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
