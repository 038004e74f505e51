"""A scene and a canvas -> what is nearest to the viewer, in the lower corners of the picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from limner.illustrator.scenes import PLACES, Scene
from limner.illustrator.sky import Light
from limner.rendering.canvas import Canvas, mix, number

_PETALS = ("#ffffff", "#ffd84d", "#ff8fb1", "#c9a6ff")


def draw_corners(canvas: Canvas, scene: Scene, light: Light) -> None:
    """Draw grass, leaves, snow or stones in the lower corners; some places have none."""
    found = next(((one, paint) for places, one, paint in _CORNERS if scene.has(*places)), None)
    if found is None:
        return
    drawn, colour = found
    if "autumn" in scene.weather and colour in _GREENS:
        colour = "#a8702c"
    for side in (0, 1):
        drawn(canvas, light, side, light.on(colour))


def draw_crowd(canvas: Canvas) -> None:
    """The heads and raised hands of an audience, dark before the light of the stage."""
    unit = canvas.unit
    for row, colour in ((0.06, "#38263f"), (0.0, "#1f1428")):
        for place in range(int(canvas.width / (unit * 0.1)) + 2):
            x = unit * 0.1 * (place - 0.5 * (row > 0)) + unit * _any(canvas, -0.015, 0.015)
            y = canvas.height - unit * (row + _any(canvas, 0.05, 0.075))
            canvas.ellipse(x, y + unit * 0.1, unit * 0.06, unit * 0.075, colour)
            canvas.ellipse(x, y, unit * 0.028, unit * 0.034, colour)
            if canvas.random.random() < 0.35:
                arm = f"M{number(x + unit * 0.04)} {number(y + unit * 0.06)}"
                arm += f"l{number(unit * 0.016)} {number(-unit * 0.13)}"
                canvas.line(arm, colour, unit * 0.018)


def _draw_grass(canvas: Canvas, light: Light, side: int, colour: str) -> None:
    """Long blades, and a few flowers between them."""
    _draw_blades(canvas, side, colour, count=15, tall=0.15, wide=0.011)
    for _ in range(3):
        x, y = _corner(canvas, side, 0.13), canvas.height - canvas.unit * _any(canvas, 0.04, 0.11)
        petal, radius = light.on(canvas.random.choice(_PETALS)), canvas.unit * 0.009
        stalk = f"M{number(x)} {number(y)}L{number(x)} {number(canvas.height)}"
        canvas.line(stalk, colour, canvas.unit * 0.003)
        for turn in range(5):
            angle = turn * math.tau / 5
            at = x + math.cos(angle) * radius, y + math.sin(angle) * radius
            canvas.ellipse(*at, radius * 0.7, radius * 0.7, petal)
        canvas.ellipse(x, y, radius * 0.6, radius * 0.6, light.on("#f2b632"))


def _draw_reeds(canvas: Canvas, _: Light, side: int, colour: str) -> None:
    """A few thin blades."""
    _draw_blades(canvas, side, colour, count=8, tall=0.13, wide=0.006)


def _draw_fern(canvas: Canvas, _: Light, side: int, colour: str) -> None:
    """Broad leaves."""
    _draw_blades(canvas, side, colour, count=9, tall=0.22, wide=0.034)


def _draw_blades(
    canvas: Canvas, side: int, colour: str, *, count: int, tall: float, wide: float
) -> None:
    unit, height = canvas.unit, canvas.height
    for nth in range(count):
        x = _corner(canvas, side, 0.2)
        near = 1 - abs(x - side * canvas.width) / (0.25 * unit)
        up = unit * tall * max(near, 0.3) * _any(canvas, 0.7, 1.1)
        tip = x + unit * _any(canvas, -0.05, 0.05) + (0.04 - 0.08 * side) * unit
        half, foot = unit * wide, height + unit * 0.01
        data = (
            f"M{number(x - half)} {number(foot)}Q{number(x - half * 2)} {number(foot - up * 0.6)} "
        )
        data += (
            f"{number(tip)} {number(foot - up)}Q{number(x + half * 2)} {number(foot - up * 0.5)} "
        )
        canvas.path(
            f"{data}{number(x + half)} {number(foot)}Z", mix(colour, "#10240c", nth % 4 * 0.12)
        )


def _draw_drift(canvas: Canvas, light: Light, side: int, colour: str) -> None:
    """A heap of snow with dry twigs."""
    _draw_blades(canvas, side, light.on("#8a7a66"), count=5, tall=0.16, wide=0.003)
    x, y, unit = side * canvas.width, canvas.height, canvas.unit
    canvas.ellipse(x, y, unit * 0.26, unit * 0.075, mix(colour, "#9fb8d8", 0.25))
    canvas.ellipse(x, y + unit * 0.015, unit * 0.22, unit * 0.075, colour)


def _draw_stones(canvas: Canvas, _: Light, side: int, colour: str) -> None:
    """Some stones, the largest in the corner."""
    for away, size in ((0.03, 0.07), (0.11, 0.04), (0.17, 0.024)):
        x = canvas.unit * away if side == 0 else canvas.width - canvas.unit * away
        wide, y = canvas.unit * size, canvas.height - canvas.unit * 0.004
        canvas.ellipse(x, y, wide, wide * 0.72, mix(colour, "#000000", 0.3))
        canvas.ellipse(x - wide * 0.12, y - wide * 0.1, wide * 0.84, wide * 0.56, colour)


def _draw_nothing(*_: object) -> None:
    """Leave the corners as they are."""


def _any(canvas: Canvas, low: float, high: float) -> float:
    return canvas.random.uniform(low, high)


def _corner(canvas: Canvas, side: int, reach: float) -> float:
    """An x near a corner, mostly close to it."""
    away = canvas.unit * reach * canvas.random.random() ** 1.4
    return canvas.width - away if side else away


Drawn = Callable[[Canvas, Light, int, str], None]
_GREENS = frozenset({"#3f8a38", "#2c6a3a", "#2a7038"})
# Places -> what is in their corners, and its colour; the first row that fits counts.
_CORNERS: Sequence[tuple[tuple[str, ...], Drawn, str]] = (
    (("snow", "ice"), _draw_drift, "#f4f9ff"),
    (
        ("city", "street", "market", "clouds", "cave", "harbour", "mountain top"),
        _draw_nothing,
        "#000000",
    ),
    (("desert", "canyon", "mars"), _draw_stones, "#b06a40"),
    (("wheat field", "savanna", "beach"), _draw_reeds, "#a8924a"),
    (("jungle", "swamp", "waterfall", "bamboo forest"), _draw_fern, "#2a7038"),
    (("sea", "cliff", "sky"), _draw_nothing, "#000000"),
    (("forest",), _draw_fern, "#2c6a3a"),
    (tuple(PLACES), _draw_grass, "#3f8a38"),
)
