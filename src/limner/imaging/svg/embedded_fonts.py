"""A checked SVG document -> the same with the letters of its fonts in it. Worker only.

A viewer without the bundled fonts then shows the text as limner draws it.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from limner.imaging.fonts import CJK, FontFiles, font_for
from limner.imaging.fonts.subset import subset_font
from limner.imaging.svg.parser import Element

_RULE = re.compile(r"(font-(?:family|weight|style))\s*:\s*([^;}]+)", re.IGNORECASE)
_BOLD = re.compile(r"bold(?:er)?|[6-9]00", re.IGNORECASE)


class _Font(NamedTuple):
    """The font of a text, as its element says or those around it."""

    family: str = "sans-serif"
    weight: str = "normal"
    slope: str = "normal"

    def inside(self, element: Element) -> _Font:
        own = element.attributes
        given = own | {name.lower(): value for name, value in _RULE.findall(own.get("style", ""))}
        return _Font(
            given.get("font-family", self.family),
            given.get("font-weight", self.weight),
            given.get("font-style", self.slope),
        )

    @property
    def is_bold(self) -> bool:
        return _BOLD.fullmatch(self.weight.strip()) is not None

    @property
    def is_italic(self) -> bool:
        return self.slope.strip().lower() in {"italic", "oblique"}


class _Face(NamedTuple):
    """A file, and how a document asks for it."""

    files: FontFiles
    path: Path
    bold: bool
    italic: bool

    def rule(self, characters: set[str]) -> str:
        data = b64encode(subset_font(self.path, "".join(sorted(characters)))).decode("ascii")
        return (
            f"@font-face{{font-family:'{self.files.family}';"
            f"font-weight:{'bold' if self.bold else 'normal'};"
            f"font-style:{'italic' if self.italic else 'normal'};"
            f"src:url(data:font/woff;base64,{data})}}"
        )


def embed_fonts(root: Element) -> None:
    """Add the letters that a document shows, in each of its fonts.

    Characters for CJK are left out: their font is large, and viewers have one of their own.
    """
    used: dict[_Face, set[str]] = defaultdict(set)
    _collect(root, _Font(), used)
    sheets = "".join(
        child
        for element in root.elements()
        if element.tag == "style"
        for child in element.children
        if isinstance(child, str)
    )
    if rules := _RULE.findall(sheets):
        # A rule of a sheet may apply to any text.
        everything = set[str]().union(*used.values())
        families = [value for name, value in rules if name.lower() == "font-family"]
        for files in {face.files for face in used} | {font_for(one) for one in families}:
            for bold in (False, True):
                used[_face(files, bold=bold, italic=False)] |= everything
    if used:
        css = "".join(face.rule(used[face]) for face in sorted(used, key=lambda one: one.path))
        root.children.insert(0, Element("style", {}, [css]))


def _collect(element: Element, around: _Font, used: dict[_Face, set[str]]) -> None:
    if element.tag == "style":
        return
    font = around.inside(element)
    words = "".join(child for child in element.children if isinstance(child, str))
    if words := CJK.sub("", words):
        files = font_for(font.family)
        used[_face(files, bold=font.is_bold, italic=font.is_italic)] |= set(words)
    for child in element.children:
        if isinstance(child, Element):
            _collect(child, font, used)


def _face(files: FontFiles, *, bold: bool, italic: bool) -> _Face:
    path = files.file(bold=bold, italic=italic)
    return _Face(files, path, bold and path.stem.endswith("Bold"), path.stem.endswith("Italic"))
