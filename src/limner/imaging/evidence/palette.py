"""Upright sRGB pixels -> colours by name, the background, brightness and texture.

Runs inside a worker only, and needs only Pillow.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from typing import cast

from PIL import Image

from limner.imaging.evidence.record import Colour, Texture
from limner.imaging.gradients import bands, steps
from limner.imaging.orientation import flatten_on_white

Shade = tuple[int, int, int]

# Examples of each word, dark and light, strong and pale. If people hesitate between two words, an
# example on either side defines the border.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "black": ("000000", "0c0c0c", "1a1a1e", "242428", "101018", "181008"),
    "grey": (
        *("303030", "404044", "606060", "808080", "a0a0a4", "c0c0c0", "d3d3d3", "708090"),
        *("dcdcdc", "505050"),
    ),
    "white": ("ffffff", "f5f5f5", "ececec", "fffafa", "f8f8ff", "fffff0", "faf0e6"),
    "red": ("ff0000", "cc0000", "800000", "8b0000", "b22222", "dc143c", "e53935", "f05050"),
    "orange": ("ffa500", "ff8c00", "ff7f50", "f4800c", "ff6a00", "ffdab9", "ffb066", "ff4500"),
    "yellow": ("ffff00", "ffd700", "f0e68c", "fffacd", "ffeb3b", "d4c01a", "fff59d", "f2c200"),
    "green": (
        *("00ff00", "008000", "006400", "228b22", "90ee90", "32cd32", "9acd32", "556b2f"),
        *("808000", "2e8b57", "8fbc8f", "d0f0c0", "7cb342", "98fb98", "102a12", "66cdaa"),
        "1f3d39",
    ),
    "cyan": ("00ffff", "008080", "40e0d0", "20b2aa", "afeeee", "00ced1", "5f9ea0", "e0ffff"),
    "blue": (
        *("0000ff", "000080", "191970", "4169e1", "1e90ff", "87ceeb", "add8e6", "4682b4"),
        *("6495ed", "0b2545", "dce8fa", "00bfff", "101840", "7b96c4", "b0c4de", "6a5acd"),
    ),
    "purple": (
        *("800080", "4b0082", "8a2be2", "9370db", "9932cc", "dda0dd", "d8bfd8", "2a0a3a"),
        *("614878", "7a5a8c"),
    ),
    "pink": ("ffc0cb", "ff69b4", "ff1493", "ff00ff", "ffb6c1", "fce4ec", "db7093", "f08080"),
    "brown": (
        *("a52a2a", "8b4513", "a0522d", "d2b48c", "654321", "5c3317", "cd853f", "3a2412"),
        *("d2691e", "bc8f8f", "8b7355", "2c1a10"),
    ),
}

MAX_COLOURS = 6
# Colours are counted in a sample with at most this edge.
_SAMPLE_EDGE = 256
# Texture is measured in bands of this many rows, which is fast for large pictures.
_BAND_ROWS = 96
_SHARP_STEP = 64
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
    named = _by_name(_shades(sample))
    return tuple(colour for colour in named if colour.percent > 0)[:MAX_COLOURS]


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
    most_common = next(iter(_by_name(border)), None)
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
    )


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


def _by_name(shades: Shades) -> list[Colour]:
    """Shades grouped by name; the hex code is that of the most common shade."""
    steps: dict[Shade, Shades] = defaultdict(Counter)
    for shade, count in shades.items():
        red, green, blue = (channel >> _STEP_BITS for channel in shade)
        steps[red, green, blue][shade] += count
    totals: Counter[str] = Counter()
    shown: dict[str, tuple[int, Shade]] = {}
    for step in steps.values():
        count, most_common = step.total(), step.most_common(1)[0][0]
        name = basic_name(most_common)
        totals[name] += count
        shown[name] = max(shown.get(name, (0, most_common)), (count, most_common))
    everything = totals.total()
    return [
        Colour(name=name, hex=f"#{bytes(shown[name][1]).hex()}", percent=_percent(part, everything))
        for name, part in totals.most_common()
    ]


def _percent(part: int, whole: int, *, least: int = 0) -> int:
    """A rounded share in percent; ``least`` is the result for any part above zero."""
    return max(round(100 * part / whole), least if part else 0) if whole else 0


@cache
def basic_name(shade: Shade) -> str:
    """The basic colour word for a shade of sRGB."""
    lightness, a, b = oklab(shade)
    return min(
        (
            (lightness - example[0]) ** 2 + (a - example[1]) ** 2 + (b - example[2]) ** 2,
            name,
        )
        for example, name in _examples()
    )[1]


def oklab(shade: Shade) -> tuple[float, float, float]:
    """Lightness from 0 to 1, then green to red, then blue to yellow."""
    red, green, blue = (_linear(channel / 255) for channel in shade)
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    medium = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


@cache
def _examples() -> tuple[tuple[tuple[float, float, float], str], ...]:
    return tuple(
        (oklab((code[0], code[1], code[2])), name)
        for name, shades in EXAMPLES.items()
        for code in map(bytes.fromhex, shades)
    )
