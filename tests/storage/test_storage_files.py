"""Atomic, confined writes: names, collisions, overwriting, modes, failures and full disks."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import textwrap
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import SHARED_FIXTURE

from limner.errors import OutputExists, ReachDenied, StorageError
from limner.storage.files import check_new, open_plain, write_new, write_numbered


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path.resolve()


def everything_in(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def child(script: str, *arguments: str | Path, wrapper: tuple[str, ...] = ()) -> str:
    """The output of a Python program in a process of its own."""
    command = [*wrapper, sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_file_is_written_with_the_folders_it_needs(folder: Path) -> None:
    path = folder / "new" / "folders" / "pïc.png"
    assert write_new(path, b"pixels") == path
    assert everything_in(folder) == {"new/folders/pïc.png": b"pixels"}


@pytest.mark.parametrize("size", [0, 1, 3_000_000])
def test_a_file_is_copied_whole_from_another(folder: Path, size: int) -> None:
    data = os.urandom(size)
    (folder / "blob").write_bytes(data)
    write_new(folder / "out.png", folder / "blob")
    assert (folder / "out.png").read_bytes() == data


def test_a_file_is_copied_from_another_filesystem(folder: Path) -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == folder.stat().st_dev:
        pytest.skip("this machine has one filesystem")
    source = memory / f"limner-test-{os.getpid()}"
    source.write_bytes(b"pixels" * 100_000)
    try:
        write_new(folder / "out.png", source)
    finally:
        source.unlink()
    assert everything_in(folder) == {"out.png": b"pixels" * 100_000}


def test_a_missing_source_is_named_and_leaves_nothing(folder: Path) -> None:
    with pytest.raises(StorageError, match=r"Could not read '.*gone': it does not exist\."):
        write_new(folder / "out.png", folder / "gone")
    assert everything_in(folder) == {}


def test_an_existing_file_is_kept_unless_overwriting_was_asked_for(folder: Path) -> None:
    path = folder / "pic.png"
    write_new(path, b"first")
    with pytest.raises(OutputExists) as caught:
        write_new(path, b"second")
    assert caught.value.message == f"{str(path)!r} is already there."
    assert everything_in(folder) == {"pic.png": b"first"}
    write_new(path, b"second", overwrite=True)
    write_new(folder / "other.png", b"new", overwrite=True)
    assert everything_in(folder) == {"pic.png": b"second", "other.png": b"new"}


def make_folder(path: Path) -> None:
    path.mkdir()


def make_symlink(path: Path) -> None:
    (path.parent / "target").write_bytes(b"precious")
    path.symlink_to("target")


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path.relative_to(Path.cwd())))


@pytest.mark.parametrize("make", [make_folder, make_symlink, make_pipe, make_socket])
def test_only_plain_files_are_overwritten(
    folder: Path, make: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)  # the name of a socket must be short
    assert callable(make)
    make(folder / "pic.png")
    before = sorted(folder.iterdir())
    for attempt in (write_new, lambda path, _, overwrite: check_new(path, overwrite=overwrite)):
        with pytest.raises(OutputExists, match="not a plain file"):
            attempt(folder / "pic.png", b"pixels", overwrite=True)
    with pytest.raises(OutputExists, match="already there"):
        write_new(folder / "pic.png", b"pixels")
    assert sorted(folder.iterdir()) == before
    if make is make_symlink:
        assert (folder / "target").read_bytes() == b"precious"


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
@pytest.mark.parametrize("overwrite", [False, True])
def test_the_umask_is_respected(folder: Path, umask: int, mode: int, overwrite: bool) -> None:
    script = """
        import os, sys
        from pathlib import Path
        from limner.storage.files import write_new
        os.umask(int(sys.argv[2]))
        write_new(Path(sys.argv[1]), b"pixels", overwrite=sys.argv[3] == "True")
    """
    child(script, folder / "pic.png", str(umask), str(overwrite))
    assert (folder / "pic.png").stat().st_mode & 0o777 == mode


def test_taken_names_are_numbered(folder: Path) -> None:
    names = [write_numbered(folder / "g", "17", ".png", b"%d" % n).name for n in range(3)]
    assert names == ["17.png", "17-1.png", "17-2.png"]
    assert everything_in(folder) == {"g/17.png": b"0", "g/17-1.png": b"1", "g/17-2.png": b"2"}


@pytest.mark.parametrize("stem", ["../x", "a/b", ".."])
def test_a_stem_is_a_plain_name(folder: Path, stem: str) -> None:
    with pytest.raises(ValueError, match="not a plain file name"):
        write_numbered(folder, stem, "" if stem == ".." else ".png", b"pixels")


def test_limners_own_folder_may_lie_behind_a_symlink(folder: Path) -> None:
    (folder / "disk").mkdir()
    (folder / "home").symlink_to("disk")
    made = write_numbered(folder / "home" / "generated", "1", ".png", b"pixels")
    assert made == folder / "home" / "generated" / "1.png"
    assert (folder / "disk" / "generated" / "1.png").read_bytes() == b"pixels"


def test_twenty_threads_and_four_processes_never_share_a_name(folder: Path) -> None:
    script = """
        import sys
        from pathlib import Path
        from limner.storage.files import write_numbered
        for n in range(25):
            data = f"{sys.argv[2]} {n}".encode()
            made = write_numbered(Path(sys.argv[1]), "1700", ".png", data)
            print(made.name, data.decode(), sep="\\t")
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(folder)]
    processes = [
        subprocess.Popen([*command, f"process{n}"], stdout=subprocess.PIPE, text=True)
        for n in range(4)
    ]

    def write(n: int) -> tuple[str, bytes]:
        data = b"thread %d" % n
        return write_numbered(folder, "1700", ".png", data).name, data

    with ThreadPoolExecutor(20) as threads:
        made = list(threads.map(write, range(100)))
    for process in processes:
        lines = process.communicate(timeout=60)[0].splitlines()
        made += [(name, data.encode()) for name, data in (line.split("\t") for line in lines)]
    assert len(made) == 200
    assert Counter(name for name, _ in made).most_common(1)[0][1] == 1
    assert everything_in(folder) == dict(made)


