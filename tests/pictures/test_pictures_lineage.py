"""The ancestors and offspring of pictures."""

from __future__ import annotations

import asyncio
import io
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from limner.content import Picture
from limner.imaging.pool import Imaging
from limner.pictures.lineage import MAX_ANCESTORS, Lineage, PictureRecord
from limner.pictures.take import Pictures
from limner.storage.blobs import Blobs
from limner.storage.store import Store

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def imaging() -> Iterator[Imaging]:
    pool = Imaging(workers=1)
    yield pool
    asyncio.run(pool.aclose())


@pytest.fixture
async def pictures(tmp_path: Path, imaging: Imaging) -> AsyncIterator[Pictures]:
    store = Store(tmp_path / "limner.db")
    blobs = Blobs(tmp_path / "blobs")
    yield Pictures(blobs=blobs, store=store, imaging=imaging, clock=lambda: NOW)
    await store.aclose()


async def drawn(pictures: Pictures, colour: str, **lineage: Any) -> Picture:
    out = io.BytesIO()
    Image.new("RGB", (8, 6), colour).save(out, "WEBP")
    with pictures.sink() as sink:
        sink.write(out.getvalue())
        return await pictures.take(sink, lineage={"prompt": colour, **lineage})


def handles(records: tuple[PictureRecord, ...]) -> list[str]:
    return [record.picture.handle for record in records]


async def family_of(pictures: Pictures, picture: Picture) -> Lineage:
    family = await pictures.family(picture.handle)
    assert family is not None
    return family


async def test_an_edit_of_an_edit_has_its_sources_as_ancestors_and_is_their_offspring(
    pictures: Pictures,
) -> None:
    photo, logo = [await drawn(pictures, colour) for colour in ("red", "blue")]
    first = await drawn(pictures, "green", parents=[photo.handle])
    second = await drawn(pictures, "white", parents=[first.handle, logo.handle])
    png = await pictures.convert(second)

    found = await family_of(pictures, png)
    assert found.record == PictureRecord(
        picture=png,
        parent=second.handle,
        lineage={"made": "png"},
        created_ms=int(NOW.timestamp() * 1000),
    )
    assert handles(found.ancestors) == [
        second.handle,
        first.handle,
        logo.handle,
        photo.handle,
    ]
    assert (found.master.picture, found.offspring) == (second, ())
    middle = await family_of(pictures, second)
    assert middle.master is middle.record
    assert handles(middle.offspring) == [png.handle]
    root = await family_of(pictures, photo)
    assert (root.ancestors, handles(root.offspring)) == ((), [first.handle])
    assert handles((await family_of(pictures, logo)).offspring) == [second.handle]


async def test_an_unknown_picture_has_no_lineage(pictures: Pictures) -> None:
    assert await pictures.family("0" * 64) is None


def insert(folder: Path, handle: str, *, parent: str | None) -> None:
    with closing(sqlite3.connect(folder / "limner.db")) as database, database:
        database.execute("PRAGMA foreign_keys = OFF")
        database.execute(
            "INSERT INTO pictures VALUES (?, 'image/png', 1, 1, 1, ?, '{}', 0, NULL)",
            (handle, parent),
        )


async def test_a_loop_of_ancestors_ends_the_search(pictures: Pictures, tmp_path: Path) -> None:
    """The database may have been repaired by hand."""
    await drawn(pictures, "red")  # the tables are there from here on
    one, two, three = ("1" * 64, "2" * 64, "3" * 64)
    for child, parent in ((one, two), (two, three), (three, two)):
        insert(tmp_path, child, parent=parent)
    found = await pictures.family(one)
    assert found is not None
    assert handles(found.ancestors) == [two, three]
    assert found.master.picture.handle == three


async def test_the_nearest_of_very_many_ancestors_are_listed(
    pictures: Pictures, tmp_path: Path
) -> None:
    await drawn(pictures, "red")
    chain = [f"{number:064x}" for number in range(MAX_ANCESTORS + 50)]
    for child, parent in zip(chain, [*chain[1:], None], strict=True):
        insert(tmp_path, child, parent=parent)
    found = await pictures.family(chain[0])
    assert found is not None
    assert handles(found.ancestors) == chain[1 : MAX_ANCESTORS + 1]


async def test_drawn_here_is_true_for_every_form_of_a_picture_drawn_from_text(
    pictures: Pictures,
) -> None:
    ours = await drawn(pictures, "red", provider="acme", parents=[])
    form = await pictures.convert(ours)
    smaller = await pictures.convert(form, cover=(4, 3))
    for picture in (ours, form, smaller):
        assert await pictures.drawn_here([picture.handle])
    assert await pictures.drawn_here([])
    assert await pictures.drawn_here([ours.handle, smaller.handle])


async def test_a_picture_with_outside_sources_was_not_drawn_here(
    pictures: Pictures, tmp_path: Path
) -> None:
    ours = await drawn(pictures, "red", provider="acme")
    file = tmp_path / "photo.png"
    Image.new("RGB", (8, 6), "blue").save(file)
    others = [
        await pictures.take_file(file),
        await drawn(pictures, "green"),  # a prompt that no provider of ours was given
        await drawn(pictures, "white", provider="acme", parents=[ours.handle]),
    ]
    others.append(await pictures.convert(others[1]))
    for handle in [*(picture.handle for picture in others), "0" * 64]:
        assert not await pictures.drawn_here([handle])
        assert not await pictures.drawn_here([ours.handle, handle])


async def test_pictures_that_are_parents_of_each_other_were_not_drawn_here(
    pictures: Pictures, tmp_path: Path
) -> None:
    await drawn(pictures, "red")
    one, two = "1" * 64, "2" * 64
    for child, parent in ((one, two), (two, one)):
        insert(tmp_path, child, parent=parent)
    assert not await pictures.drawn_here([one])


async def test_a_drawn_picture_that_comes_back_as_a_file_is_recognized(
    pictures: Pictures, tmp_path: Path
) -> None:
    ours = await drawn(pictures, "red", provider="acme")
    file = tmp_path / "mine.webp"
    file.write_bytes(await pictures.original(ours))
    assert await pictures.drawn_here([(await pictures.take_file(file)).handle])
