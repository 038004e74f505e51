"""A canvas -> backdrops without a landscape: space, under water, rooms and plain paper."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from limner.illustrator.sky import LIGHTS, Light, draw_stars
from limner.rendering.canvas import Canvas, mix, number


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


Box = tuple[float, float, float, float]


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """A wall, a floor and the furniture along the wall."""

    wall: str
    floor: str
    furniture: str = "window"


ROOMS = {
    "room": Room(wall="#f1dfc6", floor="#b9824f"),
    "bedroom": Room(wall="#d9d3ec", floor="#b58a63"),
    "living room": Room(wall="#e9dccb", floor="#a9744a", furniture="pictures"),
    "bathroom": Room(wall="#cfe8ee", floor="#dfe6ea"),
    "kitchen": Room(wall="#e3efe6", floor="#c9b59a", furniture="counter"),
    "library": Room(wall="#7a5638", floor="#8a5a34", furniture="bookshelves"),
    "office": Room(wall="#dfe6ee", floor="#8f939c"),
    "classroom": Room(wall="#efe8cf", floor="#b98d5c", furniture="blackboard"),
    "cafe": Room(wall="#c98f6b", floor="#7d5236", furniture="lamps"),
}


def draw_room(
    canvas: Canvas,
    room: Room,
    *,
    hour: str,
    floor: float,
    outside: str = "",
    taken: Sequence[Box] = (),
) -> None:
    """The wall with its furniture, then the floor in front of it.

    The window is where the boxes ``taken`` hide it least.
    """
    light = LIGHTS["day"] if hour == "day" else LIGHTS["dusk"]
    wall, ground = mix(room.wall, light.shade, light.shade_share * 0.5), room.floor
    # The wall continues behind the floor, so that no gap shows between them.
    canvas.rect(0, 0, canvas.width, floor + 2, canvas.fade(mix(wall, "#ffffff", 0.14), wall))
    free = canvas.width / 2
    if room.furniture == "bookshelves":
        _draw_shelves(canvas, floor=floor)
    else:
        board = (0.08, 0.5) if room.furniture == "blackboard" else (0.0, 0.0)
        free = _free_place(canvas, taken, floor=floor, board=board)
        _draw_window(canvas, LIGHTS[hour], x=free, floor=floor, outside=outside)
    if room.furniture == "counter":
        _draw_counter(canvas, floor=floor)
    elif room.furniture == "blackboard":
        _draw_board(canvas, floor=floor)
    elif room.furniture == "pictures":
        size = canvas.unit * 0.2
        left = 0.1 if free > canvas.width / 2 else 0.8
        canvas.add(_asset("framed-picture", canvas.width * left, floor * 0.14, size))
    elif room.furniture == "lamps":
        _draw_lamps(canvas)
    ground = mix(ground, light.shade, light.shade_share * 0.5)
    canvas.rect(
        0,
        floor,
        canvas.width,
        canvas.height - floor,
        canvas.fade(mix(ground, "#ffffff", 0.1), mix(ground, "#2a1608", 0.25)),
    )
    canvas.rect(
        0, floor - canvas.unit * 0.018, canvas.width, canvas.unit * 0.022, mix(wall, "#ffffff", 0.5)
    )
    _draw_planks(canvas, mix(ground, "#2a1608", 0.4), floor=floor)


def _draw_planks(canvas: Canvas, colour: str, *, floor: float) -> None:
    for step in range(-6, 17):
        far, near = canvas.width * step / 10, canvas.width * (0.5 + (step / 10 - 0.5) * 2.2)
        data = f"M{number(far)} {number(floor)}L{number(near)} {canvas.height}"
        canvas.line(data, colour, max(canvas.unit * 0.0022, 0.4), opacity="0.45")


def _free_place(
    canvas: Canvas, taken: Sequence[Box], *, floor: float, board: tuple[float, float]
) -> float:
    """The middle of the window, where the things of the picture hide it least."""
    half, low = canvas.unit * 0.17, floor * 0.16 + min(canvas.unit * 0.34, floor * 0.6)
    walls = [(left, right) for left, top, right, _ in taken if top < low]
    walls.append((board[0] * canvas.width, board[1] * canvas.width))

    def hidden(x: float) -> float:
        return sum(max(min(right, x + half) - max(left, x - half), 0) for left, right in walls)

    places = [canvas.width * share for share in (0.72, 0.28, 0.84, 0.16, 0.5, 0.62, 0.38)]
    return min(places, key=hidden)


def _draw_window(canvas: Canvas, light: Light, *, x: float, floor: float, outside: str) -> None:
    width, tall = canvas.unit * 0.3, min(canvas.unit * 0.34, floor * 0.6)
    x, y = x - width / 2, floor * 0.16
    edge = canvas.unit * 0.014
    canvas.rect(x - edge, y - edge, width + 2 * edge, tall + 2 * edge, "#fbf6ec")
    canvas.rect(x, y, width, tall, canvas.fade(*light.sky))
    if outside:
        _draw_outside(canvas, (x, y, width, tall), outside)
    elif light.stars:
        for _ in range(14):
            radius = canvas.unit * 0.0016
            canvas.ellipse(
                x + width * canvas.random.random(),
                y + tall * canvas.random.random(),
                radius,
                radius,
                "#fff",
            )
    canvas.rect(x + width / 2 - edge / 3, y, edge * 0.66, tall, "#fbf6ec")
    canvas.rect(x, y + tall / 2 - edge / 3, width, edge * 0.66, "#fbf6ec")
    canvas.rect(x - edge * 2, y + tall + edge, width + 4 * edge, edge * 1.2, "#efe5d2")


def _draw_outside(canvas: Canvas, box: tuple[float, float, float, float], weather: str) -> None:
    """Snow or rain behind the panes of a window."""
    x, y, width, tall = box
    canvas.rect(x, y, width, tall, "#8fa3bf" if weather == "rain" else "#b9cbe2", opacity="0.7")
    if weather == "snow":
        canvas.rect(x, y + tall * 0.72, width, tall * 0.28, "#f5f9ff")
    for _ in range(34):
        left, top = x + width * canvas.random.random(), y + tall * canvas.random.random() * 0.9
        if weather == "snow":
            canvas.ellipse(left, top, canvas.unit * 0.004, canvas.unit * 0.004, "#ffffff")
        else:
            drop = f"M{number(left)} {number(top)}v{number(tall * 0.08)}"
            canvas.line(drop, "#e6f0ff", canvas.unit * 0.0025)


def _draw_shelves(canvas: Canvas, *, floor: float) -> None:
    size = min(floor * 0.98, canvas.unit * 0.62)
    count = int(canvas.width / (size * 0.875)) + 1
    left = (canvas.width - count * size * 0.875) / 2 - size * 0.0625
    for row in range(int(floor / (size * 0.935)) + 1):
        y = floor - size * (0.97 + 0.935 * row)
        for place in range(count):
            canvas.add(_asset("bookshelf", left + place * size * 0.875, y, size))
    canvas.rect(0, 0, canvas.width, floor, canvas.fade("#1a0e06", "#1a0e06", opacities=(0.5, 0.12)))


def _draw_counter(canvas: Canvas, *, floor: float) -> None:
    top, depth = floor * 0.72, floor * 0.28
    tile = canvas.unit * 0.06
    for step in range(int(canvas.width / tile) + 1):
        canvas.rect(step * tile, top - tile, tile * 0.94, tile * 0.94, "#f7fbf8", opacity="0.8")
    canvas.rect(0, top, canvas.width, depth, canvas.fade("#8fb0a4", "#6d9186"))
    canvas.rect(0, top, canvas.width, depth * 0.14, "#f3ead9")
    door = canvas.unit * 0.17
    for step in range(int(canvas.width / door) + 1):
        canvas.rect(
            step * door + door * 0.06,
            top + depth * 0.24,
            door * 0.88,
            depth * 0.64,
            "#a6c4b8",
            rx=number(canvas.unit * 0.006),
        )
        canvas.ellipse(
            step * door + door * 0.5,
            top + depth * 0.34,
            canvas.unit * 0.007,
            canvas.unit * 0.007,
            "#f3ead9",
        )


def _draw_board(canvas: Canvas, *, floor: float) -> None:
    width, tall = canvas.width * 0.42, floor * 0.42
    edge = canvas.unit * 0.014
    x, y = canvas.width * 0.08, floor * 0.18
    canvas.rect(x - edge, y - edge, width + 2 * edge, tall + 2 * edge, "#a5713d")
    canvas.rect(x, y, width, tall, canvas.fade("#2f6b52", "#265843"))


def _draw_lamps(canvas: Canvas) -> None:
    for place in (0.2, 0.42, 0.64, 0.86):
        x, drop = canvas.width * place, canvas.height * canvas.random.uniform(0.1, 0.16)
        size = canvas.unit * 0.045
        canvas.rect(x - size * 0.04, 0, size * 0.08, drop, "#3a241a")
        halo = canvas.glow("#ffe2a0", "#ffe2a0", opacities=(0.6, 0))
        canvas.ellipse(x, drop + size * 0.4, size * 3, size * 3, halo)
        canvas.path(
            f"M{number(x - size)} {number(drop + size)}Q{number(x)} {number(drop - size)} "
            f"{number(x + size)} {number(drop + size)}Z",
            "#3a241a",
        )


def _asset(name: str, x: float, y: float, size: float) -> str:
    return f'<asset name="{name}" x="{number(x)}" y="{number(y)}" size="{number(size)}"/>'
