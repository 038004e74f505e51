"""A picture on a flat or checkered ground -> the picture with that ground transparent.

Runs inside a worker only.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import itemgetter

from PIL import Image, ImageChops, ImageFilter

from limner.errors import ImageError

Colour = tuple[int, int, int]

# How much of the edge must have the colours of the ground.
_MIN_SHARE = 0.85
# A second colour of the ground makes it a checkerboard, if this much of the edge has it.
_MIN_SECOND_SHARE = 0.25
# Colours that differ by no more than this, in each channel, are the same.
_NEAR = 18
_RUN = re.compile(rb"\xff+")


def cut_out(picture: Image.Image) -> Image.Image:
    """Make the ground transparent that touches the edge of the picture.

    Raises:
        ImageError: the edge shows no flat ground and no checkerboard.
    """
    plain = picture.convert("RGB")
    grounds = _ground_colours(plain)
    ground = Image.new("L", plain.size, 0)
    for colour in grounds:
        ground = ImageChops.lighter(ground, _near(plain, colour))
    outside = _connected_to_edge(ground)
    # One pixel of the border between both gets half of the ground: edges stay smooth.
    alpha = ImageChops.invert(outside.filter(ImageFilter.BoxBlur(1)))
    alpha = ImageChops.darker(alpha, ImageChops.invert(outside))
    result = picture.convert("RGBA")
    result.putalpha(ImageChops.darker(alpha, result.getchannel("A")))
    return result


def _ground_colours(picture: Image.Image) -> list[Colour]:
    """The one colour of the edge, or its two."""
    found: list[tuple[float, Colour]] = []
    edge = _edge_pixels(picture)
    rest = edge
    while rest and len(found) < 2:
        colour = _most_common(rest)
        others = [pixel for pixel in rest if not _is_near(pixel, colour)]
        found.append(((len(rest) - len(others)) / len(edge), colour))
        rest = others
    if found[0][0] >= _MIN_SHARE:
        return [found[0][1]]
    both = sum(share for share, _ in found)
    if both >= _MIN_SHARE and found[-1][0] >= _MIN_SECOND_SHARE:  # a checkerboard
        return [colour for _, colour in found]
    share = round(100 * found[0][0])
    raise ImageError(
        f"the background is not flat: only {share} % of the edge has one colour",
        hint="Crop the picture to a part with a flat background, or use image_edit.",
    )


def _edge_pixels(picture: Image.Image) -> list[Colour]:
    wide, high = picture.size
    strips = [
        picture.crop(box)
        for box in (
            (0, 0, wide, 1),
            (0, high - 1, wide, high),
            (0, 0, 1, high),
            (wide - 1, 0, wide, high),
        )
    ]
    data = b"".join(strip.tobytes() for strip in strips)
    return [(data[at], data[at + 1], data[at + 2]) for at in range(0, len(data), 3)]


def _most_common(pixels: Sequence[Colour]) -> Colour:
    """The colour with most pixels near it, among those that occur most."""
    counts: dict[Colour, int] = {}
    for red, green, blue in pixels:
        key = red >> 3, green >> 3, blue >> 3
        counts[key] = counts.get(key, 0) + 1
    best = max(counts, key=counts.__getitem__)
    same = [pixel for pixel in pixels if (pixel[0] >> 3, pixel[1] >> 3, pixel[2] >> 3) == best]
    red, green, blue = (sum(channel) // len(same) for channel in zip(*same, strict=True))
    return red, green, blue


def _is_near(one: Colour, other: Colour) -> bool:
    return all(abs(a - b) <= _NEAR for a, b in zip(one, other, strict=True))


def _near(picture: Image.Image, colour: Colour) -> Image.Image:
    """White for each pixel near a colour."""
    difference = ImageChops.difference(picture, Image.new("RGB", picture.size, colour))
    red, green, blue = difference.split()
    most = ImageChops.lighter(ImageChops.lighter(red, green), blue)
    return most.point([255] * (_NEAR + 1) + [0] * (255 - _NEAR))


def _connected_to_edge(mask: Image.Image) -> Image.Image:
    """The white parts of a mask that touch its edge: runs in its rows, and the runs beside them."""
    wide, high = mask.size
    data = mask.tobytes()
    rows = [
        [found.span() for found in _RUN.finditer(data[row * wide : (row + 1) * wide])]
        for row in range(high)
    ]
    waiting = [
        (row, run)
        for row, runs in enumerate(rows)
        for run in runs
        if row in (0, high - 1) or run[0] == 0 or run[1] == wide
    ]
    seen = set(waiting)
    kept = bytearray(len(data))
    while waiting:
        row, run = waiting.pop()
        kept[row * wide + run[0] : row * wide + run[1]] = b"\xff" * (run[1] - run[0])
        for near in (row - 1, row + 1):
            if 0 <= near < high:
                found = {(near, other) for other in _beside(run, rows[near])} - seen
                seen |= found
                waiting += found
    return Image.frombytes("L", mask.size, bytes(kept))


def _beside(run: tuple[int, int], runs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The runs of a row that touch a run of the next row."""
    for other in islice(runs, bisect_right(runs, run[0], key=itemgetter(1)), None):
        if other[0] >= run[1]:
            return
        yield other
