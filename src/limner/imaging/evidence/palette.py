"""Upright sRGB pixels -> colours by name, the background, brightness and texture.

Runs inside a worker only, and with what every installation has: Pillow and no arrays.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import cast

from PIL import Image

from limner.imaging.decoding import on_white
from limner.imaging.evidence.colours import Shade, basic_name
from limner.imaging.evidence.record import Colour, Texture
from limner.imaging.neighbours import bands, steps

MAX_COLOURS = 6
# So many pixels stand for all of a picture when colours are counted.
_SAMPLE_EDGE = 256
# Texture is judged by bands of rows, which is plenty and keeps large pictures cheap.
_BAND_ROWS = 96
_SHARP_STEP = 64
# Saturation below which nobody would name a hue, of 255.
_GREY_SATURATION = 26
# Colours are named in steps of eight, so that a photo's thousands of shades stay cheap.
_STEP_BITS = 3

Shades = Counter[Shade]


def sampled(image: Image.Image) -> Image.Image:
    """A small picture of untouched pixels: colours are picked, never mixed."""
    size = (min(image.width, _SAMPLE_EDGE), min(image.height, _SAMPLE_EDGE))
    return image.resize(size, Image.Resampling.NEAREST)


def transparent_percent(sample: Image.Image) -> int:
    """How much of the picture shows what is behind it, at least half."""
    if sample.mode != "RGBA":
        return 0
    through = sum(sample.getchannel("A").histogram()[:128])
    return _percent(through, sample.width * sample.height, least=1)


def brightness_percent(sample: Image.Image) -> int:
    """The mean lightness, from 0 for black to 100 for white; transparency counts as white."""
    counts = on_white(sample).convert("L").histogram()
    return _percent(sum(level * count for level, count in enumerate(counts)), 255 * sum(counts))


def colours(sample: Image.Image) -> tuple[Colour, ...]:
    """The colours that cover at least one percent of what can be seen, the largest first."""
    named = _by_name(_shades(sample))
    return tuple(colour for colour in named if colour.percent > 0)[:MAX_COLOURS]


def background(sample: Image.Image) -> Colour | None:
    """The colour along the border, where one of them has most of it."""
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
    commonest = next(iter(_by_name(border)), None)
    return commonest if commonest is not None and commonest.percent > 50 else None


def texture(image: Image.Image, sample: Image.Image) -> Texture:
    """How flat, how sharp and how colourful a picture is; ``image`` is it at its full size."""
    differences = _steps(image)
    flat = on_white(sample)
    pixels = flat.width * flat.height
    saturation = flat.convert("HSV").getchannel("S").histogram()
    two = sum(count for _, count in _shades(flat).most_common(2))
    return Texture(
        equal=_percent(differences[0], sum(differences)),
        sharp=_percent(sum(differences[_SHARP_STEP:]), sum(differences)),
        two_colours=_percent(two, pixels),
        grey=_percent(sum(saturation[:_GREY_SATURATION]), pixels),
    )


def _steps(image: Image.Image) -> list[int]:
    """How many pixels differ by how much from the one beside them."""
    if image.width < 2:
        return [1] + [0] * 255
    # Only the bands are put on white: a copy of the largest pictures would not fit in memory.
    counts = [steps(on_white(band)) for band in bands(image, rows=_BAND_ROWS)]
    return [sum(count) for count in zip(*counts, strict=True)]


def _shades(image: Image.Image) -> Shades:
    """How often each shade occurs among the pixels that can be seen."""
    found = cast(
        "Iterable[tuple[int, tuple[int, ...]]]", image.getcolors(image.width * image.height)
    )
    shades: Shades = Counter()
    for count, (red, green, blue, *alpha) in found:
        if not alpha or alpha[0] >= 128:
            shades[red, green, blue] += count
    return shades


def _by_name(shades: Shades) -> list[Colour]:
    """Shades gathered under their names, each shown by its commonest shade."""
    steps: dict[Shade, Shades] = defaultdict(Counter)
    for shade, count in shades.items():
        red, green, blue = (channel >> _STEP_BITS for channel in shade)
        steps[red, green, blue][shade] += count
    totals: Counter[str] = Counter()
    shown: dict[str, tuple[int, Shade]] = {}
    for step in steps.values():
        count, commonest = step.total(), step.most_common(1)[0][0]
        name = basic_name(commonest)
        totals[name] += count
        shown[name] = max(shown.get(name, (0, commonest)), (count, commonest))
    everything = totals.total()
    return [
        Colour(name=name, hex=f"#{bytes(shown[name][1]).hex()}", percent=_percent(part, everything))
        for name, part in totals.most_common()
    ]


def _percent(part: int, whole: int, *, least: int = 0) -> int:
    """A rounded share; ``least`` is what anything above nothing counts for."""
    return max(round(100 * part / whole), least if part else 0) if whole else 0
