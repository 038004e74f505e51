"""The contract of every store of blobs: one copy, capped, checked, and nothing half-written.

The tests that take ``blobs`` hold for a folder and for a bucket of a real S3 server.
"""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import IS_LONG, SHARED_FIXTURE
from tests.storage.blob_places import BlobPlace, sent_by

from limner.errors import ImageTooLarge, InputInvalid, StorageError
from limner.storage.blobs import Blobs, BlobStore, BlobWriter, parse_handle


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / "blobs"


@pytest.fixture
def blobs(place: BlobPlace) -> BlobStore:
    return place.blobs


def files_in(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_an_unused_store_of_blobs_touches_nothing(blobs: BlobStore, tmp_path: Path) -> None:
    assert list(blobs.handles()) == []
    assert not blobs.has("0" * 64)
    assert list(tmp_path.iterdir()) == []


def test_bytes_come_back_by_their_handle(blobs: BlobStore) -> None:
    handle = blobs.add(b"pixels")
    assert handle == hashlib.sha256(b"pixels").hexdigest()
    assert blobs.read(handle) == b"pixels"
    assert blobs.location(handle) == f"{blobs.place}/{handle[:2]}/{handle}"
    assert blobs.has(handle)
    assert list(blobs.handles()) == [handle]
    assert blobs.is_whole(handle) is True


def test_only_the_owner_can_read_them(blobs: BlobStore) -> None:
    path = blobs.local_path(blobs.add(b"pixels"))
    modes = [one.stat().st_mode & 0o777 for one in (path, path.parent, path.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]
    assert path.read_bytes() == b"pixels"


def test_a_folder_gives_out_the_file_itself_and_stores_the_same_bytes_once(folder: Path) -> None:
    blobs = Blobs(folder)
    handle = blobs.add(b"pixels")
    assert blobs.local_path(handle) == folder / handle[:2] / handle
    first = blobs.local_path(handle).stat()
    assert blobs.add(b"pixels") == handle
    assert blobs.local_path(handle).stat().st_ino == first.st_ino
    assert files_in(folder) == [f"{handle[:2]}/{handle}"]


def test_the_same_bytes_are_kept_once(blobs: BlobStore, place: BlobPlace) -> None:
    handle = blobs.add(b"pixels")
    assert blobs.add(b"pixels") == handle
    assert place.copies() == {handle: 1}


def test_many_threads_keeping_the_same_bytes_end_with_one_copy(
    blobs: BlobStore, place: BlobPlace
) -> None:
    data = [b"same" * 1000, b"other" * 1000] * 20
    with ThreadPoolExecutor(20) as threads:
        handles = set(threads.map(blobs.add, data))
    assert sorted(handles) == sorted(hashlib.sha256(d).hexdigest() for d in set(data))
    for handle in handles:
        place.make_old(handle)
    blobs.remove_leftovers(before_s=time.time() - 60)
    assert place.copies() == dict.fromkeys(handles, 1)


def test_the_bytes_of_a_file_are_stored_under_their_handle(
    blobs: BlobStore, place: BlobPlace, tmp_path: Path
) -> None:
    file = tmp_path / "delivered"
    file.write_bytes(b"pixels")
    handle = hashlib.sha256(b"pixels").hexdigest()
    for _ in range(2):
        blobs.adopt(file, handle, lambda: iter([b"pix", b"els"]))
    file.unlink()
    assert (blobs.read(handle), place.copies()) == (b"pixels", {handle: 1})


@pytest.mark.parametrize("damage", [b"pix", b"", b"PIXELS"])
def test_a_damaged_copy_is_not_handed_out_and_good_bytes_replace_it(
    blobs: BlobStore, place: BlobPlace, damage: bytes
) -> None:
    handle = blobs.add(b"pixels")
    place.damage(handle, damage)
    assert blobs.is_whole(handle) is False
    for attempt in (blobs.read, blobs.checked_path):
        with pytest.raises(StorageError, match=f"picture {handle} are damaged") as caught:
            attempt(handle)
        assert caught.value.code == "PICTURE_DAMAGED"
    assert blobs.add(b"pixels") == handle
    assert blobs.read(handle) == b"pixels"
    assert blobs.checked_path(handle) == blobs.local_path(handle)


def test_a_picture_can_be_read_before_it_is_kept(blobs: BlobStore, place: BlobPlace) -> None:
    with blobs.writer(max_bytes=100) as writer:
        writer.write(b"pix")
        assert sent_by(writer) == b"pix"
        writer.write(memoryview(b"els"))
        assert (sent_by(writer), writer.size_bytes) == (b"pixels", 6)
        assert place.copies() == {}
        handle = writer.commit()
    assert blobs.read(handle) == b"pixels"


def test_what_is_not_committed_is_gone(blobs: BlobStore, place: BlobPlace) -> None:
    with blobs.writer(max_bytes=100) as writer:
        writer.write(b"pixels")
    writer.discard()
    assert place.copies() == {}
    for attempt in (lambda: writer.write(b"more"), lambda: sent_by(writer), writer.commit):
        with pytest.raises(StorageError, match="already committed or discarded"):
            attempt()
    assert place.copies() == {}


def test_bytes_past_the_cap_are_refused_before_they_are_written(
    blobs: BlobStore, place: BlobPlace
) -> None:
    with blobs.writer(max_bytes=6) as writer:
        writer.write(b"pixels")
        with pytest.raises(ImageTooLarge, match="larger than 6 bytes"):
            writer.write(b"!")
        assert sent_by(writer) == b"pixels"
    assert place.copies() == {}


def test_removed_bytes_are_missing(blobs: BlobStore, place: BlobPlace) -> None:
    handle = blobs.add(b"pixels")
    place.make_old(handle)
    removed = [blobs.remove_unless_stored_since(handle, since_s=time.time() - 60) for _ in "12"]
    assert removed == [6, 0]
    assert (blobs.has(handle), blobs.is_whole(handle), blobs.facts([handle])) == (False, None, {})
    for attempt in (blobs.read, blobs.checked_path):
        with pytest.raises(StorageError) as caught:
            attempt(handle)
        assert caught.value.code == "PICTURE_MISSING"


def test_stray_files_are_not_handles(folder: Path) -> None:
    blobs = Blobs(folder)
    handle = blobs.add(b"pixels")
    for stray in ("ab/readme", "zz/" + "f" * 64, f"00/{'f' * 64}", ".limner-1.tmp"):
        (folder / stray).parent.mkdir(exist_ok=True)
        (folder / stray).write_bytes(b"")
    assert list(blobs.handles()) == [handle]


WRONG = ["", "0" * 63, "0" * 65, "G" * 64, "A" * 64, "0" * 64 + "\n", "../" + "0" * 61]
WRONG += ["/etc/passwd", "0" * 32 + "/" + "0" * 31, "\u0660" * 64, "0" * 63 + "\0"]


@pytest.mark.parametrize("text", WRONG)
def test_a_hostile_handle_never_becomes_a_path(blobs: BlobStore, text: str) -> None:
    uses = (parse_handle, blobs.local_path, blobs.has, blobs.read, blobs.checked_path)
    more = (blobs.is_whole, blobs.location, lambda one: blobs.facts([one]))
    for use in (*uses, *more, lambda one: blobs.remove_unless_stored_since(one, since_s=0)):
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
    blobs: BlobStore, pieces: list[bytes]
) -> None:
    whole = b"".join(pieces)
    with blobs.writer(max_bytes=len(whole)) as writer:
        for piece in pieces:
            writer.write(piece)
        handle = writer.commit()
    assert (handle, blobs.read(handle)) == (hashlib.sha256(whole).hexdigest(), whole)


def test_discarding_waits_for_a_reader_in_another_thread(folder: Path) -> None:
    """A closed file's number may be reused, so a late reader would see another file's bytes."""
    blobs, data = Blobs(folder), os.urandom(4_000_000)

    def read(writer: BlobWriter, started: threading.Event) -> bytes | None:
        started.set()
        try:
            return sent_by(writer)
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
def test_kill_minus_nine_leaves_no_part_of_a_blob(folder: Path) -> None:
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
