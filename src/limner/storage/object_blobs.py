"""Bytes -> an object in a bucket under their sha256; a handle -> the bytes, through a local folder.

An object is ``ab/<sha256>/<time>-<random>``, with the time of its upload. It is written once, by
one process, and never overwritten. A process that stores bytes uploads them, or counts on an object
that is younger than an hour; the garbage collector deletes only objects that are older than two. So
it never deletes what a process counts on, and neither locks nor conditional requests are needed.
The decision record about object storage has the whole argument.
"""

from __future__ import annotations

import calendar
import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, cast

from limner import metrics
from limner.errors import MissingExtra, StorageError
from limner.settings.variables import Lookup
from limner.storage.blobs import (
    DATABASES,
    BlobFacts,
    Blobs,
    BlobWriter,
    damaged_blob,
    is_handle,
    missing_blob,
    parse_handle,
)
from limner.storage.bounded_folder import BoundedFolder

REUSE_S = 60 * 60
MIN_AGE_S = 2 * REUSE_S
MAX_CACHE_BYTES = 2 * 1024**3
IN_USE_S = 10 * 60
CHECK = "limner-check"

_TIME = "%Y%m%dT%H%M%SZ"
_UPLOADS = 5
_ONE_BY_ONE = 50
_REQUESTS_AT_ONCE = 8
_LISTED_AT_ONCE = 1000
# A blip is bridged. After a longer failure the caller keeps the bytes, and `jobs recover` goes on.
_RETRIES = {
    "max_retries": 3,
    "backoff": {
        "init_backoff": timedelta(seconds=0.2),
        "max_backoff": timedelta(seconds=2),
        "base": 2,
    },
    "retry_timeout": timedelta(seconds=60),
}
_REQUEST_S = 120
_ENDPOINTS = ("AWS_ENDPOINT_URL", "AZURE_STORAGE_ENDPOINT")
# The library reads every variable of the vendors from the environment of the process. These may
# also come from a program that gives limner its variables.
_VARIABLES = {
    "s3": (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_REGION",
        "AWS_ENDPOINT_URL",
    ),
    "gs": ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT_KEY"),
    "az": (
        "AZURE_STORAGE_ACCOUNT_NAME",
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_SAS_KEY",
        "AZURE_STORAGE_ENDPOINT",
    ),
}
_HINTS = {
    "s3": "Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL.",
    "gs": "Check GOOGLE_APPLICATION_CREDENTIALS.",
    "az": "Check AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY.",
}
# All that is shown of a vendor's answer: the rest may have a signed address in it.
_STATUS = re.compile(r"status code: (\d{3}[ \w]*)")
_CODE = re.compile(r"<Code>(\w{1,80})</Code>")


class _Copy(NamedTuple):
    """One object with the bytes of a handle."""

    key: str
    handle: str
    stored_at_s: float
    size_bytes: int


