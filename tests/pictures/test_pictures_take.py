"""Untrusted bytes -> a verified picture with a handle -> another format or size."""

from __future__ import annotations

import asyncio
import hashlib
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.acceptance.hardship import full_disk
from tests.databases import rows

from limner.content import Picture
from limner.errors import CorruptImage, ImageTooLarge, StorageError, UnrecognizedImage
from limner.imaging.formats import OutputFormat
from limner.imaging.pool import Imaging
from limner.pictures.take import MAX_PICTURE_BYTES, Pictures
from limner.storage.blobs import Blobs
from limner.storage.store import Store

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def encoded(width: int = 8, height: int = 6, *, kind: str = "PNG", colour: str = "red") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(out, kind)
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


async def take(pictures: Pictures, *pieces: bytes, **lineage: Any) -> Picture:
    with pictures.sink() as sink:
        for piece in pieces:
            sink.write(piece)
        return await pictures.take(sink, lineage=lineage)


async def recorded(store: Store) -> list[tuple[Any, ...]]:
    return await rows(
        store, "SELECT handle, mime, parent, lineage, created_ms FROM pictures ORDER BY rowid"
    )


def blobs(tmp_path: Path) -> set[str]:
    return {file.name for file in (tmp_path / "blobs").rglob("*") if file.is_file()}


def handle_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
async def test_a_picture_keeps_its_bytes_as_received_under_their_sha256(
    pictures: Pictures, store: Store, kind: str
) -> None:
    data = encoded(kind=kind)
    picture = await take(pictures, data[:10], data[10:], prompt="a fox", seed=None)
    assert picture == Picture(
        handle=handle_of(data),
        mime=f"image/{kind.lower()}",
        width=8,
        height=6,
        size_bytes=len(data),
    )
    assert pictures.local_path(picture).read_bytes() == data
    assert await recorded(store) == [
        (picture.handle, picture.mime, None, '{"prompt":"a fox","seed":null}', 1794744000000)
    ]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", UnrecognizedImage),
        (b"<html>not a picture</html>", UnrecognizedImage),
        (encoded(64, 64)[:-20], CorruptImage),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), CorruptImage),
    ],
    ids=["empty", "a web page", "cut short", "a header and nothing"],
)
async def test_bytes_that_are_not_a_picture_leave_nothing_behind(
    pictures: Pictures, tmp_path: Path, store: Store, data: bytes, error: type[Exception]
) -> None:
    await take(pictures, encoded())  # the tables and folders are there from here on
    before = blobs(tmp_path), await recorded(store)
    with pytest.raises(error):
        await take(pictures, data)
    assert (blobs(tmp_path), await recorded(store)) == before


async def test_more_bytes_than_a_picture_may_have_are_refused_as_they_arrive(
    pictures: Pictures, tmp_path: Path
) -> None:
    with pictures.sink() as sink, pytest.raises(ImageTooLarge):
        sink.write(bytes(MAX_PICTURE_BYTES + 1))
    assert blobs(tmp_path) == set()


async def test_the_same_bytes_are_one_picture_with_its_first_lineage(
    pictures: Pictures, tmp_path: Path, store: Store
) -> None:
    first = await take(pictures, encoded(), prompt="a fox")
    assert await take(pictures, encoded(), prompt="another fox") == first
    assert blobs(tmp_path) == {first.handle}
    assert [row[3] for row in await recorded(store)] == ['{"prompt":"a fox"}']


async def test_many_pictures_at_once_are_all_kept(pictures: Pictures, tmp_path: Path) -> None:
    datas = [encoded(width, 6) for width in range(1, 21)]
    taken = await asyncio.gather(*(take(pictures, data) for data in datas))
    assert [picture.handle for picture in taken] == [handle_of(data) for data in datas]
    assert blobs(tmp_path) == {handle_of(data) for data in datas}


async def test_a_png_that_fits_is_returned_unchanged(pictures: Pictures, store: Store) -> None:
    picture = await take(pictures, encoded())
    assert await pictures.convert(picture) is picture
    assert await pictures.convert(picture, cover=(8, 6)) is picture
    assert len(await recorded(store)) == 1


