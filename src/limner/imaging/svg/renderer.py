"""An SVG document -> PNG bytes, at a given size or its own, with resvg. Worker only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

import msgspec
import resvg_py

from limner.errors import ImageTooLarge, UnsafeSvg
from limner.imaging.fonts import (
    ALL_FONTS,
    CJK,
    EMOJI,
    EMOJI_SEQUENCES,
    EMOJI_TEXT,
    FIRST_ALIAS,
    FIRST_SEQUENCE,
    FOLDER,
    FONTS,
    JOINERS,
    SYMBOLS,
    FontFiles,
    cjk_family,
    cjk_font,
    font_for,
)
from limner.imaging.fonts.font_file import known_characters
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

_CJK_FILES = [str(path)] if (path := cjk_font()) else []
# Every document may need this one: it is what replaces a font that is missing.
_SANS = FONTS["sans"]
_SKIN_TONES = dict.fromkeys(range(0x1F3FB, 0x1F400))
_SEQUENCES = {words: chr(FIRST_SEQUENCE + place) for place, words in enumerate(EMOJI_SEQUENCES)}
_SEQUENCE = re.compile(
    "|".join([*sorted(map(re.escape, _SEQUENCES), key=len, reverse=True), "[\u00a0-\uffff]"])
)
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
    return _draw(root)


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
    root.attributes.setdefault("font-family", font_for("").css)
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
    return _draw(root)


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
            own["font-family"] = font_for(own["font-family"]).css
        if "style" in own:
            own["style"] = _with_bundled_fonts(own["style"])
        if element.tag == "style":
            element.children = [
                _with_bundled_fonts(child) if isinstance(child, str) else child
                for child in element.children
            ]
    _use_other_fonts(root)


def _use_other_fonts(root: Element) -> None:
    """Put emoji, signs, and Chinese, Japanese and Korean into elements with their own fonts.

    The renderer would find most of them without this. But it would draw an emoji as a plain sign,
    Chinese in the shapes of one language, and the whole line in the font that has the sign. A
    viewer of an SVG file would find none.
    """
    holders = [one for one in root.elements() if one.tag in rules.TEXT_HOLDERS]
    sheets = [one for one in holders if one.tag == "style"]
    texts = [child for one in holders for child in one.children if isinstance(child, str)]
    if (document := "".join(texts)).isascii():
        return
    rules_of_sheets = [child for one in sheets for child in one.children if isinstance(child, str)]
    # A rule of a sheet may apply to any text.
    fonts = frozenset(map(font_for, _FAMILY_RULE.findall("".join(rules_of_sheets))))
    _split_below(root, font_for(""), fonts, document)


def _split_below(
    element: Element, font: FontFiles, others: frozenset[FontFiles], document: str
) -> None:
    own = element.attributes
    named = _FAMILY_RULE.search(own.get("style", ""))
    if families := named[1] if named else own.get("font-family"):
        font = font_for(families)
    children: list[Element | str] = []
    for child in element.children:
        if isinstance(child, Element):
            _split_below(child, font, others, document)
            children.append(child)
        elif element.tag in rules.TEXT_HOLDERS - {"style"}:
            children += _split_fonts(child, others | {font}, document)
        else:
            children.append(child)
    element.children = children


@cache
def _other_characters(fonts: frozenset[FontFiles]) -> re.Pattern[str]:
    """What a text in some fonts needs other fonts for."""
    known = [known_characters(FOLDER / font.regular) for font in fonts]
    every = known_characters(FOLDER / SYMBOLS.regular)
    missing = (code for code in sorted(every) if not all(code in font for font in known))
    signs = re.escape("".join(map(chr, missing)))
    return re.compile(
        f"(?P<cjk>{CJK.pattern if _CJK_FILES else '(?!)'})|(?P<emoji>{EMOJI_TEXT.pattern})"
        f"|(?P<signs>{f'[{signs}]+' if signs else '(?!)'})"
    )


def _split_fonts(text: str, fonts: frozenset[FontFiles], document: str) -> Iterator[Element | str]:
    start = 0
    for found in () if text.isascii() else _other_characters(fonts).finditer(text):
        if before := text[start : found.start()]:
            yield before
        words = found[0]
        if found["cjk"]:
            family = f"'{cjk_family(text, document)}', sans-serif"
        elif found["emoji"]:
            family, words = EMOJI.css, words.translate(_SKIN_TONES)
        else:
            family = SYMBOLS.css
        yield Element("tspan", {"font-family": family}, [words])
        start = found.end()
    if rest := text[start:]:
        yield rest


def _use_aliases(root: Element) -> None:
    """Let each emoji and each sign be one character that only its own font has.

    If another font has all characters of a line, resvg takes it for the line; and it loses the
    text after an emoji of several characters.
    """
    for element in root.elements():
        if element.attributes.get("font-family") in {EMOJI.css, SYMBOLS.css}:
            element.children = [
                _SEQUENCE.sub(_alias, child) if isinstance(child, str) else child
                for child in element.children
            ]


def _alias(found: re.Match[str]) -> str:
    words = found[0]
    return "" if words in JOINERS else _SEQUENCES.get(words) or chr(FIRST_ALIAS + ord(words))


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
    return f"font-family: {font_for(found[1]).css}"


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


def _draw(root: Element) -> bytes:
    _use_aliases(root)
    text = root.to_text()
    # Reading a font takes time, and that of CJK is large.
    needed = [
        path
        for font in ALL_FONTS
        if font == _SANS or font.family in text or not text.isascii()
        for path in font.paths
    ]
    return resvg_py.svg_to_bytes(
        svg_string=text,
        skip_system_fonts=True,
        font_files=needed + (_CJK_FILES if CJK.search(text) else []),
        font_family=_SANS.family,
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
