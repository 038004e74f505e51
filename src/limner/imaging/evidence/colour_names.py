"""Shades of sRGB -> colour names: the nearest of about 45 in OKLab. Pure Python, for the host too.

Names are never used to merge colours: two shades with one name stay two colours.
"""

from __future__ import annotations

from functools import cache, lru_cache

Shade = tuple[int, int, int]

# Each name, the basic word that a person may also use for it, and examples of it: dark and light,
# strong and pale. Between two names, an example on either side defines the border.
EXAMPLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "black": ("black", ("000000", "0c0c0c", "1a1a1e", "1e1e1e", "101018", "202124")),
    "dark grey": ("grey", ("303030", "404044", "4a4a4a", "505050", "333333")),
    "grey": ("grey", ("606060", "808080", "a0a0a4", "8c8c8c", "707070", "9a9a9a")),
    "light grey": ("grey", ("c0c0c0", "d3d3d3", "dcdcdc", "b4b4b4", "d0d7de", "e0e0e0")),
    "slate": ("grey", ("708090", "778899", "57606a", "64748b")),
    "white": ("white", ("ffffff", "f5f5f5", "f0f0f0", "fffafa", "f8f8ff", "f2f2f7", "f6f8fa")),
    "cream": ("white", ("fffdd0", "fffbe6", "fdf6e3", "fffff0", "faf0e6", "fff8e7")),
    "beige": ("beige", ("f5f5dc", "f3e3cd", "e8d8c0", "f5deb3", "e5ddd5", "eee0cb")),
    "tan": ("brown", ("d2b48c", "c8ad7f", "deb887", "bc9a6c")),
    "brown": (
        "brown",
        ("a52a2a", "8b4513", "a0522d", "654321", "5c3317", "8b7355", "795548", "5a2d0c"),
    ),
    "dark brown": ("brown", ("3a2412", "2c1a10", "3e2723")),
    "rust": ("brown", ("b7410e", "a0440e", "b5522b")),
    "red": (
        "red",
        ("ff0000", "cc0000", "e53935", "dc2626", "d1242f", "e63946", "f05050", "b00020"),
    ),
    "crimson": ("red", ("dc143c", "c41e3a")),
    "dark red": ("red", ("8b0000", "990000", "a01010")),
    "maroon": ("red", ("800000", "6b1020", "7b1e2b")),
    "coral": ("orange", ("ff7f50", "ff6f61", "f4845f")),
    "salmon": ("pink", ("fa8072", "f08080", "e9967a", "ffa07a")),
    "orange": (
        "orange",
        ("ffa500", "ff8c00", "f4800c", "ff6a00", "ffb066", "f28c28", "ef8b3c", "ff4500"),
    ),
    "peach": ("orange", ("ffdab9", "ffcba4", "ffe5b4")),
    "gold": ("yellow", ("d4af37", "daa520", "c9a227", "b8860b")),
    "yellow": ("yellow", ("ffff00", "ffd700", "ffeb3b", "ffd21f", "fff59d", "f2c200", "d4c01a")),
    "light yellow": ("yellow", ("fffacd", "fff9b0", "ffffc5")),
    "khaki": ("yellow", ("f0e68c", "c3b091", "bdb76b")),
    "olive": ("green", ("808000", "6b8e23", "556b2f")),
    "lime": ("green", ("00ff00", "bfff00", "9acd32", "a6e22e", "32cd32")),
    "green": (
        "green",
        ("008000", "228b22", "2e8b57", "16a34a", "34c759", "7cb342", "4caf50", "2ea36f"),
    ),
    "dark green": ("green", ("006400", "102a12", "0b3d1e", "1f3d39")),
    "light green": ("green", ("90ee90", "98fb98", "d0f0c0", "dcf8c6", "8fbc8f")),
    "mint": ("green", ("98ffcc", "aaf0d1", "66cdaa", "3eb489")),
    "teal": ("cyan", ("008080", "0d7377", "075e54", "128c7e", "20807a")),
    "turquoise": ("cyan", ("40e0d0", "20b2aa", "00ced1", "30d5c8")),
    "cyan": ("cyan", ("00ffff", "00e5ff", "5ff0f0", "5f9ea0")),
    "light cyan": ("cyan", ("e0ffff", "afeeee")),
    "sky blue": ("blue", ("87ceeb", "00bfff", "8ab4f8", "61afef", "5bc0eb")),
    "light blue": ("blue", ("add8e6", "b0c4de", "dce8fa", "bfdbfe", "e0f0ff")),
    "blue": (
        "blue",
        (
            "0000ff",
            "4169e1",
            "1e90ff",
            "2563eb",
            "1d4ed8",
            "3b82f6",
            "0969da",
            "4682b4",
            "007acc",
            "6495ed",
        ),
    ),
    "dark blue": ("blue", ("00008b", "0a3d91", "1e3a8a")),
    "navy": ("blue", ("000080", "191970", "0b2545", "101840", "1f2a44", "1e293b")),
    "indigo": ("purple", ("4b0082", "3f0f91", "4338ca")),
    "purple": (
        "purple",
        ("800080", "8a2be2", "9932cc", "7b2cbf", "6f42c1", "614878", "7a5a8c", "2a0a3a"),
    ),
    "violet": ("purple", ("9370db", "a78bfa", "8f5fe8", "6a5acd")),
    "lavender": ("purple", ("e6e6fa", "d8bfd8", "dcd0ff", "c8b6ff")),
    "plum": ("purple", ("dda0dd", "8e4585")),
    "magenta": ("pink", ("ff00ff", "e0218a", "c71585")),
    "pink": ("pink", ("ffc0cb", "ff69b4", "ff1493", "ffb6c1", "fce4ec", "db7093")),
    "mauve": ("pink", ("a96b7a", "b784a7", "bc8f8f")),
}
BASIC = tuple(dict.fromkeys(basic for basic, _ in EXAMPLES.values()))
# Other words that a question may use.
SYNONYMS = {
    "gray": "grey",
    "silver": "light grey",
    "fuchsia": "magenta",
    "aqua": "cyan",
    "violet": "violet",
    "charcoal": "dark grey",
    "ivory": "cream",
}
COLOUR_WORDS = frozenset(
    word for name in (*EXAMPLES, *BASIC, *SYNONYMS) for word in name.split()
) - {"dark", "light", "sky"}
_GREYISH = 0.03


