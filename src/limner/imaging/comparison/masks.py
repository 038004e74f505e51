"""Two pictures of one size -> masks of the pixels that differ. Runs inside a worker only.

The measure is that of pixelmatch: the distance of two colours in YIQ, weighted as people see it.
"""

from __future__ import annotations

from typing import Any

from PIL import Image, ImageChops, ImageFilter, ImageMath

# The share of the largest distance from which on a person sees a difference: pixelmatch's default.
_THRESHOLD = 0.1
_MAX_DISTANCE = 35_215
# No colour whose channels differ by less is that far away.
_LEAST_CHANNEL = 26
# In flat areas a person sees less than that, as when a button gets a darker shade.
_LEAST_FLAT = 5
# A pixel whose change is less than this share of the contrast around it may be anti-aliasing.
_ANTIALIASING = 0.6

_ABOVE = {least: [0] * least + [255] * (256 - least) for least in (1, _LEAST_FLAT, _LEAST_CHANNEL)}


def candidates(one: Image.Image, other: Image.Image) -> Image.Image:
    """White for each pixel that may differ visibly; `differing` decides."""
    change = largest_band(ImageChops.difference(one, other))
    return ImageChops.lighter(change.point(_ABOVE[_LEAST_CHANNEL]), _faint(one, other))


def differing(one: Image.Image, other: Image.Image) -> Image.Image:
    """White for each pixel whose colours differ visibly."""
    far = ImageMath.lambda_eval(
        _is_far, **dict(zip("rgbuvw", (*one.split(), *other.split()), strict=True))
    )
    return ImageChops.lighter(far, _faint(one, other))


def strong(one: Image.Image, other: Image.Image) -> Image.Image:
    """White for each pixel that changed by more than anti-aliasing can explain."""
    change = largest_band(ImageChops.difference(one, other))
    around = ImageChops.lighter(_contrast(one), _contrast(other))
    explained = around.point([max(8, int(value * _ANTIALIASING)) for value in range(256)])
    return ImageChops.subtract(change, explained).point(_ABOVE[1])


def largest_band(picture: Image.Image) -> Image.Image:
    """The largest of the three channels of each pixel."""
    red, green, blue = picture.split()
    return ImageChops.lighter(ImageChops.lighter(red, green), blue)


def unlike(picture: Image.Image, colour: tuple[int, int, int], *, least: int) -> Image.Image:
    """White for each pixel of which a channel differs from a colour by at least so much."""
    change = ImageChops.difference(picture, Image.new("RGB", picture.size, colour))
    return largest_band(change).point([0] * least + [255] * (256 - least))


def count(mask: Image.Image) -> int:
    """How many pixels of a mask are white."""
    return mask.histogram()[255]


def _is_far(given: dict[str, Any]) -> Any:
    to_float = given["float"]
    red, green, blue = (
        to_float(given[one]) - to_float(given[other])
        for one, other in (("r", "u"), ("g", "v"), ("b", "w"))
    )
    y = red * 0.29889531 + green * 0.58662247 + blue * 0.11448223
    i = red * 0.59597799 - green * 0.27417610 - blue * 0.32180189
    q = red * 0.21147017 - green * 0.52261711 + blue * 0.31114694
    squares = y * y * 0.5053 + i * i * 0.299 + q * q * 0.1957
    is_far = squares > _MAX_DISTANCE * _THRESHOLD * _THRESHOLD
    return given["convert"](given["int"](is_far) * 255, "L")


def _faint(one: Image.Image, other: Image.Image) -> Image.Image:
    faint = largest_band(ImageChops.difference(one, other)).point(_ABOVE[_LEAST_FLAT])
    return ImageChops.darker(faint, ImageChops.darker(_flat(one), _flat(other)))


def _flat(picture: Image.Image) -> Image.Image:
    """White for each pixel with exactly the colour of its neighbours on the right and below."""
    apart = [
        ImageChops.difference(picture, ImageChops.offset(picture, *step))
        for step in ((1, 0), (0, 1), (-1, 0), (0, -1))
    ]
    most = apart[0]
    for one in apart[1:]:
        most = ImageChops.lighter(most, one)
    return largest_band(most).point([255] + [0] * 255)


def _contrast(picture: Image.Image) -> Image.Image:
    """How much the colours around each pixel differ."""
    brightest = picture.filter(ImageFilter.MaxFilter(3))
    darkest = picture.filter(ImageFilter.MinFilter(3))
    return largest_band(ImageChops.subtract(brightest, darkest))
