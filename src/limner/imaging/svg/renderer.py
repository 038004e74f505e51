"""An SVG document -> PNG bytes, at a given size or its own, with resvg. Worker only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec
import resvg_py

from limner.errors import ImageTooLarge, UnsafeSvg
from limner.imaging.fonts import CJK, FONTS, cjk_family, cjk_font, style_for
from limner.imaging.limits import WorkerLimits
from limner.imaging.svg import Asset, rules
from limner.imaging.svg.assets import place_assets
from limner.imaging.svg.dashes import scale_dashes
from limner.imaging.svg.embedded_fonts import embed_fonts
from limner.imaging.svg.parser import SVG_NAMESPACE, Element, parse

# The longer edge of a document without a size, and the longest that is allowed.
DEFAULT_EDGE = 1024
MAX_EDGE = 2048
# A view box with a longer edge of this or more is meant in pixels.
MIN_PIXEL_EDGE = 300

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_NATURAL_LENGTH = re.compile(rf"\s*({_NUMBER})(px|pt|pc|mm|cm|in)?\s*")
_VIEW_BOX = re.compile(
    rf"\s*({_NUMBER})(?:\s*,\s*|\s+)({_NUMBER})(?:\s*,\s*|\s+)({_NUMBER})(?:\s*,\s*|\s+)({_NUMBER})\s*"
)
_PIXELS = {"px": 1.0, "pt": 96 / 72, "pc": 16.0, "mm": 96 / 25.4, "cm": 96 / 2.54, "in": 96.0}
_PIXEL_LENGTH = re.compile(r"\s*\+?(\d+(?:\.\d*)?|\.\d+)(?:px)?\s*")

_FONT_FILES = [path for font in FONTS.values() for path in font.paths]
_CJK_FILES = [str(path)] if (path := cjk_font()) else []
_SANS = FONTS["sans"].family
_MAX_STRETCH = 0.005
_FAMILY_RULE = re.compile(r"font-family\s*:\s*([^;}]+)", re.IGNORECASE)
_FONT_RULE = re.compile(r"(?<![\w-])font\s*:\s*([^;}]+)", re.IGNORECASE)
_FONT_SIZE = re.compile(r"[\d.]+[a-z%]+|(?:xx?-)?(?:small|large)|medium", re.IGNORECASE)
_FONT_WEIGHT = re.compile(r"bold(?:er)?|lighter|[1-9]00", re.IGNORECASE)


class SvgFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a document says of itself: its size in pixels, its font families and all its text."""

    width: int
    height: int
    families: tuple[str, ...]
    text: str


def render(
    document: str,
    *,
    width: int,
    height: int,
    assets: Mapping[str, Asset],
    limits: WorkerLimits,
) -> bytes:
    """Draw an untrusted document.

    The ``viewBox`` and ``preserveAspectRatio`` of the document place it within width x height. A
    document without ``viewBox`` is scaled from its own width and height, and one without those is
    drawn in output pixels. The rest of the picture is transparent.

    Raises:
        UnsafeSvg: it contains something that is not allowed, or names an unknown asset.
        ImageTooLarge: the document or the picture is over a limit.
        CorruptImage: it is not an SVG document that can be drawn.
    """
    root = _prepare(document, width=width, height=height, assets=assets, limits=limits)
    return _draw(root.to_text())


def resolve(
    document: str, *, width: int, height: int, assets: Mapping[str, Asset], limits: WorkerLimits
) -> str:
    """An untrusted document as SVG that any viewer can draw: checked, of a size, without assets.

    Text stays text, and the letters that it needs are in the file.

    Raises:
        ImageError: as `render`.
    """
    root = _prepare(document, width=width, height=height, assets=assets, limits=limits)
    embed_fonts(root)
    return root.to_text()


def _prepare(
    document: str, *, width: int, height: int, assets: Mapping[str, Asset], limits: WorkerLimits
) -> Element:
    edge = limits.max_svg_edge
    if not (1 <= width <= edge and 1 <= height <= edge):
        raise ImageTooLarge(f"{width}x{height}: a drawing may be 1 to {edge} pixels on each side")
    root = _parse_and_check(document, assets, limits)
    root.attributes.setdefault("font-family", FONTS["sans"].css)
    _set_size(root, width=width, height=height)
    return root


def render_at_natural_size(document: str, limits: WorkerLimits) -> bytes:
    """Draw an untrusted document without assets, at its `natural_size`.

    Raises:
        ImageError: as `render`.
    """
    root = _parse_and_check(document, {}, limits)
    width, height = natural_size(root)
    _set_size(root, width=width, height=height)
    return _draw(root.to_text())


