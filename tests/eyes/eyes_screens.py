"""Eighteen screens whose text is known, in four typefaces, small and large, light and dark, and
two more as SVG documents for our own renderer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from io import BytesIO

from PIL import Image, ImageDraw, ImageFont

from limner.eyes.quotes import MARK

Font = ImageFont.FreeTypeFont
Lines = tuple[str, ...]

FACES: dict[str, tuple[str, str]] = {
    "Inter": ("limner.imaging", "fonts/Inter-Regular.ttf"),
    "Inter Bold": ("limner.imaging", "fonts/Inter-Bold.ttf"),
    "Source Serif": ("font_source_serif_pro", "files/SourceSerifPro-Regular.ttf"),
    "Droid Sans Mono": ("captcha", "data/DroidSansMono.ttf"),
}

LIGHT = {"paper": "#ffffff", "ink": "#1f2328", "dim": "#57606a", "accent": "#0969da"}
DARK = {"paper": "#1e1e24", "ink": "#e6e6ea", "dim": "#9da5b4", "accent": "#61afef"}
GREY = {"paper": "#f0f0f0", "ink": "#000000", "dim": "#444444", "accent": "#7a2e8e"}
BLUE = {"paper": "#0b2545", "ink": "#ffffff", "dim": "#a9c4e4", "accent": "#ffd166"}

PROSE: Lines = (
    "Settings were saved on 14 March 2026 at 09:41.",
    "Two devices could not be reached and were skipped.",
    "Open the report to see which ones, or try again later.",
    "Your subscription renews for $199.99 on 1 April.",
)
TERMINAL: Lines = (
    "$ git push origin main",
    "Enumerating objects: 57, done.",
    "Writing objects: 100% (31/31), 8.42 KiB",
    "error: failed to push some refs",
    "hint: Updates were rejected because the remote",
    "hint: contains work that you do not have locally.",
)
CODE: Lines = (
    "def total(prices, rate=0.19):",
    "    net = sum(prices)",
    "    if net < 0:",
    '        raise ValueError("negative total")',
    "    return round(net * (1 + rate), 2)",
)
TABLE: tuple[Lines, ...] = (
    ("Invoice", "Customer", "Amount", "State"),
    ("2026-0117", "Northwind Ltd", "1,250.00", "paid"),
    ("2026-0118", "Blue Harbour", "89.90", "overdue"),
    ("2026-0119", "Miller & Sons", "4,310.75", "draft"),
)
DIALOG: Lines = (
    "Delete 3 files?",
    "This cannot be undone. The files will be removed",
    "from every device that uses this account.",
)
BUTTONS: Lines = ("Cancel", "Delete")


@dataclass(frozen=True)
class Screen:
    """A picture of text, and the text a person would read off it."""

    name: str
    png: bytes
    text: str


@dataclass(frozen=True)
class Look:
    face: str
    size: int
    theme: dict[str, str]

    def font(self) -> Font:
        if self.face == "Aileron":
            font = ImageFont.load_default(self.size)
            assert isinstance(font, Font)
            return font
        package, path = FACES[self.face]
        return ImageFont.truetype(BytesIO(files(package).joinpath(path).read_bytes()), self.size)


def prose(look: Look) -> tuple[Image.Image, str]:
    return _lines(look, PROSE), "\n".join(PROSE)


def terminal(look: Look) -> tuple[Image.Image, str]:
    return _lines(look, TERMINAL, spacing=1.35), "\n".join(TERMINAL)


def code(look: Look) -> tuple[Image.Image, str]:
    return _lines(look, CODE, spacing=1.45), "\n".join(CODE)


def table(look: Look) -> tuple[Image.Image, str]:
    font, em = look.font(), look.size
    columns = [max(font.getlength(row[index]) for row in TABLE) + 3 * em for index in range(4)]
    height = round((2 * len(TABLE) + 2) * em)
    image = Image.new("RGB", (round(sum(columns)) + 2 * em, height), look.theme["paper"])
    pen = ImageDraw.Draw(image)
    for number, row in enumerate(TABLE):
        y, x = em + 2 * em * number, float(em)
        for width, cell in zip(columns, row, strict=True):
            pen.text((x, y), cell, look.theme["accent" if number == 0 else "ink"], font)
            x += width
        pen.line((em, y + 1.6 * em, image.width - em, y + 1.6 * em), look.theme["dim"])
    return image, "\n".join(" ".join(row) for row in TABLE)


def dialog(look: Look) -> tuple[Image.Image, str]:
    font, em = look.font(), look.size
    width = round(max(font.getlength(line) for line in DIALOG)) + 6 * em
    image = Image.new("RGB", (width, 13 * em), look.theme["dim"])
    pen = ImageDraw.Draw(image)
    pen.rounded_rectangle((em, em, width - em, 12 * em), em, look.theme["paper"])
    for number, line in enumerate(DIALOG):
        pen.text((3 * em, 2 * em + 2 * em * number), line, look.theme["ink"], font)
    x = width - 3 * em - 6 * em * len(BUTTONS)
    for label in BUTTONS:
        pen.rounded_rectangle(
            (x, 9 * em, x + 5.5 * em, 11 * em), em // 3, outline=look.theme["accent"]
        )
        centre = (x + 2.75 * em, 10 * em)
        pen.text(centre, label, look.theme["accent"], font, anchor="mm")
        x += 6 * em
    return image, "\n".join((*DIALOG, " ".join(BUTTONS)))


def _lines(look: Look, lines: Lines, *, spacing: float = 1.6) -> Image.Image:
    font, em = look.font(), look.size
    width = round(max(font.getlength(line) for line in lines)) + 4 * em
    height = round(spacing * em * len(lines)) + 3 * em
    image = Image.new("RGB", (width, height), look.theme["paper"])
    pen = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        pen.text((2 * em, 1.5 * em + spacing * em * number), line, look.theme["ink"], font)
    return image


Layout = Callable[[Look], tuple[Image.Image, str]]
PLAN: tuple[tuple[Layout, Look], ...] = (
    (prose, Look("Aileron", 18, DARK)),
    (prose, Look("Source Serif", 16, LIGHT)),
    (prose, Look("Inter Bold", 32, BLUE)),
    (terminal, Look("Droid Sans Mono", 12, DARK)),
    (terminal, Look("Droid Sans Mono", 16, LIGHT)),
    (terminal, Look("Inter", 13, DARK)),
    (terminal, Look("Droid Sans Mono", 24, BLUE)),
    (code, Look("Droid Sans Mono", 13, DARK)),
    (code, Look("Droid Sans Mono", 20, GREY)),
    (code, Look("Aileron", 15, LIGHT)),
    (code, Look("Inter", 24, DARK)),
    (table, Look("Inter", 12, LIGHT)),
    (table, Look("Aileron", 16, GREY)),
    (table, Look("Source Serif", 18, DARK)),
    (table, Look("Inter Bold", 28, LIGHT)),
    (dialog, Look("Inter", 12, GREY)),
    (dialog, Look("Source Serif", 20, LIGHT)),
    (dialog, Look("Droid Sans Mono", 16, BLUE)),
)


@dataclass(frozen=True)
class Document:
    """A screen as SVG."""

    svg: str
    width: int
    height: int
    text: str


def documents() -> list[Document]:
    """The two that are drawn by the SVG renderer."""
    return [_document(PROSE, size=14, theme=LIGHT), _document(DIALOG, size=15, theme=DARK)]


def _document(lines: Lines, *, size: int, theme: dict[str, str]) -> Document:
    width, height = 34 * size, 2 * size * (len(lines) + 1)
    rows = "".join(
        f'<text x="{size}" y="{2 * size * (number + 1)}" font-size="{size}" '
        f'font-family="Inter" fill="{theme["ink"]}">{line}</text>'
        for number, line in enumerate(lines)
    )
    paper = f'<rect width="{width}" height="{height}" fill="{theme["paper"]}"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
    return Document(f"{head}{paper}{rows}</svg>", width, height, "\n".join(lines))


def screens() -> list[Screen]:
    """The eighteen, drawn now."""
    return [_screen(layout, look) for layout, look in PLAN]


def png(image: Image.Image) -> bytes:
    out = BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def _screen(layout: Layout, look: Look) -> Screen:
    image, text = layout(look)
    shade = "dark" if look.theme in (DARK, BLUE) else "light"
    return Screen(f"{layout.__name__}, {look.face} {look.size} px, {shade}", png(image), text)


def distance(one: str, other: str) -> int:
    """How many letters must be put in, taken out or exchanged to make one of the other."""
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, start=1):
        before, row[0] = row[0], number
        for index, another in enumerate(other, start=1):
            keep = before + (letter != another)
            before, row[index] = row[index], min(row[index] + 1, row[index - 1] + 1, keep)
    return row[-1]


def spoken(answer: str) -> str:
    """The text that an answer quotes, with single spaces."""
    lines = (line.removeprefix(MARK) for line in answer.splitlines() if line.startswith(MARK))
    return " ".join(" ".join(lines).split())
