"""A shade -> the basic word for it, by nearness to examples of each word in OKLab.

OKLab spaces colours about as far apart as people see them, so the nearest example names a shade
much as a person would. It is arithmetic only: no image library.
"""

from __future__ import annotations

from functools import cache

Shade = tuple[int, int, int]

# Examples of each word, dark and light, strong and pale. Where people hesitate between two words
# an example on either side draws the border.
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


@cache
def basic_name(shade: Shade) -> str:
    """The basic word for a shade of sRGB."""
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
