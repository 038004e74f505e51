"""``<asset name="…"/>`` and ``<scene name="…"/>`` elements -> ``<use>`` of one ``<symbol>`` each.

An asset is placed by ``x``, ``y`` (its top left corner, 0 by default) and ``size``, or ``width``
and ``height``; it keeps its proportions within that box. ``rotate`` turns it by degrees about the
middle of the box, ``flip`` mirrors it ("horizontal" or "vertical"), ``color`` paints it in shades
of one colour and ``shadow="true"`` adds a soft shadow below it. A scene fills the drawing, or the
box that it names. Any other attribute that a group understands (``opacity``, ``transform``,
``filter``) works as usual.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec.structs import replace
from PIL import ImageColor

from limner.errors import ImageError, UnsafeSvg
from limner.imaging.limits import WorkerLimits
from limner.imaging.svg import Asset, rules, scene_key
from limner.imaging.svg.parser import SVG_NAMESPACE, XLINK_NAMESPACE, Element, parse

_FLIPS = {"horizontal": (-1, 1), "vertical": (1, -1)}
_BOX = ("x", "y", "width", "height")
_OWN = frozenset((*_BOX, "name", "size", "rotate", "flip", "color", "shadow"))
# How much of red, green and blue is in the brightness of a pixel.
_BRIGHTNESS = " ".join(["0.3 0.55 0.15 0 0"] * 3)
_DARKEST, _LIGHTEST = (16, 16, 24), (255, 255, 255)
_MAX_BLUR = 60.0


def place_assets(root: Element, assets: Mapping[str, Asset], limits: WorkerLimits) -> None:
    """Replace every ``scene`` and ``asset`` element below the root, in place.

    Raises:
        UnsafeSvg: a name is unknown, or an attribute is wrong.
    """
    # A scene may have assets in it, so it comes first.
    _Placing("scene", assets, limits).run(root)
    _Placing("asset", assets, limits).run(root)


class _Placing:
    """Replaces the elements of one tag, and collects what they refer to."""

    def __init__(self, tag: str, assets: Mapping[str, Asset], limits: WorkerLimits) -> None:
        self._tag = tag
        self._assets = assets
        self._limits = limits
        # A name may have blanks, and an id may not, so ids are numbers in the order of first use.
        self._symbols: dict[str, Element] = {}
        self._looks: dict[tuple[str, float], Element] = {}

    def run(self, root: Element) -> None:
        """Replace the elements below a root."""
        found = [element for element in root.elements() if element.tag == self._tag]
        keys = {id(element): self._key(element) for element in found}
        if unknown := [key for key in dict.fromkeys(keys.values()) if key not in self._assets]:
            raise UnsafeSvg(
                f"no asset is named {', '.join(map(repr, unknown))}",
                hint="find names with `limner assets search WORD`",
            )
        for element in found:
            self._replace(element, keys[id(element)])
        if found:
            definitions = [*self._symbols.values(), *self._looks.values()]
            root.children.insert(0, Element("defs", {}, [*definitions]))

    def _key(self, element: Element) -> str:
        name = element.attributes.get("name", "")
        return scene_key(name) if self._tag == "scene" else name

    def _replace(self, element: Element, key: str) -> None:
        given = element.attributes
        if key not in self._symbols:
            self._symbols[key] = self._symbol(key)
        use = {"href": f"#{self._symbols[key].attributes['id']}"}
        if self._tag == "scene":
            whole = {"x": "0", "y": "0", "width": "100%", "height": "100%"}
            content = Element("use", {**use, **whole, **_only(given, _BOX)}, [])
        else:
            content = self._asset(use, given)
        element.tag = "g"
        element.attributes = {name: text for name, text in given.items() if name not in _OWN}
        element.children = [content]

    def _asset(self, use: dict[str, str], given: Mapping[str, str]) -> Element:
        width = _number(given, "width", given.get("size"))
        height = _number(given, "height", given.get("size"))
        x, y = _number(given, "x", "0"), _number(given, "y", "0")
        numbers = (f"{number:g}" for number in (x, y, width, height))
        use |= dict(zip(_BOX, numbers, strict=True))
        if turns := _turns(given, middle=(x + width / 2, y + height / 2)):
            use["transform"] = " ".join(turns)
        drawn = Element("use", use, [])
        shaded = given.get("shadow", "").strip().lower() not in {"", "false", "none", "no", "0"}
        blur = min(abs(max(width, height)) * 0.02, _MAX_BLUR) if shaded else 0.0
        look = (given.get("color", "").strip(), blur)
        if look == ("", 0.0):
            return drawn
        if look not in self._looks:
            identifier = f"asset-look-{len(self._looks)}"
            self._looks[look] = _filter(identifier, *look)
        return Element("g", {"filter": f"url(#{self._looks[look].attributes['id']})"}, [drawn])

    def _symbol(self, key: str) -> Element:
        """The drawing as a symbol; its ids get a prefix, so that no two drawings share an id."""
        asset = self._assets[key]
        body = f'<svg xmlns="{SVG_NAMESPACE}" xmlns:xlink="{XLINK_NAMESPACE}">{asset.body}</svg>'
        try:
            root = parse(body, self._limits)
        except ImageError as error:
            raise UnsafeSvg(f"the asset {key!r} cannot be drawn: {error.message}") from error
        identifier = f"{self._tag}-{len(self._symbols)}"
        for element in root.elements():
            element.attributes = {
                name: _add_prefix(name, text, f"{identifier}-")
                for name, text in element.attributes.items()
            }
        symbol = {"id": identifier, "viewBox": asset.view_box}
        if self._tag == "scene":
            symbol["preserveAspectRatio"] = "xMidYMid slice"
        return replace(root, tag="symbol", attributes=symbol)


def _only(given: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    return {name: given[name] for name in names if name in given}


def _filter(identifier: str, color: str, blur: float) -> Element:
    """A filter that paints an asset in shades of one colour, and blurs a shadow below it."""
    steps: list[Element] = [*(_shades(color) if color else ())]
    if blur:
        shadow = {"dx": "0", "dy": f"{blur * 1.5:g}", "stdDeviation": f"{blur:g}"}
        steps.append(Element("feDropShadow", {**shadow, "flood-opacity": "0.4"}, []))
    room = {"x": "-20%", "y": "-20%", "width": "140%", "height": "150%"}
    look = {"id": identifier, "color-interpolation-filters": "sRGB", **room}
    return Element("filter", look, [*steps])


def _shades(color: str) -> list[Element]:
    """Replace all colours with shades of one, and keep light and shade."""
    try:
        middle = ImageColor.getrgb(color)[:3]
    except ValueError:
        raise UnsafeSvg(
            f"color of <asset> is {color[:40]!r}: use a name as 'teal' or digits as '#0a7e8c'"
        ) from None
    channels: list[Element] = []
    for channel, dark, one, light in zip("RGB", _DARKEST, middle, _LIGHTEST, strict=True):
        shades = (round(one + (dark - one) * 0.72), one, round(one + (light - one) * 0.82))
        table = " ".join(f"{shade / 255:.3f}" for shade in shades)
        channels.append(Element(f"feFunc{channel}", {"type": "table", "tableValues": table}, []))
    brightness = {"type": "matrix", "values": f"{_BRIGHTNESS} 0 0 0 1 0"}
    return [
        Element("feColorMatrix", brightness, []),
        Element("feComponentTransfer", {}, [*channels]),
    ]


def _turns(given: Mapping[str, str], *, middle: tuple[float, float]) -> list[str]:
    x, y = middle
    turns: list[str] = []
    if "rotate" in given:
        turns.append(f"rotate({_number(given, 'rotate', None):g} {x:g} {y:g})")
    if "flip" in given:
        if given["flip"] not in _FLIPS:
            raise UnsafeSvg(f"flip of <asset> is {given['flip']!r}: use 'horizontal' or 'vertical'")
        across, down = _FLIPS[given["flip"]]
        turns.append(f"translate({x:g} {y:g}) scale({across} {down}) translate({-x:g} {-y:g})")
    return turns


def _number(given: Mapping[str, str], name: str, default: str | None) -> float:
    text = given.get(name, default)
    try:
        number = float(text.strip().removesuffix("px")) if text is not None else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        what = "is missing" if text is None else f"is {text!r}"
        raise UnsafeSvg(f"{name} of <asset name={given['name']!r}> {what}: give a number")
    return number


def _add_prefix(name: str, value: str, prefix: str) -> str:
    if name == "id":
        return prefix + value
    if name == "href":
        return f"#{prefix}{value[1:]}"
    return rules.rename_references(value, prefix)
