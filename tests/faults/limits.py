"""One small limit at a time -> what a paid call reported, counted and kept.

`make faults` runs it after the sweep. The home is a disk of 4 KB and more, the process may open few
files, or it has little memory. A call is refused before it pays, or its picture is kept: once the
limit is gone, `limner jobs recover` brings it. The promises are those of the sweep, and no command
prints a traceback. Mounting a small disk needs root (`unshare -rm` gives that to an ordinary user).
"""

from __future__ import annotations

import argparse
import asyncio
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from tests.faults.sweep import KINDS, THREAD_LOST, Home, Sweep

LIMITS = {
    # Kilobytes of the disk. A picture needs a few megabytes, so both sides are tried.
    "disk": [4, 8, 16, 32, *range(64, 1024, 64), *range(1024, 9216, 256)],
    # Open files, from too few for Python to enough for limner.
    "files": [*range(6, 49)],
    # Megabytes of address space, from too few for Python to enough for limner.
    "memory": [*range(24, 512, 8)],
}

# What faulthandler writes of a thread that waits for another one to start, and what Python writes
# of a thread that had no memory for its steps. A call that waits for its result waits for ever.
_LOST_THREAD = re.compile(
    r'threading\.py", line \d+ in wait\n.*threading\.py", line \d+ in start'
    "|Exception (ignored )?in thread "
)
# The innermost call of each thread, as faulthandler writes it.
_INNERMOST = re.compile(r"most recent call first\):\n.* in (\w+)\n")


class Limit(NamedTuple):
    """A limit of one sort."""

    sort: str
    amount: int

    def apply(self) -> None:
        """Limit this process, if it is not the disk that is small."""
        if self.sort == "files":
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.amount, self.amount))
        elif self.sort == "memory":
            resource.setrlimit(resource.RLIMIT_AS, (self.amount << 20, self.amount << 20))


class Outcome(NamedTuple):
    """What one run came to; ``problems`` is empty if every promise held."""

    limit: Limit
    was_paid: bool
    status: int | str | None
    problems: tuple[str, ...]


class LimitSweep(Sweep):
    """Paid calls under limits."""

    async def try_limit(self, limit: Limit) -> Outcome:
        """Make one paid call under a limit, and compare what it says with what happened."""
        home, number = self._fresh()
        is_disk, is_memory = limit.sort == "disk", limit.sort == "memory"
        with _small_disk(home, limit.amount) if is_disk else nullcontext():
            status: int | str | None
            status, out, err = await self._run(home, self._words(number), set_limit=limit.apply)
            if status is None and is_memory and _has_lost_thread(err):
                status = THREAD_LOST
            if is_disk:
                _enlarge_disk(home)
            opened, said, _ = await self._run(home, ["spend", "--json"])
            was_paid = self.bill.nano(number) > 0
            owed = self.bill.delivered(number) or (was_paid and self.kind == "replicate")
            if opened == 0:
                problems = await self._problems(home, number, status, out, owed=owed)
            else:
                problems = [f"the home cannot be opened afterwards: {said.strip()}"]
            if status is None:
                problems.append(f"where it hangs: {err.strip()[-3000:]}")
            elif "Traceback" in out + err and not (is_memory and _LOST_THREAD.search(err)):
                problems.append(f"it prints a traceback: {err.strip()[-600:]}")
        if not problems:
            shutil.rmtree(home.folder)
        return Outcome(limit, was_paid, status, tuple(problems))


def _has_lost_thread(err: str) -> bool:
    """Whether a process that hangs waits for a thread that has ended: none of the others works."""
    innermost = {*_INNERMOST.findall(err)}
    is_idle = bool(innermost) and innermost <= {"select", "wait", "_worker"}
    return is_idle or _LOST_THREAD.search(err) is not None


def can_mount() -> bool:
    """Whether this process may mount a disk."""
    unshare = shutil.which("unshare")
    return (
        unshare is not None
        and subprocess.run(
            [unshare, "--mount", "true"], capture_output=True, check=False
        ).returncode
        == 0
    )


@contextmanager
def _small_disk(home: Home, size_kb: int) -> Generator[None]:
    """A new disk of that size as the home."""
    folder = home.folder / "home"
    shutil.rmtree(folder)
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_kb}k", "none", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def _enlarge_disk(home: Home) -> None:
    subprocess.run(["mount", "-o", "remount,size=64m", home.folder / "home"], check=True)


async def sweep_limits(kind: str, limits: Sequence[Limit], *, jobs: int) -> list[Outcome]:
    """Try limits with one kind of call."""
    outcomes: list[Outcome] = []
    waiting = iter(limits)
    with tempfile.TemporaryDirectory() as folder, LimitSweep(kind, Path(folder)) as runs:
        await runs.prepare()

        async def work() -> None:
            for limit in waiting:
                outcome = await runs.try_limit(limit)
                outcomes.append(outcome)
                if outcome.problems:
                    print(
                        f"{kind} {limit}: {_ending(outcome.status)}: {'; '.join(outcome.problems)}"
                    )

        async with asyncio.TaskGroup() as group:
            for _ in range(jobs):
                group.create_task(work())
    return outcomes


def summary(kind: str, sort: str, outcomes: Sequence[Outcome]) -> str:
    """The row of one kind of call and one sort of limit."""
    exits = Counter(outcome.status for outcome in outcomes)
    cells = [
        kind,
        f"{sort} {LIMITS[sort][0]} to {LIMITS[sort][-1]}",
        len(outcomes),
        sum(not outcome.was_paid for outcome in outcomes),
        sum(outcome.was_paid for outcome in outcomes),
        ", ".join(f"{count} x {_ending(status)}" for status, count in exits.most_common()),
        sum(bool(outcome.problems) for outcome in outcomes),
    ]
    return f"| {' | '.join(map(str, cells))} |"


def _ending(status: int | str | None) -> str:
    return status if isinstance(status, str) else f"exit {status}"


def main() -> int:
    """Try all limits from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", nargs="*", choices=[[], *KINDS], help="default: all")
    parser.add_argument("--sort", choices=[*LIMITS], help="default: all")
    parser.add_argument("--every", type=int, default=1, help="try every so many-th limit")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    bad = 0
    sorts = [args.sort] if args.sort else [*LIMITS]
    if "disk" in sorts and not can_mount():
        parser.error("mounting a small disk needs root: run it under `unshare -rm`")
    for kind in args.kind or KINDS:
        for sort in sorts:
            limits = [Limit(sort, amount) for amount in LIMITS[sort][:: args.every]]
            outcomes = asyncio.run(sweep_limits(kind, limits, jobs=args.jobs))
            bad += sum(bool(outcome.problems) for outcome in outcomes)
            print(summary(kind, sort, outcomes), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
