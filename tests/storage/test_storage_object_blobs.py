"""Blobs in the bucket of a real S3 server: copies of this machine, deletions, faults."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.servers.components import needs
from tests.servers.s3_server import BUCKET, KEY, SECRET, S3Server, needs_s3
from tests.storage.blob_places import BucketPlace

from limner.errors import LimnerError, MissingExtra, StorageError
from limner.storage.object_blobs import MIN_AGE_S, REUSE_S, ObjectBlobs

pytestmark = [needs_s3, needs("obstore")]
HANDLE = hashlib.sha256(b"pixels").hexdigest()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[S3Server]:
    """A server that a test may stop."""
    with S3Server(tmp_path / "s3") as server:
        yield server


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def refusal(work: Callable[[], object]) -> LimnerError:
    with pytest.raises(LimnerError) as caught:
        work()
    shown = f"{caught.value} {caught.value.hint} {caught.value.extras} {caught.value.__cause__}"
    assert SECRET not in shown
    return caught.value


def test_another_machine_fetches_the_bytes_once_and_checks_them(bucket: BucketPlace) -> None:
    bucket.blobs.add(b"pixels")
    there = bucket.elsewhere("there")
    assert there.local_path(HANDLE).read_bytes() == b"pixels"
    (key,) = bucket.keys()
    bucket.library.delete(bucket.objects, key)
    assert there.read(HANDLE) == b"pixels"
    assert there.checked_path(HANDLE) == there.local_path(HANDLE)
    assert (there.has(HANDLE), there.is_whole(HANDLE)) == (False, None)


def test_a_damaged_copy_of_this_machine_is_fetched_again(bucket: BucketPlace) -> None:
    blobs = bucket.blobs
    blobs.add(b"pixels")
    for use in (blobs.read, lambda handle: blobs.checked_path(handle).read_bytes()):
        blobs.local_path(HANDLE).write_bytes(b"rotten")
        assert use(HANDLE) == b"pixels"
        assert blobs.local_path(HANDLE).read_bytes() == b"pixels"


def test_a_damaged_object_is_not_given_out_and_never_copied(bucket: BucketPlace) -> None:
    bucket.blobs.add(b"pixels")
    (key,) = bucket.keys()
    bucket.library.put(bucket.objects, key, b"poison")
    there = bucket.elsewhere("there")
    for use in (there.read, there.local_path, there.checked_path):
        assert refusal(lambda use=use: use(HANDLE)).code == "PICTURE_DAMAGED"
    assert there.is_whole(HANDLE) is False
    assert files_in(bucket.blobs.local_path(HANDLE).parent.parent.parent / "there") == set()
    # The bytes come again: a second object is written, since the first one is known to be wrong.
    there.add(b"pixels")
    assert bucket.elsewhere("third").read(HANDLE) == b"pixels"


def test_the_copies_of_this_machine_stay_within_their_size(
    s3_server: S3Server, tmp_path: Path
) -> None:
    """The least recently used ones go, and those of the last minutes stay."""
    place = BucketPlace(s3_server, tmp_path / "copies", max_cache_bytes=10_000)
    cache = tmp_path / "copies"
    old = [place.blobs.add(bytes([number]) * 2_000) for number in range(4)]
    assert files_in(cache) == {*old}
    long_ago = time.time() - 3_600
    for number, handle in enumerate(old):
        os.utime(cache / handle[:2] / handle, (long_ago + number, long_ago + number))
    place.blobs.local_path(old[0])  # used now
    new = [place.blobs.add(bytes([10 + number]) * 2_000) for number in range(4)]
    assert files_in(cache) >= {old[0], *new}
    assert not files_in(cache) & {old[1], old[2]}
    assert place.blobs.read(old[1]) == bytes([1]) * 2_000


def test_bytes_are_uploaded_again_only_if_the_object_is_no_longer_young(
    s3_server: S3Server, tmp_path: Path
) -> None:
    now_s = [1_800_000_000.0]
    place = BucketPlace(s3_server, tmp_path / "copies", clock=lambda: now_s[0])
    place.blobs.add(b"pixels")
    now_s[0] += REUSE_S - 1
    place.blobs.add(b"pixels")
    assert place.copies() == {HANDLE: 1}
    now_s[0] += 2
    place.blobs.add(b"pixels")
    assert place.copies() == {HANDLE: 2}
    assert place.blobs.facts([HANDLE])[HANDLE] == (6, now_s[0])
    # A collector leaves both alone until the newer one is old; then one is enough.
    assert place.blobs.remove_leftovers(before_s=now_s[0]) == []
    assert place.blobs.remove_leftovers(before_s=now_s[0] + MIN_AGE_S) == [6]
    assert place.copies() == {HANDLE: 1}
    assert place.blobs.read(HANDLE) == b"pixels"


def test_a_write_that_reuses_an_object_is_always_safe_from_a_collector() -> None:
    """An hour is left for the clock, the upload and the row."""
    assert MIN_AGE_S - REUSE_S >= 3_600
    assert ObjectBlobs.min_age_s == MIN_AGE_S


def test_foreign_objects_are_left_alone(bucket: BucketPlace) -> None:
    bucket.blobs.add(b"pixels")
    bucket.make_old(HANDLE)
    strays = ["readme", f"00/{HANDLE}/20260101T000000Z-1", f"{HANDLE[:2]}/{HANDLE}/x", "a/b/c/d"]
    for key in strays:
        bucket.library.put(bucket.objects, key, b"?")
    assert list(bucket.blobs.handles()) == [HANDLE]
    since_s = time.time() - 60
    assert bucket.blobs.remove_unless_stored_since(HANDLE, since_s=since_s) == 6
    assert bucket.blobs.remove_leftovers(before_s=since_s) == []
    assert bucket.keys() == sorted(strays)


def test_wrong_keys_and_buckets_are_named_without_secrets(
    s3_server: S3Server, tmp_path: Path
) -> None:
    def opened(address: str, **more: str) -> ObjectBlobs:
        return ObjectBlobs(address, cache=tmp_path / "copies", env={**s3_server.env, **more})

    wrong = opened(f"s3://{BUCKET}", AWS_SECRET_ACCESS_KEY="another-secret-key")
    for use in (wrong.check, lambda: wrong.add(b"x"), lambda: list(wrong.handles())):
        error = refusal(use)
        assert (error.code, error.retryable) == ("BLOBS_DENIED", False)
        assert "AWS_SECRET_ACCESS_KEY" in str(error.hint)
    nowhere = opened("s3://no-such-bucket/x")
    for use in (nowhere.check, lambda: nowhere.add(b"x"), lambda: nowhere.read(HANDLE)):
        error = refusal(use)
        assert (error.code, error.message.partition(": ")[2]) == (
            "NO_BUCKET",
            "the service says 404 Not Found, NoSuchBucket.",
        )
    assert KEY not in str(refusal(lambda: opened("az://container/x")))


def test_without_the_library_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MissingExtra) as caught:
        ObjectBlobs("s3://bucket", cache=tmp_path, env={})
    assert caught.value.hint == "Install it: pip install 'limner[team]'"


@pytest.mark.slow
def test_a_server_that_is_down_is_an_error_and_nothing_is_lost(
    own_server: S3Server, tmp_path: Path
) -> None:
    place = BucketPlace(own_server, tmp_path / "copies")
    place.blobs.add(b"here")
    own_server.stop()
    for use in (place.blobs.check, lambda: place.blobs.add(b"pixels")):
        error = refusal(use)
        assert (error.code, error.retryable) == ("BLOBS_UNREACHABLE", True)
    assert place.blobs.read(hashlib.sha256(b"here").hexdigest()) == b"here"  # by the local copy
    with place.blobs.writer(max_bytes=10) as writer:
        writer.write(b"pixels")
        with pytest.raises(StorageError):
            writer.commit()
        own_server.start()
        assert writer.commit() == HANDLE
    assert place.copies() == {HANDLE: 1, hashlib.sha256(b"here").hexdigest(): 1}


STORE = """
    import json, sys
    from pathlib import Path
    from limner.storage.object_blobs import ObjectBlobs
    address, cache, env = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    blobs = ObjectBlobs(address, cache=cache, env=env)
    for number in range(int(sys.argv[4])):
        handle = blobs.add(b"pixels" * 1000)
        blobs.local_path(handle).unlink()
        assert blobs.read(handle) == b"pixels" * 1000, number
