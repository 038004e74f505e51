"""Elements, attributes and CSS of an SVG document -> allowed, dropped or refused.

A document may draw, and may not refer to anything outside itself. An element is drawn, or dropped
with its content (it draws nothing), or refused by name, so that the author can fix the document.
Attributes that are not listed are dropped, except event handlers, which are refused. A ``style``
element or attribute is kept if it has no at-rules, no escapes and no ``url()`` but ``url(#id)``.
A font in the document is dropped: a file of limner has one, and the bundled font is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from limner.errors import UnsafeSvg

_ELEMENTS = """
    svg g defs symbol use style asset scene
    path rect circle ellipse line polyline polygon
    text tspan textPath
    linearGradient radialGradient stop pattern marker clipPath mask
    filter feGaussianBlur feOffset feMerge feMergeNode feColorMatrix feComponentTransfer
    feFuncR feFuncG feFuncB feFuncA feFlood feComposite feBlend feDropShadow feTurbulence
    feDisplacementMap
"""
DRAWN = frozenset(_ELEMENTS.split())
DROPPED = frozenset(("title", "desc", "metadata"))
# Elements whose text is drawn; in other elements text is only the layout of the source.
TEXT_HOLDERS = frozenset(("text", "tspan", "textPath", "style"))

_STILL = "a drawing is not animated"
REASONS = {
    "script": "a drawing contains no code",
    "foreignObject": "only SVG can be drawn; use <text> and shapes",
    "image": "pictures cannot be embedded; use shapes or <asset>",
    "feImage": "pictures cannot be embedded",
    "a": "a drawing has no links; keep what is inside it",
    "feMorphology": "it can take minutes to draw; use a stroke instead",
    "feConvolveMatrix": "it can take minutes to draw",
    "animate": _STILL,
    "animateTransform": _STILL,
    "animateMotion": _STILL,
    "set": _STILL,
}

_STRUCTURE = """
    id class style transform x y width height viewBox preserveAspectRatio href
    name size rotate flip shadow
"""
_GEOMETRY = (
    "d points cx cy r rx ry x1 y1 x2 y2 pathLength dx dy textLength lengthAdjust startOffset"
)
_PAINT_SERVERS = """
    offset stop-color stop-opacity gradientUnits gradientTransform spreadMethod fx fy fr
    patternUnits patternContentUnits patternTransform
    clipPathUnits maskUnits maskContentUnits mask-type
    markerUnits markerWidth markerHeight refX refY orient
"""
_FILTERS = """
    filterUnits primitiveUnits in in2 result stdDeviation edgeMode type values tableValues slope
    intercept amplitude exponent operator k1 k2 k3 k4 mode flood-color flood-opacity
    baseFrequency numOctaves seed stitchTiles scale xChannelSelector yChannelSelector
"""
_PRESENTATION = """
    fill fill-opacity fill-rule stroke stroke-width stroke-opacity stroke-linecap stroke-linejoin
    stroke-miterlimit stroke-dasharray stroke-dashoffset paint-order vector-effect color opacity
    display visibility overflow clip-path clip-rule mask filter marker marker-start marker-mid
    marker-end mix-blend-mode isolation color-interpolation color-interpolation-filters
    shape-rendering text-rendering transform-origin
    font font-family font-size font-style font-weight font-stretch font-variant font-kerning
    text-anchor text-decoration letter-spacing word-spacing dominant-baseline alignment-baseline
    baseline-shift writing-mode direction unicode-bidi xml:space
"""
ATTRIBUTES = frozenset(
    " ".join((_STRUCTURE, _GEOMETRY, _PAINT_SERVERS, _FILTERS, _PRESENTATION)).split()
)

# The largest number these filter attributes may hold.
_CAPS = {"stdDeviation": 500.0, "numOctaves": 5.0}

_LOCAL_URL = re.compile(r"url\(\s*(['\"]?)#([^'\"()\s]+)\1\s*\)", re.IGNORECASE)
_ANY_URL = re.compile(r"(?:url|src|image|image-set|-webkit-image-set)\s*\(", re.IGNORECASE)
_EMBEDDED_FONT = re.compile(
    r"@font-face\s*\{(?:[^{}()@\\]|url\(\s*['\"]?data:(?:font|application)/[\w.+-]+;base64,"
    r"[A-Za-z0-9+/=]*['\"]?\))*\}"
)
_AT_RULE = re.compile(r"@[\w-]*")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def is_drawn(tag: str) -> bool:
    """Whether an element is drawn (True) or dropped (False).

    Raises:
        UnsafeSvg: the element is refused; the message names it and says why.
    """
    if tag in DRAWN:
        return True
    if tag in DROPPED:
        return False
    reason = REASONS.get(tag, "it is not one of the elements a drawing is made of")
    raise UnsafeSvg(f"remove <{tag}>: {reason}")


def kept_attributes(tag: str, given: Mapping[str, str]) -> dict[str, str]:
    """The attributes of an element that are kept, each value checked.

    Raises:
        UnsafeSvg: an event handler, a reference outside the document, or a number over its cap.
    """
    kept: dict[str, str] = {}
    for name, value in given.items():
        if name.lower().startswith("on"):
            raise UnsafeSvg(f"remove the attribute {name!r} of <{tag}>: a drawing contains no code")
        if name not in ATTRIBUTES:
            continue
        _check_value(f"{name!r} of <{tag}>", name, value)
        kept[name] = value
    return kept


def without_embedded_fonts(css: str) -> str:
    """CSS without the fonts whose bytes are in it."""
    return _EMBEDDED_FONT.sub("", css)


def check_css(css: str, *, where: str) -> None:
    """Refuse CSS that loads anything or hides it with escapes.

    Raises:
        UnsafeSvg: an at-rule, an escape, or a ``url()`` outside the document.
    """
    if at_rule := _AT_RULE.search(css):
        raise UnsafeSvg(f"remove {at_rule[0]} from {where}: only plain rules are allowed")
    if "\\" in css:
        raise UnsafeSvg(f"remove the backslash from {where}: write the character itself")
    _check_urls(css, where=where)


def local_references(value: str) -> list[str]:
    """The ids that the ``url(#id)`` parts of a value name."""
    return [found[1] for found in _LOCAL_URL.findall(value)]


def rename_references(value: str, prefix: str) -> str:
    """The value with a prefix before every id that its ``url(#id)`` parts name."""
    return _LOCAL_URL.sub(lambda found: f"url(#{prefix}{found[2]})", value)


def _check_value(where: str, name: str, value: str) -> None:
    if name == "href" and not (value.startswith("#") and len(value) > 1):
        raise UnsafeSvg(f"{where} is {value[:80]!r}: only '#id' within the document is allowed")
    if name == "style":
        check_css(value, where=where)
    _check_urls(value, where=where)
    cap = _CAPS.get(name)
    if cap is not None and any(float(number) > cap for number in _NUMBER.findall(value)):
        raise UnsafeSvg(f"{where} is {value[:80]!r}: at most {cap:g} is allowed")


def _check_urls(value: str, *, where: str) -> None:
    rest = _LOCAL_URL.sub("", value)
    if _ANY_URL.search(rest):
        message = (
            f"{where} holds {rest.strip()[:80]!r}: only url(#id) within the document is allowed"
        )
        raise UnsafeSvg(message)
