"""A colour as a person writes it -> ``#rrggbb``; themes; which text is readable on a colour."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from colorsys import hls_to_rgb

import msgspec

from limner.errors import InputInvalid

# Name and value of the colours of CSS.
_CSS = """
aliceblue f0f8ff antiquewhite faebd7 aqua 00ffff aquamarine 7fffd4 azure f0ffff beige f5f5dc
bisque ffe4c4 black 000000 blanchedalmond ffebcd blue 0000ff blueviolet 8a2be2 brown a52a2a
burlywood deb887 cadetblue 5f9ea0 chartreuse 7fff00 chocolate d2691e coral ff7f50
cornflowerblue 6495ed cornsilk fff8dc crimson dc143c cyan 00ffff darkblue 00008b darkcyan 008b8b
darkgoldenrod b8860b darkgray a9a9a9 darkgreen 006400 darkgrey a9a9a9 darkkhaki bdb76b
darkmagenta 8b008b darkolivegreen 556b2f darkorange ff8c00 darkorchid 9932cc darkred 8b0000
darksalmon e9967a darkseagreen 8fbc8f darkslateblue 483d8b darkslategray 2f4f4f
darkslategrey 2f4f4f darkturquoise 00ced1 darkviolet 9400d3 deeppink ff1493 deepskyblue 00bfff
dimgray 696969 dimgrey 696969 dodgerblue 1e90ff firebrick b22222 floralwhite fffaf0
forestgreen 228b22 fuchsia ff00ff gainsboro dcdcdc ghostwhite f8f8ff gold ffd700
goldenrod daa520 gray 808080 green 008000 greenyellow adff2f grey 808080 honeydew f0fff0
hotpink ff69b4 indianred cd5c5c indigo 4b0082 ivory fffff0 khaki f0e68c lavender e6e6fa
lavenderblush fff0f5 lawngreen 7cfc00 lemonchiffon fffacd lightblue add8e6 lightcoral f08080
lightcyan e0ffff lightgoldenrodyellow fafad2 lightgray d3d3d3 lightgreen 90ee90 lightgrey d3d3d3
lightpink ffb6c1 lightsalmon ffa07a lightseagreen 20b2aa lightskyblue 87cefa
lightslategray 778899 lightslategrey 778899 lightsteelblue b0c4de lightyellow ffffe0 lime 00ff00
limegreen 32cd32 linen faf0e6 magenta ff00ff maroon 800000 mediumaquamarine 66cdaa
mediumblue 0000cd mediumorchid ba55d3 mediumpurple 9370db mediumseagreen 3cb371
mediumslateblue 7b68ee mediumspringgreen 00fa9a mediumturquoise 48d1cc mediumvioletred c71585
midnightblue 191970 mintcream f5fffa mistyrose ffe4e1 moccasin ffe4b5 navajowhite ffdead
navy 000080 oldlace fdf5e6 olive 808000 olivedrab 6b8e23 orange ffa500 orangered ff4500
orchid da70d6 palegoldenrod eee8aa palegreen 98fb98 paleturquoise afeeee palevioletred db7093
papayawhip ffefd5 peachpuff ffdab9 peru cd853f pink ffc0cb plum dda0dd powderblue b0e0e6
purple 800080 rebeccapurple 663399 red ff0000 rosybrown bc8f8f royalblue 4169e1
saddlebrown 8b4513 salmon fa8072 sandybrown f4a460 seagreen 2e8b57 seashell fff5ee sienna a0522d
silver c0c0c0 skyblue 87ceeb slateblue 6a5acd slategray 708090 slategrey 708090 snow fffafa
springgreen 00ff7f steelblue 4682b4 tan d2b48c teal 008080 thistle d8bfd8 tomato ff6347
turquoise 40e0d0 violet ee82ee wheat f5deb3 white ffffff whitesmoke f5f5f5 yellow ffff00
yellowgreen 9acd32
"""
_WORDS = _CSS.split()
NAMES: Mapping[str, str] = {
    name: f"#{value}" for name, value in zip(_WORDS[::2], _WORDS[1::2], strict=True)
}
_HEX = re.compile(r"#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})")
_AMOUNT = r"(\d{1,4}(?:\.\d{1,6})?)"
_FUNCTION = re.compile(
    rf"(rgb|hsl)a?\({_AMOUNT}(?:deg)?,?{_AMOUNT}%?,?{_AMOUNT}%?(?:[,/][\d.]{{1,8}}%?)?\)"
)
# What screens call colours by their purpose.
_ROLES = {
    **dict.fromkeys(("primary", "info", "link"), "#2563eb"),
    **dict.fromkeys(("success", "positive", "ok"), "#16a34a"),
    **dict.fromkeys(("danger", "error", "negative", "critical"), "#dc2626"),
    **dict.fromkeys(("warning", "warn"), "#d97706"),
    **dict.fromkeys(("muted", "secondary", "neutral"), "#64748b"),
}


class Theme(msgspec.Struct, frozen=True, kw_only=True):
    """The colours of a document.

    Attributes:
        background: the page.
        surface: cards, table rows and boxes on the page.
        ink: text.
        muted: text that matters less.
        line: borders and grid lines.
        accent: buttons, and what is to be noticed.
        series: the colours of data and of boxes, one after the other.
    """

    background: str
    surface: str
    ink: str
    muted: str
    line: str
    accent: str
    series: tuple[str, ...]


_BRIGHT = ("#3b6fd4", "#f08a3c", "#2fa37c", "#d6455d", "#8b5cc7", "#c9a227", "#3aa6c9", "#8a6d5b")
_SOFT = ("#7aa2ff", "#ffb072", "#5fd0a6", "#ff8095", "#c29bff", "#f0d060", "#72d3ee", "#c8a995")
THEMES: Mapping[str, Theme] = {
    "light": Theme(
        background="#ffffff",
        surface="#f4f6fa",
        ink="#1d2433",
        muted="#5b6577",
        line="#d5dbe6",
        accent="#3b6fd4",
        series=_BRIGHT,
    ),
    "dark": Theme(
        background="#141a26",
        surface="#1f2837",
        ink="#f2f5fa",
        muted="#a8b3c6",
        line="#36425a",
        accent="#7aa2ff",
        series=_SOFT,
    ),
    "warm": Theme(
        background="#fff7ec",
        surface="#ffecd2",
        ink="#43281a",
        muted="#7d5a46",
        line="#ecd3b4",
        accent="#c8502d",
        series=("#c8502d", "#e39b3b", "#7c9a4b", "#2f7f86", "#9a5b8f", "#b5895a"),
    ),
    "forest": Theme(
        background="#f3f8f1",
        surface="#e2eedd",
        ink="#1d3326",
        muted="#567060",
        line="#c5d8c3",
        accent="#2f7d4f",
        series=("#2f7d4f", "#8aa63c", "#c58b3a", "#3f7fa6", "#a65a4a", "#6d6aa8"),
    ),
    "blueprint": Theme(
        background="#12355b",
        surface="#1b4675",
        ink="#eaf4ff",
        muted="#a9c8e8",
        line="#3f6ea3",
        accent="#8fd3ff",
        series=("#8fd3ff", "#ffd166", "#9be8b0", "#ff9b9b", "#cdb4ff", "#f4f1de"),
    ),
}


def parse_colour(text: str, *, field: str = "color") -> str:
    """A colour as ``#rrggbb``, from a name of CSS, a role, hexadecimal digits, rgb() or hsl().

    How transparent a colour is does not count.

    Raises:
        InputInvalid: it is none of these.
    """
    plain = "".join(text.lower().split())
    if named := NAMES.get(plain) or _ROLES.get(plain):
        return named
    if found := _FUNCTION.fullmatch(plain):
        return _from_numbers(found[1], [float(one) for one in found.groups()[1:]])
    if not _HEX.fullmatch(plain):
        raise InputInvalid(
            f"{text[:40]!r} is not a colour",
            field=field,
            hint="Write a name as 'teal', or hexadecimal digits as '#0a7e8c'.",
        )
    return plain[:7] if len(plain) > 5 else "#" + "".join(digit * 2 for digit in plain[1:4])


def _from_numbers(kind: str, numbers: Sequence[float]) -> str:
    one, two, three = numbers
    parts = (one / 255, two / 255, three / 255)
    if kind == "hsl":
        parts = hls_to_rgb(one % 360 / 360, min(three / 100, 1), min(two / 100, 1))
    return "#" + "".join(f"{round(min(part, 1.0) * 255):02x}" for part in parts)


def luminance(colour: str) -> float:
    """The relative luminance of ``#rrggbb``, from 0 (black) to 1 (white), as WCAG defines it."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return 0.2126 * _linear(red) + 0.7152 * _linear(green) + 0.0722 * _linear(blue)


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def readable_on(background: str, *, dark: str = "#1d2433", light: str = "#ffffff") -> str:
    """The one of two text colours that reads better on a background."""
    return max(light, dark, key=lambda ink: contrast(ink, background))


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
