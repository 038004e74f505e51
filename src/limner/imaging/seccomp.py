"""A table of system calls -> a process whose other calls the kernel refuses: a seccomp filter.

The filter is an allow-list. A refused call fails with EPERM and the process goes on, so that a
library that only tries a call still works. A call that is newer than this table fails with ENOSYS,
as on an older kernel, so that the C library uses the older call: `clone` instead of `clone3`.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator, Mapping

import msgspec

# The numbers of a call on x86-64 and on aarch64; None if the processor does not have it.
CallNumbers = tuple[int, int | None]

# Memory, threads, clocks, signals within the process, reading and writing open files. Some of them
# serve other versions of the C library than the one that was measured.
COMPUTING: Mapping[str, CallNumbers] = {
    "brk": (12, 214),
    "clock_getres": (229, 114),
    "clock_gettime": (228, 113),
    "clock_nanosleep": (230, 115),
    "clone": (56, 220),
    "close": (3, 57),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "fstat": (5, 80),
    "futex": (202, 98),
    "getcpu": (309, 168),
    "getpid": (39, 172),
    "getrandom": (318, 278),
    "getrlimit": (97, 163),
    "getrusage": (98, 165),
    "gettid": (186, 178),
    "gettimeofday": (96, 169),
    "lseek": (8, 62),
    "madvise": (28, 233),
    "membarrier": (324, 283),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "munmap": (11, 215),
    "nanosleep": (35, 101),
    "newfstatat": (262, 79),
    "poll": (7, None),
    "ppoll": (271, 73),
    "prlimit64": (302, 261),
    "pselect6": (270, 72),
    "read": (0, 63),
    "readv": (19, 65),
    "restart_syscall": (219, 128),
    "rseq": (334, 293),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sched_getaffinity": (204, 123),
    "sched_yield": (24, 124),
    "select": (23, None),
    "set_robust_list": (273, 99),
    "setrlimit": (160, 164),
    "sigaltstack": (131, 132),
    "sysinfo": (99, 179),
    "tgkill": (234, 131),
    "time": (201, None),
    "uname": (63, 160),
    "write": (1, 64),
    "writev": (20, 66),
}
# Reading files: a module that is loaded late, or a font.
READING: Mapping[str, CallNumbers] = {
    "fcntl": (72, 25),
    "getcwd": (79, 17),
    "getdents64": (217, 61),
    "lstat": (6, None),
    "open": (2, None),
    "openat": (257, 56),
    "pread64": (17, 67),
    "stat": (4, None),
    "statx": (332, 291),
}


# Waiting for several events, and protecting the memory of compiled code.
EVENTS: Mapping[str, CallNumbers] = {
    "epoll_ctl": (233, 21),
    "epoll_pwait": (281, 22),
    "epoll_wait": (232, None),
    "pkey_mprotect": (329, 288),
}


class Processor(msgspec.Struct, frozen=True, kw_only=True):
    """A processor: its place in `CallNumbers`, the kernel's name for it, the call that filters."""

    column: int
    audit: int
    seccomp: int


PROCESSORS: Mapping[str, Processor] = {
    "x86_64": Processor(column=0, audit=0xC000003E, seccomp=317),
    "aarch64": Processor(column=1, audit=0xC00000B7, seccomp=277),
}

_OWN_PID = -1
_ALL_BITS = 0xFFFFFFFF
_THREAD = 0x00010000
# A new namespace for mounts, cgroups, host name, IPC, users, processes, network.
_NAMESPACES = 0x00020000 | 0x02000000 | 0x7C000000
_FOR_WRITING = 0o3 | 0o100 | 0o1000  # write or both, create, truncate


class _ArgumentRule(msgspec.Struct, frozen=True):
    """A call passes only if these bits of that argument have one of these values."""

    argument: int
    values: tuple[int, ...]
    bits: int = _ALL_BITS


_ARGUMENT_RULES: Mapping[str, _ArgumentRule] = {
    # A thread, not a process.
    "clone": _ArgumentRule(0, (_THREAD,), bits=_THREAD | _NAMESPACES),
    # Duplicate a file descriptor, read and set its flags. F_SETOWN could send signals to others.
    "fcntl": _ArgumentRule(1, (0, 1, 2, 3, 4, 1030)),
    "open": _ArgumentRule(1, (0,), bits=_FOR_WRITING),
    "openat": _ArgumentRule(2, (0,), bits=_FOR_WRITING),
    "prlimit64": _ArgumentRule(0, (0,)),
    # `abort` needs it.
    "tgkill": _ArgumentRule(0, (_OWN_PID,)),
}

# Calls from this number on have the same number on every processor, and an older fallback.
FIRST_NEW_CALL = 424
_X32_CALLS = 0x40000000

_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_NUMBER, _PROCESSOR, _ARGUMENTS = 0, 4, 16  # places in the kernel's record of a call
_ALLOW, _KILL_PROCESS, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_SET_MODE_FILTER, _ALL_THREADS = 1, 1

_Instruction = tuple[int, int, int, int]


def allow_only(calls: Mapping[str, CallNumbers]) -> bool:
    """Refuse every other call, in all threads of this process; False if there is no such filter.

    The caller has set no_new_privs.
    """
    processor = PROCESSORS.get(os.uname().machine) if sys.platform == "linux" else None
    # A 32-bit Python on a 64-bit kernel has other numbers.
    if processor is None or sys.maxsize < 1 << 32:
        return False
    program = build_filter(calls, processor=processor, pid=os.getpid())
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    libc = ctypes.CDLL(None)
    return libc.syscall(processor.seccomp, _SET_MODE_FILTER, _ALL_THREADS, header) == 0


def build_filter(calls: Mapping[str, CallNumbers], *, processor: Processor, pid: int) -> bytes:
    """The filter's program, in the instructions of the kernel's packet filter."""
    return b"".join(struct.pack("HBBI", *line) for line in _program(calls, processor, pid))


def _program(
    calls: Mapping[str, CallNumbers], processor: Processor, pid: int
) -> Iterator[_Instruction]:
    yield _LOAD, 0, 0, _PROCESSOR
    yield _JUMP_IF_EQUAL, 1, 0, processor.audit
    yield _RETURN, 0, 0, _KILL_PROCESS
    yield _LOAD, 0, 0, _NUMBER
    yield _JUMP_IF_AT_LEAST, 0, 1, _X32_CALLS
    yield _RETURN, 0, 0, _KILL_PROCESS
    yield _JUMP_IF_AT_LEAST, 0, 1, FIRST_NEW_CALL
    yield _RETURN, 0, 0, _FAIL | _ENOSYS
    for name, numbers in calls.items():
        number = numbers[processor.column]
        if number is None:
            continue
        allowed = [*_check(_ARGUMENT_RULES.get(name), pid), (_RETURN, 0, 0, _ALLOW)]
        yield _JUMP_IF_EQUAL, 0, len(allowed), number
        yield from allowed
    yield _RETURN, 0, 0, _FAIL | _EPERM


def _check(rule: _ArgumentRule | None, pid: int) -> Iterator[_Instruction]:
    """Return EPERM unless the rule allows the argument. Its lower half says all: it is an int."""
    if rule is None:
        return
    yield _LOAD, 0, 0, _ARGUMENTS + 8 * rule.argument
    yield _AND, 0, 0, rule.bits
    values = [pid if value == _OWN_PID else value for value in rule.values]
    for position, value in enumerate(values):
        # Over the other values and the refusal.
        yield _JUMP_IF_EQUAL, len(values) - position, 0, value
    yield _RETURN, 0, 0, _FAIL | _EPERM
