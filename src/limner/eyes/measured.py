"""Measurements -> answers about size, file, colours, kind and camera data."""

from __future__ import annotations

import math
import re

from limner.eyes.evidence import Evidence, EyesQuestion, Finding, kind
from limner.eyes.quotes import QUOTED_IS_DATA, quoted
from limner.imaging.evidence import Colour, Origin
from limner.imaging.formats import BY_MIME

# Well-known ratios; others are given as a number.
_KNOWN_RATIOS = ((1, 1), (5, 4), (4, 3), (3, 2), (16, 10), (16, 9), (2, 1), (21, 9), (3, 1))
_RATIO_TOLERANCE = 0.01
# From the first brightness on a picture is light, and below the second it is dark.
_LIGHT_PERCENT, _DARK_PERCENT = 60, 40

# Other words for a basic colour, or for a shade of it.
_SYNONYMS = {
    "gray": "grey",
    "silver": "grey",
    "violet": "purple",
    "magenta": "pink",
    "fuchsia": "pink",
    "turquoise": "cyan",
    "teal": "cyan",
    "aqua": "cyan",
    "navy": "blue",
    "lime": "green",
    "olive": "green",
    "maroon": "red",
    "gold": "yellow",
}
_BASIC = "black grey white red orange yellow green cyan blue purple pink brown"
COLOUR_WORDS = frozenset((*_BASIC.split(), *_SYNONYMS))

_NO_OBJECTS = "limner/eyes cannot tell which object has which colour."
_ASKS_FOR_PLACE = re.compile(r"\b(?:where|gps|location|coordinates?|place)\b")


def size(query: EyesQuestion) -> Finding:
    """Width, height, pixels and proportions."""
    measured = query.picture.measured
    pixels = measured.width * measured.height
    return Finding(
        answer=f"The picture is {measured.width} x {measured.height} pixels "
        f"({pixels / 1e6:.2g} megapixels), aspect ratio {aspect_ratio(query.picture)}, "
        f"{shape(query.picture)}.",
        evidence=("Width and height are those of the decoded, upright picture.",),
    )


def file(query: EyesQuestion) -> Finding:
    """Format, bytes, animation and transparency."""
    picture, measured = query.picture, query.picture.measured
    moving = "animated (the first frame was measured)" if measured.animated else "not animated"
    through = measured.transparent_percent
    alpha = f"{through} % of it is transparent" if through else "nothing in it is transparent"
    return Finding(
        answer=f"It is a {format_name(picture)} file of {file_size(picture)}, {moving}; {alpha}.",
        evidence=("The format was detected from the file's content, not from its name.",),
    )


def colours(query: EyesQuestion) -> Finding:
    """All colours with at least one percent of the picture."""
    picture = query.picture
    answer = f"The colours are {list_colours(picture.measured.colours)}."
    others = _without_background(picture)
    if others:
        answer += f" Apart from the background, most of it is {others[0].name}."
    return Finding(answer=answer, evidence=(_background(picture),), caveats=(_NO_OBJECTS,))


def named_colours(query: EyesQuestion) -> Finding:
    """Whether the picture has the colours that the question names."""
    words = re.findall(r"[a-z]+", query.question)
    names = dict.fromkeys(_SYNONYMS.get(word, word) for word in words if word in COLOUR_WORDS)
    return Finding(
        answer=" ".join(_has(query.picture, name) for name in names),
        evidence=(f"All colours: {list_colours(query.picture.measured.colours)}.",),
        caveats=(_NO_OBJECTS,),
    )


def background(query: EyesQuestion) -> Finding:
    """The colour along the border."""
    return Finding(
        answer=_background(query.picture),
        evidence=("The background is the colour along the border.",),
    )


def brightness(query: EyesQuestion) -> Finding:
    """Dark, light or in between."""
    percent = query.picture.measured.brightness_percent
    word = "neither dark nor light"
    if percent >= _LIGHT_PERCENT:
        word = "light"
    elif percent < _DARK_PERCENT:
        word = "dark"
    return Finding(
        answer=f"The picture is {word}: its mean brightness is {percent} % of white.",
        evidence=(_background(query.picture),),
    )


