"""The SVG of a picture and a colour -> the same picture with its main colour replaced."""

from __future__ import annotations

import colorsys
import re
from collections import Counter
from collections.abc import Collection, Mapping

_HEX = re.compile(r"#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3})\b")
# The hue of each basic colour in degrees; brown is a dark orange.
_HUES = {
    "red": 352,
    "orange": 28,
    "brown": 22,
    "yellow": 48,
    "green": 125,
    "blue": 212,
    "purple": 272,
    "pink": 328,
}
_NEAR_DEGREES = 42
_MIN_SATURATION = 0.22
_DARK = 0.3

# Picture -> part -> the numbers of the gradients in its drawing that paint the part.
PARTS: Mapping[str, Mapping[str, str]] = {
    "house": {"roof": "14 35", "door": "8 13", "chimney": "31 0 1 2 32", "window": "9 10 11 12"},
    # Parts without gradients are in the picture and stay as they are.
    "birthday-cake": {"candle": ""},
    "castle": {"tower": "", "gate": "", "wall": "", "flag": ""},
    "drawbridge-castle": {"tower": "", "gate": "", "wall": "", "drawbridge": ""},
    "wood-cabin": {"chimney": "", "door": "", "roof": ""},
    "derelict-house": {"door": "", "window": "", "roof": ""},
    "snowman": {"nose": "", "carrot nose": "", "scarf": "", "hat": ""},
    "sailing-ship": {"sail": "0", "flag": "2", "mast": "", "hull": "1"},
    "fishbowl": {"goldfish": "", "fish": ""},
    "treehouse": {"tree": "", "oak tree": "", "oak": "", "big tree": ""},
}
# How many of a part a picture has.
PART_COUNTS = {("castle", "tower"): 3, ("drawbridge-castle", "tower"): 4}
# Picture and part -> the picture that has this part.
WITH_PART = {
    ("castle", "drawbridge"): "drawbridge-castle",
    ("ship", "sail"): "sailing-ship",
    ("ship", "mast"): "sailing-ship",
    ("galleon", "sail"): "sailing-ship",
    ("sailboat", "sail"): "sailing-ship",
}

Hls = tuple[float, float, float]


def recolour(body: str, main: Collection[str], colour: str) -> str:
    """Replace the main colour of a drawing; light and shade and the other colours stay.

    ``main`` are the main colours of the drawing in basic words, the largest first.
    """
    used = Counter(_HEX.findall(body))
    chosen = _cluster(used, main)
    if not chosen:
        return body
    total = sum(used[one] for one in chosen)
    mean = sum(_hls(one)[1] * used[one] for one in chosen) / total
    target = _hls(colour)
    new = {one: _shade(_hls(one)[1] - mean, target) for one in chosen}
    return _HEX.sub(lambda found: new.get(found[0], found[0]), body)


def recolour_part(body: str, name: str, part: str, colour: str) -> str:
    """Replace the colours of a part of a picture, as the door of a house."""
    numbers = "|".join(PARTS[name][part].split())
    gradient = re.compile(rf'id="limner-{name}-(?:{numbers})".*?Gradient>')
    target = _hls(colour)
    lights = [_hls(one)[1] for found in gradient.findall(body) for one in _HEX.findall(found)]
    mean = sum(lights) / max(len(lights), 1)

    def repaint(found: re.Match[str]) -> str:
        return _HEX.sub(lambda one: _shade((_hls(one[0])[1] - mean) * 0.6, target), found[0])

    return gradient.sub(repaint, body)


def _cluster(used: Mapping[str, int], main: Collection[str]) -> list[str]:
    """The colours of a drawing that are shades of its main colour."""
    first = next(iter(main), "")
    bright = [one for one in used if _is_bright(one)]
    if first in _HUES:
        hue = _HUES[first]
        return [
            one for one in bright if _distance(_hls(one)[0] * 360, hue) < _NEAR_DEGREES
        ] or bright
    # A white duck with a green head is coloured as a whole, but for its dark parts.
    return [one for one in used if _hls(one)[1] > _DARK] or list(used)


def _is_bright(colour: str) -> bool:
    _, light, saturation = _hls(colour)
    return saturation > _MIN_SATURATION and 0.08 < light < 0.96


def _distance(one: float, other: float) -> float:
    apart = abs(one - other) % 360
    return min(apart, 360 - apart)


def _shade(lighter: float, target: Hls) -> str:
    hue, light, saturation = target
    level = min(max(light + lighter * 0.85, 0.06), 0.97)
    red, green, blue = colorsys.hls_to_rgb(hue, level, saturation)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def _hls(colour: str) -> Hls:
    digits = colour[1:]
    if len(digits) == 3:
        digits = "".join(digit * 2 for digit in digits)
    red, green, blue = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    return colorsys.rgb_to_hls(red, green, blue)
