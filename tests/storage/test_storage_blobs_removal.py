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

from limner.errors import StorageError
from limner.storage.blobs import Blobs


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "blobs")


def make_old(blobs: Blobs, handle: str, seconds: float = 1000) -> None:
    moment = time.time() - seconds
    os.utime(blobs.path(handle), (moment, moment))


def read_soon(blobs: Blobs, handle: str) -> bytes:
    """Bytes that another thread may have set aside to look at; it puts them back at once."""
    deadline_s = time.monotonic() + 30
    while True:
        try:
            return blobs.read(handle)
        except StorageError:
            assert time.monotonic() < deadline_s


def test_old_bytes_are_removed_and_young_ones_stay(blobs: Blobs) -> None:
    old, young = blobs.add(b"old"), blobs.add(b"young!")
    make_old(blobs, old)
    since_s = time.time() - 500
    assert blobs.remove_unless_stored_since(old, since_s=since_s) == 3
    assert blobs.remove_unless_stored_since(young, since_s=since_s) == 0
    assert blobs.remove_unless_stored_since("0" * 64, since_s=since_s) == 0
    assert list(blobs.handles()) == [young]
    assert blobs.read(young) == b"young!"


def test_bytes_that_are_taken_in_again_are_young_again(blobs: Blobs) -> None:
    handle = blobs.add(b"pixels")
    make_old(blobs, handle)
    since_s = time.time() - 500
    assert blobs.add(b"pixels") == handle
    stored_at_s = blobs.stored_at_s(handle)
    assert stored_at_s is not None
    assert stored_at_s > since_s
    assert blobs.remove_unless_stored_since(handle, since_s=since_s) == 0
    assert blobs.stored_at_s("0" * 64) is None


def test_bytes_that_are_taken_in_while_they_are_removed_are_there(blobs: Blobs) -> None:
    data = b"pixels" * 100
    handle = blobs.add(data)
    stop = threading.Event()

    def remove() -> None:
        while not stop.is_set():
            if blobs.stored_at_s(handle) is not None:
                blobs.remove_unless_stored_since(handle, since_s=time.time() - 500)

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        for _ in range(200):
            with suppress(FileNotFoundError):
                make_old(blobs, handle)
            assert blobs.add(data) == handle
            assert read_soon(blobs, handle) == data
    finally:
        stop.set()
        remover.join()


def test_bytes_that_are_removed_just_before_they_are_young_again_are_stored(blobs: Blobs) -> None:
    handle = blobs.add(b"pixels")
    make_old(blobs, handle)
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


def test_what_a_killed_process_left_is_removed_when_it_is_old(blobs: Blobs, tmp_path: Path) -> None:
    kept = blobs.add(b"kept")
    make_old(blobs, kept)
    old, young = (tmp_path / "blobs" / f".limner-{n:016x}.tmp" for n in (1, 2))
    for file in (old, young):
        file.write_bytes(b"half")
    moment = time.time() - 1000
    os.utime(old, (moment, moment))
    assert blobs.remove_leftovers(before_s=time.time() - 500) == [4]
    assert (old.exists(), young.exists(), blobs.has(kept)) == (False, True, True)
