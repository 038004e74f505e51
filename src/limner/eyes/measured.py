"""Measurements -> answers about size, file, colours, kind and camera data."""

from __future__ import annotations

import math
import re

from limner.eyes.evidence import Evidence, EyesQuestion, Finding, kind
from limner.eyes.quotes import QUOTED_IS_DATA, quoted
from limner.eyes.words import tokens
from limner.imaging.evidence import Colour, Origin
from limner.imaging.evidence.colour_names import COLOUR_WORDS, basic_word, matches_word
from limner.imaging.formats import BY_MIME

# Well-known ratios; others are given as a number.
_KNOWN_RATIOS = ((1, 1), (5, 4), (4, 3), (3, 2), (16, 10), (16, 9), (2, 1), (21, 9), (3, 1))
_RATIO_TOLERANCE = 0.01
# From the first brightness on a picture is light, and below the second it is dark.
_LIGHT_PERCENT, _DARK_PERCENT = 60, 40

_NO_OBJECTS = "limner/eyes cannot tell which object has which colour."
_ASKS_FOR_SHAPE = re.compile(r"\b(?:orientation|portrait|landscape)\b")
# Below this the edges of a picture become steeper if it is made smaller, so they were soft.
_SHARP_FOCUS = 65
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
    names = dict.fromkeys(word for word in tokens(query.question) if word in COLOUR_WORDS)
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
    """Whether the text is turned, landscape or portrait, and whether the file relies on EXIF."""
    picture, measured = query.picture, query.picture.measured
    stored = "stored rotated, with the orientation in EXIF" if measured.turned else "stored upright"
    shown = f"It is {shape(picture)} ({measured.width} x {measured.height}), {stored}."
    turned = picture.page.turned
    if turned:
        way = "upside down" if turned == 180 else "sideways"
        answer = f"Yes, the text is {way}: turned by {turned} degrees clockwise."
        return Finding(answer=answer, evidence=(shown, "OCR reads it only in that direction."))
    if picture.lines and not _ASKS_FOR_SHAPE.search(query.question):
        return Finding(answer="No, the text is upright.", evidence=(shown,))
    return Finding(
        answer=shown,
        caveats=("Only text tells whether the content is upside down.",)
        if not picture.lines
        else (),
    )


def focus(query: EyesQuestion) -> Finding | None:
    """Whether the picture is sharp."""
    ratio = query.picture.measured.texture.focus
    if not ratio:
        return None
    word = "sharp" if ratio >= _SHARP_FOCUS else "blurred"
    asked_blurred = re.search(r"blur|out of focus", query.question) is not None
    yes = "Yes" if (word == "blurred") == asked_blurred else "No"
    return Finding(
        answer=f"{yes}, the picture is {word}.",
        evidence=(f"Its edges have {ratio} % of the steepness that they have at half its size.",),
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
    return ", ".join(f"{name_colour(colour)} {colour.hex} {colour.percent} %" for colour in found)


def name_colour(colour: Colour) -> str:
    """The name of a colour, with the basic word if the name does not have it: navy (blue)."""
    basic = basic_word(colour.name)
    return colour.name if basic in colour.name else f"{colour.name} ({basic})"


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
    colours = evidence.measured.colours
    share = sum(colour.percent for colour in colours if matches_word(colour.name, name))
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
    return [colour for colour in evidence.measured.colours if colour.hex != found.hex]


def _article(name: str) -> str:
    return name if name in {"line art", "flat colour"} else f"a {name}"
