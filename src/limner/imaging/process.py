"""A job -> the reply of one worker process, or an error that says why the worker died.

Everything here blocks and belongs on a thread. The host parses the reply as carefully as any other
outside data, since the worker has met hostile bytes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import IO, Any

import msgspec

from limner.display_text import clean_line
from limner.errors import (
    CorruptImage,
    ImageTooLarge,
    InputInvalid,
    LimnerError,
    UnrecognizedImage,
    UnsafeSvg,
)
from limner.imaging import pipe
from limner.imaging.limits import Protections, WorkerLimits

if sys.platform == "linux":
    import fcntl

# The programs that a worker process may run: one decodes and draws, one does that and also compiles
# sources, one runs OCR, and one reads C2PA manifests.
WORKER = "limner.imaging.worker"
RENDERING_WORKER = "limner.rendering.worker"
OCR_WORKER = "limner.imaging.ocr_worker"
C2PA_WORKER = "limner.imaging.c2pa_worker"
_DECODING = frozenset({WORKER, RENDERING_WORKER})

_START_TIMEOUT_S = 60.0
_EXIT_TIMEOUT_S = 5.0
_PIPE_BYTES = 1 << 20
_CPU_TIME_SPENT = -signal.SIGXCPU if hasattr(signal, "SIGXCPU") else None
# Rust and C++ abort if memory runs out, and V8 ends itself by a breakpoint.
_ABORTS = {"SIGABRT", "SIGTRAP", "SIGILL"}
_ABORTED = tuple(-number for number in signal.Signals if number.name in _ABORTS)
# The kernel out of memory, or a person, but never a picture.
_KILLED = (-9, -15)

# The only variables of the host's environment that a worker gets: Windows and unusual Python
# installations need them to find libraries. An API key must never be among them.
_PASSED_ON = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
# The C library of Linux then asks for huge pages for pixels. The system gives and clears one of
# them in a tenth of the time that it needs for 512 small ones.
_HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}

# The worker has met hostile bytes, so its words are only shown.
_MAX_MESSAGE_CHARS = 500
_ERRORS: dict[str, type[LimnerError]] = {
    error.__name__: error
    for error in (UnrecognizedImage, CorruptImage, ImageTooLarge, UnsafeSvg, InputInvalid)
}


class WorkerDied(Exception):
    """A worker ended before its reply, and not because a picture exceeded a limit.

    ``error`` is what to tell the caller if another worker dies as well.
    """

    def __init__(self, error: LimnerError) -> None:
        super().__init__(error.message)
        self.error = error


class WorkerJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job for a worker: the header names the operation, the payload is the bytes."""

    header: Mapping[str, Any]
    payload: bytes | pipe.OpenFile


class WorkerReply(msgspec.Struct, frozen=True, kw_only=True):
    """The reply to a job that succeeded: facts, and bytes."""

    value: Mapping[str, Any]
    payload: bytes


class _Head(msgspec.Struct):
    """The header of a reply: a value, or the class and the text of an error."""

    value: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    error: str | None = None
    message: str = ""
    hint: str | None = None
    field: str | None = None


