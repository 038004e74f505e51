"""A size and a box -> parts that show all of a picture at full detail."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.catalogue.sizes import Size
from limner.imaging.fit import Region
from limner.pictures.fitting import MAX_TILES, OVERLAP_SHARE, READABLE_SHRINK, tiles

BOX = Size(1568, 1568)
lengths = st.integers(1, 40_000)
parts = st.builds(
    Region, x=st.integers(0, 500), y=st.integers(0, 500), width=lengths, height=lengths
)
boxes = st.builds(Size, st.integers(64, 4_000), st.integers(64, 4_000))


def region(x: int, y: int, width: int, height: int) -> Region:
    return Region(x=x, y=y, width=width, height=height)


def test_a_tall_screenshot_becomes_parts_of_its_own_width() -> None:
    assert tiles(region(0, 0, 1280, 9000), box=BOX) == (
        region(0, 0, 1280, 1370),
        region(0, 1271, 1280, 1370),
        region(0, 2543, 1280, 1370),
        region(0, 3815, 1280, 1370),
        region(0, 5086, 1280, 1370),
        region(0, 6358, 1280, 1370),
        region(0, 7630, 1280, 1370),
    )


def test_parts_come_in_reading_order() -> None:
    found = tiles(region(0, 0, 4000, 3000), box=BOX)
    assert [(tile.x, tile.y) for tile in found] == [
        (0, 0), (1300, 0), (2601, 0),
        (0, 1451), (1300, 1451), (2601, 1451),
    ]  # fmt: skip


def test_a_part_of_a_picture_is_tiled_where_it_lies() -> None:
    found = tiles(region(300, 200, 1000, 4000), box=BOX)
    assert [(tile.x, tile.y) for tile in found] == [(300, 200), (300, 1500), (300, 2801)]


@pytest.mark.parametrize("size", [(3136, 3136), (1, 3136), (1568, 100), (1, 1)])
def test_a_picture_that_stays_readable_in_one_piece_has_no_parts(size: tuple[int, int]) -> None:
    assert tiles(region(0, 0, *size), box=BOX) == ()


def test_one_pixel_more_and_it_has_parts() -> None:
    assert len(tiles(region(0, 0, 3137, 100), box=BOX)) == 3


@given(part=parts, box=boxes)
def test_parts_cover_every_pixel_within_the_picture_and_are_few(part: Region, box: Size) -> None:
    found = tiles(part, box=box)
    assert len(found) <= MAX_TILES
    if not found:
        assert part.width <= box.width * READABLE_SHRINK
        assert part.height <= box.height * READABLE_SHRINK
        return
    for first, length, start, end in (
        ("x", "width", part.x, part.x + part.width),
        ("y", "height", part.y, part.y + part.height),
    ):
        spans = sorted({(getattr(tile, first), getattr(tile, length)) for tile in found})
        assert spans[0][0] == start
        assert spans[-1][0] + spans[-1][1] == end
        for (here, size), (beyond, _) in itertools.pairwise(spans):
            # One pixel of the overlap may be lost to rounding.
            assert beyond <= here + size - size // OVERLAP_SHARE + 1


@given(part=parts, box=boxes)
def test_parts_are_at_full_detail_unless_there_would_be_too_many(part: Region, box: Size) -> None:
    found = tiles(part, box=box)
    wanted = -(-part.width // box.width) * -(-part.height // box.height)
    if found and wanted <= MAX_TILES // 4:
        assert max(tile.width for tile in found) <= box.width
        assert max(tile.height for tile in found) <= box.height
