"""A picture and a request -> the bytes for a model, made once and then stored."""

from __future__ import annotations

import asyncio
import io
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from PIL import Image
from tests.acceptance.hardship import full_disk
from tests.databases import rows

from limner.content import Picture
from limner.errors import ImageTooLarge, InputInvalid, ReachDenied, StorageError, UnrecognizedImage
from limner.imaging.fit import FIT_VERSION, FitRequest, Fitted, Region
from limner.imaging.pool import Imaging
from limner.pictures.take import MAX_PICTURE_BYTES, MAX_REMEMBERED_FITS, Pictures
from limner.storage.blobs import Blobs
from limner.storage.store import Store

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
SMALL = FitRequest(max_width=100, max_height=100)


def photo(width: int = 400, height: int = 300, *, kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.effect_mandelbrot((width, height), (-2, -1.5, 1, 1.5), 60).save(out, kind)
    return out.getvalue()


@pytest.fixture(scope="module")
def imaging() -> Iterator[Imaging]:
    pool = Imaging(workers=1)
    yield pool
    asyncio.run(pool.aclose())


@pytest.fixture
def pictures(tmp_path: Path, store: Store, imaging: Imaging) -> Pictures:
    blobs = Blobs(tmp_path / "blobs")
    return Pictures(blobs=blobs, store=store, imaging=imaging, clock=lambda: NOW)


async def take(pictures: Pictures, data: bytes) -> Picture:
    with pictures.sink() as sink:
        sink.write(data)
        return await pictures.take(sink, lineage={})


def blobs(tmp_path: Path) -> list[Path]:
    return [file for file in (tmp_path / "blobs").rglob("*") if file.is_file()]


async def test_a_fitted_picture_is_a_derivative_that_knows_its_parent(
    pictures: Pictures, tmp_path: Path, store: Store
) -> None:
    original = await take(pictures, photo())
    fitted, data = await pictures.give(original, SMALL)
    assert (fitted.width, fitted.height, fitted.untouched) == (100, 75, False)
    [(parent, mime, width, height, size, lineage)] = await rows(
        store,
        "SELECT parent, mime, width, height, size_bytes, lineage FROM pictures "
        "WHERE parent IS NOT NULL",
    )
    assert (parent, mime, width, height, size) == (original.handle, fitted.mime, 100, 75, len(data))
    assert json.loads(lineage) == {"made": "fit"}
    assert len(blobs(tmp_path)) == 2


async def test_a_stored_fit_is_not_made_again(pictures: Pictures, store: Store) -> None:
    original = await take(pictures, photo())
    first = await pictures.give(original, SMALL)
    # Without its master nothing can be made, so this result was stored.
    pictures.local_path(original).unlink()
    assert await pictures.give(original, SMALL) == first
    assert await rows(store, "SELECT count(*) FROM fits") == [(1,)]


@pytest.mark.slow
async def test_more_fits_than_can_be_remembered_are_all_found_again(
    pictures: Pictures, store: Store
) -> None:
    original = await take(pictures, photo(40, 30))
    count = MAX_REMEMBERED_FITS + 1
    requests = [FitRequest(max_width=20, max_bytes=500_000 + number) for number in range(count)]
    given = [await pictures.give(original, request) for request in requests]
    assert [await pictures.give(original, request) for request in requests] == given
    assert [await pictures.give(original, request) for request in requests] == given
    assert await rows(store, "SELECT count(*) FROM fits") == [(count,)]


@pytest.mark.parametrize(
    "other",
    [
        FitRequest(max_width=99, max_height=100),
        FitRequest(max_width=100, max_height=100, mode="fast"),
        FitRequest(max_width=100, max_height=100, formats=("image/png", "image/jpeg")),
        FitRequest(max_width=100, max_height=100, max_bytes=2_000),
        FitRequest(max_width=100, max_height=100, region=Region(x=0, y=0, width=200, height=150)),
    ],
)
async def test_another_request_is_another_fit(
    pictures: Pictures, store: Store, other: FitRequest
) -> None:
    original = await take(pictures, photo())
    first, _ = await pictures.give(original, SMALL)
    second, _ = await pictures.give(original, other)
    assert await rows(store, "SELECT count(*) FROM fits") == [(2,)]
    assert (await pictures.give(original, SMALL))[0] == first
    assert (await pictures.give(original, other))[0] == second


async def test_a_fit_of_another_version_of_the_engine_is_not_used(
    pictures: Pictures, store: Store
) -> None:
    original = await take(pictures, photo())
    await pictures.give(original, SMALL)
    assert (
        json.loads((await rows(store, "SELECT request FROM fits"))[0][0])["version"] == FIT_VERSION
    )


async def test_a_picture_that_already_fits_is_given_unchanged_and_not_recorded(
    pictures: Pictures, tmp_path: Path, store: Store
) -> None:
    data = photo(40, 30)
    original = await take(pictures, data)
    given = await pictures.give(original, FitRequest())
    assert given == (
        Fitted(
            mime="image/png",
            width=40,
            height=30,
            original_width=40,
            original_height=30,
            part=Region(x=0, y=0, width=40, height=30),
            animated=False,
            untouched=True,
        ),
        data,
    )
    assert await pictures.give(original, FitRequest()) == given
    assert len(blobs(tmp_path)) == 1
    assert await rows(store, "SELECT picture FROM fits") == []


async def test_a_fit_whose_bytes_are_missing_is_made_again(
    pictures: Pictures, tmp_path: Path
) -> None:
    original = await take(pictures, photo())
    first = await pictures.give(original, SMALL)
    for blob in blobs(tmp_path):
        if blob != pictures.local_path(original):
            blob.unlink()
    assert await pictures.give(original, SMALL) == first
    assert len(blobs(tmp_path)) == 2


async def test_a_full_disk_does_not_prevent_a_fit(pictures: Pictures) -> None:
    original = await take(pictures, photo())
    await pictures.give(original, FitRequest(max_width=10, max_height=10))
    with full_disk():
        fitted, data = await pictures.give(original, SMALL)
    assert (fitted.width, fitted.height) == (100, 75)
    assert Image.open(io.BytesIO(data)).size == (100, 75)


async def test_concurrent_requests_for_the_same_fit_get_the_same_result(
    pictures: Pictures, store: Store
) -> None:
    original = await take(pictures, photo())
    given = await asyncio.gather(*(pictures.give(original, SMALL) for _ in range(8)))
    assert given == [given[0]] * 8
    assert await rows(store, "SELECT count(*) FROM fits") == [(1,)]


async def test_a_picture_whose_bytes_are_missing_is_an_error(pictures: Pictures) -> None:
    original = await take(pictures, photo())
    pictures.local_path(original).unlink()
    with pytest.raises(StorageError) as caught:
        await pictures.give(original, SMALL)
    assert caught.value.code == "PICTURE_MISSING"


async def test_a_region_outside_the_picture_is_an_error_and_nothing_is_kept(
    pictures: Pictures, store: Store
) -> None:
    original = await take(pictures, photo())
    with pytest.raises(InputInvalid, match="400x300"):
        await pictures.give(original, FitRequest(region=Region(x=500, y=0, width=9, height=9)))
    assert await rows(store, "SELECT count(*) FROM fits") == [(0,)]


async def test_a_file_is_stored_and_does_not_change(
    pictures: Pictures, tmp_path: Path, store: Store
) -> None:
    data, path = photo(kind="JPEG"), tmp_path / "photo.png"
    path.write_bytes(data)
    before = path.stat()
    picture = await pictures.take_file(path)
    assert (picture.mime, picture.width, picture.height) == ("image/jpeg", 400, 300)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (data, before.st_mtime_ns)
    lineage = (await rows(store, "SELECT lineage FROM pictures"))[0][0]
    assert json.loads(lineage) == {"file": str(path)}


async def test_a_file_that_is_not_a_picture_leaves_nothing_behind(
    pictures: Pictures, tmp_path: Path
) -> None:
    (tmp_path / "notes.png").write_text("not a picture")
    with pytest.raises(UnrecognizedImage):
        await pictures.take_file(tmp_path / "notes.png")
    assert blobs(tmp_path) == []


async def test_a_file_larger_than_a_picture_may_be_is_not_read_to_its_end(
    pictures: Pictures, tmp_path: Path
) -> None:
    path = tmp_path / "huge.png"
    path.write_bytes(b"")
    os.truncate(path, MAX_PICTURE_BYTES * 1000)
    with pytest.raises(ImageTooLarge):
        await pictures.take_file(path)
    assert blobs(tmp_path) == []


async def test_a_missing_file_a_folder_and_a_link_are_errors(
    pictures: Pictures, tmp_path: Path
) -> None:
    (tmp_path / "link.png").symlink_to(tmp_path / "elsewhere.png")
    with pytest.raises(StorageError) as missing:
        await pictures.take_file(tmp_path / "missing.png")
    assert missing.value.code == "FILE_NOT_FOUND"
    with pytest.raises(StorageError, match=r"not a plain file|it is a folder"):
        await pictures.take_file(tmp_path)
    with pytest.raises(ReachDenied):
        await pictures.take_file(tmp_path / "link.png")