@lru_cache(maxsize=10_000)
def colour_name(shade: Shade) -> str:
    """The name of a shade."""
    lightness, a, b = oklab(shade)
    return min(
        ((lightness - one[0]) ** 2 + (a - one[1]) ** 2 + (b - one[2]) ** 2, name)
        for one, name in _examples()
    )[1]


def basic_word(name: str) -> str:
    """The basic word for a name: teal -> cyan, beige -> brown."""
    return EXAMPLES[name][0]


def matches_word(name: str, word: str) -> bool:
    """Whether a person may use this word for a colour of this name."""
    word = SYNONYMS.get(word, word)
    return (
        word in {name, basic_word(name)}
        or word in name.split()
        or (name, word) == ("teal", "green")
    )


def is_greyish(shade: Shade) -> bool:
    """Whether a shade has almost no hue."""
    _, a, b = oklab(shade)
    return a * a + b * b < _GREYISH**2


def hex_code(shade: Shade) -> str:
    """The code of a shade, as in #ff8800."""
    return f"#{bytes(shade).hex()}"


def name_of(code: str) -> str:
    """The name of a code such as #ff8800."""
    red, green, blue = bytes.fromhex(code.removeprefix("#"))
    return colour_name((red, green, blue))


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
        for name, (_, shades) in EXAMPLES.items()
        for code in map(bytes.fromhex, shades)
    )
