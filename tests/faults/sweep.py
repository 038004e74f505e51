"""One failing system call at a time -> what a paid call reported, counted and kept.

`make faults` runs it. Every call of the kernel that a paid call makes from its reservation to its
exit, and every call on the home, fails once (`strace -e inject`). strace counts the calls of each
thread from its start, so a low number often fails the start of the program and not the thread that
it was meant for. With `--answered` strace starts to count when the service has got the request and
before it answers: then every number is a call after the payment. After each run three things must
hold: the reported cost is the cost in the ledger; the ledger has the bill of the service; and
every picture that the service delivered is stored here, at the latest after `limner jobs recover`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from tests.faults.services import (
    PICTURE_BYTES,
    Bill,
    DrawingService,
    PredictionService,
    TalkingService,
    draw_picture,
    handle_of,
)

GUARD_S = 60.0
WAKE_UP_LOST = "wake-up lost, then killed"
THREAD_LOST = "thread lost, then killed"
BEFORE_SAMPLE = 500
SEED = 20261116

# The error that each system call can really return; the others get EIO.
ERRORS = {
    **dict.fromkeys(("mmap", "mremap", "brk", "mprotect", "munmap", "madvise"), "ENOMEM"),
    **dict.fromkeys(("clone", "clone3", "fork", "vfork"), "EAGAIN"),
    **dict.fromkeys(("pipe2", "socket", "epoll_create1", "eventfd2", "dup", "dup2"), "EMFILE"),
    **dict.fromkeys(("futex", "epoll_wait", "poll", "wait4", "waitid"), "EINTR"),
    **dict.fromkeys(("pwrite64", "write", "fallocate", "mkdir", "ftruncate"), "ENOSPC"),
    **dict.fromkeys(("linkat", "link", "rename", "renameat2", "unlinkat"), "EPERM"),
    "connect": "ECONNREFUSED",
    "prlimit64": "EPERM",
}
# These cannot fail, or strace cannot change what they do.
CANNOT_FAIL = {
    *("exit", "exit_group", "execve", "rt_sigreturn", "restart_syscall", "getpid", "gettid"),
    *("getuid", "geteuid", "getgid", "getegid", "getppid", "set_tid_address", "arch_prctl"),
    # The kernel never loses a wake-up, and strace cannot choose the waits alone.
    "futex",
    # They fail only for wrong arguments.
    *("rt_sigaction", "rt_sigprocmask"),
}
# The byte with which a thread wakes the event loop: a socket pair that cannot fail.
_WAKE_UP = re.compile(r"sendto\(\d+<UNIX-STREAM")
_CALL = re.compile(r"^(\d+) +([\d.]+) (\w+)\((.*)$")
_RECEIVED = re.compile(r"(?:recvfrom\(\d+<TCP.*|recvfrom resumed>.*) = (\d+)$")


# The exit status, None if it had to be killed; standard output and standard error.
Ended = tuple[int | None, str, str]


class Fault(NamedTuple):
    """The ``when``-th call of ``name`` in each thread fails."""

    name: str
    when: int

    @property
    def error(self) -> str:
        """The error that it returns."""
        return ERRORS.get(self.name, "EIO")

    def __str__(self) -> str:
        return f"{self.name}:{self.error}:{self.when}"


class Points(NamedTuple):
    """Where one kind of call can fail."""

    paid: list[Fault]
    before: list[Fault]


class Verdict(NamedTuple):
    """What one run came to; ``problems`` is empty if every promise held."""

    fault: Fault
    hit: bool
    outcome: str
    has_traceback: bool
    problems: tuple[str, ...]


class Home(NamedTuple):
    """A fresh home with its environment, for one run."""

    folder: Path
    env: Mapping[str, str]

    def rows(self) -> list[tuple[str, int]]:
        """State and counted cost of each row of the ledger."""
        with closing(sqlite3.connect(self.folder / "home" / "limner.db")) as database:
            return database.execute("SELECT state, cost_nano FROM ledger").fetchall()

    def reserved_s(self) -> float:
        """When the first row was written."""
        with closing(sqlite3.connect(self.folder / "home" / "limner.db")) as database:
            return database.execute("SELECT min(created_ms) FROM ledger").fetchone()[0] / 1000

    def has_blob(self, handle: str) -> bool:
        """Whether the picture is stored."""
        return (self.folder / "home" / "blobs" / handle[:2] / handle).exists()


# What each kind of call types; `{}` is the number of the run, which the services know it by.
KINDS: dict[str, list[str]] = {
    "openai": ["generate", "picture number {}", "--provider", "openai-image"],
    "replicate": [
        *("generate", "picture number {}", "--provider", "replicate-flux", "--size", "512x512"),
    ],
    "edit": ["edit", "source.png", "picture number {}", "--provider", "openai-image"],
    "inspect": ["inspect", "source.png", "Is this picture number {}?"],
    "chat": ["chat", "-p", "Draw picture number {}", "--approval", "never"],
}


class Sweep:
    """The services, a prepared home, and the runs of one kind of call."""

    def __init__(self, kind: str, folder: Path, *, answered: bool = False) -> None:
        self.kind, self._folder, self._answered = kind, folder, answered
        self._numbers = iter(range(1, 1_000_000))
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self.bill = Bill()
        drawing = self._stack.enter_context(DrawingService(self.bill))
        predicting = self._stack.enter_context(PredictionService(self.bill))
        talking = self._stack.enter_context(TalkingService(self.bill))
        openai = talking if self.kind in ("inspect", "chat") else drawing
        self._services = {
            "OPENAI_API_KEY": "sk-test-0123456789abcdef0123456789",
            "OPENAI_BASE_URL": openai.base_url,
            "REPLICATE_API_TOKEN": "r8_test0123456789abcdef0123456789",
            "REPLICATE_BASE_URL": predicting.base_url,
            "LIMNER_MODEL_ROLES_VISION": "openai/gpt-5.4",
            "LIMNER_MODEL_ROLES_DEFAULT": "openai/gpt-5.4",
            "PATH": "/usr/bin:/bin",
            "PYTHONFAULTHANDLER": "1",
        }
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    async def prepare(self) -> None:
        """Make the home that every run gets a copy of."""
        self._template = self._folder / "template"
        (self._template / "work").mkdir(parents=True)
        (self._template / "work" / "source.png").write_bytes(draw_picture(0))
        status, out, err = await self._run(self._home(self._template), ["spend", "--json"])
        assert status == 0, (out, err)

    async def points(self) -> Points:
        """List the system calls of a run without a fault."""
        home, number = self._fresh()
        log = home.folder / "strace.log"
        status, out, err = await self._run_traced(home, number, log, "-ttt")
        assert status == 0, (out, err)
        lines = log.read_text(errors="replace").splitlines()
        reserved_s = None if self._answered else home.reserved_s()
        return find_points(lines, home.folder / "home", reserved_s=reserved_s)

    async def try_fault(self, fault: Fault) -> Verdict:
        """Make one paid call with one fault, and compare what it says with what happened."""
        home, number = self._fresh()
        log = home.folder / "strace.log"
        traced = ",".join(sorted({fault.name, "recvfrom"}))
        inject = f"inject={fault.name}:error={fault.error}:when={fault.when}"
        options = ("-e", f"trace={traced}", "-e", "signal=none", "-e", inject)
        status, out, err = await self._run_traced(home, number, log, *options)
        traced_lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        injected = [line for line in traced_lines if "(INJECTED)" in line]
        if status is None and any(map(_WAKE_UP.search, injected)):
            status = WAKE_UP_LOST
        # Python waits for ever for a thread that has no memory for its first step.
        if status is None and fault.name == "mmap" and _starts_thread(injected, traced_lines):
            status = THREAD_LOST
        verdict = Verdict(
            fault=fault,
            hit=bool(injected),
            outcome=status if isinstance(status, str) else f"exit {status}",
            # Python itself prints one if it cannot read a module.
            has_traceback="Traceback" in err,
            problems=tuple(
                await self._problems(
                    home, number, status, out, owed=self._is_owed(number, traced_lines)
                )
            ),
        )
        if not verdict.problems:
            shutil.rmtree(home.folder)
        return verdict

    async def _problems(
        self, home: Home, number: int, status: int | str | None, out: str, *, owed: bool
    ) -> list[str]:
        problems: list[str] = []
        if status is None:
            problems.append("it hangs")
        if any(state in ("reserved", "sent") for state, _ in home.rows()):
            # The next command decides the rows of a process that has ended.
            await self._run(home, ["spend", "--json"])
        rows, billed = home.rows(), self.bill.nano(number)
        counted = sum(cost for _, cost in rows)
        reported = _reported_nano(out)
        if reported is not None and reported != counted:
            problems.append(f"it reports {reported}, the ledger counts {counted}")
        is_settled = all(state in ("settled", "released") for state, _ in rows)
        if counted < billed or (is_settled and counted != billed):
            problems.append(f"the ledger counts {counted}, the service bills {billed}: {rows}")
        if self.bill.times(number) > 1:
            problems.append(f"it was sent {self.bill.times(number)} times")
        if owed and not home.has_blob(handle_of(number)):
            _, said, _ = await self._run(home, ["jobs", "recover", "--json"])
            if not home.has_blob(handle_of(number)):
                problems.append(f"the picture is lost; jobs recover: {said.strip()[:300]}")
        return problems

    def _is_owed(self, number: int, lines: Sequence[str]) -> bool:
        """Whether this machine received the whole picture, or can ask for it again."""
        if self.kind == "replicate":
            return self.bill.nano(number) > 0
        if not self.bill.delivered(number):
            return False
        # Base64 is 4/3 of the picture. What never arrived was lost by the network.
        received = sum(int(found[1]) for line in lines if (found := _RECEIVED.search(line)))
        return received >= PICTURE_BYTES * 4 / 3

    def _words(self, number: int) -> list[str]:
        return [*(word.format(number) for word in KINDS[self.kind]), "--json"]

    def _fresh(self) -> tuple[Home, int]:
        number = next(self._numbers)
        folder = self._folder / str(number)
        shutil.copytree(self._template, folder)
        return self._home(folder), number

    def _home(self, folder: Path) -> Home:
        env = {"HOME": str(folder), "LIMNER_HOME": str(folder / "home"), **self._services}
        return Home(folder, env)

    async def _run_traced(self, home: Home, number: int, log: Path, *options: str) -> Ended:
        strace = ["strace", "-f", "-qq", "-yy", "-s", "0", "-o", str(log), *options]
        if not self._answered:
            return await self._run(home, self._words(number), [*strace, "--seccomp-bpf"])
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()
        gate = self.bill.hold(number, lambda: loop.call_soon_threadsafe(arrived.set))
        process = await self._start(home, self._words(number))
        ending = asyncio.create_task(_end(process, is_python=True))
        arrival = asyncio.create_task(arrived.wait())
        await asyncio.wait([ending, arrival], return_when=asyncio.FIRST_COMPLETED)
        arrival.cancel()
        tracer = await asyncio.create_subprocess_exec(*strace, "-p", str(process.pid))
        while not (_is_traced(process.pid) or ending.done()):  # noqa: ASYNC110 - only /proc says it
            await asyncio.sleep(0.01)
        gate.open()
        ended = await ending
        await tracer.wait()
        return ended

    async def _run(
        self,
        home: Home,
        words: Sequence[str],
        before: Sequence[str] = (),
        set_limit: Callable[[], None] | None = None,
    ) -> Ended:
        process = await self._start(home, words, before, set_limit)
        return await _end(process, is_python=not before)

    async def _start(
        self,
        home: Home,
        words: Sequence[str],
        before: Sequence[str] = (),
        set_limit: Callable[[], None] | None = None,
    ) -> Process:
        return await asyncio.create_subprocess_exec(
            *(*before, sys.executable, "-m", "limner", *words),
            env=home.env,
            cwd=home.folder / "work",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            preexec_fn=set_limit,
            start_new_session=True,
        )


async def _end(process: Process, *, is_python: bool = False) -> Ended:
    reading = asyncio.ensure_future(process.communicate())
    _, late = await asyncio.wait({reading}, timeout=GUARD_S)
    if late:
        if is_python:
            # It writes where each of its threads is.
            process.send_signal(signal.SIGABRT)
            await asyncio.wait({reading}, timeout=5)
        # The whole group: what strace traced lives on without it, and holds the pipes open.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    out, err = await reading
    status = None if late else process.returncode
    return status, out.decode(errors="replace"), err.decode(errors="replace")


def _starts_thread(injected: Sequence[str], lines: Sequence[str]) -> bool:
    """Whether the first call of a thread failed."""
    firsts = {line.split()[0]: line for line in reversed(lines)}
    return any(line in firsts.values() for line in injected)


def _is_traced(pid: int) -> bool:
    """Whether strace follows every thread of a process."""
    try:
        threads = [file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/status")]
    except (FileNotFoundError, ProcessLookupError):
        return False  # a thread has just ended
    return bool(threads) and not any("TracerPid:\t0\n" in thread for thread in threads)


def find_points(lines: Sequence[str], home: Path, *, reserved_s: float | None) -> Points:
    """Split the calls of a log: from the reservation or on the home, and the ones before it.

    The reservation is the first write to the database from ``reserved_s`` on, the time in its row;
    with None, the log begins after it.
    A worker that starts later is counted from its start: a fault that fails a call of the command
    first, before the reservation, never gets to the worker.
    """
    counts: Counter[tuple[str, str]] = Counter()
    paid: dict[Fault, None] = {}
    before: dict[Fault, None] = {}
    workers: set[str] = set()
    is_reserved = reserved_s is None
    for thread, time_s, name, rest in _calls(lines):
        counts[thread, name] += 1
        fault = Fault(name, counts[thread, name])
        is_write = name == "pwrite64" and "limner.db-wal>" in rest
        is_reserved = is_reserved or (is_write and time_s >= (reserved_s or 0))
        if is_reserved and name == "execve":
            workers.add(thread)
        if name in CANNOT_FAIL or _WAKE_UP.match(f"{name}({rest}"):
            continue
        is_paid = is_reserved and not (thread in workers and fault in before)
        (paid if is_paid or str(home) in rest else before)[fault] = None
    return Points([*paid], [fault for fault in before if fault not in paid])


def _calls(lines: Sequence[str]) -> Iterator[tuple[str, float, str, str]]:
    for line in lines:
        if "<... " not in line and (found := _CALL.match(line)):
            yield found[1], float(found[2]), found[3], found[4]


def _reported_nano(out: str) -> int | None:
    """The cost that a command printed; None if it printed none."""
    try:
        said: Any = json.loads(out)
    except ValueError:
        return None
    if "cost_usd" not in said:  # a conversation has the cost of its turn, and of its error
        said = said.get("error") or said.get("details") or {}
    cost = said.get("cost_usd")
    return None if cost is None else round(cost * 1_000_000_000)


async def sweep(
    kind: str,
    *,
    jobs: int,
    sample: int | None,
    answered: bool = False,
    before: int = BEFORE_SAMPLE,
    seed: int = SEED,
    record: Path | None = None,
) -> tuple[Points, list[Verdict]]:
    """Try the faults of one kind of call, all of them or a sample.

    Of those before the reservation, always a sample is tried, ``before`` of them.
    A run that was stopped continues: the faults in ``record`` are not tried again.
    """
    rng = random.Random(seed)
    name = _row_name(kind, answered=answered)
    verdicts = _recorded(record, name)
    with (
        tempfile.TemporaryDirectory() as folder,
        Sweep(kind, Path(folder), answered=answered) as runs,
    ):
        await runs.prepare()
        points = await runs.points()
        faults = [*points.paid, *rng.sample(points.before, min(before, len(points.before)))]
        # In random order, so that a run that is stopped has tried a fair sample.
        faults = rng.sample(faults, len(faults))[:sample]
        tried = {verdict.fault for verdict in verdicts}
        waiting = iter([fault for fault in faults if fault not in tried])

        async def work() -> None:
            for fault in waiting:
                verdict = await runs.try_fault(fault)
                verdicts.append(verdict)
                if record is not None:
                    with record.open("a") as file:
                        file.write(json.dumps([name, *verdict]) + "\n")
                if verdict.problems:
                    print(f"{kind} {fault}: {verdict.outcome}: {'; '.join(verdict.problems)}")
                elif verdict.outcome.startswith("exit -"):
                    print(f"{kind} {fault}: crashed, {verdict.outcome}", file=sys.stderr)
                elif len(verdicts) % 100 == 0:
                    print(f"{kind}: {len(verdicts)} of {len(faults)}", file=sys.stderr)

        async with asyncio.TaskGroup() as group:
            for _ in range(jobs):
                group.create_task(work())
    return points, verdicts


def _row_name(kind: str, *, answered: bool) -> str:
    return f"{kind}, from the answer" if answered else kind


def _recorded(record: Path | None, name: str) -> list[Verdict]:
    """What an earlier run has tried."""
    if record is None or not record.exists():
        return []
    lines = map(json.loads, record.read_text().splitlines())
    return [
        Verdict(Fault(*fault), hit, outcome, has_traceback, tuple(problems))
        for row, fault, hit, outcome, has_traceback, problems in lines
        if row == name
    ]


def main() -> int:
    """Run the sweep from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", nargs="*", choices=[[], *KINDS], help="default: all")
    parser.add_argument("--answered", action="store_true", help="only from the service's answer")
    parser.add_argument("--sample", type=int, help="try this many faults of each kind, not all")
    parser.add_argument(
        "--before", type=int, default=BEFORE_SAMPLE, help="faults to try before the reservation"
    )
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--record", type=Path, help="append each result, and try no fault again that is in it"
    )
    args = parser.parse_args()
    bad = 0
    for kind in args.kind or KINDS:
        points, verdicts = asyncio.run(
            sweep(
                kind,
                jobs=args.jobs,
                sample=args.sample,
                answered=args.answered,
                before=args.before,
                seed=args.seed,
                record=args.record,
            )
        )
        bad += sum(bool(verdict.problems) for verdict in verdicts)
        name = _row_name(kind, answered=args.answered)
        print(summary(name, points, verdicts), flush=True)
    return 1 if bad else 0


def summary(kind: str, points: Points, verdicts: Sequence[Verdict]) -> str:
    """The row of one kind in RESULTS.md."""
    exits = Counter(verdict.outcome for verdict in verdicts)
    cells = [
        kind,
        len(points.paid),
        len(points.before),
        len(verdicts),
        sum(verdict.hit for verdict in verdicts),
        ", ".join(f"{count} x {outcome}" for outcome, count in exits.most_common()),
        sum(verdict.has_traceback for verdict in verdicts),
        sum(bool(verdict.problems) for verdict in verdicts),
    ]
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    raise SystemExit(main())
