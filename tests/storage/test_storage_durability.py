"""Bytes are on the disk before their name is, and the name is before the caller hears of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from limner.storage.blobs import Blobs
from limner.storage.files import write_new
from limner.storage.temp_file import make_folder

WATCHED: dict[Any, str] = {
    os.fsync: "fsync",
    os.link: "link",
    os.replace: "replace",
    os.mkdir: "mkdir",
}


def system_calls(work: Callable[[], object]) -> list[str]:
    """The watched calls that the work makes, in order."""
    seen: list[str] = []

    def see(frame: Any, event: str, arg: Any) -> None:
        if event == "c_call" and arg in WATCHED:
            seen.append(WATCHED[arg])

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return seen


def test_a_blob_is_synced_before_its_name_and_the_name_before_the_answer(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "blobs")
    calls = system_calls(lambda: blobs.add(b"x"))
    assert calls == ["mkdir", "fsync", "fsync", "mkdir", "fsync", "link", "fsync"]


def test_each_new_folder_is_synced_into_its_parent(tmp_path: Path) -> None:
    calls = system_calls(lambda: make_folder(tmp_path / "a" / "b" / "c"))
    # The first two attempts find no parent.
    assert calls == ["mkdir", "mkdir", "mkdir", "fsync", "mkdir", "fsync", "mkdir", "fsync"]
    assert system_calls(lambda: make_folder(tmp_path / "a" / "b" / "c")) == []


def test_a_file_is_synced_before_its_name_and_the_name_before_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.png"
    calls = system_calls(lambda: write_new(path, b"1"))
    assert calls == ["mkdir", "fsync", "fsync", "link", "fsync"]
    calls = system_calls(lambda: write_new(path, b"2", overwrite=True))
    assert calls == ["fsync", "link", "replace", "fsync"]
