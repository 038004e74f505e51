"""A table of prompts -> one WebP sheet of the illustrator's pictures, numbered, without prompts.

Usage, from the repository root::

    .venv/bin/python scripts/picture_sheets.py PROMPTS.tsv SHEET.webp [NUMBER ...]

The table has the columns category, size and prompt. ``NUMBER`` chooses rows, from 1. It prints
what the illustrator reports about each picture, so that a person can judge the sheet first and
compare then.
"""

from __future__ import annotations

import csv
import io
import sys
import time
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from limner.illustrator.draw import draw
from limner.imaging.limits import WorkerLimits
from limner.imaging.pixels import enlarge_squares
from limner.imaging.svg.renderer import render

CELL, COLUMNS, GAP = 412, 6, 4
QUALITY = 76


def picture(prompt: str, size: tuple[int, int]) -> tuple[Image.Image, str, float]:
    """The picture in the size of a cell, what is reported about it, and the CPU time in s."""
    start = time.process_time()
    made = draw(prompt=prompt, svg=None, width=size[0], height=size[1], seed=None)
    shown = tuple(round(edge * CELL / max(size)) for edge in size)
    share = min(1.0, made.squares / min(size)) if made.squares else max(shown) / max(size)
    wide, tall = (max(1, round(edge * share)) for edge in size)
    png = render(made.svg, width=wide, height=tall, assets=dict(made.assets), limits=WorkerLimits())
    if made.squares:
        png = enlarge_squares(png, (shown[0], shown[1]))
    spent = time.process_time() - start
    return Image.open(io.BytesIO(png)).convert("RGB"), made.facts["account"], spent


def main() -> None:
    """Draw the sheet."""
    table, target, *numbers = sys.argv[1:]
    lines = Path(table).read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader(lines, delimiter="\t"))
    chosen = [int(one) for one in numbers] or list(range(1, len(rows) + 1))
    down = -(-len(chosen) // COLUMNS)
    step = CELL + GAP
    wide = min(COLUMNS, len(chosen)) * step
    sheet = Image.new("RGB", (wide + GAP, down * step + GAP), "#20242e")
    pen = ImageDraw.Draw(sheet)
    times: list[float] = []
    for place, number in enumerate(chosen):
        row = rows[number - 1]
        size = tuple(map(int, row["size"].split("x")))
        image, account, spent = picture(row["prompt"], (size[0], size[1]))
        times.append(spent)
        x, y = GAP + place % COLUMNS * step, GAP + place // COLUMNS * step
        sheet.paste(image, (x + (CELL - image.width) // 2, y + (CELL - image.height) // 2))
        pen.rectangle((x, y, x + 38, y + 26), fill="#20242e")
        pen.text((x + 6, y), str(number), fill="#ffffff", font=ImageFont.load_default(22))
        print(f"{number}. {row['prompt']}\n   {account or 'all drawn'}")
    sheet.save(target, quality=QUALITY, method=6)
    middle = sorted(times)[len(times) // 2]
    print(
        f"{target}: {Path(target).stat().st_size:,} bytes, median {middle:.2f} s of CPU a picture"
    )


if __name__ == "__main__":
    main()
