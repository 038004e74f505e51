"""A seed and a size -> a screen: windows with code, tables, prose and icons, in real type.

Everything is drawn from a seeded vocabulary, so a screen is the same on every machine that has the
same FreeType.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

import limner.imaging

Size = tuple[int, int]
Box = tuple[int, int, int, int]
Colour = tuple[int, int, int]
Painter = Callable[["Pen", Box], None]

FONTS = Path(limner.imaging.__file__).parent / "fonts"
VOCABULARY = (
    "account answer archive balance border branch budget button canvas cache channel client "
    "cloud column commit context counter cursor default delete deploy design device document "
    "domain draft editor engine entry error event export filter folder format frame gallery "
    "group header history image import index insert invoice journal label layer ledger "
    "library limit margin memory merge message method model monitor network number object "
    "order origin output package palette parser picture pixel policy preview price process "
    "profile project prompt proof query queue reader record region release remote render "
    "report request result review sample schema screen search session shadow signal source "
    "stream string system table target thread ticket token update user value vector version "
    "window worker writer"
)
WORDS = VOCABULARY.split()
KEYWORDS = ("def", "return", "if", "for", "await", "class", "import", "with", "yield", "not")
ACCENTS: tuple[Colour, ...] = (
    (66, 133, 244),
    (219, 68, 55),
    (244, 180, 0),
    (15, 157, 88),
    (171, 71, 188),
    (0, 172, 193),
    (255, 112, 67),
)
LIGHT: dict[str, Colour] = {"paper": (255, 255, 255), "ink": (33, 37, 41), "dim": (134, 142, 150)}
DARK: dict[str, Colour] = {"paper": (30, 30, 36), "ink": (212, 212, 220), "dim": (106, 118, 132)}
TOKENS: tuple[Colour, ...] = ((197, 134, 192), (78, 201, 176), (206, 145, 120), (156, 220, 254))


class Pen:
    """A canvas with type, dice and a scale: 2 on a screen with small pixels."""

    def __init__(self, canvas: Image.Image, *, seed: int, scale: float = 1) -> None:
        self.canvas = canvas
        self.draw = ImageDraw.Draw(canvas)
        self.dice = random.Random(f"screen {seed} {canvas.size}")
        self.scale = scale

    def px(self, points: float) -> int:
        """A length on this screen."""
        return round(points * self.scale)

    def text(self, place: tuple[int, int], words: str, fill: Colour, *, points: float = 14) -> int:
        """Write a line and say how wide it is."""
        font = _font("Regular" if points < 20 else "Bold", self.px(points))
        self.draw.text(place, words, fill=fill, font=font)
        return round(font.getlength(words))

    def words(self, count: int) -> str:
        """So many words of the vocabulary."""
        return " ".join(self.dice.choices(WORDS, k=count))


def desktop(
    size: Size, *, seed: int, scale: float = 1, wallpaper: Image.Image | None = None
) -> Image.Image:
    """A desktop with overlapping windows, over a picture or a gradient."""
    canvas = wallpaper.resize(size) if wallpaper else _gradient(size, (28, 60, 110), (120, 70, 140))
    pen = Pen(canvas, seed=seed, scale=scale)
    width, height = size
    places = ((0.03, 0.06, 0.56, 0.80), (0.50, 0.10, 0.97, 0.60), (0.36, 0.48, 0.80, 0.93))
    for place, paint in zip(places, (code, table, page), strict=True):
        x0, y0, x1, y1 = place
        box = (round(width * x0), round(height * y0), round(width * x1), round(height * y1))
        window(pen, box, paint)
    icons(pen, (0, height - pen.px(56), width, height))
    return canvas


def full_screen(size: Size, paint: Painter, *, seed: int, scale: float = 1) -> Image.Image:
    """One program that fills the screen."""
    canvas = Image.new("RGB", size, LIGHT["paper"])
    paint(Pen(canvas, seed=seed, scale=scale), (0, 0, *size))
    return canvas


def window(pen: Pen, box: Box, paint: Painter) -> None:
    """A window with a title bar around what ``paint`` draws."""
    x0, y0, x1, y1 = box
    bar = pen.px(32)
    for spread in range(pen.px(10), 0, -1):  # a soft shadow, ring by ring
        shade = 40 + 6 * spread // max(1, pen.px(1))
        edge = (x0 - spread, y0 - spread, x1 + spread, y1 + spread)
        pen.draw.rounded_rectangle(edge, pen.px(12), outline=(shade, shade, shade + 8))
    pen.draw.rounded_rectangle(box, pen.px(8), fill=(222, 226, 230))
    for index, fill in enumerate(((255, 95, 87), (254, 188, 46), (40, 200, 64))):
        x, y, r = x0 + pen.px(18 + 20 * index), y0 + bar // 2, pen.px(6)
        pen.draw.ellipse((x - r, y - r, x + r, y + r), fill=fill)
    pen.text((x0 + pen.px(90), y0 + pen.px(8)), pen.words(3), LIGHT["ink"])
    paint(pen, (x0, y0 + bar, x1, y1))


def code(pen: Pen, box: Box) -> None:
    """A dark editor: line numbers, indented lines of coloured tokens."""
    x0, y0, x1, y1 = box
    pen.draw.rectangle(box, fill=DARK["paper"])
    step, indent, number = pen.px(20), 0, 1
    for y in range(y0 + pen.px(8), y1 - step, step):
        pen.text((x0 + pen.px(8), y), f"{number:4}", DARK["dim"])
        number += 1
        if pen.dice.random() < 0.12:
            indent = 0
            continue
        x, first = x0 + pen.px(56 + 28 * indent), True
        for word in pen.dice.choices(WORDS, k=pen.dice.randint(1, 8)):
            token = (
                pen.dice.choice(KEYWORDS)
                if first
                else f"{word}{pen.dice.choice(('(', ')', '.', ' =', ':', ','))}"
            )
            first = False
            if x > x1 - pen.px(120):
                break
            fill = pen.dice.choice((*TOKENS, DARK["ink"], DARK["ink"]))
            x += pen.text((x, y), token, fill) + pen.px(6)
        indent = max(0, min(6, indent + pen.dice.choice((-1, 0, 0, 1))))


def table(pen: Pen, box: Box) -> None:
    """Rows of figures and states with rules between them."""
    x0, y0, x1, y1 = box
    pen.draw.rectangle(box, fill=LIGHT["paper"])
    row, column = pen.px(30), pen.px(130)
    for index, y in enumerate(range(y0, y1 - row, row)):
        if index % 2:
            pen.draw.rectangle((x0, y, x1, y + row), fill=(246, 248, 250))
        pen.draw.line((x0, y + row, x1, y + row), fill=(222, 226, 230))
        for cell, x in enumerate(range(x0 + pen.px(12), x1 - column, column)):
            ink = LIGHT["dim"] if index == 0 else LIGHT["ink"]
            if index and cell == 2:
                badge = (x, y + pen.px(5), x + pen.px(84), y + pen.px(25))
                pen.draw.rounded_rectangle(badge, pen.px(10), fill=pen.dice.choice(ACCENTS))
                pen.text((x + pen.px(10), y + pen.px(6)), pen.words(1), (255, 255, 255))
            elif index and cell > 2:
                pen.text((x, y + pen.px(6)), f"{pen.dice.uniform(0, 9999):,.2f}", ink)
            else:
                pen.text((x, y + pen.px(6)), pen.words(1), ink)


def page(pen: Pen, box: Box) -> None:
    """Headings, paragraphs and, now and then, a table or a row of icons."""
    x0, y0, x1, y1 = box
    pen.draw.rectangle(box, fill=LIGHT["paper"])
    left, right, y = x0 + pen.px(24), x1 - pen.px(24), y0 + pen.px(16)
    while y < y1 - pen.px(60):
        pen.text((left, y), pen.words(4).capitalize(), LIGHT["ink"], points=24)
        y = _paragraph(pen, (left, y + pen.px(40), right, y1), lines=pen.dice.randint(3, 9))
        kind = pen.dice.random()
        if kind < 0.4 and y < y1 - pen.px(220):
            table(pen, (left, y, right, y + pen.px(180)))
            y += pen.px(196)
        elif kind < 0.6 and y < y1 - pen.px(80):
            icons(pen, (left, y, right, y + pen.px(56)))
            y += pen.px(72)


def _paragraph(pen: Pen, box: Box, *, lines: int) -> int:
    x0, y, x1, y1 = box
    step = pen.px(22)
    for _ in range(lines):
        if y > y1 - step:
            break
        sentence = pen.words(4)
        while _font("Regular", pen.px(14)).getlength(sentence) < (x1 - x0) * 0.85:
            sentence += f" {pen.words(1)}"
        pen.text((x0, y), sentence, LIGHT["ink"])
        y += step
    return y + pen.px(18)


def icons(pen: Pen, box: Box) -> None:
    """A row of coloured tiles, each with a letter or a shape."""
    x0, y0, x1, y1 = box
    pen.draw.rectangle(box, fill=(233, 236, 239))
    side, gap = pen.px(40), pen.px(16)
    top = (y0 + y1 - side) // 2
    for x in range(x0 + gap, x1 - side, side + gap):
        icon(pen, (x, top, x + side, top + side))


def icon(pen: Pen, box: Box) -> None:
    """One tile."""
    x0, y0, x1, y1 = box
    side = x1 - x0
    pen.draw.rounded_rectangle(box, side // 5, fill=pen.dice.choice(ACCENTS))
    inner = (x0 + side // 4, y0 + side // 4, x1 - side // 4, y1 - side // 4)
    shape = pen.dice.randrange(4)
    if shape == 0:
        pen.draw.ellipse(inner, outline=(255, 255, 255), width=max(1, side // 12))
    elif shape == 1:
        pen.draw.polygon((inner[:2], (inner[2], inner[1]), inner[2:]), fill=(255, 255, 255))
    else:
        font = _font("Bold", max(6, side * 2 // 3))
        letter = pen.words(1)[0].upper()
        pen.draw.text(((x0 + x1) / 2, (y0 + y1) / 2), letter, (255, 255, 255), font, anchor="mm")


def _gradient(size: Size, top: Colour, bottom: Colour) -> Image.Image:
    mask = Image.linear_gradient("L").resize(size)
    return Image.composite(Image.new("RGB", size, bottom), Image.new("RGB", size, top), mask)


@cache
def _font(weight: str, pixels: int) -> ImageFont.FreeTypeFont:
    # Basic layout is built into Pillow; the other one depends on the machine.
    return ImageFont.truetype(
        FONTS / f"Inter-{weight}.ttf", pixels, layout_engine=ImageFont.Layout.BASIC
    )