class _CountedRequests:
    """The library. Its requests are counted, each under the name of its function."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._library, name)
        return partial(self._send, name, found) if callable(found) else found

    def list(self, objects: Any, prefix: str | None = None) -> Iterator[Any]:
        """List the objects; one request is for a thousand."""
        pages = iter(self._library.list(objects, prefix, chunk_size=_LISTED_AT_ONCE))
        page = self._send("list", next, pages, ())
        while page:
            yield page
            if len(page) < _LISTED_AT_ONCE:
                return
            page = self._send("list", next, pages, ())

    def _send(self, kind: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        outcome = "failed"
        try:
            answer = function(*args, **kwargs)
            outcome = "ok"
        finally:
            metrics.BLOB_REQUESTS.add(kind=kind, outcome=outcome)
        return answer


class ObjectBlobs:
    """A folder in a bucket, and a bounded folder of this machine with copies of what was used."""

    min_age_s: float = MIN_AGE_S
    is_shared = True

    def __init__(
        self,
        address: str,
        *,
        cache: Path,
        env: Lookup,
        clock: Callable[[], float] = time.time,
        max_cache_bytes: int = MAX_CACHE_BYTES,
    ) -> None:
        self.place = address.rstrip("/")
        self._scheme = address.partition(":")[0]
        self._clock = clock
        self._cache = Blobs(cache)
        self._bound = BoundedFolder(cache, max_bytes=max_cache_bytes, in_use_s=IN_USE_S)
        self._library, self._objects = _connect(self.place, self._scheme, env)
        self._damaged: set[str] = set()

    def writer(self, *, max_bytes: int) -> BlobWriter:
        """A writer that keeps the bytes in the local folder and uploads them on ``commit``."""
        return self._cache.writer(max_bytes=max_bytes, upload=self._upload)

    def add(self, data: bytes) -> str:
        """Store ``data`` and return its handle."""
        handle = hashlib.sha256(data).hexdigest()
        self._upload(handle, lambda: data)
        with suppress(StorageError):  # they are stored, and can be fetched again
            self._cache.add(data)
        return handle

    def adopt(self, file: Path, handle: str, parts: Callable[[], Iterator[bytes]]) -> None:
        """Upload the bytes of a file under their handle; ``parts`` reads them."""
        self._upload(handle, lambda: b"".join(parts()))
        with suppress(StorageError):
            self._cache.adopt(file, handle, parts)

    def has(self, handle: str) -> bool:
        """Whether the bytes of a handle are in the bucket."""
        return bool(self._copies(handle))

    def read(self, handle: str) -> bytes:
        """The bytes of a handle, from this machine if they are here."""
        try:
            data = self._cache.read(handle)
        except StorageError:  # not here, or damaged here
            data = self._fetch(handle)
            with suppress(StorageError):
                self._keep(handle, data)
        else:
            self._touch(handle)
        return data

    def local_path(self, handle: str) -> Path:
        """The copy of this machine, which is fetched if it is not here."""
        if not self._touch(handle):
            self._keep(handle, self._fetch(handle))
        return self._cache.local_path(handle)

    def checked_path(self, handle: str) -> Path:
        """As `local_path`; a damaged copy is fetched again."""
        try:
            path = self._cache.checked_path(handle)
        except StorageError:
            self._keep(handle, self._fetch(handle))
            path = self._cache.local_path(handle)
        self._touch(handle)
        return path

    def is_whole(self, handle: str) -> bool | None:
        """Whether the bytes in the bucket match their handle; None if there are none."""
        try:
            self._fetch(handle)
        except StorageError as error:
            if error.code == "PICTURE_MISSING":
                return None
            if error.code == "PICTURE_DAMAGED":
                return False
            raise
        return True

    def facts(self, handles: Iterable[str]) -> dict[str, BlobFacts]:
        """What is known about those of the handles that are stored; many take one listing."""
        wanted = set(map(parse_handle, handles))
        if len(wanted) <= _ONE_BY_ONE:
            with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as threads:
                copies = [copy for found in threads.map(self._copies, wanted) for copy in found]
        else:
            copies = [copy for copy in self._list() if copy.handle in wanted]
        copies.sort(key=attrgetter("stored_at_s"))  # the newest one counts
        return {copy.handle: BlobFacts(copy.size_bytes, copy.stored_at_s) for copy in copies}

    def location(self, handle: str) -> str:
        """The address of the bytes, without the time of their upload."""
        return f"{self.place}/{_folder(parse_handle(handle))}"

    def remove_unless_stored_since(self, handle: str, *, since_s: float) -> int:
        """Delete the objects of a handle, unless one was uploaded since a time."""
        copies = self._copies(handle)
        if not copies or copies[0].stored_at_s >= since_s:
            return 0
        self._delete(copies)
        with suppress(OSError):
            self._cache.local_path(handle).unlink()
        return copies[0].size_bytes

    def remove_leftovers(self, *, before_s: float) -> list[int]:
        """Delete older copies of bytes that were uploaded again later; the size of each."""
        newest: dict[str, _Copy] = {}
        older: list[_Copy] = []
        for copy in sorted(self._list(), key=attrgetter("stored_at_s"), reverse=True):
            kept = newest.setdefault(copy.handle, copy)
            is_spare = kept is not copy and kept.size_bytes == copy.size_bytes
            # Both must be old: a process may count on the newer one for its row.
            if is_spare and kept.stored_at_s < before_s:
                older.append(copy)
        self._delete(older)
        return [copy.size_bytes for copy in older]

    def handles(self) -> Iterator[str]:
        """The handles of all bytes in the bucket, in no order."""
        yield from {copy.handle for copy in self._list()}

    def check(self) -> None:
        """Write a small object and read it; raises StorageError if that fails."""
        with self._errors("write to"):
            self._library.put(self._objects, CHECK, b"ok", use_multipart=False)
        with self._errors("read from"):
            self._library.get(self._objects, CHECK).bytes()

    def claim(self, database_id: str) -> None:
        """Note that a database counts on this folder of the bucket."""
        with self._errors("write to"):
            self._library.put(
                self._objects, f"{DATABASES}/{database_id}", b"-", use_multipart=False
            )

    def claimants(self) -> set[str]:
        """The databases that count on this folder of the bucket."""
        with self._errors("read from"):
            batches = list(self._library.list(self._objects, DATABASES))
        return {meta["path"].rpartition("/")[2] for batch in batches for meta in batch}

    def _upload(self, handle: str, read: Callable[[], bytes]) -> None:
        """Write a new object, unless there is a young one.

        An older one does not count: a garbage collector may be deleting it.
        """
        now_s = self._clock()
        data = read()
        for copy in self._copies(handle):
            is_whole = copy.size_bytes == len(data) and copy.key not in self._damaged
            if is_whole and copy.stored_at_s > now_s - REUSE_S:
                return
        stored = time.strftime(_TIME, time.gmtime(now_s))
        key = f"{_folder(handle)}/{stored}-{secrets.token_hex(4)}"
        for _ in range(_UPLOADS):
            with self._errors("write to"):
                self._library.put(self._objects, key, data, use_multipart=False)
                # Servers on top of a file system have been seen to lose an object that they
                # confirmed, if another one of the same folder was deleted at that moment.
                with suppress(FileNotFoundError):
                    if self._library.head(self._objects, key)["size"] == len(data):
                        self._bound.count(len(data))
                        return
        raise StorageError(
            f"{self.place} confirmed {len(data):,} bytes, and does not have them.",
            code="BLOBS_UNREACHABLE",
            hint="Check the disk and the log of the service.",
            retryable=True,
        )

    def _fetch(self, handle: str) -> bytes:
        # The garbage collector may delete an older copy between the listing and the request.
        for _ in range(2):
            is_damaged = False
            for copy in self._copies(handle):
                with self._errors("read from"), suppress(FileNotFoundError):
                    data = bytes(self._library.get(self._objects, copy.key).bytes())
                    if hashlib.sha256(data).hexdigest() == handle:
                        return data
                    is_damaged = True
                    self._damaged.add(copy.key)
            if is_damaged:
                raise damaged_blob(handle)
        raise missing_blob(handle)

    def _keep(self, handle: str, data: bytes) -> None:
        """Put bytes into the local folder."""
        self._cache.add(data)
        self._bound.count(len(data))

    def _touch(self, handle: str) -> bool:
        """Note that the local copy is used; False if there is none."""
        try:
            os.utime(self._cache.local_path(handle))
        except OSError:
            return False
        return True

    def _copies(self, handle: str) -> list[_Copy]:
        """The objects of a handle, the newest first."""
        found = self._list(_folder(parse_handle(handle)))
        return sorted(found, key=attrgetter("stored_at_s"), reverse=True)

    def _list(self, prefix: str | None = None) -> Iterator[_Copy]:
        with self._errors("read from"):
            for batch in self._library.list(self._objects, prefix):
                for meta in batch:
                    if (copy := _parse(meta["path"], meta["size"])) is not None:
                        yield copy

    def _delete(self, copies: Iterable[_Copy]) -> None:
        keys = [copy.key for copy in copies]
        with self._errors("delete from"), suppress(FileNotFoundError):
            if keys:
                self._library.delete(self._objects, keys)

    @contextmanager
    def _errors(self, doing: str) -> Generator[None]:
        """Turn the errors of the library into a StorageError that shows no secret."""
        kinds = self._library.exceptions
        try:
            yield
        except (kinds.BaseError, FileNotFoundError) as error:
            raise self._translated(error, doing) from None

    def _translated(self, error: Exception, doing: str) -> StorageError:
        text = str(error)
        status, code = (next(iter(found.findall(text)), "") for found in (_STATUS, _CODE))
        answer = ", ".join(filter(None, (status, code)))
        said = f": the service says {answer}" if answer else ""
        message = f"Could not {doing} {self.place}{said}."
        hint = _HINTS[self._scheme]
        kinds = self._library.exceptions
        denied = (kinds.PermissionDeniedError, kinds.UnauthenticatedError)
        if isinstance(error, denied) or status[:3] in ("401", "403"):
            return StorageError(message, code="BLOBS_DENIED", hint=hint)
        if isinstance(error, FileNotFoundError) or status[:3] == "404":
            return StorageError(
                message, code="NO_BUCKET", hint="Create the bucket, or correct LIMNER_BLOBS."
            )
        return StorageError(
            message,
            code="BLOBS_UNREACHABLE",
            hint=f"Check that the service runs and can be reached. {hint}",
            retryable=True,
        )


def _connect(place: str, scheme: str, env: Lookup) -> tuple[Any, Any]:
    """The library, and the folder in the bucket; this sends nothing.

    Raises:
        MissingExtra: the library is not installed.
        StorageError: a variable is missing or wrong (``BLOBS_DENIED``).
    """
    try:
        import obstore  # noqa: PLC0415 - few homes need it
        from obstore.store import from_url  # noqa: PLC0415
    except ImportError:
        raise MissingExtra(
            f"Pictures in {scheme}://… need a library that is not installed.",
            hint="Install it: pip install 'limner[team]'",
        ) from None
    given = {name.lower(): env.get(name, "") for name in _VARIABLES[scheme]}
    endpoints = (given.get(name.lower(), "") for name in _ENDPOINTS)
    options = {
        "timeout": timedelta(seconds=_REQUEST_S),
        # A server of the user's own may speak plain HTTP.
        "allow_http": any(one.startswith("http://") for one in endpoints),
    }
    try:
        store = from_url(
            place,
            config=cast("Any", {name: value for name, value in given.items() if value}),
            client_options=cast("Any", options),
            retry_config=cast("Any", _RETRIES),
        )
    except (obstore.exceptions.BaseError, OSError, ValueError):  # the text may have a key in it
        raise StorageError(
            f"The variables for {place} are incomplete or wrong.",
            code="BLOBS_DENIED",
            hint=_HINTS[scheme],
        ) from None
    return _CountedRequests(obstore), store


def _folder(handle: str) -> str:
    return f"{handle[:2]}/{handle}"


def _parse(key: str, size_bytes: int) -> _Copy | None:
    """The object of a key; None if it is none of ours."""
    start, handle, name = ("", "", *key.split("/"))[-3:]
    if start != handle[:2] or not is_handle(handle):
        return None
    try:
        stored_s = calendar.timegm(time.strptime(name.partition("-")[0], _TIME))
    except ValueError:
        return None
    return _Copy(key, handle, stored_s, size_bytes)
