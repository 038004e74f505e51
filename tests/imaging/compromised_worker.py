"""A worker that a hostile file has taken over -> what each of its attacks got.

It is the real worker of its kind, with one more job. `compromised_host` starts it. The job runs
after the lock-down, as an ordinary user.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import platform
import resource
import socket
import stat
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from limner.imaging import c2pa_worker, ocr_worker, sandbox, seccomp, worker
from limner.imaging.decode import load_decoders
from limner.imaging.evidence.ocr import load_libraries
from limner.imaging.limits import WorkerLimits
from limner.imaging.sandbox import SandboxPolicy
from limner.imaging.worker import JobReply, JobTable

ORDINARY_USER = 1500
SECRET = b"planted secret"
PR_SET_NO_NEW_PRIVS = 38

Load = Callable[[WorkerLimits], None]
Prepare = Callable[[WorkerLimits], JobTable]
KINDS: dict[str, tuple[SandboxPolicy, Load, Prepare]] = {
    "decoder": (sandbox.DECODER, load_decoders, worker.prepare),
    "ocr": (sandbox.OCR, load_libraries, ocr_worker.prepare),
    "c2pa": (sandbox.C2PA, c2pa_worker.load_library, c2pa_worker.prepare),
}

libc: Any = ctypes.CDLL(None, use_errno=True)
# A thread that was there before the filter.
other_thread = ThreadPoolExecutor(1)


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to attack."""

    home: str
    host: int
    address: int
    tcp_port: int
    udp_port: int
    abstract: str


def main(kind: str, way: str) -> None:
    """Run a worker; ``way`` is "sandbox", one layer of it alone, or "nothing"."""
    policy, load, prepare = KINDS[kind]

    def prepare_attack(limits: WorkerLimits) -> JobTable:
        if way == "landlock":
            assert sandbox.restrict_files(policy) > 0
        table = prepare(limits)
        other_thread.submit(int).result()
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(ORDINARY_USER)
            os.setuid(ORDINARY_USER)
        if way == "seccomp":
            libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            assert seccomp.allow_only(policy.calls)
        return {**table, "attack": attack}

    worker.serve(policy if way == "sandbox" else None, load=load, prepare=prepare_attack)


def attack(job: dict[str, Any], payload: bytes, limits: WorkerLimits) -> JobReply:
    target = msgspec.convert(job["target"], Target)
    results = {name: result_of(act, target) for name, act in ATTACKS.items()}
    in_thread = other_thread.submit(result_of, ATTACKS["read a key"], target).result()
    return {
        "value": {
            "attacks": {**results, "read a key in another thread": in_thread},
            "calls": {name: result_of(call, target) for name, call in CALLS.items()},
            "open": open_files(),
        }
    }, b""


def result_of(act: Callable[[Target], Any], target: Target) -> str:
    try:
        act(target)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "done"


def open_files() -> list[str]:
    """Every file descriptor, and what it is. /proc is out of reach, so each number is tried."""
    found: list[str] = []
    for number in range(64):
        try:
            mode = os.fstat(number).st_mode
        except OSError:
            continue
        kind = "pipe" if stat.S_ISFIFO(mode) else "device" if stat.S_ISCHR(mode) else "other"
        found.append(f"{number} {kind}")
    return found


def checked(result: int) -> None:
    if result == -1:
        raise OSError(ctypes.get_errno(), "refused")


def read(path: str) -> None:
    assert SECRET in Path(path).read_bytes()


def read_memory(target: Target) -> None:
    with Path(f"/proc/{target.host}/mem").open("rb", 0) as memory:
        memory.seek(target.address)
        assert memory.read(len(SECRET)) == SECRET


def read_memory_by_call(target: Target) -> None:
    copy = ctypes.create_string_buffer(len(SECRET))
    local = struct.pack("QQ", ctypes.addressof(copy), len(SECRET))
    remote = struct.pack("QQ", target.address, len(SECRET))
    checked(libc.process_vm_readv(target.host, local, 1, remote, 1, 0))
    assert copy.raw == SECRET


def seize(target: Target) -> None:
    # PTRACE_SEIZE: unlike PTRACE_ATTACH it does not stop the host.
    checked(libc.ptrace(0x4206, target.host, None, None))


def connect_tcp(target: Target) -> None:
    with closing(socket.socket()) as caller:
        caller.connect(("127.0.0.1", target.tcp_port))
        caller.sendall(SECRET)