def measure_svg(document: str, limits: WorkerLimits) -> SvgFacts:
    """Parse an untrusted document, and say how large it is and which fonts and text it has.

    Raises:
        ImageError: it is not a document that can be drawn.
    """
    _check_length(document, limits)
    root = parse(document, limits)
    families: list[str] = []
    text: list[str] = []
    for element in root.elements():
        own = element.attributes
        words = [child for child in element.children if isinstance(child, str)]
        if "font-family" in own:
            families.append(own["font-family"])
        styles = [own.get("style", ""), *(words if element.tag == "style" else ())]
        rules_of_text = map(_split_font_rules, styles)
        families += [rule.strip() for css in rules_of_text for rule in _FAMILY_RULE.findall(css)]
        if element.tag != "style":
            text += words
    width, height = natural_size(root)
    return SvgFacts(
        width=width, height=height, families=tuple(dict.fromkeys(families)), text="".join(text)
    )


def _check_length(document: str, limits: WorkerLimits) -> None:
    if len(document.encode()) > limits.max_svg_bytes:
        raise ImageTooLarge(f"the SVG document has more than {limits.max_svg_bytes:,} bytes")


def _parse_and_check(document: str, assets: Mapping[str, Asset], limits: WorkerLimits) -> Element:
    _check_length(document, limits)
    root = parse(document, limits)
    place_assets(root, assets, limits)
    _use_bundled_fonts(root)
    scale_dashes(root)
    check_expansion(root, limits)
    return root


def _use_bundled_fonts(root: Element) -> None:
    """Replace every font family by the bundled font that looks most alike."""
    for element in root.elements():
        own = element.attributes
        if "font-family" in own:
            own["font-family"] = FONTS[style_for(own["font-family"])].css
        if "style" in own:
            own["style"] = _with_bundled_fonts(own["style"])
        if element.tag == "style":
            element.children = [
                _with_bundled_fonts(child) if isinstance(child, str) else child
                for child in element.children
            ]
    if _CJK_FILES:
        _use_cjk_font(root)


def _use_cjk_font(root: Element) -> None:
    """Put Chinese, Japanese and Korean characters into elements of their own, with their font.

    The renderer would find them in that font without this, but in the shapes of one language.
    """
    holders = [one for one in root.elements() if one.tag in rules.TEXT_HOLDERS - {"style"}]
    texts = [child for one in holders for child in one.children if isinstance(child, str)]
    document = "".join(texts)
    if not CJK.search(document):
        return
    for element in holders:
        element.children = [
            piece
            for child in element.children
            for piece in (_split_cjk(child, document) if isinstance(child, str) else [child])
        ]


def _split_cjk(text: str, document: str) -> Iterator[Element | str]:
    family = f"'{cjk_family(text, document)}', sans-serif"
    start = 0
    for found in CJK.finditer(text):
        if before := text[start : found.start()]:
            yield before
        yield Element("tspan", {"font-family": family}, [found[0]])
        start = found.end()
    if rest := text[start:]:
        yield rest


def _with_bundled_fonts(css: str) -> str:
    return _FAMILY_RULE.sub(_bundled_rule, _split_font_rules(css))


def _split_font_rules(css: str) -> str:
    """Write each ``font: bold 14px/1.2 Arial`` as separate rules, since resvg misreads some."""
    return _FONT_RULE.sub(_split_font_rule, css)


def _split_font_rule(found: re.Match[str]) -> str:
    before, size, after = _around_size(found[1].split())
    if not size:
        return found[0]
    words = [word.lower() for word in before]
    rules_of_font = {
        "font-style": next((word for word in words if word in {"italic", "oblique"}), "normal"),
        "font-weight": next((word for word in words if _FONT_WEIGHT.fullmatch(word)), "normal"),
        "font-size": size,
        "font-family": " ".join(after) or "sans-serif",
    }
    return "; ".join(f"{name}: {value}" for name, value in rules_of_font.items())


def _around_size(words: list[str]) -> tuple[list[str], str, list[str]]:
    """The words before the size of a font, the size without the height of a line, and the rest."""
    for place, word in enumerate(words):
        size, slash, height = word.partition("/")
        if not _FONT_SIZE.fullmatch(size):
            continue
        rest = words[place + 1 :]
        if not slash and rest and rest[0].startswith("/"):
            slash, height, rest = "/", rest[0][1:], rest[1:]
        # "14px / 1.2" has its height in the next word.
        return words[:place], size, rest[1:] if slash and not height else rest
    return words, "", []


def _bundled_rule(found: re.Match[str]) -> str:
    return f"font-family: {FONTS[style_for(found[1])].css}"


def _set_size(root: Element, *, width: int, height: int) -> None:
    own = root.attributes
    if "viewBox" not in own:
        across = _PIXEL_LENGTH.fullmatch(own.get("width", ""))
        down = _PIXEL_LENGTH.fullmatch(own.get("height", ""))
        if across and down:
            own["viewBox"] = f"0 0 {across[1]} {down[1]}"
    if (box := _view_box(root)) and _fills(box, width=width, height=height):
        own.setdefault("preserveAspectRatio", "none")
    root.attributes = {
        "xmlns": SVG_NAMESPACE,
        **own,
        "width": str(width),
        "height": str(height),
    }


