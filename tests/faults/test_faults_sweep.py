"""A sample of `make faults`: one system call of a paid call fails, and nothing paid is lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.faults.sweep import KINDS, Fault, Points, find_points, sweep
from tests.servers.components import skipped_without

SAMPLE = 6


def test_the_calls_of_a_log_are_numbered_by_thread_and_split_at_the_reservation() -> None:
    lines = [
        '10 0.1 openat(AT_FDCWD, "/usr/lib/a"...) = 3</usr/lib/a>',
        '10 0.2 read(3</usr/lib/a>, ""..., 9) = 9',
        '10 0.3 openat(AT_FDCWD, "/h/limner.db"...) = 4</h/limner.db>',
        "11 0.4 read(3</usr/lib/a>, <unfinished ...>",
        "11 0.5 <... read resumed>, 9) = 9",
        '11 0.6 pwrite64(5</h/limner.db-wal>, ""..., 32, 0) = 32',
        "10 0.7 mmap(NULL, 4096) = 0x7f",
        '11 1.1 pwrite64(5</h/limner.db-wal>, ""..., 32, 32) = 32',
        '10 1.2 read(3</usr/lib/a>, ""..., 9) = 0',
        '12 1.3 execve("/usr/bin/python3", ...) = 0',
        '12 1.4 openat(AT_FDCWD, "/usr/lib/b"...) = 3</usr/lib/b>',
        "12 1.5 prctl(PR_SET_DUMPABLE) = 0",
        "10 1.6 exit_group(0) = ?",
    ]
    assert find_points(lines, Path("/h"), reserved_s=1.0) == Points(
        paid=[
            *(Fault("openat", 2), Fault("pwrite64", 1), Fault("pwrite64", 2), Fault("read", 2)),
            Fault("prctl", 1),
        ],
        before=[Fault("openat", 1), Fault("read", 1), Fault("mmap", 1)],
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
@skipped_without([] if shutil.which("strace") else ["strace"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("answered", [False, True], ids=["reserved", "answered"])
async def test_a_system_call_that_fails_loses_no_money_and_no_picture(
    kind: str, answered: bool
) -> None:
    points, verdicts = await sweep(kind, jobs=2, sample=SAMPLE, answered=answered)
    assert [verdict for verdict in verdicts if verdict.problems] == []
    assert sum(verdict.hit for verdict in verdicts) > SAMPLE / 2
    # A call loads its modules before it reserves. A conversation loads its tools when it uses them.
    assert len(points.paid) < (4_000 if kind == "chat" else 1_500)