class WorkerProcess:
    """A warm worker that runs one of the programs above; it does one job at a time."""

    def __init__(self, limits: WorkerLimits, module: str = WORKER) -> None:
        self._limits = limits
        self._killed = False
        self._expired = False
        self._jobs_left = limits.max_jobs
        self._watchdog = _Watchdog(self._expire)
        try:
            self._process = _spawn(limits, module)
        except BaseException:
            self._watchdog.close()
            raise
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._jobs: IO[bytes] = self._process.stdin
        self._replies: IO[bytes] = self._process.stdout
        _widen(self._jobs)
        _widen(self._replies)
        try:
            with self._watchdog.deadline(_START_TIMEOUT_S):
                ready, _ = pipe.receive(self._replies, max_payload_bytes=0)
            self.protections = msgspec.json.decode(ready, type=Protections)
        except EOFError:
            self.close()
            raise LimnerError(
                f"the imaging worker exited with status {self._process.returncode} at its start",
                hint=f"see why: {sys.executable} -m {module} '{{}}'",
            ) from None
        except BaseException:
            self.close()
            raise

    @property
    def is_alive(self) -> bool:
        """Whether the process can take a job."""
        return not self._killed and self._process.poll() is None

    @property
    def is_spent(self) -> bool:
        """Whether the process has run as many jobs as it may."""
        return self._jobs_left <= 0

    def do(self, job: WorkerJob) -> WorkerReply:
        """Send one job and wait for its reply.

        Raises:
            ImageError: the job failed, or the picture exceeded a limit.
            InputInvalid: the picture has no such region or page.
            LimnerError: the file of the payload cannot be read.
            WorkerDied: the worker died.
        """
        self._jobs_left -= 1
        try:
            with self._watchdog.deadline(self._limits.timeout_s):
                pipe.send(self._jobs, job.header, job.payload)
                head, payload = pipe.receive(
                    self._replies, max_payload_bytes=self._limits.max_answer_bytes
                )
            reply = msgspec.json.decode(head, type=_Head)
        except (OSError, EOFError):
            raise self._exit_error(pipe.subject(job.header)) from None
        except LimnerError:
            self.close()  # it waits for the rest of the payload
            raise
        except OverflowError:
            self.close()
            mebibytes = self._limits.max_answer_bytes >> 20
            raise ImageTooLarge(f"the result has more than {mebibytes} MiB") from None
        except msgspec.DecodeError:
            self.close()
            raise CorruptImage("the picture confused its decoder") from None
        if reply.error is not None:
            raise _error(reply)
        return WorkerReply(value=reply.value, payload=payload)

    def kill(self) -> None:
        """Kill the process; a thread that waits for its reply wakes up."""
        # For a moment, a killed process still looks alive.
        self._killed = True
        self._process.kill()

    def close(self) -> None:
        """Kill the process and release its pipes."""
        self._watchdog.close()
        self._process.kill()
        self._process.wait()
        for stream in (self._jobs, self._replies):
            # The buffer may still hold bytes, and the other end is gone.
            with contextlib.suppress(OSError):
                stream.close()

    def _expire(self) -> None:
        self._expired = True
        self.kill()

    def _exit_error(self, subject: str) -> Exception:
        """Why the worker ended, as the error of its job."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_TIMEOUT_S)
        status = self._process.poll()
        self.close()
        limits = self._limits
        if self._expired:
            return ImageTooLarge(f"{subject} took more than {limits.timeout_s:g} s")
        if status == _CPU_TIME_SPENT:
            return ImageTooLarge(f"{subject} took more than {limits.cpu_s} s of processor time")
        too_much = f"{subject} needs more than {limits.memory_bytes >> 20} MiB of memory"
        if status == pipe.EXIT_OUT_OF_MEMORY:
            return ImageTooLarge(too_much)
        if status in _ABORTED:
            # They also do this on a bug of their own.
            return ImageTooLarge(f"the decoder gave up, most likely because {too_much}")
        if status in _KILLED:
            return WorkerDied(
                LimnerError(
                    f"the imaging worker was killed (status {status})",
                    code="IMAGING_FAILED",
                    hint="Check that the machine has memory left.",
                )
            )
        return WorkerDied(CorruptImage(f"{subject} crashed its decoder (status {status})"))


def _error(reply: _Head) -> LimnerError:
    """The error that a worker reports."""
    kind = _ERRORS.get(reply.error or "", CorruptImage)
    message, hint = (
        text and clean_line(text, max_chars=_MAX_MESSAGE_CHARS)
        for text in (reply.message, reply.hint)
    )
    error = kind(message or "", hint=hint)
    if isinstance(error, InputInvalid):
        error.field = reply.field
    return error


class _Watchdog:
    """A thread that calls ``expire`` if a deadline passes.

    Not every system can time out a read from a pipe, but a kill ends the read everywhere. The
    thread starts with the worker: if a picture was paid for, none has to start any more.

    Raises:
        LimnerError: the system has no thread left.
    """

    def __init__(self, expire: Callable[[], None]) -> None:
        self._expire = expire
        self._changed = threading.Condition()
        self._deadline_s: float | None = None
        self._closed = False
        try:
            threading.Thread(target=self._watch, name="limner-watchdog", daemon=True).start()
        except RuntimeError as error:
            raise LimnerError(f"the imaging worker could not be started: {error}") from error

    @contextlib.contextmanager
    def deadline(self, seconds: float) -> Generator[None]:
        """Let the block take so long."""
        with self._changed:
            self._deadline_s = time.monotonic() + seconds
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._deadline_s = None

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _watch(self) -> None:
        with self._changed:
            while not self._closed:
                left_s = None if self._deadline_s is None else self._deadline_s - time.monotonic()
                if left_s is None or left_s > 0:
                    self._changed.wait(left_s)
                else:
                    self._deadline_s = None
                    # With the lock: a deadline that has just passed must not kill the next job.
                    self._expire()


def _spawn(limits: WorkerLimits, module: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", module, json.dumps(msgspec.to_builtins(limits))]
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=Path(sys.executable).anchor,
            env=_environment(module),
            # The host handles Ctrl-C at the terminal, and decides about the job.
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError as error:
        raise LimnerError(f"the imaging worker could not be started: {error}") from error


def _environment(module: str) -> dict[str, str]:
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    if module in _DECODING:
        passed_on |= _HUGE_PAGES
    # The worker has another working directory, so relative entries would not work.
    search = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
    return {**passed_on, "PYTHONPATH": search}


def _widen(stream: IO[bytes]) -> None:
    """Let a whole picture through in a few writes, if the system allows it."""
    if sys.platform == "linux":
        # Above the quota of the user the system refuses, and the pipe stays as it is.
        with contextlib.suppress(OSError):
            fcntl.fcntl(stream, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
