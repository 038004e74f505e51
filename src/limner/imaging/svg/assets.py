"""``<asset name="…"/>`` elements -> ``<use>`` of one ``<symbol>`` for each asset named.

An asset is placed by ``x``, ``y`` (its top left corner, 0 by default) and ``size``, or ``width``
and ``height``; it keeps its proportions within that box. ``rotate`` turns it by degrees about the
middle of the box, ``flip`` mirrors it ("horizontal" or "vertical"), and any other attribute that
``use`` understands (``opacity``, ``transform``, ``filter``) works as usual.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec.structs import replace

from limner.errors import ImageError, UnsafeSvg
from limner.imaging.limits import WorkerLimits
from limner.imaging.svg import Asset, rules
from limner.imaging.svg.parser import SVG_NAMESPACE, XLINK_NAMESPACE, Element, parse

_FLIPS = {"horizontal": (-1, 1), "vertical": (1, -1)}
_OWN = frozenset(("name", "x", "y", "size", "width", "height", "rotate", "flip", "transform"))


def place_assets(root: Element, assets: Mapping[str, Asset], limits: WorkerLimits) -> None:
    """Replace every ``asset`` element below the root, in place.

    Raises:
        UnsafeSvg: a name is unknown, or an attribute is wrong.
    """
    found = [element for element in root.elements() if element.tag == "asset"]
    # Dictionary keys keep the order of first use, so the same document gives the same bytes.
    names = dict.fromkeys(element.attributes.get("name", "") for element in found)
    if unknown := [name for name in names if name not in assets]:
        raise UnsafeSvg(
            f"no asset is named {', '.join(map(repr, unknown))}",
            hint="find names with `limner assets search WORD`",
        )
    for element in found:
        _convert_to_use(element)
    if names:
        symbols = [_symbol(name, assets[name], limits) for name in names]
        root.children.insert(0, Element("defs", {}, [*symbols]))


def _convert_to_use(element: Element) -> None:
    given = element.attributes
    width = _number(given, "width", given.get("size"))
    height = _number(given, "height", given.get("size"))
    x, y = _number(given, "x", "0"), _number(given, "y", "0")
    passed_on = {name: value for name, value in given.items() if name not in _OWN}
    transform = " ".join(
        (given.get("transform", ""), *_turns(given, middle=(x + width / 2, y + height / 2)))
    ).strip()
    element.tag = "use"
    element.children = []
    element.attributes = {
        "href": f"#{_symbol_id(given['name'])}",
        "x": f"{x:g}",
        "y": f"{y:g}",
        "width": f"{width:g}",
        "height": f"{height:g}",
        **({"transform": transform} if transform else {}),
        **passed_on,
    }


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
        number = float(text) if text is not None else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        what = "is missing" if text is None else f"is {text!r}"
        raise UnsafeSvg(f"{name} of <asset name={given['name']!r}> {what}: give a number")
    return number


def _symbol_id(name: str) -> str:
    return f"asset-{name}"


def _symbol(name: str, asset: Asset, limits: WorkerLimits) -> Element:
    """The asset as a symbol; its ids get a prefix, so that no two assets share an id."""
    document = f'<svg xmlns="{SVG_NAMESPACE}" xmlns:xlink="{XLINK_NAMESPACE}">{asset.body}</svg>'
    try:
        root = parse(document, limits)
    except ImageError as error:
        raise UnsafeSvg(f"the asset {name!r} cannot be drawn: {error.message}") from error
    prefix = f"{_symbol_id(name)}-"
    for element in root.elements():
        element.attributes = {
            key: _add_prefix(key, value, prefix) for key, value in element.attributes.items()
        }
    symbol = {"id": _symbol_id(name), "viewBox": asset.view_box}
    return replace(root, tag="symbol", attributes=symbol)


def _add_prefix(name: str, value: str, prefix: str) -> str:
    if name == "id":
        return prefix + value
    if name == "href":
        return f"#{prefix}{value[1:]}"
    return rules.rename_references(value, prefix)
