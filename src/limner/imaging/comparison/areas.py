"""Two pictures -> the areas that differ, without anti-aliasing. Runs inside a worker only.

`masks` finds the pixels, `groups` the parts. For each part this module decides whether
anti-aliasing explains it: letters that moved by a part of a pixel look different in each pixel, but
not in a way that a person sees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from msgspec.structs import replace
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from limner.imaging.comparison.groups import Edges, enclose, group, grow
from limner.imaging.comparison.masks import (
    candidates,
    count,
    differing,
    largest_band,
    strong,
    unlike,
)
from limner.imaging.comparison.record import ChangedArea, PixelComparison
from limner.imaging.decode import open_picture
from limner.imaging.evidence.record import Box
from limner.imaging.fit.request import Region
from limner.imaging.limits import WorkerLimits
from limner.imaging.orientation import convert_to_srgb, turn_upright

MAX_AREAS = 200
# Parts of one thing that changed as a whole, such as the border and the letters of a button.
_NEAR = 24
_MARGIN = 3
# A channel of ink differs from the paper by at least this.
_INK = 24
_PARTS_OF_A_PIXEL = (-0.5, -0.25, 0.0, 0.25, 0.5)
# How many pixels may still differ after such a move.
_UNEXPLAINED = 1
# The share of the whole change that may be left after a move by a part of a pixel, and by one.
_AFTER_A_PART, _AFTER_A_PIXEL = 0.9, 0.3
# A larger part is compared without trying to move it.
_MAX_SHIFTED_PIXELS = 200_000
# The share of the sum of all changes that has one direction if the colour changed.
_ONE_SIDED = 0.5
_LEAST_COLOUR = 24

Colour = tuple[int, int, int]


def compare(
    before: bytes, after: bytes, ignore: Sequence[Region], *, limits: WorkerLimits
) -> PixelComparison:
    """Compare two pictures outside the ignored parts; if their sizes differ, nothing else.

    Raises:
        ImageError: as `open_picture`, and if a picture is damaged.
    """
    one, other = (_decode(data, limits) for data in (before, after))
    result = PixelComparison(before_size=one.size, after_size=other.size)
    if one.size != other.size:
        return result
    see_through = "RGBA" in (one.mode, other.mode)
    found: list[ChangedArea] = []
    # What is transparent in one picture and white in the other differs only on black.
    for paper in ("white", "black") if see_through else ("white",):
        pair = [_prepared(picture, paper, ignore) for picture in (one, other)]
        areas = find_areas(*pair)
        found += [area for area in areas if not any(_overlap(area.box, old.box) for old in found)]
    found.sort(key=lambda area: (area.box.y, area.box.x))
    left_out = max(0, len(found) - MAX_AREAS)
    return replace(result, areas=tuple(found[:MAX_AREAS]), left_out=left_out)


def find_areas(before: Image.Image, after: Image.Image) -> list[ChangedArea]:
    """The areas in which two RGB pictures of one size differ."""
    parts = [
        part
        for box in group(candidates(before, after))
        if (part := _real_change(before, after, box)) is not None
    ]
    areas: list[ChangedArea] = []
    for boxes in _clusters(parts):
        whole = enclose(boxes)
        moved = None if len(boxes) == 1 else _movement(before, after, whole)
        if moved is not None:
            areas.append(_area(before, after, whole, kind="moved", moved_by=moved))
        else:
            areas += [_described(before, after, box) for box in boxes]
    return _without_pairs(areas, before, after)


def _decode(data: bytes, limits: WorkerLimits) -> Image.Image:
    _, opened = open_picture(data, limits=limits)
    return convert_to_srgb(turn_upright(opened.image, opened.orientation))


def _prepared(picture: Image.Image, paper: str, ignore: Sequence[Region]) -> Image.Image:
    result = Image.new("RGB", picture.size, paper)
    result.paste(picture, mask=picture if picture.mode == "RGBA" else None)
    draw = ImageDraw.Draw(result)
    for part in ignore:
        right, bottom = part.x + part.width - 1, part.y + part.height - 1
        draw.rectangle((part.x, part.y, right, bottom), fill=(128, 128, 128))
    return result


def _real_change(before: Image.Image, after: Image.Image, box: Edges) -> Edges | None:
    """The box of what differs visibly in a part; None if anti-aliasing explains it."""
    around = grow(box, _MARGIN, before.size)
    one, other = before.crop(around), after.crop(around)
    # What is in the margin belongs to another part, or its neighbours are missing here.
    mask = Image.new("L", one.size, 0)
    place = box[0] - around[0], box[1] - around[1]
    mask.paste(
        differing(one, other).crop(
            (*place, place[0] + box[2] - box[0], place[1] + box[3] - box[1])
        ),
        place,
    )
    inside = mask.getbbox()
    if inside is None:
        return None
    left, top = around[:2]
    exact = left + inside[0], top + inside[1], left + inside[2], top + inside[3]
    if _is_recoloured(one, other, mask):
        return exact
    if not count(ImageChops.darker(strong(one, other), mask)):
        return None
    return None if _is_shifted_by_less_than_a_pixel(one, other, mask) else exact


def _is_recoloured(one: Image.Image, other: Image.Image, mask: Image.Image) -> bool:
    """Whether the pixels changed in one direction, and the darkest or brightest of them too.

    Anti-aliasing changes as many pixels in one direction as in the other, and the colours between
    ink and paper, not the ink.
    """
    wide = mask.filter(ImageFilter.MaxFilter(5))
    bands = zip(one.split(), other.split(), strict=True)
    for a, b in bands:
        up, down = (
            sum(value * times for value, times in enumerate(change.histogram(mask)))
            for change in (ImageChops.subtract(b, a), ImageChops.subtract(a, b))
        )
        if abs(up - down) <= _ONE_SIDED * (up + down):
            continue
        ends = zip(_ends(a, wide), _ends(b, wide), strict=True)
        if any(abs(end - new) >= _LEAST_COLOUR for end, new in ends):
            return True
    return False


def _ends(band: Image.Image, mask: Image.Image) -> tuple[int, int]:
    """The darkest and the brightest value of a band, without the last percent."""
    histogram = band.histogram(mask)
    few = sum(histogram) // 100
    return _end(histogram, few), 255 - _end(histogram[::-1], few)


def _end(histogram: Sequence[int], few: int) -> int:
    passed = 0
    for value, times in enumerate(histogram):
        passed += times
        if passed > few:
            return value
    return 255


def _is_shifted_by_less_than_a_pixel(
    one: Image.Image, other: Image.Image, mask: Image.Image
) -> bool:
    """Whether one picture, moved by a part of a pixel, looks like the other."""
    if one.width * one.height > _MAX_SHIFTED_PIXELS:
        return False
    at_most = _AFTER_A_PART * _error(one, other)
    for across, down in product(_PARTS_OF_A_PIXEL, repeat=2):
        for still, moving in ((one, other), (other, one)):
            moved = _shifted(moving, across, down)
            if _error(still, moved) > at_most:
                continue
            if count(ImageChops.darker(strong(still, moved), mask)) <= _UNEXPLAINED:
                return not _is_shifted_by_a_pixel(one, other)
    return False


def _is_shifted_by_a_pixel(one: Image.Image, other: Image.Image) -> bool:
    """Whether most of the change vanishes if one picture is moved by a whole pixel."""
    at_rest = _error(one, other)
    steps = (step for step in product((-1, 0, 1), repeat=2) if step != (0, 0))
    return any(_error(one, _shifted(other, *step)) <= _AFTER_A_PIXEL * at_rest for step in steps)


def _shifted(picture: Image.Image, across: float, down: float) -> Image.Image:
    place = (1, 0, across, 0, 1, down)
    return picture.transform(picture.size, Image.Transform.AFFINE, place, Image.Resampling.BILINEAR)


def _error(one: Image.Image, other: Image.Image) -> int:
    """The sum of all changes, without the edge, to which nothing moved."""
    change = largest_band(ImageChops.difference(one, other))
    inside = change.crop((1, 1, change.width - 1, change.height - 1)).histogram()
    return sum(value * times for value, times in enumerate(inside))


def _clusters(boxes: Sequence[Edges]) -> Iterator[list[Edges]]:
    """The boxes that are so near each other that they may be parts of one thing."""
    waiting = list(boxes)
    while waiting:
        found = [waiting.pop()]
        for box in found:  # grows while it is read
            near = [one for one in waiting if _apart(box, one) <= _NEAR]
            found += near
            waiting = [one for one in waiting if one not in near]
        yield found


def _apart(one: Edges, other: Edges) -> int:
    across = max(one[0], other[0]) - min(one[2], other[2])
    down = max(one[1], other[1]) - min(one[3], other[3])
    return max(across, down, 0)


def _described(before: Image.Image, after: Image.Image, box: Edges) -> ChangedArea:
    around = grow(box, _MARGIN, before.size)
    one, other = before.crop(around), after.crop(around)
    papers = _paper(one), _paper(other)
    if papers[0] is not None and papers[0] == papers[1]:
        inks = [unlike(part, papers[0], least=_INK).getbbox() for part in (one, other)]
        if inks[0] is None and inks[1] is not None:
            return _area(before, after, box, kind="added")
        if inks[1] is None and inks[0] is not None:
            return _area(before, after, box, kind="removed")
        if (moved := _movement(before, after, box)) is not None:
            return _area(before, after, box, kind="moved", moved_by=moved)
    colours = _recoloured(one, other)
    if colours is not None:
        return _area(before, after, box, kind="colour", colours=colours)
    return _area(before, after, box, kind="changed")


def _movement(before: Image.Image, after: Image.Image, box: Edges) -> tuple[int, int] | None:
    """By how many pixels the content of a box moved; None if that does not explain the change."""
    around = grow(box, _MARGIN, before.size)
    one, other = before.crop(around), after.crop(around)
    paper = _paper(one)
    if paper is None or paper != _paper(other):
        return None
    old, new = (unlike(part, paper, least=_INK).getbbox() for part in (one, other))
    if old is None or new is None:
        return None
    return _same_content(one.crop(old), other.crop(new), old, new)


def _same_content(
    one: Image.Image, other: Image.Image, old: Edges, new: Edges
) -> tuple[int, int] | None:
    if one.size != other.size or old[:2] == new[:2]:
        return None
    mask = differing(one, other)
    if count(ImageChops.darker(strong(one, other), mask)) > 0.02 * one.width * one.height:
        return None
    return new[0] - old[0], new[1] - old[1]


def _paper(part: Image.Image) -> Colour | None:
    """The colour along the edge of a part; None if there are several."""
    wide, high = part.size
    strips = [
        (0, 0, wide, 1),
        (0, high - 1, wide, high),
        (0, 0, 1, high),
        (wide - 1, 0, wide, high),
    ]
    found: set[Colour] = set()
    for strip in strips:
        found.update(colour for _, colour in _colours(part.crop(strip)))
    return found.pop() if len(found) == 1 else None


def _recoloured(one: Image.Image, other: Image.Image) -> tuple[str, str] | None:
    """The colour that most changed pixels had, and the one that they have now."""
    mask = differing(one, other)
    total = count(mask)
    found: list[Colour] = []
    for part in (one, other):
        masked = Image.new("RGBA", part.size)
        masked.paste(part, mask=mask)
        shades = {colour[:3]: times for times, colour in _colours(masked) if colour[3:] == (255,)}
        most = max(shades, key=shades.__getitem__, default=None)
        if most is None or shades[most] < 0.5 * total:
            return _ink_colours(one, other)
        found.append((most[0], most[1], most[2]))
    old, new = found
    # A letter that became another has the colours of the old one: paper and ink.
    is_gone = _share(other, old) < 0.2 * _share(one, old)
    is_new = _share(one, new) < 0.2 * _share(other, new)
    return (_hex(old), _hex(new)) if is_gone and is_new else None


def _share(part: Image.Image, colour: Colour) -> int:
    return part.width * part.height - count(unlike(part, colour, least=1))


def _ink_colours(one: Image.Image, other: Image.Image) -> tuple[str, str] | None:
    """The colours of letters, if the same letters are in the same place."""
    paper = _paper(one)
    if paper is None or paper != _paper(other):
        return None
    inks = [unlike(part, paper, least=_INK) for part in (one, other)]
    both = count(ImageChops.darker(*inks))
    if both < 0.7 * count(ImageChops.lighter(*inks)):
        return None
    old, new = (_farthest(part, paper) for part in (one, other))
    return (_hex(old), _hex(new)) if old != new else None


def _farthest(part: Image.Image, paper: Colour) -> Colour:
    shades = [colour for _, colour in _colours(part)]
    return max(shades, key=lambda shade: sum(map(_distance, shade, paper)))


def _without_pairs(
    areas: Sequence[ChangedArea], before: Image.Image, after: Image.Image
) -> list[ChangedArea]:
    """The areas; a thing that vanished here and appeared there is one that moved."""
    result = list(areas)
    for old in [area for area in areas if area.kind == "removed"]:
        for new in [area for area in result if area.kind == "added"]:
            if (old.box.width, old.box.height) != (new.box.width, new.box.height):
                continue
            here, there = _edges(old.box), _edges(new.box)
            moved = _same_content(before.crop(here), after.crop(there), here, there)
            if moved is not None:
                result = [area for area in result if area not in (old, new)]
                result.append(_area(before, after, there, kind="moved", moved_by=moved))
                break
    return result


def _area(
    before: Image.Image,
    after: Image.Image,
    box: Edges,
    *,
    kind: str,
    colours: tuple[str, str] = ("", ""),
    moved_by: tuple[int, int] | None = None,
) -> ChangedArea:
    left, top, right, bottom = box
    return ChangedArea(
        box=Box(x=left, y=top, width=right - left, height=bottom - top),
        kind=kind,  # pyright: ignore[reportArgumentType]
        pixels=count(differing(before.crop(box), after.crop(box))),
        before=colours[0],
        after=colours[1],
        moved_by=moved_by,
    )


def _colours(part: Image.Image) -> list[tuple[int, Colour]]:
    found = part.getcolors(part.width * part.height)
    return [] if found is None else found  # pyright: ignore[reportReturnType]


def _edges(box: Box) -> Edges:
    return box.x, box.y, box.x + box.width, box.y + box.height


def _overlap(one: Box, other: Box) -> bool:
    return _apart(_edges(one), _edges(other)) == 0


def _distance(one: int, other: int) -> int:
    return abs(one - other)


def _hex(colour: Colour) -> str:
    return "#" + bytes(colour).hex()
