"""What a worker can do once it is locked down, and how it waits for its next job."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from compromised_worker import ATTACKS, CALLS, SECRET

from limner.imaging import seccomp
from limner.imaging.evidence.record import has_ocr
from limner.imaging.provenance import has_c2pa
from limner.imaging.sandbox import C2PA, DECODER, OCR
from limner.imaging.seccomp import PROCESSORS, Processor, build_filter

only_linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no sandbox")

HOST = Path(__file__).parent / "compromised_host.py"
EVERY_ATTACK = {*ATTACKS, "read a key in another thread"}
READING = {
    "read a key",
    "read a key in another thread",
    "read keys.toml",
    "list the home",
    "read the host's environment",
    "read the host's memory",
}
NEW_CALLS = {"clone3", "io_uring_setup", "pidfd_open", "process_madvise"}
PLANTED = {".limner/keys.toml", ".ssh/id_ed25519", "doomed", "victim"}


def turn_against_its_host(kind: str, way: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What the worker reports, and the planted files afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        done = subprocess.run(
            [sys.executable, HOST, kind, way, home],
            capture_output=True,
            check=False,
            env={"PYTHONPATH": os.pathsep.join(sys.path), "SECRET": SECRET.decode()},
            timeout=120,
        )
        assert done.returncode == 0, done.stderr.decode()
        files = (
            path for path in home.rglob("*") if path.is_file() and not path.suffix.startswith(".py")
        )
        left = {str(path.relative_to(home)): path.read_bytes() for path in files}
    return json.loads(done.stdout), left


KINDS = [
    pytest.param("decoder", id="decoder"),
    pytest.param(
        "ocr",
        id="ocr",
        marks=[pytest.mark.slow, pytest.mark.skipif(not has_ocr(), reason="limner[eyes]")],
    ),
    pytest.param(
        "c2pa",
        id="c2pa",
        marks=[pytest.mark.slow, pytest.mark.skipif(not has_c2pa(), reason="limner[c2pa]")],
    ),
]


@only_linux
@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_that_is_taken_over_can_do_nothing_to_its_user(kind: str) -> None:
    report, left = turn_against_its_host(kind, "sandbox")
    holds = report["protections"]
    if not holds["seccomp"]:
        pytest.skip("limner has no filter for this processor")
    expected = dict.fromkeys(EVERY_ATTACK, "EPERM")
    if kind == "decoder":
        # It may open files, so Landlock decides which. `limner doctor` says if there is none.
        refusal = "EACCES" if holds["landlock_abi"] else "done"
        expected |= dict.fromkeys(READING, refusal)
    assert report["attacks"] == expected
    assert report["calls"] == {name: "ENOSYS" if name in NEW_CALLS else "EPERM" for name in CALLS}
    assert (len(report["attacks"]), len(report["calls"])) == (28, 17)
    # Jobs and replies; what a library prints goes to the null device.
    assert report["open"] == ["0 pipe", "1 device", "2 device", "3 pipe"]
    assert left == dict.fromkeys(PLANTED, SECRET)


@only_linux
@pytest.mark.slow
def test_without_its_sandbox_the_same_worker_would_do_nearly_everything() -> None:
    report, left = turn_against_its_host("decoder", "nothing")
    # As an ordinary user it is over its number of processes.
    assert report["attacks"] == {**dict.fromkeys(EVERY_ATTACK, "done"), "fork": "EAGAIN"}
    assert report["protections"] == {"landlock_abi": 0, "seccomp": False, "memory_limit": True}
    assert left.keys() != PLANTED


@only_linux
@pytest.mark.slow
def test_without_landlock_the_filter_refuses_all_but_reading() -> None:
    report, left = turn_against_its_host("decoder", "seccomp")
    results = report["attacks"]
    assert {name for name, result in results.items() if result == "done"} == READING
    assert Counter(results.values()) == {"done": len(READING), "EPERM": 22}
    assert left == dict.fromkeys(PLANTED, SECRET)


@only_linux
@pytest.mark.slow
def test_without_the_filter_landlock_refuses_files_tracing_tcp_and_signals() -> None:
    if turn_against_its_host("decoder", "sandbox")[0]["protections"]["landlock_abi"] < 6:
        pytest.skip("this kernel has no Landlock, or an old one; `limner doctor` says so")
    report, _ = turn_against_its_host("decoder", "landlock")
    assert {name for name, result in report["attacks"].items() if result == "done"} == {
        "change rights",
        "connect to a Unix socket",
        "have the host signalled",
        "limit the host",
        "run a program",
        "send by UDP",
        "slow the host down",
    }


LATE = """
import sys
sys.path.insert(0, sys.argv[1] + "/site")
import linked
from limner.imaging.sandbox import DECODER, restrict_files
version = restrict_files(DECODER)
import linked.late
try:
    open(sys.argv[1] + "/site/other.txt").close()
    print(version, "read")
except PermissionError:
    print(version, "refused")