"""


@pytest.mark.slow
def test_eight_processes_store_one_blob_while_a_collector_deletes(bucket: BucketPlace) -> None:
    """Whatever a process has stored can be read, though older objects go at every moment."""
    data = b"pixels" * 1000
    handle = hashlib.sha256(data).hexdigest()
    words = [sys.executable, "-c", textwrap.dedent(STORE), bucket.blobs.place]
    env = json.dumps(bucket.server.env)
    folder = bucket.blobs.local_path(bucket.blobs.add(b"x")).parents[2]
    running = [
        subprocess.Popen([*words, folder / f"host-{number}", env, "15"], stderr=subprocess.PIPE)
        for number in range(8)
    ]
    removed = 0
    while any(process.poll() is None for process in running):
        # What an earlier collector would have found: unused bytes from yesterday.
        old = time.strftime("%Y%m%dT%H%M%SZ-0", time.gmtime(time.time() - 86_400))
        bucket.library.put(bucket.objects, f"{handle[:2]}/{handle}/{old}", data)
        since_s = time.time() - MIN_AGE_S
        removed += bucket.blobs.remove_unless_stored_since(handle, since_s=since_s)
        removed += sum(bucket.blobs.remove_leftovers(before_s=since_s))
    assert [process.communicate()[1].decode() for process in running] == [""] * 8
    bucket.make_old(handle)
    bucket.blobs.remove_leftovers(before_s=time.time() - 60)
    assert bucket.copies()[handle] == 1
    assert bucket.blobs.read(handle) == data
