"""A seed and a size -> a synthetic photograph with the statistics of a natural one.

Fractal texture (about one over f), hard edges at several depths, smooth skies, shading, a little
lens blur and sensor grain: what decides how well real photographs compress. Pillow is all it needs.
"""

from __future__ import annotations

import random
from itertools import pairwise

from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageOps

Size = tuple[int, int]
Colour = tuple[int, int, int]

# Far to near: shadow, middle and light of each ridge of the landscape.
RIDGES: tuple[tuple[Colour, Colour, Colour], ...] = (
    ((104, 122, 150), (132, 150, 178), (176, 188, 206)),
    ((58, 84, 84), (86, 112, 104), (140, 156, 136)),
    ((30, 54, 30), (70, 96, 44), (148, 160, 84)),
    ((34, 30, 20), (96, 84, 52), (186, 170, 118)),
)
STONES: tuple[tuple[Colour, Colour], ...] = (
    ((40, 34, 34), (206, 190, 176)),
    ((60, 14, 12), (232, 92, 70)),
    ((16, 30, 70), (120, 160, 232)),
)
LEAVES = 24_000


def photo(size: Size, *, seed: int) -> Image.Image:
    """A landscape under a sky, with stones and a house; the same for the same arguments."""
    dice = random.Random(f"photo {seed} {size}")
    picture = _sky(size, dice)
    for index, tones in enumerate(RIDGES):
        _add_ridge(picture, dice, tones=tones, depth=(index + 1) / len(RIDGES))
    _add_house(picture, dice)
    for tones in STONES:
        _add_stone(picture, dice, tones=tones)
    return _add_grain(picture, dice)


def fractal(size: Size, dice: random.Random, *, keep: float) -> Image.Image:
    """Grey noise in octaves; ``keep`` is how much amplitude the next finer octave keeps."""
    octaves = max(3, max(size).bit_length() - 3)
    amplitude = (1 - keep) / (1 - keep**octaves)
    field: Image.Image | None = None
    for octave in range(octaves):
        shrunk = octaves - 1 - octave
        cells = (max(2, size[0] >> shrunk), max(2, size[1] >> shrunk))
        layer = _weak(_noise(cells, dice), amplitude * keep**octave)
        field = (
            layer if field is None else _sum(field.resize(cells, Image.Resampling.BICUBIC), layer)
        )
    assert field is not None
    return ImageOps.autocontrast(field, cutoff=0.5)


def noise(size: Size, *, seed: int) -> Image.Image:
    """Independent random colours: nothing can compress it."""
    dice = random.Random(f"noise {seed}")
    return Image.frombytes("RGB", size, dice.randbytes(3 * size[0] * size[1]))


def _noise(size: Size, dice: random.Random) -> Image.Image:
    return Image.frombytes("L", size, dice.randbytes(size[0] * size[1]))


def _weak(layer: Image.Image, amplitude: float) -> Image.Image:
    """The layer drawn towards middle grey."""
    return layer.point([round(128 + amplitude * (value - 128)) for value in range(256)])


def _sum(one: Image.Image, other: Image.Image) -> Image.Image:
    return ImageChops.add(one, other, 1, -128)