def listen_tcp(target: Target) -> None:
    with closing(socket.socket()) as server:
        server.bind(("127.0.0.1", 0))
        server.listen()


def send_udp(target: Target) -> None:
    with closing(socket.socket(type=socket.SOCK_DGRAM)) as caller:
        caller.sendto(SECRET, ("127.0.0.1", target.udp_port))


def connect_unix(path: str) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as caller:
        caller.connect(path)


def write(target: Target) -> None:
    os.close(os.open(f"{target.home}/new", os.O_WRONLY | os.O_CREAT))


def overwrite_by_mmap(target: Target) -> None:
    number = os.open(f"{target.home}/victim", os.O_RDWR)
    with mmap.mmap(number, 0) as memory:
        memory[:6] = b"broken"
    os.close(number)


def fork(target: Target) -> None:
    if (child := os.fork()) == 0:
        os._exit(0)
    os.waitpid(child, 0)


def run_program(target: Target) -> None:
    # A program that does not exist: the worker has to go on.
    try:
        os.execv(f"{target.home}/missing", ["missing"])
    except FileNotFoundError:
        return


def own_pipe(target: Target) -> None:
    fcntl.fcntl(0, fcntl.F_SETOWN, target.host)


# What succeeds without a sandbox, except a fork: a limit of the system refuses that.
ATTACKS: dict[str, Callable[[Target], Any]] = {
    "read a key": lambda target: read(f"{target.home}/.ssh/id_ed25519"),
    "read keys.toml": lambda target: read(f"{target.home}/.limner/keys.toml"),
    "list the home": lambda target: list(Path(target.home).iterdir()),
    "read the host's environment": lambda target: read(f"/proc/{target.host}/environ"),
    "read the host's memory": read_memory,
    "read the host's memory by a call": read_memory_by_call,
    "trace the host": seize,
    "connect by TCP": connect_tcp,
    "listen on TCP": listen_tcp,
    "send by UDP": send_udp,
    "connect to a Unix socket": lambda target: connect_unix(f"{target.home}/socket"),
    "connect to an abstract socket": lambda target: connect_unix(target.abstract),
    "write a file": write,
    "overwrite a file by mmap": overwrite_by_mmap,
    "truncate a file": lambda target: os.truncate(f"{target.home}/victim", 3),
    "change rights": lambda target: Path(target.home, "victim").chmod(0o666),
    "link a file": lambda target: Path(target.home, "link").symlink_to("/"),
    "make a folder": lambda target: Path(target.home, "folder").mkdir(),
    "rename a file": lambda target: Path(target.home, "victim").rename(f"{target.home}/moved"),
    "delete a file": lambda target: Path(target.home, "doomed").unlink(),
    "fork": fork,
    "run a program": run_program,
    "signal the host": lambda target: os.kill(target.host, 0),
    "signal a thread of the host": lambda target: checked(libc.tgkill(target.host, target.host, 0)),
    "have the host signalled": own_pipe,
    "limit the host": lambda target: resource.prlimit(target.host, resource.RLIMIT_NOFILE),
    "slow the host down": lambda target: os.setpriority(os.PRIO_PROCESS, target.host, 5),
}

_COLUMN = {"x86_64": 0, "aarch64": 1}.get(platform.machine(), 0)


def _call(*numbers: int) -> Callable[[Target], None]:
    number = numbers[_COLUMN % len(numbers)]
    return lambda target: checked(libc.syscall(number, 0, 0, 0, 0, 0, 0))


# Calls that have a bad history. Some would fail anyway, so the error shows that the filter did it.
CALLS: dict[str, Callable[[Target], Any]] = {
    "add_key": _call(248, 217),
    "bpf": _call(321, 280),
    "clone3": _call(435),
    "io_uring_setup": _call(425),
    "keyctl": _call(250, 219),
    "memfd_create": _call(319, 279),
    "mount": _call(165, 40),
    "open_by_handle_at": _call(304, 265),
    "perf_event_open": _call(298, 241),
    "pidfd_open": _call(434),
    "process_madvise": _call(440),
    "ptrace": _call(101, 117),
    "setns": _call(308, 268),
    "shmget": _call(29, 194),
    "socketpair": _call(53, 199),
    "unshare": _call(272, 97),
    "userfaultfd": _call(323, 282),
}
