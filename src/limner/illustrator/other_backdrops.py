"""A canvas -> backdrops without a landscape: space, under water and plain paper."""

from __future__ import annotations

from limner.illustrator.sky import draw_stars
from limner.rendering.canvas import Canvas, number


def draw_space(canvas: Canvas) -> None:
    """A dark sky with stars and clouds of gas."""
    canvas.rect(0, 0, canvas.width, canvas.height, canvas.fade("#05061a", "#12103a", "#241447"))
    for colour, x, y, radius in (
        ("#7a3cff", 0.22, 0.3, 0.55),
        ("#ff4f9a", 0.8, 0.65, 0.5),
        ("#2f8cff", 0.62, 0.18, 0.4),
    ):
        gas = canvas.glow(colour, colour, opacities=(0.32, 0))
        canvas.ellipse(
            canvas.width * x,
            canvas.height * y,
            canvas.unit * radius * 1.3,
            canvas.unit * radius,
            gas,
        )
    draw_stars(canvas, bottom=canvas.height, share=1.0)


def draw_moon_ground(canvas: Canvas, *, top: float) -> None:
    """Grey dust with craters, under a black sky."""
    canvas.rect(0, top, canvas.width, canvas.height - top, canvas.fade("#c9c8d2", "#8e8d9c"))
    for _ in range(9):
        x = canvas.random.uniform(0, canvas.width)
        y = canvas.random.uniform(top + canvas.unit * 0.05, canvas.height)
        size = canvas.unit * canvas.random.uniform(0.02, 0.06)
        canvas.ellipse(x, y, size, size * 0.35, "#7d7c8c")
        canvas.ellipse(x, y + size * 0.07, size * 0.86, size * 0.26, "#a5a4b2")


def draw_underwater(canvas: Canvas, *, floor: float) -> None:
    """Blue depth with rays of light, a sandy floor and weeds."""
    canvas.rect(0, 0, canvas.width, canvas.height, canvas.fade("#6fd6ee", "#1f8fc4", "#0b4a86"))
    ray = canvas.fade("#ffffff", "#ffffff", opacities=(0.3, 0))
    for place in (0.12, 0.34, 0.55, 0.8):
        x, width = canvas.width * place, canvas.unit * canvas.random.uniform(0.05, 0.12)
        slant = canvas.unit * 0.16
        canvas.path(
            f"M{number(x)} 0H{number(x + width)}L{number(x + width * 1.8 - slant)} {number(floor)}"
            f"H{number(x - slant)}Z",
            ray,
        )
    canvas.ellipse(
        canvas.width * 0.5,
        canvas.height * 1.02,
        canvas.width * 0.75,
        (canvas.height - floor) * 1.05,
        canvas.fade("#e6cf98", "#b79a63"),
    )
    for _ in range(9):
        _draw_weed(canvas, floor=floor)
    for _ in range(26):
        x, y = canvas.random.uniform(0, canvas.width), canvas.random.uniform(0, floor)
        radius = canvas.unit * canvas.random.uniform(0.003, 0.011)
        canvas.ellipse(x, y, radius, radius, "#ffffff", opacity="0.35")


def _draw_weed(canvas: Canvas, *, floor: float) -> None:
    x = canvas.random.uniform(0, canvas.width)
    foot = floor + (canvas.height - floor) * canvas.random.uniform(0.2, 0.7)
    tall, sway = canvas.unit * canvas.random.uniform(0.1, 0.22), canvas.unit * 0.03
    half = tall / 2
    data = (
        f"M{number(x)} {number(foot)}q{number(sway)} {number(-half / 2)} 0 {number(-half)}"
        f"q{number(-sway)} {number(-half / 2)} 0 {number(-half)}"
    )
    shade = canvas.random.choice(("#2f9e6a", "#1f7f5c", "#57b36a"))
    canvas.line(data, shade, canvas.unit * 0.012, opacity="0.8")


def draw_plain_paper(canvas: Canvas, colour: str) -> None:
    """One colour, a little lighter in the middle."""
    canvas.rect(0, 0, canvas.width, canvas.height, colour)
    shine = canvas.glow("#ffffff", "#ffffff", opacities=(0.55, 0))
    canvas.ellipse(
        canvas.width / 2, canvas.height * 0.45, canvas.width * 0.7, canvas.height * 0.6, shine
    )
