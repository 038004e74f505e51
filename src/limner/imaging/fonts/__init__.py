"""The bundled fonts: a style as sans, or the names of families -> a family and its files.

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
# These have the widths of Arial, Times New Roman, Georgia and Impact, which authors plan with.
_ARIMO = FontFiles(
    "Arimo", "Arimo-Regular.ttf", "Arimo-Bold.ttf", "sans-serif", ("Arimo-Italic.ttf",)
)
_TINOS = FontFiles("Tinos", "Tinos-Regular.ttf", "Tinos-Bold.ttf", "serif", ("Tinos-Italic.ttf",))
_GELASIO = FontFiles(
    "Gelasio", "Gelasio-Regular.ttf", "Gelasio-Bold.ttf", "serif", ("Gelasio-Italic.ttf",)
)
_ANTON = FontFiles("Anton", "Anton-Regular.ttf", "Anton-Regular.ttf", "sans-serif")
_SYMBOLS_FILE, _EMOJI_FILE = "NotoSansSymbols-Subset.ttf", "TwemojiMozilla-Subset.ttf"
SYMBOLS = FontFiles("Noto Sans Symbols Subset", _SYMBOLS_FILE, _SYMBOLS_FILE, "sans-serif")
EMOJI = FontFiles("Twemoji Mozilla", _EMOJI_FILE, _EMOJI_FILE, "sans-serif")
# A character that the font of its text lacks is looked for in this order.
ALL_FONTS = (*FONTS.values(), _ARIMO, _TINOS, _GELASIO, _ANTON, SYMBOLS, EMOJI)

# Names of fonts that documents often ask for, by the bundled font of the same width, or else by
# the one that looks most alike and is about as wide.
_SAME_WIDTH: tuple[tuple[FontFiles, str], ...] = (
    (_ARIMO, "sans-serif, ui-sans-serif, system-ui, arial, helvetica, liberation sans"),
    (_TINOS, "serif, ui-serif, times, times new roman, liberation serif"),
    (_GELASIO, "georgia"),
    (FONTS["mono"], "monospace, ui-monospace, courier, courier new, liberation mono"),
    (FONTS["hand"], "cursive, fantasy"),
    *((font, font.family.lower()) for font in ALL_FONTS),
)
_ALIKE: tuple[tuple[FontFiles, str], ...] = (
    (
        _ARIMO,
        "helvetica neue, segoe ui, roboto, lato, calibri, tahoma, trebuchet ms, arial black, "
        "-apple-system, blinkmacsystemfont, sf pro display, sf pro text, source sans pro",
    ),
    (
        FONTS["sans"],
        "verdana, open sans, montserrat, poppins, noto sans, dejavu sans, nunito, dm sans",
    ),
    (_ANTON, "impact, haettenschweiler, bebas neue, oswald, league gothic"),
    (_TINOS, "garamond, eb garamond, cambria, cormorant, cormorant garamond, crimson text"),
    (
        FONTS["serif"],
        "palatino, palatino linotype, book antiqua, baskerville, didot, bodoni, merriweather, "
        "playfair display, noto serif, dejavu serif",
    ),
    (
        FONTS["mono"],
        "consolas, menlo, monaco, fira code, source code pro, sf mono, dejavu sans mono",
    ),
    (
        FONTS["hand"],
        "comic sans ms, comic neue, brush script mt, segoe script, bradley hand, pacifico, "
        "dancing script, indie flower, patrick hand, kalam, great vibes, lucida handwriting",
    ),
)
_KNOWN: Mapping[str, FontFiles] = {
    name: font for font, names in (*_ALIKE, *_SAME_WIDTH) for name in names.split(", ")
}
_UNCHANGED = {"", *(name for _, names in _SAME_WIDTH for name in names.split(", "))}

# What Unicode shows as a picture without being asked to, below the planes of emoji.
_EMOJI_SIGNS = (
    "\u231a\u231b\u23e9-\u23ec\u23f0\u23f3\u2614\u2615\u2648-\u2653\u267f\u2693\u26a1\u26aa\u26ab"
    "\u26bd\u26be\u26c4\u26c5\u26ce\u26d4\u26ea\u26f2\u26f3\u26f5\u26fa\u26fd\u2705\u270a\u270b"
    "\u2728\u274c\u274e\u2753-\u2755\u2757\u2795-\u2797\u2b1b\u2b1c\u2b50\u2b55"
)
# One or more emoji: flags, keys, and pictures with what follows them (\ufe0f asks for a picture,
# \ufe0e for a sign, \u200d joins two to one, and the last are skin tones).
EMOJI_TEXT = re.compile(
    "(?:[\U0001f1e6-\U0001f1ff]{2}|[0-9#*]\ufe0f\u20e3|"
    f"(?:[{_EMOJI_SIGNS}\U0001f000-\U0001faff](?!\ufe0e)|[\u00a9-\u3299]\ufe0f)"
    "(?:\u200d.|[\ufe0f\U0001f3fb-\U0001f3ff])*)+"
)
# Emoji of several characters that the font has.
_SEQUENCES = """
    🇺🇸 🇬🇧 🇪🇺 🇩🇪 🇫🇷 🇪🇸 🇮🇹 🇵🇹 🇳🇱 🇧🇪 🇨🇭 🇸🇪 🇳🇴 🇩🇰 🇫🇮 🇮🇪 🇵🇱 🇹🇷 🇺🇦 🇯🇵
    🇨🇳 🇰🇷 🇮🇳 🇦🇺 🇨🇦 🇲🇽 🇧🇷 🇦🇷 🇿🇦 0️⃣ 1️⃣ 2️⃣ 3️⃣ 4️⃣ 5️⃣ 6️⃣ 7️⃣
    8️⃣ 9️⃣ #️⃣ *️⃣ 👩‍💻 👨‍💻 🧑‍💻 👩‍🍳 👨‍🍳 🧑‍🍳 👩‍🏫 👨‍🏫 🧑‍🏫 👩‍🔬 👨‍🔬
    👩‍⚕️ 👨‍⚕️ 🧑‍⚕️ 👩‍🚀 👨‍🚀 🧑‍🚀 👩‍🎓 👨‍🎓 🧑‍🎓 👩‍💼 👨‍💼 🧑‍💼 👩‍🎨 👷‍♀️
    🤷‍♀️ 🤷‍♂️ 🤦‍♀️ 🤦‍♂️ 👨‍👩‍👧 👨‍👩‍👧‍👦 ❤️‍🔥 🏳️‍🌈 🐕‍🦺 🐻‍❄️
"""
EMOJI_SEQUENCES = tuple(_SEQUENCES.split())
# Emoji and signs have a second place in their fonts, which no other font has: sequences from the
# first one on, in their order, and others at their own number after the second one.
FIRST_SEQUENCE, FIRST_ALIAS = 0xF0000, 0x100000
# They change how their neighbours look, and have no shape of their own.
JOINERS = "\u200d\ufe0e\ufe0f"

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


def font_for(families: str) -> FontFiles:
    """The bundled font for a list of families as CSS writes it: the first that is known."""
    for name in _names(families):
        if name.lower() in _KNOWN:
            return _KNOWN[name.lower()]
    return _ARIMO


def replaced_family(families: str) -> str | None:
    """The first family of a list, if its text gets another look or another width."""
    first = next(_names(families), "")
    return None if first.lower() in _UNCHANGED else first


def _names(families: str) -> Iterator[str]:
    return (part.strip().strip("'\"").strip() for part in families.split(","))
