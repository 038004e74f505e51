"""Readable paths -> a process that opens nothing else, writes nothing and uses no TCP: Landlock.

Called through ctypes: the numbers of its three system calls are the same on every processor.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
# The rights that the kernel controls by then, each from that version of its interface on. A right
# is controlled if it is listed here, and granted only by a rule.
_FILE_RIGHTS = {
    1: (1 << 13) - 1,  # execute, write, read, list, remove, and make each kind of file
    2: 1 << 13,  # move or link into another folder
    3: 1 << 14,  # truncate
    5: 1 << 15,  # ioctl on a device
}
_TCP_RIGHTS = {4: 0b11}  # bind and connect
_SCOPES = {6: 0b11}  # abstract Unix sockets and signals, outside the sandbox


def restrict_files(readable: Iterable[Path]) -> int:
    """Let this thread and its later threads read only these files and folders.

    Returns the version of the kernel's interface, which says how much it controls; 0 if the kernel
    has no Landlock, or refuses it. The caller has set no_new_privs.
    """
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    if version < 1:
        return 0
    rights = (_known(table, version) for table in (_FILE_RIGHTS, _TCP_RIGHTS, _SCOPES))
    # An older kernel accepts the fields that it does not know, because they are zero there.
    attributes = struct.pack("=QQQ", *rights)
    ruleset = libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        return 0
    try:
        for path in readable:
            _allow_reading(libc, ruleset, path)
        return 0 if libc.syscall(_RESTRICT_SELF, ruleset, 0) else version
    finally:
        os.close(ruleset)


def _known(rights: dict[int, int], version: int) -> int:
    return sum(right for since, right in rights.items() if version >= since)


def _allow_reading(libc: ctypes.CDLL, ruleset: int, path: Path) -> None:
    # A path that is missing here, such as /lib64, needs no rule.
    with contextlib.suppress(OSError):
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            rights = _READ_FILE | (_READ_DIR if path.is_dir() else 0)
            rule = struct.pack("=Qi", rights, folder)
            libc.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
        finally:
            os.close(folder)
