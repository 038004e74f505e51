"""A seed and a size -> drawn graphics: line art, charts, diagrams, logos and scanned pages."""

from __future__ import annotations

import math
import random

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from benchmarks.photos import fractal
from benchmarks.screens import ACCENTS, Pen, icon, page

Size = tuple[int, int]


def line_art(size: Size, *, seed: int) -> Image.Image:
    """Black curves on white, smooth at their edges, in grey."""
    dice = random.Random(f"lines {seed} {size}")
    # Drawn large and scaled down, since Pillow's own lines have stairs.
    large = Image.new("L", (size[0] * 2, size[1] * 2), 255)
    draw = ImageDraw.Draw(large)
    width, height = large.size
    for _ in range(70):
        x, y = dice.uniform(0, width), dice.uniform(0, height)
        heading, turn = dice.uniform(0, math.tau), dice.uniform(-0.1, 0.1)
        points = [(x, y)]
        for _ in range(90):
            heading += turn + dice.uniform(-0.06, 0.06)
            x, y = x + 26 * math.cos(heading), y + 26 * math.sin(heading)
            points.append((x, y))
        draw.line(points, fill=0, width=dice.choice((3, 5, 7, 11)), joint="curve")
    return large.resize(size, Image.Resampling.LANCZOS)


def chart(size: Size, *, seed: int) -> Image.Image:
    """Bars and lines over a grid, with a title, a legend and figures at the axes."""
    canvas = Image.new("RGB", size, (255, 255, 255))
    pen = Pen(canvas, seed=seed, scale=size[1] / 700)
    left, top, right, bottom = pen.px(80), pen.px(80), size[0] - pen.px(40), size[1] - pen.px(70)
    pen.text((left, pen.px(20)), pen.words(4).capitalize(), (33, 37, 41), points=28)
    for tick in range(9):
        y = bottom - (bottom - top) * tick // 8
        pen.draw.line((left, y, right, y), fill=(222, 226, 230), width=pen.px(1))
        pen.text((pen.px(14), y - pen.px(9)), f"{tick * 125:,}", (134, 142, 150))
    step = (right - left) // 24
    for column in range(24):
        x = left + column * step
        bar = bottom - round((bottom - top) * pen.dice.uniform(0.1, 0.9))
        pen.draw.rectangle((x + step // 5, bar, x + step * 4 // 5, bottom), fill=(160, 196, 255))
        pen.text((x + step // 5, bottom + pen.px(8)), f"{column + 1:02}", (134, 142, 150))
    _curves(pen, (left, top, right, bottom), step=step)
    return canvas


def _curves(pen: Pen, box: tuple[int, int, int, int], *, step: int) -> None:
    left, top, right, bottom = box
    for index, colour in enumerate(ACCENTS[:4]):
        level, points = pen.dice.uniform(0.3, 0.7), list[tuple[int, int]]()
        for x in range(left + step // 2, right, step // 4):
            level = max(0.05, min(0.95, level + pen.dice.uniform(-0.06, 0.06)))
            points.append((x, round(bottom - (bottom - top) * level)))
        pen.draw.line(points, fill=colour, width=pen.px(3), joint="curve")
        x, y = left + pen.px(150 * index), top - pen.px(24)
        pen.draw.rectangle((x, y, x + pen.px(14), y + pen.px(14)), fill=colour)
        pen.text((x + pen.px(20), y - pen.px(2)), pen.words(1), (33, 37, 41))


def diagram(size: Size, *, seed: int) -> Image.Image:
    """Boxes joined by arrows on nothing: fully transparent around them."""
    canvas = Image.new("RGBA", size)
    pen = Pen(canvas, seed=seed, scale=size[0] / 1200)
    places = [
        (pen.px(60 + 280 * column), pen.px(60 + 170 * row))
        for row in range(5)
        for column in range(4)
    ]
    for start, end in zip(places, pen.dice.sample(places, len(places)), strict=True):
        ends = [(x + pen.px(95), y + pen.px(40)) for x, y in (start, end)]
        pen.draw.line(ends, fill=(73, 80, 87, 255), width=pen.px(2))
    for x, y in places:
        box = (x, y, x + pen.px(190), y + pen.px(80))
        fill = (*pen.dice.choice(ACCENTS), 230)
        pen.draw.rounded_rectangle(box, pen.px(12), fill=fill, outline=(33, 37, 41, 255))
        pen.text((x + pen.px(16), y + pen.px(30)), pen.words(2), (255, 255, 255))
    return canvas


def logo(size: Size, *, seed: int) -> Image.Image:
    """Overlapping soft discs: transparency in every degree."""
    canvas = Image.new("RGBA", size)
    dice = random.Random(f"logo {seed} {size}")
    side = min(size) * 2 // 3
    # The gradient reaches its end beyond the edge of its square, so it is shifted to end inside.
    glow = Image.radial_gradient("L").point([max(0, 180 - value) for value in range(256)])
    glow = glow.resize((side, side), Image.Resampling.BICUBIC)
    for colour in ACCENTS:
        disc = Image.new("RGBA", (side, side), (*colour, 0))
        disc.putalpha(glow)
        place = (dice.randint(0, size[0] - side), dice.randint(0, size[1] - side))
        canvas.alpha_composite(disc, place)
    return canvas


def icon_tile(side: int, *, seed: int) -> Image.Image:
    """One small tile with transparent corners."""
    canvas = Image.new("RGBA", (side, side))
    icon(Pen(canvas, seed=seed), (0, 0, side - 1, side - 1))
    return canvas


def scan(size: Size, *, seed: int) -> Image.Image:
    """A printed page under a scanner: paper grain, uneven light, a slight turn."""
    sheet = Image.new("RGB", size, (255, 255, 255))
    page(Pen(sheet, seed=seed, scale=size[0] / 900), (0, 0, *size))
    grey = sheet.convert("L").rotate(0.6, Image.Resampling.BICUBIC, fillcolor=255)
    grey = grey.filter(ImageFilter.GaussianBlur(0.8))
    dice = random.Random(f"scan {seed} {size}")
    light = fractal((size[0] // 64, size[1] // 64), dice, keep=0.4).resize(size)
    paper = Image.blend(Image.new("L", size, 255), light, 0.08)
    grain = Image.frombytes("L", size, dice.randbytes(size[0] * size[1]))
    return ImageChops.multiply(grey, Image.blend(paper, grain, 0.05))
