"""An SVG file brings the letters of its text along, and limner can read its own file again."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageDraw, ImageFont, ImageStat

from limner.errors import UnsafeSvg
from limner.imaging.fonts import FOLDER
from limner.imaging.fonts.subset import subset_font
from limner.imaging.limits import DEFAULT_LIMITS
from limner.imaging.svg.renderer import render, resolve

WORDS = "Sales 12:30 -> fi é Ж AVA"
# What is drawn with a font, and a character that is then left out of its part.
DRAWN = {"NotoSansSymbols-Subset": ("☐ ♞ ∇ ⠋", "♖"), "TwemojiMozilla-Subset": ("🚀 ✅ 🇩🇪", "🍕")}
DOCUMENT = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 90">'
    '<text y="20" font-family="Georgia" font-weight="bold">To AVA</text>'
    '<g style="font-style: italic"><text y="50" font-family="Lora">see 日本</text></g>'
    '<text y="80">plain ☐ 🚀</text></svg>'
)
FACE = re.compile(r"@font-face\{font-family:'(.*?)';font-weight:(\w+);font-style:(\w+);src:url\(")


def made(document: str) -> str:
    return resolve(document, width=300, height=90, assets={}, limits=DEFAULT_LIMITS)


def pixels(document: str) -> bytes:
    png = render(document, width=300, height=90, assets={}, limits=DEFAULT_LIMITS)
    return Image.open(io.BytesIO(png)).tobytes()


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ttf")), ids=lambda path: path.stem)
def test_a_part_of_a_font_draws_its_characters_as_the_whole_font(path: Path) -> None:
    words, other = DRAWN.get(path.stem, (WORDS, "Q"))
    part = subset_font(path, words)
    assert len(part) < 60_000
    whole, some = ImageFont.truetype(path, 80), ImageFont.truetype(io.BytesIO(part), 80)
    assert some.getlength(words) == whole.getlength(words)
    # FreeType moves edges to pixels by what it sees of the whole font.
    assert difference(some, whole, words) < 8
    assert difference(some, whole, other) > 10


def difference(one: ImageFont.FreeTypeFont, other: ImageFont.FreeTypeFont, words: str) -> float:
    drawn: list[Image.Image] = []
    for font in (one, other):
        picture = Image.new("RGB", (1200, 120))
        pen = ImageDraw.Draw(picture)
        pen.text((10, 10), words, fill="white", font=font, embedded_color=True)
        drawn.append(picture.convert("L").crop((10, 10, 10 + round(other.getlength(words)), 110)))
    return ImageStat.Stat(ImageChops.difference(*drawn)).mean[0]


def test_a_file_has_each_font_weight_and_slope_that_it_shows() -> None:
    assert FACE.findall(made(DOCUMENT)) == [
        ("Arimo", "normal", "normal"),
        ("Gelasio", "bold", "normal"),
        ("Lora", "normal", "italic"),
        ("Noto Sans Symbols Subset", "normal", "normal"),
        ("Twemoji Mozilla", "normal", "normal"),
    ]


def test_a_rule_of_a_style_sheet_brings_both_weights() -> None:
    document = DOCUMENT.replace("<text", "<style>.a{font-family: monospace}</style><text", 1)
    faces = FACE.findall(made(document))
    assert {("JetBrains Mono", "normal", "normal"), ("JetBrains Mono", "bold", "normal")} < {*faces}


def test_a_file_without_text_has_no_font() -> None:
    assert "font-face" not in made('<svg xmlns="http://www.w3.org/2000/svg"><g/></svg>')


def test_a_file_of_limner_can_be_drawn_again_and_looks_the_same() -> None:
    assert pixels(made(DOCUMENT)) == pixels(DOCUMENT)


@pytest.mark.parametrize(
    "source",
    [
        "url(https://a.b/c.woff)",
        "url(data:text/html;base64,AAAA)",
        "url(data:font/woff;base64,AA) url(file:///etc/passwd)",
        "\\75rl(https://a.b)",
    ],
)
def test_a_font_from_elsewhere_is_refused(source: str) -> None:
    font = base64.b64encode(b"font").decode()
    own = f"@font-face{{font-family:A;src:url(data:font/woff;base64,{font})}}"
    css = f"{own}@font-face{{font-family:B;src:{source}}}"
    with pytest.raises(UnsafeSvg, match="@font-face"):
        made(f'<svg xmlns="http://www.w3.org/2000/svg"><style>{css}</style></svg>')