def _fills(box: tuple[float, float], *, width: int, height: int) -> bool:
    """Whether a drawing has almost the shape of the picture: rounding has changed it.

    Scaled in proportion, it would leave a transparent seam at two edges.
    """
    return 0 < abs(width * box[1] / (height * box[0]) - 1) < _MAX_STRETCH


def _draw(text: str) -> bytes:
    return resvg_py.svg_to_bytes(
        svg_string=text,
        skip_system_fonts=True,
        # It is large, so it is read only for a document that needs it.
        font_files=_FONT_FILES + (_CJK_FILES if CJK.search(text) else []),
        font_family=_SANS,
    )


def natural_size(root: Element) -> tuple[int, int]:
    """Width and height that show the whole drawing in proportion, within `MAX_EDGE`.

    If the root has a width and a height but no view box, it gets the view box they imply, so that
    it can be drawn at any size.
    """
    width, height = _length(root, "width"), _length(root, "height")
    box = _view_box(root)
    if box is None:
        if width and height:
            root.attributes["viewBox"] = f"0 0 {width} {height}"
        return _limit_edges(width or height or DEFAULT_EDGE, height or width or DEFAULT_EDGE)
    if width and height:
        return _limit_edges(width, height)
    if width or height:
        scale = width / box[0] if width else (height or 0) / box[1]
    else:
        # A view box that could be pixels is taken as pixels; an icon of 24 by 24 is not.
        scale = 1.0 if MIN_PIXEL_EDGE <= max(box) <= MAX_EDGE else DEFAULT_EDGE / max(box)
    return _limit_edges(box[0] * scale, box[1] * scale)


def _limit_edges(width: float, height: float) -> tuple[int, int]:
    scale = min(1.0, MAX_EDGE / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))


def _length(root: Element, name: str) -> float | None:
    """A length of the root in pixels; None if it is relative to something outside."""
    found = _NATURAL_LENGTH.fullmatch(root.attributes.get(name, ""))
    return _positive(float(found[1]) * _PIXELS[found[2] or "px"]) if found else None


def _view_box(root: Element) -> tuple[float, float] | None:
    found = _VIEW_BOX.fullmatch(root.attributes.get("viewBox", ""))
    if found is None:
        return None
    width, height = _positive(float(found[3])), _positive(float(found[4]))
    return (width, height) if width and height else None


def _positive(number: float) -> float | None:
    # No real drawing has other lengths, and dividing by them would overflow.
    return number if 1e-9 <= number <= 1e9 else None


def check_expansion(root: Element, limits: WorkerLimits) -> None:
    """Refuse a document that refers to itself, or grows too large or too deep.

    If several elements share an id, the first one keeps it, as in a browser. The renderer then
    follows the same references that are counted here.

    Raises:
        UnsafeSvg: a reference leads back to itself.
        ImageTooLarge: the expanded document is over a limit.
    """
    targets: dict[str, Element] = {}
    for element in root.elements():
        identifier = element.attributes.get("id")
        if identifier is not None and targets.setdefault(identifier, element) is not element:
            del element.attributes["id"]
    _Expansion(targets, limits).measure(root, depth=1)


class _Expansion(msgspec.Struct):
    """Counts the elements and levels that references add."""

    targets: dict[str, Element]
    limits: WorkerLimits
    # By identity: (elements, levels) that an element expands to; None while it is being counted.
    known: dict[int, tuple[int, int] | None] = msgspec.field(
        default_factory=dict[int, "tuple[int, int] | None"]
    )

    def measure(self, element: Element, *, depth: int) -> tuple[int, int]:
        """Count the elements and levels that an element expands to."""
        key = id(element)
        if key in self.known:
            measured = self.known[key]
            if measured is None:
                name = element.attributes.get("id", "")
                raise UnsafeSvg(f"<{element.tag} id={name!r}> refers to itself")
            self._check(depth - 1 + measured[1])
            return measured
        self.known[key] = None
        self._check(depth)
        count, levels = 1, 0
        for part in self._parts(element):
            more, deeper = self.measure(part, depth=depth + 1)
            count, levels = count + more, max(levels, deeper)
        if count > self.limits.max_svg_expanded:
            limit = self.limits.max_svg_expanded
            raise ImageTooLarge(f"the document expands to more than {limit:,} elements")
        self.known[key] = count, levels + 1
        return count, levels + 1

    def _parts(self, element: Element) -> list[Element]:
        """The elements drawn for an element: its children, and those its attributes refer to."""
        parts = [child for child in element.children if isinstance(child, Element)]
        for name, value in element.attributes.items():
            names = [value[1:]] if name == "href" else rules.local_references(value)
            parts += [self.targets[found] for found in names if found in self.targets]
        return parts

    def _check(self, depth: int) -> None:
        if depth > self.limits.max_svg_depth:
            message = f"elements nest more than {self.limits.max_svg_depth} deep"
            raise ImageTooLarge(f"{message} once references are followed")
