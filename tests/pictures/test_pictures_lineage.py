"""The ancestors and offspring of pictures."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator, Mapping
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
from limner.storage.store import Store, Transaction

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def imaging() -> Iterator[Imaging]:
    pool = Imaging(workers=1)
    yield pool
    asyncio.run(pool.aclose())


@pytest.fixture
def pictures(tmp_path: Path, store: Store, imaging: Imaging) -> Pictures:
    blobs = Blobs(tmp_path / "blobs")
    return Pictures(blobs=blobs, store=store, imaging=imaging, clock=lambda: NOW)


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


async def insert(store: Store, parents: Mapping[str, str | None]) -> None:
    """Write the rows of pictures, and then what they were made from."""

    def work(tx: Transaction) -> None:
        about = {"mime": "image/png", "width": 1, "height": 1, "size_bytes": 1}
        for handle in parents:
            tx.run("picture_add", handle=handle, parent=None, lineage="{}", created_ms=0, **about)
        for handle, parent in parents.items():
            statement = "UPDATE pictures SET parent = :parent WHERE handle = :handle"
            tx.raw(statement, {"handle": handle, "parent": parent})

    await store.write(work)


async def test_a_loop_of_ancestors_ends_the_search(pictures: Pictures, store: Store) -> None:
    """The database may have been repaired by hand."""
    await drawn(pictures, "red")  # the tables are there from here on
    one, two, three = ("1" * 64, "2" * 64, "3" * 64)
    await insert(store, {one: two, two: three, three: two})
    found = await pictures.family(one)
    assert found is not None
    assert handles(found.ancestors) == [two, three]
    assert found.master.picture.handle == three


async def test_the_nearest_of_very_many_ancestors_are_listed(
    pictures: Pictures, store: Store
) -> None:
    await drawn(pictures, "red")
    chain = [f"{number:064x}" for number in range(MAX_ANCESTORS + 50)]
    await insert(store, dict(zip(chain, [*chain[1:], None], strict=True)))
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
    pictures: Pictures, store: Store
) -> None:
    await drawn(pictures, "red")
    one, two = "1" * 64, "2" * 64
    await insert(store, {one: two, two: one})
    assert not await pictures.drawn_here([one])


async def test_a_drawn_picture_that_comes_back_as_a_file_is_recognized(
    pictures: Pictures, tmp_path: Path
) -> None:
    ours = await drawn(pictures, "red", provider="acme")
    file = tmp_path / "mine.webp"
    file.write_bytes(await pictures.original(ours))
    assert await pictures.drawn_here([(await pictures.take_file(file)).handle])