FAIL_AT_FILE_SIZE = """
    import os, resource, sys
    from pathlib import Path
    from limner.errors import StorageError
    from limner.storage.files import write_new, write_numbered
    folder = Path(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    for source in (bytes(300_000), folder / "blob"):
        for write in (
            lambda: write_new(folder / "out" / "new.png", source),
            lambda: write_new(folder / "old.png", source, overwrite=True),
            lambda: write_numbered(folder / "out", "1", ".png", source),
        ):
            try:
                write()
            except StorageError as error:
                print(error.hint)
"""


def test_a_write_that_fails_half_way_leaves_nothing(folder: Path) -> None:
    (folder / "blob").write_bytes(bytes(300_000))
    (folder / "old.png").write_bytes(b"old")
    hints = child(FAIL_AT_FILE_SIZE, folder).splitlines()
    assert hints == ["Raise the limit on file sizes (ulimit -f)."] * 6
    assert everything_in(folder) == {"blob": bytes(300_000), "old.png": b"old"}


ON_A_SMALL_DISK = """
    import os, subprocess, sys
    from pathlib import Path
    from limner.errors import StorageError
    from limner.storage.blobs import Blobs
    from limner.storage.files import check_new, write_new
    from limner.storage.store import Store
    disk = Path(sys.argv[1])
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    subprocess.run(mount, check=True)
    def show(attempt):
        try:
            attempt()
        except StorageError as error:
            print(error.message.replace(str(disk), "DISK"), error.hint)
    show(lambda: write_new(disk / "a" / "x.png", bytes(200_000)))
    show(lambda: write_new(disk / "a" / "x.png", bytes(200_000), overwrite=True))
    show(lambda: Blobs(disk / "blobs").add(bytes(200_000)))
    print(sorted(str(p.relative_to(disk)) for p in disk.rglob("*")))
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    show(lambda: check_new(disk / "a" / "x.png"))
    show(lambda: check_new(disk / "b" / "c" / "x.png"))
    show(lambda: write_new(disk / "b" / "x.png", b"pixels"))
    store = Store(disk / "home" / "limner.db")
    import asyncio
    show(lambda: asyncio.run(store.read(lambda tx: None)))
    store.close()
"""


def test_a_full_and_a_read_only_disk_are_told_apart(folder: Path) -> None:
    private_mounts = ("unshare", "--map-root-user", "--mount")
    if (
        not shutil.which("unshare")
        or subprocess.run([*private_mounts, "true"], check=False).returncode
    ):
        pytest.skip("this machine lets nobody mount a disk of their own")
    lines = child(ON_A_SMALL_DISK, folder, wrapper=private_mounts).splitlines()
    full, read_only = (
        "Free some space and try again.",
        "Choose a folder on a disk that can be written.",
    )
    assert lines == [
        f"Could not write 'DISK/a/x.png': the disk is full. {full}",
        f"Could not write 'DISK/a/x.png': the disk is full. {full}",
        f"Could not write 'DISK/blobs': the disk is full. {full}",
        "['a', 'blobs']",
        f"Could not write 'DISK/a/x.png': the disk is read-only. {read_only}",
        f"Could not write 'DISK/b/c/x.png': the disk is read-only. {read_only}",
        f"Could not write 'DISK/b/x.png': the disk is read-only. {read_only}",
        f"Could not open the database 'DISK/home/limner.db': the disk is read-only. {read_only}",
    ]