"""


@only_linux
def test_a_package_of_links_is_readable_and_its_neighbours_are_not(tmp_path: Path) -> None:
    for folder in ("cache/linked", "site/linked"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("__init__.py", "late.py"):
        (tmp_path / "cache/linked" / name).touch()
        (tmp_path / "site/linked" / name).symlink_to(tmp_path / "cache/linked" / name)
    (tmp_path / "site/other.txt").touch()
    done = subprocess.run(
        [sys.executable, "-c", LATE, tmp_path], capture_output=True, check=True, text=True
    )
    version, result = done.stdout.split()
    assert result == ("refused" if int(version) else "read")


def verdict(program: bytes, number: int, *arguments: int, audit: int) -> str:
    """What the kernel would answer: this runs the filter as the kernel does."""
    record = struct.pack("<IIQ6Q", number, audit, 0, *arguments, *([0] * (6 - len(arguments))))
    lines = list(struct.iter_unpack("HBBI", program))
    at, register = 0, 0
    while True:
        code, if_true, if_false, operand = lines[at]
        at += 1
        match code:
            case 0x20:
                (register,) = struct.unpack_from("<I", record, operand)
            case 0x54:
                register &= operand
            case 0x15:
                at += if_true if register == operand else if_false
            case 0x35:
                at += if_true if register >= operand else if_false
            case _:
                return VERDICTS[operand]


VERDICTS = {
    0x7FFF0000: "allow",
    0x80000000: "kill",
    0x00050001: "EPERM",
    0x00050026: "ENOSYS",
}
PROCESSOR_NAMES = pytest.mark.parametrize("processor", PROCESSORS.values(), ids=PROCESSORS)


@PROCESSOR_NAMES
@pytest.mark.parametrize("policy", [DECODER, OCR, C2PA], ids=["decoder", "ocr", "c2pa"])
def test_the_filter_lets_through_what_the_policy_names(processor: Processor, policy: Any) -> None:
    program = build_filter(policy.calls, processor=processor, pid=7)
    # These arguments pass every rule: a thread, own process, reading, F_DUPFD.
    passing = {"clone": (0x10000,), "tgkill": (7,)}
    numbers = {name: row[processor.column] for name, row in policy.calls.items()}
    wanted = {
        number: verdict(program, number, *passing.get(name, ()), audit=processor.audit)
        for name, number in numbers.items()
        if number is not None
    }
    assert set(wanted.values()) == {"allow"}
    rest = {
        verdict(program, number, audit=processor.audit)
        for number in range(424)
        if number not in wanted
    }
    assert rest == {"EPERM"}
    assert len(set(wanted)) == sum(number is not None for number in numbers.values())


@PROCESSOR_NAMES
def test_the_filter_looks_at_arguments(processor: Processor) -> None:
    program = build_filter(DECODER.calls, processor=processor, pid=7)

    def ask(name: str, *arguments: int) -> str:
        number = DECODER.calls[name][processor.column]
        assert number is not None
        return verdict(program, number, *arguments, audit=processor.audit)

    thread, process, new_user = 0x3D0F00, 0x11, 0x3D0F00 | 0x10000000
    assert [ask("clone", flags) for flags in (thread, process, new_user)] == [
        *("allow", "EPERM", "EPERM")
    ]
    assert [ask("openat", 0, 0, flags) for flags in (0o2000000, 1, 2, 0o100, 0o1000)] == [
        *("allow", "EPERM", "EPERM", "EPERM", "EPERM")
    ]
    assert [ask("tgkill", pid, pid, 6) for pid in (7, 8)] == ["allow", "EPERM"]
    assert [ask("prlimit64", pid) for pid in (0, 8)] == ["allow", "EPERM"]
    duplicate, own, signal_number = 1030, 8, 10
    assert [ask("fcntl", 0, what) for what in (duplicate, own, signal_number)] == [
        *("allow", "EPERM", "EPERM")
    ]


@PROCESSOR_NAMES
def test_the_filter_kills_calls_of_another_processor(processor: Processor) -> None:
    program = build_filter(DECODER.calls, processor=processor, pid=7)
    others = {other.audit for other in PROCESSORS.values()} - {processor.audit} | {0x40000003}
    assert {verdict(program, 0, audit=other) for other in others} == {"kill"}
    # x32 has the same name as x86-64, and a bit in the number.
    assert verdict(program, 0x40000000, audit=processor.audit) == "kill"
    new = {verdict(program, number, audit=processor.audit) for number in (424, 435, 0x3FFFFFFF)}
    assert new == {"ENOSYS"}


def test_no_policy_lets_a_worker_use_sockets_processes_or_names_of_files() -> None:
    named = {*seccomp.COMPUTING, *seccomp.READING}
    dangerous = {"connect", "execve", "fork", "ioctl", "kill", "prctl", "ptrace", "rename"}
    assert named & {*dangerous, "sendmsg", "socket", "unlink", "vfork"} == set()
    assert OCR.calls == C2PA.calls == seccomp.COMPUTING


# Small blocks are kept by the C library when they are freed; the last one holds the heap's end.
PROGRAM = """
import os
from limner.imaging.sandbox import share_one_heap, wait_for_job

def resident_mib():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

share_one_heap()
reading, writing = os.pipe()
with open(reading, "rb") as jobs:
    blocks = [bytes([1]) * 60_000 for _ in range(1000)]
    last = bytes(60_000)
    del blocks
    kept = resident_mib()
    os.write(writing, b"job")
    wait_for_job(jobs, on_idle=lambda: print("at rest"), idle_s=60)
    at_once = resident_mib()
    jobs.read1()
    wait_for_job(jobs, on_idle=lambda: print("at rest"), idle_s=0)
    print(at_once >= kept, resident_mib() < kept - 40)
"""


@only_linux
def test_freed_memory_goes_back_once_there_is_no_next_job() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, check=True, text=True, timeout=60
    )
    assert done.stdout == "at rest\nTrue True\n"
