"""Removing bytes that another process may be taking in at the same moment."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

import pytest
from tests.storage.blob_places import BlobPlace, FolderPlace

from limner.errors import StorageError
from limner.storage.blobs import BlobStore


@pytest.fixture
def blobs(place: BlobPlace) -> BlobStore:
    return place.blobs


@pytest.fixture
def folder(tmp_path: Path) -> FolderPlace:
    return FolderPlace(tmp_path / "blobs")


def read_soon(blobs: BlobStore, handle: str) -> bytes:
    """Bytes that another thread may have set aside to look at; it puts them back at once."""
    deadline_s = time.monotonic() + 30
    while True:
        try:
            return blobs.read(handle)
        except StorageError:
            assert time.monotonic() < deadline_s


def test_old_bytes_are_removed_and_young_ones_stay(blobs: BlobStore, place: BlobPlace) -> None:
    old, young = blobs.add(b"old"), blobs.add(b"young!")
    place.make_old(old)
    since_s = time.time() - 500
    assert blobs.remove_unless_stored_since(old, since_s=since_s) == 3
    assert blobs.remove_unless_stored_since(young, since_s=since_s) == 0
    assert blobs.remove_unless_stored_since("0" * 64, since_s=since_s) == 0
    assert list(blobs.handles()) == [young]
    assert blobs.read(young) == b"young!"


def test_bytes_that_are_taken_in_again_are_young_again(blobs: BlobStore, place: BlobPlace) -> None:
    handle = blobs.add(b"pixels")
    place.make_old(handle)
    since_s = time.time() - 500
    assert blobs.facts([handle])[handle].stored_at_s < since_s
    assert blobs.add(b"pixels") == handle
    found = blobs.facts([handle, "0" * 64])
    assert (list(found), found[handle].size_bytes) == ([handle], 6)
    assert found[handle].stored_at_s > since_s
    assert blobs.remove_unless_stored_since(handle, since_s=since_s) == 0


def test_the_facts_of_many_blobs_are_those_of_each(blobs: BlobStore) -> None:
    handles = [blobs.add(b"x" * size) for size in range(60)]
    found = blobs.facts([*handles, "0" * 64])
    assert {handle: facts.size_bytes for handle, facts in found.items()} == {
        handle: size for size, handle in enumerate(handles)
    }
    assert found[handles[7]] == blobs.facts(handles[7:8])[handles[7]]


def test_bytes_that_are_taken_in_while_they_are_removed_are_there(
    blobs: BlobStore, place: BlobPlace
) -> None:
    data = b"pixels" * 100
    handle = blobs.add(data)
    stop = threading.Event()

    def remove() -> None:
        while not stop.is_set():
            if blobs.facts([handle]):
                blobs.remove_unless_stored_since(handle, since_s=time.time() - 500)

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        for _ in range(100):
            with suppress(FileNotFoundError):
                place.make_old(handle)
            assert blobs.add(data) == handle
            assert read_soon(blobs, handle) == data
    finally:
        stop.set()
        remover.join()


def test_bytes_that_are_removed_just_before_they_are_young_again_are_stored(
    folder: FolderPlace,
) -> None:
    blobs = folder.blobs
    handle = blobs.add(b"pixels")
    folder.make_old(handle)
    removed: list[int] = []

    def remove_first(_: FrameType, event: str, function: object) -> None:
        if event == "c_call" and function is os.utime and not removed:
            removed.append(blobs.remove_unless_stored_since(handle, since_s=time.time() - 500))

    sys.setprofile(remove_first)
    try:
        assert blobs.add(b"pixels") == handle
    finally:
        sys.setprofile(None)
    assert removed == [6]
    assert blobs.read(handle) == b"pixels"


def test_what_a_killed_process_left_is_removed_when_it_is_old(
    folder: FolderPlace, tmp_path: Path
) -> None:
    blobs = folder.blobs
    kept = blobs.add(b"kept")
    folder.make_old(kept)
    old, young = (tmp_path / "blobs" / f".limner-{n:016x}.tmp" for n in (1, 2))
    for file in (old, young):
        file.write_bytes(b"half")
    moment = time.time() - 1000
    os.utime(old, (moment, moment))
    assert blobs.remove_leftovers(before_s=time.time() - 500) == [4]
    assert (old.exists(), young.exists(), blobs.has(kept)) == (False, True, True)