@pytest.mark.parametrize(
    ("kind", "cover", "made", "size"),
    [
        ("WEBP", None, "png", (8, 6)),
        ("WEBP", (8, 6), "png", (8, 6)),
        ("WEBP", (4, 4), "cover", (4, 4)),
        ("PNG", (16, 4), "cover", (16, 4)),
    ],
)
async def test_a_png_made_of_a_picture_names_its_parent(
    pictures: Pictures,
    store: Store,
    kind: str,
    cover: tuple[int, int] | None,
    made: str,
    size: tuple[int, int],
) -> None:
    master = await take(pictures, encoded(kind=kind))
    png = await pictures.convert(master, cover=cover)
    assert (png.mime, png.width, png.height) == ("image/png", *size)
    assert (await recorded(store))[1] == (
        png.handle,
        "image/png",
        master.handle,
        f'{{"made":"{made}"}}',
        1794744000000,
    )
    with Image.open(pictures.local_path(png)) as image:
        assert (image.format, image.size) == ("PNG", size)
    assert pictures.local_path(master).read_bytes() == encoded(kind=kind)


@pytest.mark.parametrize("to", ["jpeg", "webp"])
async def test_a_picture_in_another_format_names_its_parent_which_stays(
    pictures: Pictures, store: Store, to: OutputFormat
) -> None:
    master = await take(pictures, encoded())
    made = await pictures.convert(master, to=to)
    assert (made.mime, made.width, made.height) == (f"image/{to}", 8, 6)
    assert [row[2:4] for row in await recorded(store)] == [
        (None, "{}"),
        (master.handle, f'{{"made":"{to}"}}'),
    ]
    assert pictures.local_path(master).read_bytes() == encoded()
    assert await pictures.convert(made, to=to) is made


async def test_a_handle_recalls_its_picture(pictures: Pictures) -> None:
    picture = await take(pictures, encoded())
    assert await pictures.recall(picture.handle) == picture
    with pytest.raises(StorageError) as caught:
        await pictures.recall("0" * 64)
    assert caught.value.code == "NO_SUCH_PICTURE"


async def test_a_full_disk_stores_nothing_of_a_picture(
    pictures: Pictures, tmp_path: Path, store: Store
) -> None:
    await take(pictures, encoded())
    with full_disk(), pytest.raises(StorageError):
        await take(pictures, encoded(colour="blue"))
    assert blobs(tmp_path) == {handle_of(encoded())}
    assert len(await recorded(store)) == 1


async def test_a_picture_that_cannot_be_recorded_says_where_its_bytes_are(
    tmp_path: Path, imaging: Imaging
) -> None:
    """The bytes of a paid picture are worth having even if the database cannot be had."""
    database, shelf = tmp_path / "limner.db", Blobs(tmp_path / "blobs")
    store = Store(database)
    await store.open()
    await store.aclose()
    database.unlink()
    database.mkdir()  # a folder cannot be a database
    store = Store(database)
    pictures = Pictures(blobs=shelf, store=store, imaging=imaging, clock=lambda: NOW)
    with pytest.raises(StorageError) as caught:
        await take(pictures, encoded())
    await store.aclose()
    kept = Path(caught.value.extras["kept_at"])
    assert (kept.name, kept.read_bytes()) == (handle_of(encoded()), encoded())


async def test_a_home_gets_no_picture_before_its_database_and_is_not_called_damaged(
    tmp_path: Path, imaging: Imaging
) -> None:
    database = tmp_path / "limner.db"
    database.mkdir()
    store = Store(database)
    pictures = Pictures(
        blobs=Blobs(tmp_path / "blobs"), store=store, imaging=imaging, clock=lambda: NOW
    )
    with pytest.raises(StorageError) as caught:
        await take(pictures, encoded())
    assert ("kept_at" in caught.value.extras, blobs(tmp_path)) == (False, set())
    database.rmdir()
    picture = await take(pictures, encoded())
    await store.aclose()
    assert picture.handle == handle_of(encoded())