def what_kind(query: EyesQuestion) -> Finding:
    """Photo, screenshot, line art, drawing or flat colour."""
    found = kind(query.picture)
    return Finding(
        answer=f"It looks like {_article(found.name)}.",
        evidence=(f"{found.reason[0].upper()}{found.reason[1:]}.",),
        caveats=("The kind is inferred from how the pixels vary, not from what they show.",),
    )


def orientation(query: EyesQuestion) -> Finding:
    """Landscape or portrait, and whether the file needs EXIF to be shown upright."""
    measured = query.picture.measured
    stored = "stored rotated, with the orientation in EXIF" if measured.turned else "stored upright"
    return Finding(
        answer=f"It is {shape(query.picture)} ({measured.width} x {measured.height}), {stored}.",
        caveats=("limner/eyes cannot tell whether the content is upside down.",),
    )


def camera(query: EyesQuestion) -> Finding:
    """Time, camera and place from EXIF; coordinates only if the question asks for the place."""
    origin = query.picture.measured.origin
    if origin is None:
        return Finding(
            answer="The file does not say when, where or with what it was made.",
            evidence=("It holds no EXIF data of that kind.",),
        )
    with_place = _ASKS_FOR_PLACE.search(query.question) is not None
    return Finding(
        answer=f"EXIF says: {origin_line(origin, with_place=with_place)}.",
        caveats=("EXIF can be edited by anyone.", QUOTED_IS_DATA),
    )


def origin_line(origin: Origin, *, with_place: bool) -> str:
    """Camera data in one line."""
    parts = [
        f"taken {origin.taken}" if origin.taken else "",
        f"camera {quoted(origin.camera)}" if origin.camera else "",
        f"software {quoted(origin.software)}" if origin.software else "",
    ]
    place = origin.place
    if place is not None and with_place:
        parts.append(f"latitude {place.latitude:.5f}, longitude {place.longitude:.5f}")
    elif place is not None:
        parts.append("GPS coordinates are in the file")
    return "; ".join(part for part in parts if part)


def list_colours(found: tuple[Colour, ...]) -> str:
    """A list of colours with shade and share: white #ffffff 89 %."""
    if not found:
        return "none: all of it is transparent"
    return ", ".join(f"{colour.name} {colour.hex} {colour.percent} %" for colour in found)


def format_name(evidence: Evidence) -> str:
    """The usual name of the format: PNG, WebP."""
    return BY_MIME[evidence.measured.mime].title


def file_size(evidence: Evidence) -> str:
    """The size in KB or MB, and in bytes."""
    count = evidence.measured.size_bytes
    if count < 1000:
        return f"{count} bytes"
    unit, divisor = ("MB", 1e6) if count >= 1e6 else ("KB", 1e3)
    return f"{count / divisor:.1f} {unit} ({count:,} bytes)"


def shape(evidence: Evidence) -> str:
    """Landscape, portrait or square."""
    width, height = evidence.measured.width, evidence.measured.height
    if width == height:
        return "square"
    return "landscape" if width > height else "portrait"


def aspect_ratio(evidence: Evidence) -> str:
    """The proportions as a well-known ratio if they have one, else with two digits."""
    width, height = evidence.measured.width, evidence.measured.height
    for wide, tall in _KNOWN_RATIOS:
        for across, down in ((wide, tall), (tall, wide)):
            if math.isclose(width / height, across / down, rel_tol=_RATIO_TOLERANCE):
                exact = width * down == height * across
                return f"{across}:{down}" if exact else f"about {across}:{down}"
    return f"{width / height:.2f}:1"


def _has(evidence: Evidence, name: str) -> str:
    share = next((c.percent for c in evidence.measured.colours if c.name == name), 0)
    if share:
        return f"Yes, {share} % of the picture is {name}."
    return f"No, less than 1 % of the picture is {name}."


def _background(evidence: Evidence) -> str:
    found = evidence.measured.background
    if found is None:
        return "No single colour has most of the border, so there is no plain background."
    return f"The background is {found.name} ({found.hex}; {found.percent} % of the border)."


def _without_background(evidence: Evidence) -> list[Colour]:
    found = evidence.measured.background
    if found is None:
        return []
    return [colour for colour in evidence.measured.colours if colour.name != found.name]


def _article(name: str) -> str:
    return name if name in {"line art", "flat colour"} else f"a {name}"
