"""Two pictures -> the areas that differ, in a real worker; anti-aliasing is none."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import pytest
from benchmarks.screen_pairs import HEIGHT, WIDTH, Change, ScreenPair, make_pairs
from PIL import Image, ImageDraw

from limner.imaging.comparison import ChangedArea, PixelComparison
from limner.imaging.evidence import Box
from limner.imaging.fit import Region
from limner.imaging.pool import Imaging

Draw = Callable[[ImageDraw.ImageDraw], object]


def drawn(*draws: Draw, mode: str = "RGB", paper: str = "white") -> bytes:
    picture = Image.new(mode, (200, 120), paper)
    for draw in draws:
        draw(ImageDraw.Draw(picture))
    out = BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def square(x: int, y: int, color: str) -> Draw:
    return lambda draw: draw.rectangle((x, y, x + 19, y + 19), fill=color)


async def compared(before: bytes, after: bytes, *ignore: Region) -> tuple[ChangedArea, ...]:
    async with Imaging(workers=1) as imaging:
        return (await imaging.compare(before, after, ignore=ignore)).areas


def at(x: int, y: int, width: int = 20, height: int = 20) -> Box:
    return Box(x=x, y=y, width=width, height=height)


async def test_equal_pictures_have_no_areas() -> None:
    assert await compared(drawn(square(20, 20, "red")), drawn(square(20, 20, "red"))) == ()


async def test_a_new_colour_names_both_colours() -> None:
    assert await compared(drawn(square(20, 20, "#2563eb")), drawn(square(20, 20, "#16a34a"))) == (
        ChangedArea(box=at(20, 20), kind="colour", pixels=400, before="#2563eb", after="#16a34a"),
    )


async def test_a_near_shade_of_a_flat_area_is_a_new_colour_too() -> None:
    (area,) = await compared(drawn(square(20, 20, "#2563eb")), drawn(square(20, 20, "#1d4ed8")))
    assert (area.kind, area.before, area.after) == ("colour", "#2563eb", "#1d4ed8")


async def test_a_thing_that_appears_or_vanishes_is_added_or_removed() -> None:
    empty, full = drawn(), drawn(square(20, 20, "black"))
    assert await compared(empty, full) == (ChangedArea(box=at(20, 20), kind="added", pixels=400),)
    assert await compared(full, empty) == (ChangedArea(box=at(20, 20), kind="removed", pixels=400),)


@pytest.mark.parametrize(("x", "y"), [(21, 20), (20, 23), (120, 70)])
async def test_a_thing_that_moved_says_by_how_much(x: int, y: int) -> None:
    (area,) = await compared(drawn(square(20, 20, "black")), drawn(square(x, y, "black")))
    assert (area.kind, area.moved_by) == ("moved", (x - 20, y - 20))


async def test_an_ignored_part_may_differ() -> None:
    before = drawn(square(20, 20, "red"), square(100, 20, "red"))
    after = drawn(square(20, 20, "blue"), square(100, 20, "blue"))
    (area,) = await compared(before, after, Region(x=10, y=10, width=40, height=40))
    assert area.box == at(100, 20)


async def test_what_is_transparent_differs_from_what_is_white() -> None:
    through = drawn(mode="RGBA", paper="#ffffff00")
    white = drawn(lambda draw: draw.rectangle((20, 20, 39, 39), fill="#ffffffff"), mode="RGBA",
                  paper="#ffffff00")  # fmt: skip
    (area,) = await compared(through, white)
    assert area.box == at(20, 20)


async def test_pictures_of_two_sizes_are_not_compared_further() -> None:
    out = BytesIO()
    Image.new("RGB", (200, 130), "black").save(out, "PNG")
    async with Imaging(workers=1) as imaging:
        found = await imaging.compare(drawn(), out.getvalue())
    assert found == PixelComparison(before_size=(200, 120), after_size=(200, 130))


async def test_noise_of_a_jpeg_is_no_difference() -> None:
    picture = drawn(square(20, 20, "red"), lambda draw: draw.text((60, 60), "Save", fill="black"))
    out = BytesIO()
    Image.open(BytesIO(picture)).save(out, "JPEG", quality=95, subsampling=0)
    assert await compared(picture, out.getvalue()) == ()


def overlaps(area: ChangedArea, change: Change) -> bool:
    box, (x, y, wide, high) = area.box, change.box
    across = min(box.x + box.width, x + wide) - max(box.x, x)
    down = min(box.y + box.height, y + high) - max(box.y, y)
    return across > 0 and down > 0


async def check_pair(imaging: Imaging, pair: ScreenPair) -> None:
    size = {"width": WIDTH, "height": HEIGHT, "assets": {}}
    before, after = [
        await imaging.render_svg(document, **size) for document in (pair.before, pair.after)
    ]
    areas = (await imaging.compare(before, after)).areas
    missed = [one for one in pair.visible if not any(overlaps(area, one) for area in areas)]
    invented = [area for area in areas if not any(overlaps(area, one) for one in pair.visible)]
    assert (pair.name, missed, invented) == (pair.name, [], [])


async def test_every_change_of_two_pairs_of_screens_is_found_and_none_invented() -> None:
    pairs = [*make_pairs(5)]
    async with Imaging(workers=1) as imaging:
        for pair in (pairs[1], pairs[4]):
            await check_pair(imaging, pair)


@pytest.mark.slow
async def test_every_change_of_forty_pairs_of_screens_is_found_and_none_invented() -> None:
    async with Imaging(workers=1) as imaging:
        for pair in make_pairs():
            await check_pair(imaging, pair)
