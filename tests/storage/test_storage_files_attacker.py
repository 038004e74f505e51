"""Hostile neighbours: symlinks swapped in while we write and read, and systems that say no."""

from __future__ import annotations

import platform
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.fuzz import IS_LONG

from limner.errors import LimnerError
from limner.storage.files import open_plain, write_new
from limner.storage.reach import Reach

# A process that never stops exchanging a folder inside the root with a symlink that leads out.
SWAPPER = """
    import ctypes, os, sys
    root, outside = sys.argv[1:]
    os.chdir(root)
    os.symlink(outside, "trap")
    exchange, here, both_ways = ctypes.CDLL(None).renameat2, -100, 2
    print("ready", flush=True)
    while exchange(here, b"work", here, b"trap", both_ways) == 0:
        pass
"""


@contextmanager
def attacker(root: Path, outside: Path) -> Iterator[None]:
    command = [sys.executable, "-c", textwrap.dedent(SWAPPER), str(root), str(outside)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield
            assert process.poll() is None, "the attacker gave up"
        finally:
            process.kill()


def attacked_for(seconds: float, folder: Path) -> None:
    root, outside = folder / "root", folder / "outside"
    (root / "work" / "deep").mkdir(parents=True)
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "pic.png").write_bytes(b"secret")
    (root / "work" / "deep" / "pic.png").write_bytes(b"ours")
    reach = Reach(read=(root,), write=(root,))
    written = refused = read = 0
    end_s = time.monotonic() + seconds
    with attacker(root, outside):
        # A busy machine may need longer until the attack has met every case.
        while time.monotonic() < end_s or not (written and read and refused):
            for name in (f"work/{written}.png", f"work/new{written}/{written}.png"):
                try:
                    path = reach.resolve_write(name, cwd=root)
                    write_new(path, b"pixels", overwrite=written % 2 == 0)
                    written += 1
                except LimnerError:
                    refused += 1
            try:
                with open_plain(reach.resolve_read("work/deep/pic.png", cwd=root)) as file:
                    assert file.read() == b"ours"
                    read += 1
            except LimnerError:
                refused += 1
    escaped = {str(path.relative_to(outside)) for path in outside.rglob("*")}
    assert escaped == {"deep", "deep/pic.png"}
    assert not list(root.rglob(".limner-*"))


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the attack needs renameat2")


@pytest.mark.slow
@LINUX
def test_an_attacker_who_swaps_folders_for_symlinks_gets_nothing(tmp_path: Path) -> None:
    attacked_for(1, tmp_path.resolve())


@LINUX
@pytest.mark.slow
def test_an_attacker_gets_nothing_in_half_a_minute_either(tmp_path: Path) -> None:
    attacked_for(600 if IS_LONG else 30, tmp_path.resolve())


# A real kernel filter in place of a filesystem that knows no nameless files or no hard links.
FILTERED = """
    import ctypes, errno, os, struct, sys
    from pathlib import Path
    folder, linkat, openat, deny_links = Path(sys.argv[1]), *map(int, sys.argv[2:])
    ALLOW, ERRNO, LOAD, EQUAL, BITS, RETURN = 0x7FFF0000, 0x50000, 0x20, 0x15, 0x45, 0x06
    nameless = os.O_TMPFILE & ~os.O_DIRECTORY
    program = b"".join(struct.pack("HBBI", *step) for step in [
        (LOAD, 0, 0, 0),
        (EQUAL, 0, 1, linkat),
        (RETURN, 0, 0, ERRNO | errno.EPERM if deny_links else ALLOW),
        (EQUAL, 0, 3, openat),
        (LOAD, 0, 0, 32),
        (BITS, 0, 1, nameless),
        (RETURN, 0, 0, ERRNO | errno.EOPNOTSUPP),
        (RETURN, 0, 0, ALLOW),
    ])
    from limner.errors import OutputExists
    from limner.storage.blobs import Blobs
    from limner.storage.files import write_new, write_numbered
    buffer = ctypes.create_string_buffer(program)
    filter = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    NO_NEW_PRIVILEGES, SECCOMP, MODE_FILTER = 38, 22, 2
    if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(SECCOMP, MODE_FILTER, filter):
        sys.exit("no filter: " + os.strerror(ctypes.get_errno()))
    try:
        os.open(folder, os.O_TMPFILE | os.O_RDWR)
    except OSError as error:
        assert error.errno == errno.EOPNOTSUPP
    else:
        sys.exit("the filter does not filter")
    for n in range(2):
        write_numbered(folder / "numbered", "1", ".png", b"%d" % n)
    write_new(folder / "new.png", b"new")
    try:
        write_new(folder / "new.png", b"again")
    except OutputExists:
        write_new(folder / "new.png", b"over", overwrite=True)
    blobs = Blobs(folder / "blobs")
    assert blobs.add(b"pixels") == blobs.add(b"pixels")
    writer = blobs.writer(max_bytes=10)
    writer.write(b"gone")
    writer.discard()
"""
SYSTEM_CALLS = {"x86_64": (265, 257), "aarch64": (37, 56)}


@pytest.mark.skipif(platform.machine() not in SYSTEM_CALLS, reason="knows no system call numbers")
@pytest.mark.parametrize("deny_links", [0, 1], ids=["no nameless files", "no hard links either"])
def test_hostile_filesystems_without_modern_calls_still_get_whole_files(
    tmp_path: Path, deny_links: int
) -> None:
    numbers = [str(number) for number in SYSTEM_CALLS[platform.machine()]]
    command = [sys.executable, "-c", textwrap.dedent(FILTERED), str(tmp_path), *numbers]
    done = subprocess.run(
        [*command, str(deny_links)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = {
        str(file.relative_to(tmp_path)): file.read_bytes()
        for file in tmp_path.rglob("*")
        if file.is_file()
    }
    blob = next(name for name in found if name.startswith("blobs/"))
    assert found == {
        "numbered/1.png": b"0",
        "numbered/1-1.png": b"1",
        "new.png": b"over",
        blob: b"pixels",
    }
    # The umask decides, as it does everywhere else.
    assert (tmp_path / "new.png").stat().st_mode == (tmp_path / "numbered/1.png").stat().st_mode
    assert (tmp_path / blob).stat().st_mode & 0o777 == 0o600
