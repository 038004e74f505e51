"""The bundled fonts: a style as sans, serif, mono or hand -> its family and its files.

The characters of Chinese, Japanese and Korean are in a font of 19 MB, which an extra installs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

FontStyle = Literal["sans", "serif", "mono", "hand"]
FOLDER = Path(__file__).parent


class FontFiles(NamedTuple):
    """The name by which a document selects a font, and the files of its two weights."""

    family: str
    regular: str
    bold: str
    generic: str
    others: tuple[str, ...] = ()

    @property
    def paths(self) -> list[str]:
        """The paths of all files, each once."""
        return [str(FOLDER / name) for name in dict.fromkeys(self[1:3] + self.others)]

    def file(self, *, bold: bool, italic: bool) -> Path:
        """The file for a weight and a slope; upright if it has no italics."""
        slanted = self.others[0] if italic and self.others and not bold else None
        return FOLDER / (slanted or (self.bold if bold else self.regular))

    @property
    def css(self) -> str:
        """The family and what a viewer without it takes instead, as CSS writes it."""
        return f"'{self.family}', {self.generic}"


FONTS: Mapping[FontStyle, FontFiles] = {
    "sans": FontFiles("Inter", "Inter-Regular.ttf", "Inter-Bold.ttf", "sans-serif"),
    "serif": FontFiles("Lora", "Lora-Regular.ttf", "Lora-Bold.ttf", "serif", ("Lora-Italic.ttf",)),
    "mono": FontFiles(
        "JetBrains Mono", "JetBrainsMono-Regular.ttf", "JetBrainsMono-Bold.ttf", "monospace"
    ),
    "hand": FontFiles("Caveat", "Caveat-Bold.ttf", "Caveat-Bold.ttf", "cursive"),
}

# Names of fonts that documents often ask for, by the bundled font that looks most alike.
_ALIKE: Mapping[FontStyle, str] = {
    "sans": "sans-serif, system-ui, inter, arial, helvetica, helvetica neue, verdana, roboto, "
    "segoe ui, open sans, ui-sans-serif, lato, montserrat, poppins, noto sans, dejavu sans",
    "serif": "serif, ui-serif, lora, georgia, times, times new roman, garamond, eb garamond, "
    "palatino, cambria, baskerville, didot, bodoni, merriweather, playfair display, noto serif",
    "mono": "monospace, ui-monospace, jetbrains mono, courier, courier new, consolas, menlo, "
    "monaco, fira code, source code pro, sf mono, dejavu sans mono",
    "hand": "cursive, fantasy, caveat, comic sans ms, comic neue, brush script mt, segoe script, "
    "bradley hand, pacifico, dancing script, indie flower, patrick hand, kalam",
}
_STYLES: Mapping[str, FontStyle] = {
    name: style for style, names in _ALIKE.items() for name in names.split(", ")
}
_GENERIC = {"", "sans-serif", "serif", "monospace", "cursive", "fantasy", "system-ui"}


CJK_PACKAGE = "noto_cjk_sans_otc"
INSTALL_CJK = "pip install 'limner[cjk]'"
CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f"
    "\uff00-\uffef\U00020000-\U0003ffff]+"
)
# The same character has another shape in each language. What is in none of these is Chinese.
_LANGUAGES = {
    "JP": re.compile("[\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9d]"),
    "KR": re.compile("[\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff]"),
    "TC": re.compile("[\u3105-\u312f]"),
}


@cache
def cjk_font() -> Path | None:
    """The font of ``limner[cjk]``, if that is installed. A worker asks before its sandbox."""
    spec = find_spec(CJK_PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    return Path(folders[0], "NotoSansCJK-Regular.ttc") if folders else None


def cjk_family(text: str, document: str = "") -> str:
    """The family for a text, by its language; if its characters do not tell, by its document's."""
    for words in (text, document):
        for language, characters in _LANGUAGES.items():
            if characters.search(words):
                return f"Noto Sans CJK {language}"
    return "Noto Sans CJK SC"


def style_for(families: str) -> FontStyle:
    """The bundled font for a list of families as CSS writes it: the first that is known."""
    for name in _names(families):
        if name.lower() in _STYLES:
            return _STYLES[name.lower()]
    return "sans"


def replaced_family(families: str) -> str | None:
    """The first family of a list, if it is a font that is not bundled."""
    first = next(_names(families), "")
    bundled = {font.family.lower() for font in FONTS.values()}
    return None if first.lower() in bundled | _GENERIC else first


def _names(families: str) -> Iterator[str]:
    return (part.strip().strip("'\"").strip() for part in families.split(","))
