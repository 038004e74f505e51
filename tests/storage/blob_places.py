"""The places that can store blobs, so that one suite holds for each: a folder, and a bucket."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from tests.servers.s3_server import BUCKET, S3Server

from limner.storage.blobs import Blobs, BlobStore


class Sender(Protocol):
    """A file that can be sent to a pipe."""

    def send_to(self, pipe: int) -> None:
        """Write the bytes to a pipe."""
        ...


def sent_by(file: Sender) -> bytes:
    """What the reader of a pipe gets from a file."""
    reader, writer = os.pipe()
    with ThreadPoolExecutor(1) as thread, os.fdopen(reader, "rb") as source:
        received = thread.submit(source.read)
        try:
            file.send_to(writer)
        finally:
            os.close(writer)
        return received.result()


class BlobPlace(Protocol):
    """A store of blobs, and what a test does to it behind its back."""

    @property
    def blobs(self) -> BlobStore:
        """The store."""
        ...

    def copies(self) -> dict[str, int]:
        """How many copies of each handle are stored."""
        ...

    def damage(self, handle: str, data: bytes) -> None:
        """Replace the stored bytes."""
        ...

    def make_old(self, handle: str, seconds: float = 86_400) -> None:
        """Let the bytes be stored this much earlier."""
        ...


class FolderPlace:
    """A folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self.blobs = Blobs(folder)
        self._folder = folder

    def copies(self) -> dict[str, int]:
        files = [path for path in self._folder.rglob("*") if path.is_file()]
        assert all(path.parent.name == path.name[:2] for path in files)
        return {path.name: 1 for path in files}

    def damage(self, handle: str, data: bytes) -> None:
        self.blobs.local_path(handle).write_bytes(data)

    def make_old(self, handle: str, seconds: float = 86_400) -> None:
        moment = time.time() - seconds
        os.utime(self.blobs.local_path(handle), (moment, moment))


class BucketPlace:
    """A folder in the bucket of a real server; the copies of this machine are elsewhere."""

    def __init__(self, server: S3Server, folder: Path, **more: Any) -> None:
        from limner.storage.object_blobs import ObjectBlobs

        name = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
        self._make: Callable[..., Any] = ObjectBlobs
        self.server, self._folder, self._address = server, folder, f"s3://{BUCKET}/{name}"
        self.blobs = self.elsewhere(folder.name, **more)
        self.library, self.objects = self.blobs._library, self.blobs._objects

    def elsewhere(self, name: str, **more: Any) -> Any:
        """The same bucket as another machine sees it, with no copies yet."""
        cache = self._folder.parent / name
        return self._make(self._address, cache=cache, env=self.server.env, **more)

    def keys(self) -> list[str]:
        batches = self.library.list(self.objects)
        return sorted(meta["path"] for batch in batches for meta in batch)

    def copies(self) -> dict[str, int]:
        handles = [key.split("/")[-2] for key in self.keys()]
        return {handle: handles.count(handle) for handle in handles}

    def damage(self, handle: str, data: bytes) -> None:
        for key in self.keys():
            if handle in key:
                self.library.put(self.objects, key, data)
        self.blobs._cache.local_path(handle).write_bytes(data)

    def make_old(self, handle: str, seconds: float = 86_400) -> None:
        """Give the objects the names of an earlier time."""
        then = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() - seconds))
        for key in self.keys():
            start, named, now = key.split("/")
            if named == handle and now > then:
                name = f"{then}-{now.partition('-')[2]}"
                self.library.copy(self.objects, key, f"{start}/{named}/{name}")
                self.library.delete(self.objects, key)
