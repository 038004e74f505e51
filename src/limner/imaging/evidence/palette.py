"""Upright sRGB pixels -> colours by name, the background, brightness and texture.

Runs inside a worker only, and needs only Pillow.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import cast

from PIL import Image

from limner.imaging.evidence.colour_names import Shade, colour_name, hex_code, oklab
from limner.imaging.evidence.record import Colour, Texture
from limner.imaging.gradients import bands, steps
from limner.imaging.orientation import flatten_on_white

MAX_COLOURS = 6
# Shades that are nearer to each other in OKLab look like one colour with light and shadow.
_ALIKE = 0.07
_MAX_GROUPS = 40
# Colours are counted in a sample with at most this edge.
_SAMPLE_EDGE = 256
# Texture is measured in bands of this many rows, which is fast for large pictures.
_BAND_ROWS = 96
_SHARP_STEP = 64
_FOCUS_EDGE = 1024
_LEAST_EDGE = 12
# Below this saturation, of 255, a colour has no visible hue.
_GREY_SATURATION = 26
# Shades are grouped in steps of eight, since a photo has thousands and naming one is slow.
_STEP_BITS = 3

Shades = Counter[Shade]


def sample_pixels(image: Image.Image) -> Image.Image:
    """A small picture of original pixels: colours are picked, never mixed."""
    size = (min(image.width, _SAMPLE_EDGE), min(image.height, _SAMPLE_EDGE))
    return image.resize(size, Image.Resampling.NEAREST)


def transparent_percent(sample: Image.Image) -> int:
    """The share of pixels that are at least half transparent."""
    if sample.mode != "RGBA":
        return 0
    through = sum(sample.getchannel("A").histogram()[:128])
    return _percent(through, sample.width * sample.height, least=1)


def brightness_percent(sample: Image.Image) -> int:
    """The mean lightness, from 0 for black to 100 for white; transparency counts as white."""
    counts = flatten_on_white(sample).convert("L").histogram()
    return _percent(sum(level * count for level, count in enumerate(counts)), 255 * sum(counts))


def colours(sample: Image.Image) -> tuple[Colour, ...]:
    """The colours with at least one percent of the visible pixels, the largest first."""
    grouped = _grouped(_shades(sample))
    return tuple(colour for colour in grouped if colour.percent > 0)[:MAX_COLOURS]


def background(sample: Image.Image) -> Colour | None:
    """The colour along the border; None if no colour has most of it."""
    width, height = sample.size
    edges = (
        (0, 0, width, 1),
        (0, height - 1, width, height),
        (0, 0, 1, height),
        (width - 1, 0, width, height),
    )
    border: Shades = Counter()
    for edge in edges:
        border.update(_shades(sample.crop(edge)))
    most_common = next(iter(_grouped(border)), None)
    return most_common if most_common is not None and most_common.percent > 50 else None


def texture(image: Image.Image, sample: Image.Image) -> Texture:
    """How flat, sharp and colourful a picture is; ``image`` has the full size."""
    differences = _steps(image)
    flat = flatten_on_white(sample)
    pixels = flat.width * flat.height
    saturation = flat.convert("HSV").getchannel("S").histogram()
    two = sum(count for _, count in _shades(flat).most_common(2))
    return Texture(
        equal=_percent(differences[0], sum(differences)),
        sharp=_percent(sum(differences[_SHARP_STEP:]), sum(differences)),
        two_colours=_percent(two, pixels),
        grey=_percent(sum(saturation[:_GREY_SATURATION]), pixels),
        focus=_focus(image),
    )


def _focus(image: Image.Image) -> int:
    """The steepest edges as a share of those at half the size, in percent."""
    if image.width < 4 or image.height < 4:
        return 0
    # A part is enough, and a full copy of a very large picture would not fit in memory.
    left, top = max(0, image.width - _FOCUS_EDGE) // 2, max(0, image.height - _FOCUS_EDGE) // 2
    size = (min(image.width, _FOCUS_EDGE), min(image.height, _FOCUS_EDGE))
    part = flatten_on_white(image.crop((left, top, left + size[0], top + size[1]))).convert("L")
    whole, half = _steepest(part), _steepest(part.reduce(2))
    return min(100, round(100 * whole / half)) if half >= _LEAST_EDGE else 0


def _steepest(grey: Image.Image) -> int:
    """The step between neighbours that only one of five hundred pixels exceeds."""
    counts = steps(grey.convert("RGB"))
    left = sum(counts) / 500
    for step in range(255, 0, -1):
        left -= counts[step]
        if left < 0:
            return step
    return 0


def _steps(image: Image.Image) -> list[int]:
    """How many pixels differ from the next one by 0, by 1 and so on to 255."""
    if image.width < 2:
        return [1] + [0] * 255
    # Only the bands are flattened: a full copy of a very large picture would not fit in memory.
    counts = [steps(flatten_on_white(band)) for band in bands(image, rows=_BAND_ROWS)]
    return [sum(count) for count in zip(*counts, strict=True)]


def _shades(image: Image.Image) -> Shades:
    """How often each shade occurs among the visible pixels."""
    found = cast(
        "Iterable[tuple[int, tuple[int, ...]]]", image.getcolors(image.width * image.height)
    )
    shades: Shades = Counter()
    for count, (red, green, blue, *alpha) in found:
        if not alpha or alpha[0] >= 128:
            shades[red, green, blue] += count
    return shades


def _grouped(shades: Shades) -> list[Colour]:
    """Shades grouped by how similar they look; the hex code is that of the most common one."""
    steps: dict[Shade, Shades] = defaultdict(Counter)
    for shade, count in shades.items():
        red, green, blue = (channel >> _STEP_BITS for channel in shade)
        steps[red, green, blue][shade] += count
    groups: list[tuple[Shade, tuple[float, float, float]]] = []
    totals: Counter[Shade] = Counter()
    for step in sorted(steps.values(), key=Counter[Shade].total, reverse=True):
        most_common = step.most_common(1)[0][0]
        place = oklab(most_common)
        near = next((shade for shade, other in groups if math.dist(place, other) < _ALIKE), None)
        if near is None and len(groups) < _MAX_GROUPS:
            groups.append((most_common, place))
            near = most_common
        elif near is None:
            near = min(groups, key=lambda group: math.dist(place, group[1]))[0]
        totals[near] += step.total()
    everything = totals.total()
    return [
        Colour(name=colour_name(shade), hex=hex_code(shade), percent=_percent(part, everything))
        for shade, part in totals.most_common()
    ]


def _percent(part: int, whole: int, *, least: int = 0) -> int:
    """A rounded share in percent; ``least`` is the result for any part above zero."""
    return max(round(100 * part / whole), least if part else 0) if whole else 0