def _sky(size: Size, dice: random.Random) -> Image.Image:
    clouds = fractal((size[0] // 8, size[1] // 8), dice, keep=0.52)
    clouds = clouds.filter(ImageFilter.GaussianBlur(1)).resize(size, Image.Resampling.BICUBIC)
    height = Image.linear_gradient("L").resize(size, Image.Resampling.BILINEAR)
    blue = ImageOps.colorize(height, (58, 110, 190), (206, 222, 238))
    cover = clouds.point([max(0, min(255, 3 * (value - 140))) for value in range(256)])
    white = ImageOps.colorize(clouds, (150, 158, 172), (252, 250, 246))
    return Image.composite(white, blue, cover)


def _add_ridge(
    picture: Image.Image,
    dice: random.Random,
    *,
    tones: tuple[Colour, Colour, Colour],
    depth: float,
) -> None:
    width, height = picture.size
    top = round(height * (0.22 + 0.5 * depth))
    line = _profile(dice, points=257, swing=height * 0.16)
    skyline = [(round(width * i / 256), round(top + y)) for i, y in enumerate(line)]
    box = (0, max(0, min(y for _, y in skyline)), width, height)
    extent = (width, height - box[1])
    mask = Image.new("L", extent)
    corners = [(x, y - box[1]) for x, y in skyline]
    ImageDraw.Draw(mask).polygon([*corners, (width, extent[1]), (0, extent[1])], fill=255)
    texture = fractal(extent, dice, keep=0.68 + 0.2 * depth)
    shade = fractal((max(2, width // 16), max(2, extent[1] // 16)), dice, keep=0.5)
    shade = shade.resize(extent, Image.Resampling.BICUBIC)
    shadow, middle, light = tones
    ground = ImageOps.colorize(Image.blend(texture, shade, 0.4), shadow, light, mid=middle)
    _strew_leaves(ground, dice, tones=tones, depth=depth)
    # The far is softer: haze and lens leave less of its texture.
    ground = ground.filter(ImageFilter.GaussianBlur(1.6 * (1 - depth) + 0.5))
    picture.paste(ground, box[:2], mask.filter(ImageFilter.GaussianBlur(0.8)))


def _strew_leaves(
    ground: Image.Image,
    dice: random.Random,
    *,
    tones: tuple[Colour, Colour, Colour],
    depth: float,
) -> None:
    """Overlapping flecks, many small and few large: the edges that texture alone lacks."""
    draw = ImageDraw.Draw(ground)
    width, height = ground.size
    smallest, largest = max(1.0, height / 900), height * depth / 50
    shadow, _, light = tones
    for _ in range(LEAVES):
        radius = min(smallest * (0.5 + depth) * dice.paretovariate(1.8), largest)
        x, y = dice.uniform(0, width), height * dice.random() ** 0.8
        mix = dice.random()
        fill = tuple(round(a + mix * (b - a)) for a, b in zip(shadow, light, strict=True))
        flat = radius * dice.uniform(0.3, 1)
        draw.ellipse((x - radius, y - flat, x + radius, y + flat), fill=fill)


def _profile(dice: random.Random, *, points: int, swing: float) -> list[float]:
    """A mountain line by halving: each step sets middles and shrinks the swing."""
    line = [dice.uniform(-swing, swing), dice.uniform(-swing, swing)]
    while len(line) < points:
        swing *= 0.55
        grown = [line[0]]
        for left, right in pairwise(line):
            grown += [(left + right) / 2 + dice.uniform(-swing, swing), right]
        line = grown
    return line


def _add_house(picture: Image.Image, dice: random.Random) -> None:
    width, height = picture.size
    wide, tall = width // 6, height // 5
    left, top = round(width * dice.uniform(0.1, 0.7)), round(height * 0.52)
    wall = ImageOps.colorize(fractal((wide, tall), dice, keep=0.72), (120, 96, 80), (236, 220, 196))
    draw = ImageDraw.Draw(wall)
    for row in range(2):
        for column in range(4):
            x, y = round(wide * (0.08 + 0.23 * column)), round(tall * (0.14 + 0.44 * row))
            pane = (x, y, x + wide // 7, y + tall // 4)
            draw.rectangle(
                pane, fill=(38, 46, 60), outline=(250, 248, 240), width=max(1, wide // 90)
            )
    picture.paste(wall.filter(ImageFilter.GaussianBlur(0.6)), (left, top))
    roof = [
        (left - wide // 12, top),
        (left + wide // 2, top - tall // 2),
        (left + wide + wide // 12, top),
    ]
    ImageDraw.Draw(picture).polygon(roof, fill=(120, 52, 40))


def _add_stone(picture: Image.Image, dice: random.Random, *, tones: tuple[Colour, Colour]) -> None:
    width, height = picture.size
    side = round(height * dice.uniform(0.08, 0.16))
    light = Image.radial_gradient("L").resize((side * 2, side * 2), Image.Resampling.BICUBIC)
    light = ImageChops.invert(light).crop(
        (side // 3, side // 3, side // 3 + side, side // 3 + side)
    )
    surface = Image.blend(light, fractal((side, side), dice, keep=0.75), 0.35)
    mask = Image.new("L", (side, side))
    ImageDraw.Draw(mask).ellipse((1, 1, side - 2, side - 2), fill=255)
    place = (round(width * dice.uniform(0.05, 0.85)), round(height * dice.uniform(0.74, 0.84)))
    picture.paste(
        ImageOps.colorize(surface, *tones), place, mask.filter(ImageFilter.GaussianBlur(0.9))
    )


def _add_grain(picture: Image.Image, dice: random.Random) -> Image.Image:
    """Sensor noise: nearly grey, and soft as a raw converter leaves it."""
    grain = _noise(picture.size, dice).filter(ImageFilter.GaussianBlur(0.7))
    bands = [_sum(band, _weak(grain, 0.14)) for band in picture.split()]
    return Image.merge("RGB", bands)
