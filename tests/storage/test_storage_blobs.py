"""Content-addressed bytes: one copy, capped, private, and nothing half-written."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import IS_LONG, SHARED_FIXTURE

from limner.errors import ImageTooLarge, InputInvalid, StorageError
from limner.storage.blobs import Blobs, BlobWriter, parse_handle


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / "blobs"


@pytest.fixture
def blobs(folder: Path) -> Blobs:
    return Blobs(folder)


def files_in(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_an_unused_store_of_blobs_touches_nothing(blobs: Blobs, tmp_path: Path) -> None:
    assert list(blobs.handles()) == []
    assert not blobs.has("0" * 64)
    assert list(tmp_path.iterdir()) == []


def test_bytes_come_back_by_their_handle(blobs: Blobs, folder: Path) -> None:
    handle = blobs.add(b"pixels")
    assert handle == hashlib.sha256(b"pixels").hexdigest()
    assert blobs.read(handle) == b"pixels"
    assert blobs.path(handle) == folder / handle[:2] / handle
    assert blobs.has(handle)
    assert list(blobs.handles()) == [handle]


def test_only_the_owner_can_read_them(blobs: Blobs, folder: Path) -> None:
    handle = blobs.add(b"pixels")
    modes = [path.stat().st_mode & 0o777 for path in (folder, folder / handle[:2])]
    assert modes == [0o700, 0o700]
    assert blobs.path(handle).stat().st_mode & 0o777 == 0o600


def test_the_same_bytes_are_kept_once(blobs: Blobs, folder: Path) -> None:
    handle = blobs.add(b"pixels")
    first = blobs.path(handle).stat()
    assert blobs.add(b"pixels") == handle
    assert blobs.path(handle).stat().st_ino == first.st_ino
    assert files_in(folder) == [f"{handle[:2]}/{handle}"]


def test_many_threads_keeping_the_same_bytes_keep_one_copy(blobs: Blobs, folder: Path) -> None:
    data = [b"same" * 1000, b"other" * 1000] * 20
    with ThreadPoolExecutor(20) as threads:
        handles = set(threads.map(blobs.add, data))
    assert sorted(handles) == sorted(hashlib.sha256(d).hexdigest() for d in set(data))
    assert files_in(folder) == sorted(f"{handle[:2]}/{handle}" for handle in handles)


@pytest.mark.parametrize("damage", [b"pix", b"", b"PIXELS"])
def test_a_damaged_copy_is_not_handed_out_and_good_bytes_replace_it(
    blobs: Blobs, damage: bytes
) -> None:
    handle = blobs.add(b"pixels")
    blobs.path(handle).write_bytes(damage)
    for attempt in (blobs.read, blobs.checked_path):
        with pytest.raises(StorageError, match=f"picture {handle} are damaged") as caught:
            attempt(handle)
        assert caught.value.code == "PICTURE_DAMAGED"
    assert blobs.add(b"pixels") == handle
    assert blobs.read(handle) == b"pixels"
    assert blobs.checked_path(handle) == blobs.path(handle)


def test_a_picture_can_be_read_before_it_is_kept(blobs: Blobs, folder: Path) -> None:
    with blobs.writer(max_bytes=100) as writer:
        writer.write(b"pix")
        assert writer.read_all() == b"pix"
        writer.write(memoryview(b"els"))
        assert (writer.read_all(), writer.size_bytes) == (b"pixels", 6)
        assert files_in(folder) == []
        handle = writer.commit()
    assert blobs.read(handle) == b"pixels"


def test_what_is_not_committed_is_gone(blobs: Blobs, folder: Path) -> None:
    with blobs.writer(max_bytes=100) as writer:
        writer.write(b"pixels")
    writer.discard()
    assert files_in(folder) == []
    for attempt in (lambda: writer.write(b"more"), writer.read_all, writer.commit):
        with pytest.raises(StorageError, match="already committed or discarded"):
            attempt()
    assert files_in(folder) == []


def test_bytes_past_the_cap_are_refused_before_they_are_written(blobs: Blobs, folder: Path) -> None:
    with blobs.writer(max_bytes=6) as writer:
        writer.write(b"pixels")
        with pytest.raises(ImageTooLarge, match="larger than 6 bytes"):
            writer.write(b"!")
        assert writer.read_all() == b"pixels"
    assert files_in(folder) == []


def test_removing_says_whether_there_was_something(blobs: Blobs) -> None:
    handle = blobs.add(b"pixels")
    assert blobs.remove(handle) is True
    assert blobs.remove(handle) is False
    for attempt in (blobs.read, blobs.checked_path):
        with pytest.raises(StorageError) as caught:
            attempt(handle)
        assert caught.value.code == "PICTURE_MISSING"


def test_stray_files_are_not_handles(blobs: Blobs, folder: Path) -> None:
    handle = blobs.add(b"pixels")
    for stray in ("ab/readme", "zz/" + "f" * 64, f"00/{'f' * 64}", ".limner-1.tmp"):
        (folder / stray).parent.mkdir(exist_ok=True)
        (folder / stray).write_bytes(b"")
    assert list(blobs.handles()) == [handle]


WRONG = ["", "0" * 63, "0" * 65, "G" * 64, "A" * 64, "0" * 64 + "\n", "../" + "0" * 61]
WRONG += ["/etc/passwd", "0" * 32 + "/" + "0" * 31, "\u0660" * 64, "0" * 63 + "\0"]


@pytest.mark.parametrize("text", WRONG)
def test_a_hostile_handle_never_becomes_a_path(blobs: Blobs, text: str) -> None:
    for use in (parse_handle, blobs.path, blobs.has, blobs.read, blobs.remove):
        with pytest.raises(InputInvalid) as caught:
            use(text)
        assert caught.value.field == "handle"


@given(st.text())
def test_property_only_sixty_four_lower_hexadecimal_digits_are_a_handle(text: str) -> None:
    legal = len(text) == 64 and set(text) <= set("0123456789abcdef")
    if legal:
        assert parse_handle(text) == text
    else:
        with pytest.raises(InputInvalid):
            parse_handle(text)


@given(st.lists(st.binary(max_size=5000), max_size=8))
@settings(max_examples=40, suppress_health_check=SHARED_FIXTURE)
def test_property_pieces_poured_in_are_the_whole_that_comes_out(
    blobs: Blobs, pieces: list[bytes]
) -> None:
    whole = b"".join(pieces)
    with blobs.writer(max_bytes=len(whole)) as writer:
        for piece in pieces:
            writer.write(piece)
        handle = writer.commit()
    assert (handle, blobs.read(handle)) == (hashlib.sha256(whole).hexdigest(), whole)


def test_discarding_waits_for_a_reader_in_another_thread(blobs: Blobs) -> None:
    """A closed file's number may be reused, so a late reader would see another file's bytes."""
    data = os.urandom(4_000_000)

    def read(writer: BlobWriter, started: threading.Event) -> bytes | None:
        started.set()
        try:
            return writer.read_all()
        except StorageError:
            return None

    with ThreadPoolExecutor(1) as thread:
        for _ in range(20):
            writer = blobs.writer(max_bytes=len(data))
            writer.write(data)
            started = threading.Event()
            seen = thread.submit(read, writer, started)
            started.wait()
            writer.discard()
            assert seen.result() in (data, None)


def test_a_write_that_fails_half_way_can_never_be_committed(folder: Path) -> None:
    script = """
        import resource, sys
        from pathlib import Path
        from limner.errors import StorageError
        from limner.storage.blobs import Blobs
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        with Blobs(Path(sys.argv[1])).writer(max_bytes=1_000_000) as writer:
            writer.write(bytes(60_000))
            for attempt in (lambda: writer.write(bytes(60_000)), writer.commit):
                try:
                    attempt()
                except StorageError as error:
                    print(error.hint)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines() == ["Raise the limit on file sizes (ulimit -f).", "None"]
    assert files_in(folder) == []


POUR_FOREVER = """
    import itertools, os, sys
    from pathlib import Path
    from limner.storage.blobs import Blobs
    blobs = Blobs(Path(sys.argv[1]))
    print("ready", flush=True)
    for n in itertools.count():
        with blobs.writer(max_bytes=10_000_000) as writer:
            for _ in range(20):
                writer.write(os.urandom(20_000))
            writer.commit()
"""


@pytest.mark.slow
def test_kill_minus_nine_leaves_no_part_of_a_blob(blobs: Blobs, folder: Path) -> None:
    chance = random.Random(7)
    kills = 300 if IS_LONG else 40
    for _ in range(kills):
        command = [sys.executable, "-c", textwrap.dedent(POUR_FOREVER), str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            try:
                process.wait(timeout=chance.random() * 0.1)
            except subprocess.TimeoutExpired:
                process.kill()
    names = files_in(folder)
    assert names
    for name in names:
        data = (folder / name).read_bytes()
        handle = hashlib.sha256(data).hexdigest()
        assert (name, len(data)) == (f"{handle[:2]}/{handle}", 400_000)