@pytest.mark.parametrize("function", [check_new, lambda path: write_new(path, b"pixels")])
def test_a_file_in_place_of_a_folder_is_said(folder: Path, function: object) -> None:
    (folder / "file").write_bytes(b"")
    assert callable(function)
    for path in (folder / "file" / "x.png", folder / "file" / "deep" / "x.png"):
        with pytest.raises(StorageError, match="a part of the path is a file, not a folder"):
            function(path)
    assert everything_in(folder) == {"file": b""}


@pytest.mark.parametrize("function", [check_new, lambda path: write_new(path, b"pixels")])
def test_a_name_too_long_is_said(folder: Path, function: object) -> None:
    assert callable(function)
    with pytest.raises(StorageError, match="the name is too long"):
        function(folder / ("x" * 300 + ".png"))


def test_a_long_name_below_a_missing_folder_is_found_by_the_check(folder: Path) -> None:
    with pytest.raises(StorageError, match="the name is too long"):
        check_new(folder / "missing" / ("x" * 252 + ".png"))
    check_new(folder / "missing" / ("x" * 251 + ".png"))


def test_the_check_finds_a_taken_name_and_touches_nothing(folder: Path) -> None:
    check_new(folder / "missing" / "folders" / "pic.png")
    check_new(folder / "pic.png")
    assert list(folder.iterdir()) == []
    (folder / "pic.png").write_bytes(b"first")
    with pytest.raises(OutputExists):
        check_new(folder / "pic.png")
    check_new(folder / "pic.png", overwrite=True)
    assert everything_in(folder) == {"pic.png": b"first"}


def test_a_folder_that_became_a_symlink_is_refused_everywhere(folder: Path) -> None:
    (folder / "outside").mkdir()
    (folder / "outside" / "secret").write_bytes(b"secret")
    (folder / "link").symlink_to("outside")
    for attempt in (
        lambda: write_new(folder / "link" / "x.png", b"pixels"),
        lambda: write_new(folder / "link" / "deep" / "x.png", b"pixels", overwrite=True),
        lambda: check_new(folder / "link" / "x.png"),
    ):
        with pytest.raises(ReachDenied, match="has become a symlink") as caught:
            attempt()
        assert caught.value.code == "OUTPUT_PATH_DENIED"
    for path in (folder / "link" / "secret", folder / "link"):
        with pytest.raises(ReachDenied, match="has become a symlink") as caught:
            open_plain(path)
        assert caught.value.code == "PATH_DENIED"
    assert everything_in(folder / "outside") == {"secret": b"secret"}


@pytest.mark.parametrize("path", ["relative.png", "/tmp/../etc/x.png"])
def test_a_path_nobody_resolved_is_a_bug(path: str) -> None:
    with pytest.raises(ValueError, match="not a resolved path"):
        write_new(Path(path), b"pixels")


def test_a_plain_file_is_opened_and_nothing_else(folder: Path) -> None:
    (folder / "pic.png").write_bytes(b"pixels")
    os.mkfifo(folder / "pipe")
    with open_plain(folder / "pic.png") as file:
        assert file.read() == b"pixels"
    with pytest.raises(StorageError, match="it is not a plain file"):
        open_plain(folder / "pipe")
    for odd in (folder, Path(folder.anchor)):
        with pytest.raises(StorageError, match="it is a folder") as refused:
            open_plain(odd)
        assert refused.value.hint == "Add a file name to the path."
    with pytest.raises(StorageError) as caught:
        open_plain(folder / "gone.png")
    assert caught.value.code == "FILE_NOT_FOUND"


@given(data=st.binary(max_size=2000), name=st.text(min_size=1, max_size=30))
@settings(max_examples=50, suppress_health_check=SHARED_FIXTURE)
def test_property_any_bytes_under_any_legal_name_come_back(
    folder: Path, data: bytes, name: str
) -> None:
    try:
        legal = Path(name).name == name and not set("\0/") & set(name) and bool(os.fsencode(name))
    except UnicodeEncodeError:
        legal = False
    if not legal:
        return
    write_new(folder / name, data, overwrite=True)
    assert (folder / name).read_bytes() == data
