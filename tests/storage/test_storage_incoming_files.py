"""Delivered bytes: on disk under the job's name from the first one, and never thrown away."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from tests.storage.blob_places import sent_by

from limner.errors import ImageTooLarge, StorageError
from limner.storage.blobs import Blobs
from limner.storage.incoming_files import Incoming, IncomingFile
from limner.storage.temp_file import temp_file_in

JOB = "job_0123456789abcdef"
DATA = bytes(range(256)) * 40
HANDLE = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "blobs")


@pytest.fixture
def incoming(tmp_path: Path, blobs: Blobs) -> Incoming:
    return Incoming(tmp_path / "incoming", blobs)


def opened(incoming: Incoming, *, room_bytes: int = 1_000, max_bytes: int = 99_999) -> IncomingFile:
    return incoming.open(JOB, room_bytes=room_bytes, max_bytes=max_bytes)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def open_files() -> dict[int, str]:
    """The files that this process has open, by descriptor."""
    found: dict[int, str] = {}
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the folder itself was open
            found[int(link.name)] = str(link.readlink())
    return found


def break_for_writing(path: Path) -> None:
    """Let every further write to an open file fail, while it can still be read."""
    read_only = os.open(path, os.O_RDONLY)
    (fd,) = [fd for fd, name in open_files().items() if name == str(path) and fd != read_only]
    os.dup2(read_only, fd)
    os.close(read_only)


def test_bytes_are_found_by_the_job_before_the_file_is_synced_or_closed(
    incoming: Incoming, tmp_path: Path
) -> None:
    with opened(incoming) as file:
        assert incoming.find(JOB) is None
        file.write(DATA[:100])
        assert incoming.find(JOB) == file.path == tmp_path / "incoming" / f"{JOB}.1"
        assert file.path.read_bytes() == DATA[:100]
        assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
        file.write(DATA[100:])
        assert (sent_by(file), file.size_bytes, file.handle) == (DATA, len(DATA), HANDLE)


def test_a_file_is_removed_at_the_end_unless_it_is_kept(incoming: Incoming) -> None:
    with opened(incoming) as file:
        file.write(DATA)
    assert incoming.find(JOB) is None
    with opened(incoming) as file:
        file.write(DATA)
        file.keep = True
    assert incoming.find(JOB) == file.path
    with incoming.reopen(JOB, file.path) as again:
        assert (sent_by(again), again.handle) == (DATA, HANDLE)
    incoming.remove(JOB)
    assert incoming.find(JOB) is None


def test_bytes_that_the_home_could_not_take_are_found_and_removed(
    incoming: Incoming, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "temp"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    kept, planted = elsewhere / f"{JOB}.1", elsewhere / f"{JOB}.2"
    kept.write_bytes(DATA)
    planted.symlink_to(tmp_path / "another file")
    (tmp_path / "another file").write_bytes(DATA * 2)
    assert incoming.find(JOB) == kept
    assert incoming.job_ids() == {JOB}
    incoming.remove(JOB)
    assert names(elsewhere) == [planted.name]


def test_without_room_on_the_disk_nothing_is_opened(incoming: Incoming, tmp_path: Path) -> None:
    said = "There is no room for a picture of up to 1099511627776 MB"
    with pytest.raises(StorageError, match=said) as caught:
        opened(incoming, room_bytes=1 << 60)
    assert caught.value.code == "NO_ROOM"
    assert names(tmp_path / "incoming") == []


def taken(folder: Path) -> int:
    """The room on the disk that open files in a folder have, in bytes."""
    ours = [fd for fd, name in open_files().items() if name.startswith(str(folder))]
    return sum(os.fstat(fd).st_blocks for fd in ours) * 512


@pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot set room aside")
def test_room_is_taken_until_the_bytes_are_synced(incoming: Incoming, tmp_path: Path) -> None:
    with opened(incoming, room_bytes=1 << 20) as file:
        assert taken(tmp_path) >= 1 << 20
        file.write(DATA)
        file.sync()
        assert taken(tmp_path) < 1 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot set room aside")
def test_each_call_in_flight_has_its_room_in_one_file(incoming: Incoming, tmp_path: Path) -> None:
    with opened(incoming, room_bytes=1 << 20) as first:
        with opened(incoming, room_bytes=2 << 20) as second:
            assert taken(tmp_path) >= 3 << 20
            ours = [name for name in open_files().values() if name.startswith(str(tmp_path))]
            assert len([name for name in ours if "(deleted)" in name]) == 1
            with pytest.raises(StorageError, match="There is no room"):
                opened(incoming, room_bytes=1 << 60)
            assert 3 << 20 <= taken(tmp_path) < 4 << 20
            second.sync()
            assert 1 << 20 <= taken(tmp_path) < 2 << 20
        first.sync()
        assert taken(tmp_path) < 1 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot set room aside")
def test_calls_have_room_together_for_which_one_file_is_too_short(
    incoming: Incoming, tmp_path: Path
) -> None:
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5 << 19, limits[1]))
    try:
        with opened(incoming, room_bytes=2 << 20), opened(incoming, room_bytes=2 << 20) as second:
            assert taken(tmp_path) >= 4 << 20
            second.sync()
            assert 2 << 20 <= taken(tmp_path) < 4 << 20
        assert taken(tmp_path) == 0
        with pytest.raises(StorageError, match="There is no room"):
            opened(incoming, room_bytes=3 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_discarded_file_is_removed_even_if_an_earlier_process_kept_it(
    incoming: Incoming,
) -> None:
    with opened(incoming) as file:
        file.write(DATA)
        file.keep = True
    with incoming.reopen(JOB, file.path) as again:
        again.discard()
        assert incoming.find(JOB) is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot shorten an open file")
def test_a_file_that_was_cut_short_behind_our_back_is_not_sent_as_if_it_were_whole(
    incoming: Incoming,
) -> None:
    with opened(incoming) as file:
        file.write(DATA)
        os.truncate(file.path, 100)
        with pytest.raises(StorageError, match=f"only 100 of {len(DATA)} bytes can be read"):
            sent_by(file)


def test_a_reader_that_is_gone_is_no_error_of_the_disk(incoming: Incoming) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with opened(incoming) as file:
        file.write(DATA)
        with pytest.raises(BrokenPipeError):
            file.send_to(writer)
    os.close(writer)


def test_what_the_kernel_does_not_move_is_read_and_written(
    incoming: Incoming, tmp_path: Path
) -> None:
    # It moves bytes to pipes alone.
    with opened(incoming) as file, (tmp_path / "copy").open("wb") as copy:
        file.write(DATA)
        file.send_to(copy.fileno())
    assert (tmp_path / "copy").read_bytes() == DATA


def test_too_many_bytes_are_refused(incoming: Incoming) -> None:
    with opened(incoming, max_bytes=10) as file:
        file.write(DATA[:10])
        for more in (b"x", DATA[:10]):
            with pytest.raises(ImageTooLarge):
                file.write(more)
        assert sent_by(file) == DATA[:10]


@pytest.mark.skipif(sys.platform != "linux", reason="looks at descriptors in /proc")
def test_a_file_that_cannot_be_written_any_more_goes_on_in_another_one(
    incoming: Incoming, tmp_path: Path
) -> None:
    with opened(incoming) as file:
        file.write(DATA[:100])
        first = file.path
        break_for_writing(first)
        file.write(DATA[100:])
        file.sync()
        assert file.path == tmp_path / "incoming" / f"{JOB}.2"
        assert (file.path.read_bytes(), file.handle) == (DATA, HANDLE)
        assert not first.exists()


def test_a_commit_shares_the_bytes_with_the_blob(incoming: Incoming, blobs: Blobs) -> None:
    with opened(incoming) as file:
        file.write(DATA)
        assert file.commit() == HANDLE
        assert blobs.local_path(HANDLE).samefile(file.path)
        assert file.commit() == HANDLE  # as after a crash between the blob and the settlement
    assert blobs.read(HANDLE) == DATA


def test_a_commit_copies_the_bytes_if_they_cannot_be_linked(
    incoming: Incoming, blobs: Blobs, tmp_path: Path
) -> None:
    with opened(incoming) as file:
        file.write(DATA)
        file.path.unlink()
        assert file.commit() == HANDLE
    assert blobs.read(HANDLE) == DATA
    assert names(tmp_path / "blobs") == [HANDLE[:2]]


def test_a_commit_puts_its_file_in_place_of_a_damaged_blob(
    incoming: Incoming, blobs: Blobs, tmp_path: Path
) -> None:
    path = blobs.local_path(HANDLE)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" * len(DATA))
    with opened(incoming) as file:
        file.write(DATA)
        file.commit()
        assert file.path.samefile(path)
    assert blobs.read(HANDLE) == DATA
    assert names(tmp_path / "blobs") == [HANDLE[:2]]


def test_the_file_of_a_live_process_is_not_removed(incoming: Incoming) -> None:
    with opened(incoming) as file:
        file.write(DATA)
        assert (incoming.job_ids(), incoming.remove_concluded([JOB])) == ({JOB}, [])
        file.keep = True
    assert incoming.remove_concluded([JOB]) == [len(DATA)]
    assert incoming.job_ids() == set()


@pytest.mark.skipif(sys.platform != "linux", reason="files without a name")
@pytest.mark.parametrize("over", [False, True])
def test_a_file_that_the_system_refuses_to_name_is_copied(tmp_path: Path, over: bool) -> None:
    with temp_file_in(tmp_path) as file:
        # Linux gives no name to a file that was opened with O_EXCL.
        nameless = os.open(tmp_path, os.O_TMPFILE | os.O_EXCL | os.O_RDWR, 0o600)
        os.dup2(nameless, file.fd)
        os.close(nameless)
        file.fill(DATA)
        (file.publish_over if over else file.publish_new)("picture")
    assert (names(tmp_path), (tmp_path / "picture").read_bytes()) == (["picture"], DATA)
