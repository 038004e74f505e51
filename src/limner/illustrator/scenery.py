"""A place and a canvas -> what stands in its middle distance: trees, barns, shops and boats."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping

from limner.illustrator.sky import Light
from limner.rendering.canvas import Canvas, closed, mix, number

_LEAVES = ("#4f9a47", "#5fae4e", "#3f8a4a")
_SEASONS = {
    "autumn": ("#d9822b", "#c9602a", "#e0a53a"),
    "spring": ("#f59abb", "#fbc4d6", "#f7b0c8"),
}
_WALLS = ("#e8c9a0", "#d98f72", "#9fb8c9", "#e3d6b8", "#b9a6c9", "#a8c9a6")
_FRUIT = ("#d9362f", "#f0a024", "#7fb53a", "#f2d03a", "#8a3f8f")
_AWNINGS = ("#c9404a", "#3f8a6a", "#3f6fb0", "#d99a2b")


def draw_scenery(
    canvas: Canvas, place: str, light: Light, *, horizon: float, weather: Collection[str]
) -> None:
    """Draw the middle distance of a place; a place without one stays as it is."""
    drawn = _SCENERY.get(place)
    season = next((one for one in _SEASONS if one in weather), "")
    leaves = _SEASONS.get(season, _LEAVES)
    if drawn is not None:
        drawn(canvas, light, horizon, leaves)
    if season and place in _LEAFY:
        _trees(canvas, light, horizon, leaves, count=7, share=0.26)


def _data(*parts: str | float) -> str:
    """Path data of commands and coordinates."""
    return " ".join(part if isinstance(part, str) else number(part) for part in parts)


def _draw_round_tree(canvas: Canvas, x: float, foot: float, tall: float, leaves: str) -> None:
    trunk = mix(leaves, "#5a3a22", 0.75)
    canvas.rect(x - tall * 0.04, foot - tall * 0.4, tall * 0.08, tall * 0.41, trunk)
    for dx, dy, radius in ((-0.17, 0.55, 0.2), (0.17, 0.57, 0.19), (0.0, 0.74, 0.25)):
        canvas.ellipse(x + dx * tall, foot - dy * tall, radius * tall, radius * tall * 0.92, leaves)
    canvas.ellipse(
        x - tall * 0.06, foot - tall * 0.8, tall * 0.12, tall * 0.1, "#ffffff", opacity="0.12"
    )


def _trees(
    canvas: Canvas,
    light: Light,
    horizon: float,
    leaves: tuple[str, ...],
    *,
    count: int,
    share: float,
) -> None:
    for _ in range(count):
        x = canvas.width * canvas.random.uniform(0.0, 1.0)
        tall = canvas.unit * share * canvas.random.uniform(0.7, 1.2)
        foot = horizon + canvas.height * canvas.random.uniform(0.0, 0.035)
        _draw_round_tree(
            canvas,
            x,
            foot,
            tall,
            light.far(canvas.random.choice(leaves), canvas.random.uniform(0.25, 0.5)),
        )


def _bush(canvas: Canvas, x: float, foot: float, wide: float, colour: str) -> None:
    for dx, radius in ((-0.3, 0.24), (0.0, 0.32), (0.3, 0.25)):
        canvas.ellipse(
            x + dx * wide, foot - radius * wide * 0.6, radius * wide, radius * wide * 0.8, colour
        )


def _draw_meadow(canvas: Canvas, light: Light, horizon: float, leaves: tuple[str, ...]) -> None:
    _trees(canvas, light, horizon, leaves, count=4, share=0.1)


def _draw_park(canvas: Canvas, light: Light, horizon: float, leaves: tuple[str, ...]) -> None:
    _trees(canvas, light, horizon, leaves, count=9, share=0.24)
    wide, height = canvas.width, canvas.height
    path = light.on("#e8d9b4")
    top = horizon + height * 0.06
    canvas.path(
        _data("M", wide * 0.56, top)
        + _data("C", wide * 0.4, height * 0.76, wide * 0.7, height * 0.84, wide * 0.3, height)
        + _data("H", wide * 0.62)
        + _data("C", wide * 0.86, height * 0.84, wide * 0.5, height * 0.76, wide * 0.585, top)
        + "Z",
        path,
        opacity="0.85",
    )


def _draw_garden(canvas: Canvas, light: Light, horizon: float, leaves: tuple[str, ...]) -> None:
    _trees(canvas, light, horizon, leaves, count=4, share=0.22)
    step, foot = canvas.unit * 0.045, horizon + canvas.height * 0.075
    post = light.on("#fbf7ec")
    for row in (0.35, 0.7):
        canvas.rect(
            0, foot - step * 1.9 * row, canvas.width, step * 0.22, mix(post, "#c9b99a", 0.3)
        )
    for place in range(int(canvas.width / step) + 1):
        x = place * step
        canvas.path(
            closed(
                [
                    (x, foot),
                    (x, foot - step * 1.6),
                    (x + step * 0.3, foot - step * 1.95),
                    (x + step * 0.6, foot - step * 1.6),
                    (x + step * 0.6, foot),
                ]
            ),
            post,
        )
    for place in range(int(canvas.width / (canvas.unit * 0.14)) + 1):
        x = canvas.unit * 0.14 * (place + canvas.random.uniform(0, 0.8))
        _bush(
            canvas, x, foot + step * 0.5, canvas.unit * 0.13, light.on(leaves[place % len(leaves)])
        )
        for _ in range(5):
            petal = light.on(
                canvas.random.choice(("#ff8fb1", "#ffd84d", "#ffffff", "#c98fff", "#ff6b5a"))
            )
            dx, dy = canvas.random.uniform(-0.05, 0.05), canvas.random.uniform(-0.03, 0.012)
            radius = canvas.unit * 0.008
            canvas.ellipse(x + dx * canvas.unit, foot + dy * canvas.unit, radius, radius, petal)


def _draw_farm(canvas: Canvas, light: Light, horizon: float, leaves: tuple[str, ...]) -> None:
    _trees(canvas, light, horizon, leaves, count=4, share=0.13)
    wide, tall = canvas.unit * 0.32, canvas.unit * 0.19
    x, foot = canvas.width * 0.05, horizon + canvas.height * 0.04
    red, roof = light.far("#b8402f", 0.15), light.far("#6b3a34", 0.15)
    canvas.rect(x, foot - tall, wide, tall, red)
    canvas.path(
        closed(
            [
                (x - wide * 0.06, foot - tall),
                (x + wide * 0.14, foot - tall * 1.5),
                (x + wide * 0.5, foot - tall * 1.8),
                (x + wide * 0.86, foot - tall * 1.5),
                (x + wide * 1.06, foot - tall),
            ]
        ),
        roof,
    )
    canvas.rect(
        x + wide * 0.34, foot - tall * 0.72, wide * 0.32, tall * 0.72, light.far("#f4e6d0", 0.1)
    )
    left, right, top = x + wide * 0.34, x + wide * 0.66, foot - tall * 0.72
    for one, other in ((left, right), (right, left)):
        bar = f"M{number(one)} {number(top)}L{number(other)} {number(foot)}"
        canvas.line(bar, red, canvas.unit * 0.005)
    silo = x + wide * 1.16
    canvas.rect(silo, foot - tall * 1.7, wide * 0.22, tall * 1.7, light.far("#c9ccd6", 0.2))
    canvas.ellipse(
        silo + wide * 0.11, foot - tall * 1.7, wide * 0.11, wide * 0.1, light.far("#9aa3b5", 0.2)
    )


def _draw_village(canvas: Canvas, light: Light, horizon: float, leaves: tuple[str, ...]) -> None:
    _trees(canvas, light, horizon, leaves, count=5, share=0.16)
    for down, size, gap in ((0.0, 0.1, 1.1), (0.06, 0.2, 1.5)):
        x = canvas.width * canvas.random.uniform(-0.06, 0.03)
        while x < canvas.width * 0.96:
            wide = canvas.unit * size * canvas.random.uniform(0.85, 1.25)
            _draw_hut(canvas, light, x, horizon + canvas.height * (0.02 + down), wide)
            x += wide * gap * canvas.random.uniform(1.0, 1.3)


def draw_hamlet(canvas: Canvas, light: Light, *, foot: float) -> None:
    """Some huts close together, on the top of a hill."""
    for place, size in ((0.27, 0.13), (0.55, 0.13), (0.4, 0.17)):
        _draw_hut(canvas, light, canvas.width * place, foot, canvas.unit * size)


def _draw_market(canvas: Canvas, light: Light, horizon: float, _: tuple[str, ...]) -> None:
    """Stalls with striped roofs, and boxes of fruit on them."""
    floor = canvas.fade(light.on("#d8c6a6"), light.on("#b89f7c"))
    canvas.rect(0, horizon - 1, canvas.width, canvas.height, floor)
    x, nth = -canvas.unit * 0.04, 0
    while x < canvas.width:
        wide = canvas.unit * 0.32
        _draw_stall(canvas, light, x, horizon + canvas.height * 0.1, wide, nth=nth)
        x, nth = x + wide * 1.08, nth + 1


def _draw_stall(
    canvas: Canvas, light: Light, x: float, foot: float, wide: float, *, nth: int
) -> None:
    wood, roof = light.on("#9a6a3f"), _AWNINGS[nth % len(_AWNINGS)]
    for side in (0.03, 0.92):
        canvas.rect(x + wide * side, foot - wide * 1.05, wide * 0.05, wide * 1.05, wood)
    canvas.rect(x, foot - wide * 0.42, wide, wide * 0.42, mix(wood, "#000000", 0.15))
    for box in range(3):
        left, fruit = x + wide * (0.04 + 0.32 * box), _FRUIT[(nth + box) % len(_FRUIT)]
        for piece in range(9):
            dx, dy = (piece % 5) * 0.055 + 0.025 * (piece // 5), 0.045 * (piece // 5)
            at = left + wide * (0.03 + dx), foot - wide * (0.48 + dy)
            canvas.ellipse(*at, wide * 0.034, wide * 0.034, light.on(fruit))
        canvas.rect(left, foot - wide * 0.47, wide * 0.28, wide * 0.1, light.on("#c9985a"))
    for stripe in range(7):
        left, step = x - wide * 0.03 + wide * 1.06 / 7 * stripe, wide * 1.06 / 7
        paint = light.on("#f7f1e4" if stripe % 2 else roof)
        canvas.rect(left, foot - wide * 1.15, step + 0.5, wide * 0.2, paint)
        canvas.ellipse(left + step / 2, foot - wide * 0.95, step / 2, wide * 0.06, paint)


def _draw_hut(canvas: Canvas, light: Light, x: float, foot: float, wide: float) -> None:
    tall = wide * 0.7
    wall = light.far(canvas.random.choice(_WALLS), 0.25)
    canvas.rect(x, foot - tall, wide, tall, wall)
    roof = light.far(canvas.random.choice(("#b8533f", "#9a4a3a", "#7a5a4a")), 0.2)
    canvas.path(
        closed(
            [
                (x - wide * 0.1, foot - tall),
                (x + wide * 0.5, foot - tall * 1.65),
                (x + wide * 1.1, foot - tall),
            ]
        ),
        roof,
    )
    lit = "#ffdf8a" if light.shade_share > 0.3 else light.far("#cfe6f5", 0.2)
    canvas.rect(x + wide * 0.14, foot - tall * 0.7, wide * 0.2, tall * 0.3, lit)
    canvas.rect(x + wide * 0.66, foot - tall * 0.7, wide * 0.2, tall * 0.3, lit)
    canvas.rect(
        x + wide * 0.42, foot - tall * 0.55, wide * 0.18, tall * 0.55, mix(roof, "#3a2418", 0.4)
    )


def _draw_harbour(canvas: Canvas, light: Light, horizon: float, _: tuple[str, ...]) -> None:
    """Houses on a far quay; the water is in front of it."""
    low = light.far("#6f8a5f", 0.5)
    canvas.ellipse(canvas.width * 0.2, horizon, canvas.width * 0.4, canvas.height * 0.07, low)
    x = canvas.width * 0.02
    while x < canvas.width * 0.6:
        wide = canvas.unit * canvas.random.uniform(0.06, 0.1)
        _draw_hut(canvas, light, x, horizon, wide)
        x += wide * 1.08
    canvas.rect(
        0,
        horizon - canvas.unit * 0.008,
        canvas.width * 0.64,
        canvas.unit * 0.018,
        light.far("#8a8078", 0.2),
    )
    for _boat in range(4):
        mast = canvas.width * canvas.random.uniform(0.62, 0.95)
        _draw_boat(canvas, light, mast, horizon + canvas.height * 0.02, canvas.unit * 0.07)


def _draw_boat(canvas: Canvas, light: Light, x: float, foot: float, size: float) -> None:
    hull = light.far(canvas.random.choice(("#c9404a", "#3f6fb0", "#f0ead8", "#d99a2b")), 0.2)
    canvas.path(
        closed(
            [
                (x - size * 0.6, foot - size * 0.3),
                (x + size * 0.6, foot - size * 0.3),
                (x + size * 0.4, foot),
                (x - size * 0.45, foot),
            ]
        ),
        hull,
    )
    canvas.rect(x - size * 0.03, foot - size * 1.3, size * 0.05, size, light.far("#5a4636", 0.2))
    canvas.path(
        closed(
            [
                (x + size * 0.04, foot - size * 1.25),
                (x + size * 0.5, foot - size * 0.42),
                (x + size * 0.04, foot - size * 0.42),
            ]
        ),
        light.far("#fbf6ea", 0.15),
    )


def _draw_savanna(canvas: Canvas, light: Light, horizon: float, _: tuple[str, ...]) -> None:
    """Acacias with flat crowns."""
    for place, share in ((0.1, 0.3), (0.36, 0.16), (0.86, 0.36), (0.66, 0.14)):
        x, tall = canvas.width * place, canvas.unit * share
        foot = horizon + canvas.height * 0.03
        shade = light.far("#7a8f3f", 0.5 - share)
        trunk = light.far("#6b4a2f", 0.5 - share)
        for lean in (-0.16, 0.0, 0.18):
            canvas.line(
                f"M{number(x)} {number(foot)}Q{number(x)} {number(foot - tall * 0.4)} "
                f"{number(x + lean * tall)} {number(foot - tall * 0.72)}",
                trunk,
                tall * 0.035,
            )
        for dx, dy, wide in ((-0.22, 0.72, 0.26), (0.22, 0.74, 0.27), (0.0, 0.8, 0.36)):
            canvas.ellipse(x + dx * tall, foot - dy * tall, wide * tall, tall * 0.085, shade)


def _draw_jungle(canvas: Canvas, light: Light, horizon: float, _: tuple[str, ...]) -> None:
    """Palms and broad leaves in three depths, and vines from above."""
    mist = light.far("#6fb56a", 0.5)
    canvas.rect(0, 0, canvas.width, horizon, canvas.fade(mist, mist, opacities=(0.55, 0.9)))
    for distance, count, share in ((0.8, 7, 0.5), (0.5, 5, 0.58), (0.2, 4, 0.64)):
        shade = light.far("#2f7a3f", distance)
        for place in range(count + 1):
            x = canvas.width * (place + canvas.random.uniform(-0.3, 0.3)) / count
            tall = canvas.height * share * canvas.random.uniform(0.75, 1.05)
            _draw_palm(canvas, x, horizon + (1 - distance) * canvas.height * 0.05, tall, shade)
    for place in range(int(canvas.width / (canvas.unit * 0.09)) + 1):
        x = canvas.unit * 0.09 * place
        _bush(
            canvas,
            x,
            horizon + canvas.height * 0.08,
            canvas.unit * 0.15,
            light.far("#3a8a45", 0.1 + 0.1 * (place % 3)),
        )
    for _vine in range(7):
        x, drop = (
            canvas.width * canvas.random.random(),
            canvas.height * canvas.random.uniform(0.1, 0.32),
        )
        sway = canvas.unit * 0.04
        vine = f"M{number(x)} 0Q{number(x + sway)} {number(drop / 2)} {number(x)} {number(drop)}"
        canvas.line(vine, light.far("#4f8a3a", 0.2), canvas.unit * 0.006)
        for step in range(5):
            canvas.ellipse(
                x + sway * 0.4,
                drop * (step + 0.6) / 5,
                canvas.unit * 0.012,
                canvas.unit * 0.007,
                light.far("#5fa54a", 0.15),
            )


def _draw_palm(canvas: Canvas, x: float, foot: float, tall: float, shade: str) -> None:
    trunk = mix(shade, "#4a3a22", 0.4)
    canvas.line(
        _data("M", x, foot) + _data("Q", x + tall * 0.08, foot - tall * 0.5, x, foot - tall * 0.78),
        trunk,
        tall * 0.034,
    )
    for turn in range(7):
        angle = math.pi * (0.08 + 0.84 * turn / 6)
        dx, dy = math.cos(angle) * tall * 0.36, math.sin(angle) * tall * 0.16
        top = foot - tall * 0.78
        canvas.path(
            _data("M", x, top)
            + _data("Q", x + dx * 0.6, top - dy * 1.9, x + dx, top - dy * 0.4 + tall * 0.06)
            + _data("Q", x + dx * 0.5, top - dy * 0.3, x, top + tall * 0.04)
            + "Z",
            mix(shade, "#ffffff", 0.04 * (turn % 3)),
        )


def _draw_shops(canvas: Canvas, light: Light, horizon: float, _: tuple[str, ...]) -> None:
    """A row of houses with shops and lamps, in front of the towers."""
    x, nth = -canvas.unit * 0.02, 0
    while x < canvas.width:
        wide = canvas.unit * canvas.random.uniform(0.2, 0.28)
        _draw_shop(canvas, light, x, horizon + 1, wide, nth=nth)
        x, nth = x + wide, nth + 1
    for place in (0.16, 0.5, 0.84):
        _draw_lamp(canvas, canvas.width * place, horizon, is_lit=_is_dark(light))


def _is_dark(light: Light) -> bool:
    return light.shade_share > 0.3


def _draw_shop(
    canvas: Canvas, light: Light, x: float, foot: float, wide: float, *, nth: int
) -> None:
    tall = canvas.unit * canvas.random.uniform(0.26, 0.36)
    wall = light.on(_WALLS[nth % len(_WALLS)])
    shade = mix(wall, "#3a2a3a", 0.35)
    canvas.rect(x, foot - tall, wide * 0.99, tall, canvas.fade(wall, mix(wall, "#3a2a3a", 0.12)))
    canvas.rect(x - wide * 0.01, foot - tall - wide * 0.03, wide * 1.01, wide * 0.06, shade)
    pane = "#ffd98a" if _is_dark(light) else light.on("#bfe0f2")
    for column in range(3):
        left = x + wide * (0.12 + 0.29 * column)
        canvas.rect(left, foot - tall * 0.86, wide * 0.17, tall * 0.26, pane)
    canvas.rect(x + wide * 0.08, foot - tall * 0.38, wide * 0.54, tall * 0.34, pane)
    door = mix(wall, "#3a1f18", 0.6)
    canvas.rect(x + wide * 0.7, foot - tall * 0.4, wide * 0.2, tall * 0.4, door)
    for stripe in range(6):
        left = x + wide * (0.04 + 0.62 / 6 * stripe)
        paint = "#f7f1e4" if stripe % 2 else _AWNINGS[nth % len(_AWNINGS)]
        canvas.rect(left, foot - tall * 0.5, wide * 0.105, tall * 0.14, light.on(paint))


def _draw_lamp(canvas: Canvas, x: float, foot: float, *, is_lit: bool) -> None:
    unit = canvas.unit
    canvas.rect(x - unit * 0.004, foot - unit * 0.2, unit * 0.008, unit * 0.24, "#3a3a46")
    if is_lit:
        halo = canvas.glow("#ffe2a0", "#ffe2a0", opacities=(0.7, 0))
        canvas.ellipse(x, foot - unit * 0.21, unit * 0.09, unit * 0.09, halo)
    canvas.ellipse(x, foot - unit * 0.21, unit * 0.016, unit * 0.02, "#ffedb8")


def _draw_graveyard(canvas: Canvas, light: Light, horizon: float, _: tuple[str, ...]) -> None:
    for depth in range(3):
        size = canvas.unit * (0.045 + 0.024 * depth)
        foot = horizon + canvas.height * (0.05 + 0.055 * depth)
        for place in range(7 - depth):
            x = canvas.width * (place + 0.5 + canvas.random.uniform(-0.25, 0.25)) / (7 - depth)
            stone = mix(light.far("#9a9aa6", 0.3 - 0.1 * depth), "#b9bac9", 0.35)
            canvas.path(
                _data("M", x - size / 2, foot, "v", -size)
                + _data("a", size / 2, size / 2, "0 0 1", size, "0v", size, "Z"),
                stone,
            )
            cross = _data("M", x, foot - size * 1.15, "v", size * 0.6)
            cross += _data("M", x - size * 0.2, foot - size * 0.95, "h", size * 0.4)
            canvas.line(cross, mix(stone, "#20202c", 0.5), size * 0.08)


# Places whose trees show the season.
_LEAFY = frozenset({"meadow", "park", "garden", "farm", "path", "river", "hills", "valley"})
Drawn = Callable[[Canvas, Light, float, tuple[str, ...]], None]
_SCENERY: Mapping[str, Drawn] = {
    "meadow": _draw_meadow,
    "park": _draw_park,
    "garden": _draw_garden,
    "farm": _draw_farm,
    "village": _draw_village,
    "market": _draw_market,
    "harbour": _draw_harbour,
    "savanna": _draw_savanna,
    "jungle": _draw_jungle,
    "street": _draw_shops,
    "graveyard": _draw_graveyard,
}
