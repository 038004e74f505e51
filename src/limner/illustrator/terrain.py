"""A place and a canvas -> the shape of its ground: hills, rivers, paths, caves and canyons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from limner.illustrator.sky import Light
from limner.rendering.canvas import Canvas, Point, closed, mix, number

# Where things stand on a hill or a mountain top, in parts of the height.
TOP = 0.62
# Where the sun of Mars is, in parts of the width.
MARS_SUN = 0.8
_GRASS = ("#86c55a", "#4c9a3c")


def draw_terrain(
    canvas: Canvas, places: Sequence[str], light: Light, *, horizon: float, far: bool
) -> None:
    """Draw the shapes of the land that the places name: those behind the ground, or those on it."""
    for name, drawn in (_FAR if far else _NEAR).items():
        if name in places:
            drawn(canvas, light, horizon)


def _shape(canvas: Canvas, data: str, fill: str, **more: str) -> None:
    """Fill a path whose coordinates are parts of the canvas in thousandths."""
    grow = f"scale({canvas.width / 1000:.4f} {canvas.height / 1000:.4f})"
    canvas.path(data, fill, transform=grow, **more)


def _draw_hills(canvas: Canvas, light: Light, horizon: float) -> None:
    """Round hills behind each other, the far ones paler."""
    for x, wide, tall, distance in (
        (0.3, 0.3, 0.24, 0.8),
        (0.88, 0.34, 0.32, 0.6),
        (0.02, 0.3, 0.3, 0.4),
        (0.56, 0.24, 0.16, 0.25),
    ):
        near = light.far("#5fae4a", distance)
        paint = canvas.fade(mix(near, "#ffffff", 0.22), mix(near, "#14301a", 0.3))
        y = horizon + canvas.height * 0.08
        up = canvas.height * tall
        canvas.ellipse(canvas.width * x, y, canvas.width * wide, up, paint)
        for step in (-0.5, -0.38, 0.1, 0.24, 0.34):
            size, at = canvas.unit * 0.016, canvas.width * (x + wide * step)
            foot = y - up * (1 - step * step) ** 0.5 * 0.96
            canvas.ellipse(at, foot - size, size, size * 1.2, mix(near, "#14301a", 0.45))


def _draw_valley(canvas: Canvas, light: Light, horizon: float) -> None:
    """Two slopes that meet in the middle."""
    foot = horizon / canvas.height * 1000
    for side, colour, distance in ((0, "#4f9a4a", 0.45), (1000, "#5aa552", 0.3)):
        near = light.far(colour, distance)
        paint = canvas.fade(mix(near, "#ffffff", 0.15), mix(near, "#14301a", 0.25))
        reach = 1000 - 2 * side
        top, low = number(foot - 330), number(foot + 75)
        bend = f"C{side + reach * 0.24:.0f} {number(foot - 290)} {side + reach * 0.34:.0f} {low}"
        _shape(canvas, f"M{side} {top}{bend} {side + reach * 0.6:.0f} {low}H{side}Z", paint)
        for step in range(7):
            share = 0.03 + 0.055 * step
            drop = foot - 300 + 330 * (share / 0.42) ** 1.6
            x, y = canvas.width * (side + reach * share) / 1000, canvas.height * drop / 1000
            tree = mix(near, "#14301a", 0.4)
            size = canvas.unit * 0.03
            canvas.path(closed([(x - size, y), (x + size, y), (x, y - size * 3)]), tree)


def _draw_canyon(canvas: Canvas, light: Light, horizon: float) -> None:
    """Walls of red rock in layers, at both sides."""
    foot = horizon / canvas.height * 1000
    bands = ("#c8693f", "#b4552f", "#d98252", "#9c4526", "#c26138")
    for side in (0, 1000):
        reach = 1000 - 2 * side
        for level, colour in enumerate(bands):
            top = foot - 430 + 100 * level
            far = side + reach * (0.3 + 0.026 * (level * 7 % 3) - 0.008 * level)
            data = f"M{side} {top:.0f}L{far - reach * 0.03:.0f} {top + 6:.0f}L{far:.0f} "
            data += f"{top + 40:.0f}L{far - reach * 0.02:.0f} {foot + 80:.0f}H{side}Z"
            _shape(canvas, data, light.far(colour, 0.12))


def _draw_waterfall(canvas: Canvas, light: Light, horizon: float) -> None:
    """Water that falls from a rock into a pool."""
    foot = horizon / canvas.height * 1000 + 150
    rock = canvas.fade(light.on("#8b8f96"), light.on("#5c6066"))
    data = f"M80 {foot - 40:.0f}L140 {foot - 420:.0f}L230 {foot - 540:.0f}L360 {foot - 560:.0f}"
    data += f"L640 {foot - 555:.0f}L770 {foot - 530:.0f}L850 {foot - 400:.0f}L930 {foot - 40:.0f}Z"
    _shape(canvas, data, rock)
    for x, y, wide, tall in ((150, 380, 120, 110), (330, 430, 130, 130), (210, 220, 110, 120)):
        stone = light.on("#73777f")
        points = f"M{x} {foot - y + tall}l18 -{tall - 10}l{wide - 50} -10l32 {tall}Z"
        _shape(canvas, points, stone, opacity="0.7")
    for x, wide in ((150, 360), (710, 120)):
        _shape(
            canvas,
            f"M{x} {foot - 535:.0f}q{wide / 2:.0f} -70 {wide} 0q-{wide / 2:.0f} 45 -{wide} 0Z",
            light.on("#5aa04a"),
        )
    fall = canvas.fade(light.on("#d8f1fb"), light.on("#8fd0ee"), light.on("#e8f8ff"))
    _shape(canvas, f"M545 {foot - 562:.0f}H740L780 {foot:.0f}H505Z", fall)
    for x in range(552, 745, 22):
        lean = (x - 643) * 0.36
        streak = (
            f"M{x} {foot - 555:.0f}L{x + lean:.0f} {foot - 10:.0f}l9 0L{x + 5} {foot - 555:.0f}Z"
        )
        _shape(canvas, streak, "#ffffff", opacity="0.45")
    pool = canvas.fade(*light.on_water("#3f9fc8"))
    width, height = canvas.width, canvas.height
    y = height * (foot + 25) / 1000
    canvas.ellipse(width * 0.6, y, width * 0.42, height * 0.06, pool)
    mist = canvas.glow("#ffffff", "#ffffff", opacities=(0.85, 0))
    canvas.ellipse(width * 0.64, height * foot / 1000, width * 0.22, height * 0.05, mist)


def _draw_river(canvas: Canvas, light: Light, horizon: float) -> None:
    """A river that winds from the horizon to the right of the foreground."""
    top = horizon / canvas.height * 1000 + 22
    deep = 1000 - top
    left = [(470, 0), (560, 0.13), (420, 0.3), (520, 0.52), (420, 1.0)]
    right = [(1030, 1.0), (900, 0.5), (690, 0.27), (640, 0.12), (505, 0)]
    bank = canvas.fade(light.on("#d9c48c"), light.on("#a98f5c"))
    water = canvas.fade(*light.on_water("#2f8fc4"))
    for grow, paint in ((16, bank), (0, water)):
        here = [(x - grow * (0.3 + y), top + y * deep) for x, y in left]
        there = [(x + grow * (0.3 + y), top + y * deep) for x, y in right]
        _shape(canvas, _bent(here) + _bent(there).replace("M", "L", 1) + "Z", paint)
    for x, y, length in ((520, 0.36, 70), (600, 0.5, 90), (640, 0.68, 150), (560, 0.84, 190)):
        ripple = f"M{x} {top + y * deep:.0f}q{length / 2:.0f} -9 {length} 0q-{length / 2:.0f} -3 "
        _shape(canvas, f"{ripple}-{length} 0Z", mix(light.sky[2], "#ffffff", 0.6), opacity="0.8")


def _draw_path(canvas: Canvas, light: Light, horizon: float) -> None:
    """A path of earth that winds to the horizon."""
    top = horizon / canvas.height * 1000 + 30
    deep = 1000 - top
    left = [(548, 0), (480, 0.2), (575, 0.42), (270, 1.0)]
    right = [(760, 1.0), (745, 0.44), (545, 0.2), (575, 0)]
    edge, earth = light.on("#9a7d4f"), canvas.fade(light.on("#e2cd9d"), light.on("#c9a968"))
    for grow, paint in ((13, edge), (0, earth)):
        here = [(x - grow * (0.2 + y), top + y * deep) for x, y in left]
        there = [(x + grow * (0.2 + y), top + y * deep) for x, y in right]
        _shape(canvas, _bent(here) + _bent(there).replace("M", "L", 1) + "Z", paint)
    for nth in range(14):
        down = canvas.random.uniform(0.35, 1)
        x, size = 515 + canvas.random.uniform(-150, 150) * down, 5 + 6 * down
        data = f"M{x:.0f} {top + down * deep:.0f}q{size:.0f} -{size:.0f} {size * 2:.0f} 0Z"
        _shape(canvas, data, edge, opacity="0.5" if nth % 2 else "0.8")


def _bent(points: Sequence[Point]) -> str:
    """Path data of a line through points from top to bottom, or back."""
    start = points[0]
    data = f"M{start[0]:.0f} {start[1]:.0f}"
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = (y + to_y) / 2
        data += f"C{x:.0f} {middle:.0f} {to_x:.0f} {middle:.0f} {to_x:.0f} {to_y:.0f}"
    return data


def _draw_swamp(canvas: Canvas, light: Light, horizon: float) -> None:
    """Dark pools with reeds, and bare trees."""
    width, height, unit = canvas.width, canvas.height, canvas.unit
    bark = light.far("#4a4238", 0.25)
    for place, share in ((0.12, 0.4), (0.3, 0.26), (0.76, 0.3), (0.92, 0.44)):
        x, tall, foot = width * place, unit * share, horizon + height * 0.05
        trunk = f"M{number(x)} {number(foot)}L{number(x + tall * 0.05)} {number(foot - tall)}"
        for side, up, reach in ((1, 0.45, 0.26), (-1, 0.6, 0.24), (1, 0.78, 0.16)):
            trunk += f"M{number(x + tall * 0.05 * up)} {number(foot - tall * up)}"
            trunk += f"l{number(side * reach * tall)} {number(-tall * 0.17)}"
        canvas.line(trunk, bark, tall * 0.035)
    pool = canvas.fade(light.on("#5c7a4a"), light.on("#2f4a3a"))
    for x, y, wide in ((0.25, 0.1, 0.3), (0.78, 0.18, 0.3), (0.32, 0.5, 0.42), (0.85, 0.66, 0.34)):
        down = horizon + (height - horizon) * y
        canvas.ellipse(width * x, down, width * wide, height * 0.045, pool)
        for nth in range(9):
            at = width * (x - wide + 2 * wide * nth / 8)
            tall = unit * canvas.random.uniform(0.05, 0.1)
            reed = f"M{number(at)} {number(down)}l{number(unit * 0.006)} {number(-tall)}"
            canvas.line(reed, light.on("#6f8a3f"), unit * 0.004)
            canvas.ellipse(at + unit * 0.006, down - tall, unit * 0.005, unit * 0.016, bark)


def _draw_ice(canvas: Canvas, light: Light, horizon: float) -> None:
    """A plain of blue ice with cracks, and icebergs behind it."""
    width, height, unit = canvas.width, canvas.height, canvas.unit
    for place, wide, tall in ((0.14, 0.16, 0.2), (0.5, 0.1, 0.1), (0.84, 0.2, 0.25)):
        x, foot = width * place, horizon + height * 0.02
        half, up = width * wide, unit * tall
        peak = (x - half * 0.2, foot - up)
        berg = [(x - half, foot), (x - half * 0.6, foot - up * 0.6), peak]
        berg += [(x + half * 0.4, foot - up * 0.7), (x + half, foot)]
        canvas.path(closed(berg), canvas.fade(light.far("#f4fbff", 0.1), light.far("#9fd4ea", 0.2)))
        side = [peak, berg[3], berg[4], (x + half * 0.1, foot)]
        canvas.path(closed(side), light.far("#6fb4d8", 0.2), opacity="0.55")
    ice = canvas.fade(light.on("#d4effa"), light.on("#a6daf0"), light.on("#7fc3e4"))
    canvas.rect(0, horizon + height * 0.02, width, height, ice)
    for _ in range(11):
        x, y = canvas.random.uniform(0, width), canvas.random.uniform(horizon + unit * 0.06, height)
        crack = f"M{number(x)} {number(y)}"
        for _step in range(4):
            dx, dy = canvas.random.uniform(-0.08, 0.08), canvas.random.uniform(0.0, 0.03)
            crack += f"l{number(dx * unit)} {number(dy * unit)}"
        canvas.line(crack, light.on("#ffffff"), unit * 0.005, opacity="0.8")


def _draw_hill(canvas: Canvas, light: Light, horizon: float) -> None:
    """One large hill with a way up to its top."""
    lit, dark = (light.on(colour) for colour in _GRASS)
    top = TOP * 1000 - 12
    for place in (0.03, 0.11, 0.9, 0.97):
        x, size = canvas.width * place, canvas.unit * 0.05
        leaves = light.far("#3f8a4a", 0.25)
        y = horizon + canvas.height * 0.03
        canvas.rect(x - size * 0.1, y - size, size * 0.2, size, mix(leaves, "#5a3a22", 0.6))
        canvas.ellipse(x, y - size * 1.4, size * 0.6, size * 0.75, leaves)
    data = f"M-60 1002C90 930 150 {top:.0f} 420 {top:.0f}H590C850 {top:.0f} 910 930 1060 1002Z"
    _shape(canvas, data, canvas.fade(mix(lit, "#ffffff", 0.14), lit, dark))
    shade = f"M590 {top:.0f}C850 {top:.0f} 910 930 1060 1002H700C760 900 740 {top + 60:.0f}"
    _shape(canvas, f"{shade} 590 {top:.0f}Z", dark, opacity="0.45")
    way = "M470 1002C420 930 640 900 620 840C600 790 420 780 440 720C450 690 520 680 530 650"
    way += "L545 650C540 690 480 700 475 725C470 770 680 780 690 840C695 900 560 940 610 1002Z"
    _shape(canvas, way, light.on("#e2cd9d"), opacity="0.85")
    for _ in range(30):
        x, y = canvas.random.uniform(0.2, 0.8), canvas.random.uniform(TOP + 0.08, 0.98)
        petal = canvas.random.choice(("#ffffff", "#ffd84d", "#ff8fb1"))
        radius = canvas.unit * 0.004
        canvas.ellipse(x * canvas.width, y * canvas.height, radius, radius, light.on(petal))


def _draw_mountain_top(canvas: Canvas, light: Light, _: float) -> None:
    """Bare rock with snow, high above the other mountains."""
    top = TOP * 1000 - 12
    rock = canvas.fade(light.on("#9aa0b0"), light.on("#596076"))
    data = f"M-20 1002L40 900L150 {top + 130:.0f}L210 {top + 90:.0f}L250 {top:.0f}H760"
    data += f"L810 {top + 110:.0f}L870 {top + 140:.0f}L960 920L1020 1002Z"
    _shape(canvas, data, rock)
    shade = f"M600 {top:.0f}H760L810 {top + 110:.0f}L870 {top + 140:.0f}L960 920L1020 1002H720"
    _shape(
        canvas,
        f"{shade}L650 {top + 210:.0f}L690 {top + 120:.0f}Z",
        light.on("#454b60"),
        opacity="0.5",
    )
    snow = f"M240 {top + 14:.0f}L250 {top - 8:.0f}H762L776 {top + 34:.0f}L700 {top + 22:.0f}"
    snow += f"L660 {top + 60:.0f}L590 {top + 26:.0f}L520 {top + 72:.0f}L430 {top + 30:.0f}"
    _shape(canvas, f"{snow}L360 {top + 66:.0f}L310 {top + 28:.0f}Z", light.on("#f7fbff"))
    for x, y in ((330, 150), (520, 190), (420, 270), (610, 280)):
        crack = f"M{x} {top + y:.0f}l40 -14l26 40l-8 4l-24 -30l-34 8Z"
        _shape(canvas, crack, light.on("#454b60"), opacity="0.6")


def _draw_cave(canvas: Canvas, light: Light, _: float) -> None:
    """Walls of rock around the view out of a cave."""
    rock = canvas.fade(light.on("#5a5560"), light.on("#2b2833"))
    ground = canvas.fade(light.on("#6b6470"), light.on("#39343f"))
    _shape(canvas, "M0 700Q260 660 500 690T1000 680V1002H0Z", ground)
    opening = "M0 0H1000V1002H920L880 760L850 560L790 380L690 240L560 190L430 200L300 270"
    opening += "L210 400L170 560L130 740L80 1002H0Z"
    _shape(canvas, opening, rock)
    for x, wide, tall in (
        (120, 50, 210),
        (300, 44, 330),
        (420, 38, 270),
        (640, 40, 290),
        (800, 54, 440),
    ):
        spike = f"M{x - wide} 0H{x + wide}L{x} {tall}Z"
        _shape(canvas, spike, light.on("#413c48"))
    for x, wide, tall in ((70, 60, 180), (930, 60, 210), (150, 40, 90)):
        _shape(canvas, f"M{x - wide} 1000L{x} {1000 - tall}L{x + wide} 1000Z", light.on("#4d4754"))


def _draw_clouds_below(canvas: Canvas, light: Light, _: float) -> None:
    """A floor of clouds."""
    for row in range(4):
        y = canvas.height * (0.76 + 0.08 * row)
        puff = mix(light.cloud, light.sky[0], 0.24 - 0.07 * row)
        canvas.rect(0, y, canvas.width, canvas.height, puff)
        for step in range(9):
            x = canvas.width * (step + 0.5 * (row % 2)) / 8
            size = canvas.unit * canvas.random.uniform(0.06, 0.1)
            canvas.ellipse(x, y, size * 1.25, size * 0.75, puff)


def _draw_mars(canvas: Canvas, _: Light, horizon: float) -> None:
    """Red dust with craters and stones, under a pale sky."""
    width, height, unit = canvas.width, canvas.height, canvas.unit
    canvas.rect(0, 0, width, horizon + 1, canvas.fade("#c9855c", "#e0a878", "#f0cda4"))
    halo = canvas.glow("#fff3df", "#fff3df", opacities=(0.9, 0))
    canvas.ellipse(width * MARS_SUN, horizon * 0.3, unit * 0.13, unit * 0.13, halo)
    canvas.ellipse(width * MARS_SUN, horizon * 0.3, unit * 0.03, unit * 0.03, "#fffaf0")
    for x, wide, tall in ((0.2, 0.3, 0.13), (0.75, 0.4, 0.1), (0.5, 0.2, 0.07)):
        canvas.ellipse(width * x, horizon + 2, width * wide, unit * tall, "#b8694a")
    canvas.rect(0, horizon, width, height, canvas.fade("#c8643c", "#a8472a", "#8a3620"))
    for nth in range(24):
        x = canvas.random.uniform(0, width)
        y = horizon + (height - horizon) * canvas.random.uniform(0.08, 1)
        size = unit * (0.012 + 0.03 * (y - horizon) / (height - horizon))
        if nth % 3:
            canvas.ellipse(x, y, size * 0.6, size * 0.4, "#6e2c1c")
            canvas.ellipse(x - size * 0.1, y - size * 0.1, size * 0.4, size * 0.2, "#b45a3a")
        else:
            canvas.ellipse(x, y, size * 2.2, size * 0.7, "#74301d")
            canvas.ellipse(x, y + size * 0.14, size * 1.9, size * 0.52, "#93401f")


Drawn = Callable[[Canvas, Light, float], None]
# Place -> its shape, the farthest first.
_FAR: Mapping[str, Drawn] = {
    "mars": _draw_mars,
    "hills": _draw_hills,
    "valley": _draw_valley,
    "canyon": _draw_canyon,
}
_NEAR: Mapping[str, Drawn] = {
    "clouds": _draw_clouds_below,
    "waterfall": _draw_waterfall,
    "ice": _draw_ice,
    "swamp": _draw_swamp,
    "river": _draw_river,
    "path": _draw_path,
    "hill": _draw_hill,
    "mountain top": _draw_mountain_top,
    "cave": _draw_cave,
}
