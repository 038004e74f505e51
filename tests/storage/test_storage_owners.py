"""Who is alive: the very process, not another one with its number."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from limner.storage.owners import UNKNOWN, Owner, is_alive, is_in_use, this_process

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells start and boot")


def test_this_process_is_alive() -> None:
    assert is_alive(this_process())


def test_this_process_has_its_own_number() -> None:
    assert this_process().pid == os.getpid()


@needs_proc
def test_another_process_with_the_same_number_is_not_the_owner() -> None:
    assert not is_alive(replace(this_process(), start="1"))


@needs_proc
def test_a_process_of_an_earlier_boot_is_not_alive() -> None:
    earlier = "00000000-0000-0000-0000-000000000000"
    assert not is_alive(replace(this_process(), boot=earlier))


@needs_proc
def test_an_owner_that_could_not_be_told_apart_is_not_taken_for_this_one() -> None:
    assert not is_alive(Owner(pid=os.getpid(), start=UNKNOWN, boot=UNKNOWN))


@needs_proc
def test_a_name_with_brackets_and_spaces_does_not_hide_the_start_time() -> None:
    script = "open('/proc/self/comm','w').write(') Z 1 (');print(1,flush=True);input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        stat = Path(f"/proc/{child.pid}/stat").read_text(encoding="utf-8")
        assert ") Z 1 (" in stat
        start = stat.rsplit(")", 1)[1].split()[19]
        assert is_alive(replace(this_process(), pid=child.pid, start=start))
        child.communicate("\n")


def test_a_number_in_use_is_told_from_one_that_is_not() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert is_in_use(child.pid)
        child.communicate(b"\n")
    assert is_in_use(1)
    if sys.platform != "win32":
        assert not is_in_use(child.pid)
