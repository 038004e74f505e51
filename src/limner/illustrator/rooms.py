"""A room and a canvas -> its wall, window, furniture and floor; or a stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from limner.illustrator.sky import LIGHTS, Light
from limner.rendering.canvas import Canvas, closed, mix, number

Box = tuple[float, float, float, float]


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """A wall, a floor, and what is fixed to the wall.

    ``things`` stand at the wall if the prompt names no furniture: the picture, its place from the
    left, its size, and how high above the floor it is, as fractions of the shorter side.
    """

    wall: str
    floor: str
    furniture: str = "window"
    curtain: str = ""
    things: Sequence[tuple[str, float, float, float]] = ()


ROOMS: Mapping[str, Room] = {
    "room": Room(wall="#f1dfc6", floor="#b9824f", curtain="#d98f6a"),
    "bedroom": Room(
        wall="#d9d3ec",
        floor="#b58a63",
        curtain="#a58fd0",
        things=(("bed", 0.26, 0.5, 0.0), ("floor-lamp", 0.56, 0.36, 0.0)),
    ),
    "living room": Room(
        wall="#e9dccb",
        floor="#a9744a",
        furniture="pictures",
        curtain="#b8664a",
        things=(
            ("couch-and-lamp", 0.3, 0.5, 0.0),
            ("potted-plant", 0.93, 0.24, 0.0),
            ("bookshelf", 0.62, 0.4, 0.0),
        ),
    ),
    "bathroom": Room(
        wall="#cfe8ee",
        floor="#dfe6ea",
        furniture="tiles",
        things=(
            ("bathtub", 0.28, 0.46, 0.0),
            ("mirror", 0.55, 0.2, 0.24),
            ("toilet", 0.86, 0.26, 0.0),
        ),
    ),
    "kitchen": Room(wall="#e3efe6", floor="#c9b59a", furniture="counter"),
    "library": Room(wall="#7a5638", floor="#8a5a34", furniture="bookshelves"),
    "office": Room(
        wall="#dfe6ee",
        floor="#8f939c",
        furniture="blinds",
        things=(
            ("file-cabinet", 0.12, 0.26, 0.0),
            ("table", 0.46, 0.4, 0.0),
            ("desktop-computer", 0.46, 0.22, 0.2),
            ("potted-plant", 0.93, 0.26, 0.0),
        ),
    ),
    "classroom": Room(
        wall="#efe8cf",
        floor="#b98d5c",
        furniture="blackboard",
    ),
    "cafe": Room(
        wall="#c98f6b",
        floor="#7d5236",
        furniture="lamps",
        things=(
            ("table", 0.26, 0.34, 0.0),
            ("chair", 0.5, 0.28, 0.0),
            ("hot-beverage", 0.26, 0.1, 0.155),
        ),
    ),
    "stage": Room(wall="#3a1f33", floor="#9a6238", furniture="stage"),
}


def draw_room(
    canvas: Canvas,
    room: Room,
    *,
    hour: str,
    floor: float,
    outside: str = "",
    taken: Sequence[Box] = (),
    furnished: bool = False,
) -> float:
    """Draw the wall with its furniture, then the floor in front of it; returns the x of the light.

    The window is where the boxes ``taken`` hide it least. A room that is not ``furnished`` by the
    things of the prompt gets its usual furniture.
    """
    light = LIGHTS["day"] if hour == "day" else LIGHTS["dusk"]
    wall, ground = mix(room.wall, light.shade, light.shade_share * 0.5), room.floor
    # The wall continues behind the floor, so that no gap shows between them.
    canvas.rect(0, 0, canvas.width, floor + 2, canvas.fade(mix(wall, "#ffffff", 0.14), wall))
    free = canvas.width / 2
    if room.furniture == "bookshelves":
        _draw_shelves(canvas, floor=floor)
    elif room.furniture == "stage":
        _draw_stage_wall(canvas, floor=floor)
    else:
        if room.furniture == "tiles":
            _draw_tiles(canvas, wall, floor=floor)
        board = (0.08, 0.5) if room.furniture == "blackboard" else (0.0, 0.0)
        free = _free_place(canvas, taken, floor=floor, board=board)
        _draw_window(canvas, LIGHTS[hour], x=free, floor=floor, outside=outside)
        _draw_curtains(canvas, room.curtain, x=free, floor=floor)
    _draw_fixtures(canvas, room, free=free, floor=floor)
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
    if room.furniture == "stage":
        _draw_spotlights(canvas, floor=floor)
    if not furnished:
        for name, across, share, above in room.things:
            size = canvas.unit * share
            foot = floor + canvas.unit * 0.05 - canvas.unit * above
            canvas.add(_asset(name, canvas.width * across - size / 2, foot - size, size))
    return free


def _draw_fixtures(canvas: Canvas, room: Room, *, free: float, floor: float) -> None:
    if room.furniture == "counter":
        _draw_counter(canvas, floor=floor)
        _draw_appliances(canvas, floor=floor)
    elif room.furniture == "blackboard":
        _draw_board(canvas, floor=floor)
    elif room.furniture == "pictures":
        size = canvas.unit * 0.2
        left = 0.1 if free > canvas.width / 2 else 0.8
        canvas.add(_asset("framed-picture", canvas.width * left, floor * 0.14, size))
    elif room.furniture == "lamps":
        _draw_lamps(canvas)


def _draw_tiles(canvas: Canvas, wall: str, *, floor: float) -> None:
    tile, line = canvas.unit * 0.07, mix(wall, "#ffffff", 0.6)
    for step in range(int(canvas.width / tile) + 1):
        canvas.rect(step * tile, floor * 0.45, canvas.unit * 0.003, floor * 0.55, line)
    for step in range(int(floor * 0.55 / tile) + 1):
        canvas.rect(0, floor * 0.45 + step * tile, canvas.width, canvas.unit * 0.003, line)


def _draw_curtains(canvas: Canvas, colour: str, *, x: float, floor: float) -> None:
    if not colour:
        return
    width, tall = canvas.unit * 0.3, min(canvas.unit * 0.34, floor * 0.6)
    top = floor * 0.16 - canvas.unit * 0.03
    rod = mix(colour, "#2a1608", 0.5)
    canvas.rect(x - width * 0.78, top, width * 1.56, canvas.unit * 0.009, rod)
    for side in (-1, 1):
        edge, inner = x + side * width * 0.72, x + side * width * 0.4
        low = top + tall + canvas.unit * 0.1
        canvas.path(
            f"M{number(edge)} {number(top)}H{number(inner)}"
            f"Q{number(inner + side * width * 0.02)} {number(top + tall * 0.6)} "
            f"{number(edge - side * width * 0.08)} {number(low)}H{number(edge)}Z",
            canvas.fade(mix(colour, "#ffffff", 0.15), colour),
        )
        for fold in (0.3, 0.65):
            line = inner + (edge - inner) * fold
            data = (
                f"M{number(line)} {number(top)}L{number(line + (edge - line) * 0.6)} {number(low)}"
            )
            canvas.line(data, mix(colour, "#2a1608", 0.25), canvas.unit * 0.003, opacity="0.6")


def _draw_stage_wall(canvas: Canvas, *, floor: float) -> None:
    """Red curtains at both sides of a dark stage, and a pelmet above."""
    glow = canvas.glow("#c96aff", "#3a1f33", opacities=(0.55, 0))
    canvas.ellipse(canvas.width / 2, floor, canvas.width * 0.5, floor * 0.9, glow)
    for side in (0, 1):
        for fold in range(5):
            wide = canvas.width * 0.042
            x = fold * wide if side == 0 else canvas.width - (fold + 1) * wide
            paint = (
                canvas.fade("#c2283a", "#7a1424") if fold % 2 else canvas.fade("#a81f30", "#5f0f1c")
            )
            canvas.rect(x, 0, wide + 1, floor * (1.0 - 0.02 * fold), paint)
    scallop = canvas.width / 8
    for place in range(8):
        x = place * scallop
        canvas.path(
            f"M{number(x)} 0h{number(scallop)}v{number(floor * 0.1)}"
            f"q{number(-scallop / 2)} {number(floor * 0.12)} {number(-scallop)} 0Z",
            canvas.fade("#c2283a", "#8a1828"),
        )


def _draw_spotlights(canvas: Canvas, *, floor: float) -> None:
    for place, lean in ((0.25, 0.18), (0.5, 0.0), (0.75, -0.18)):
        x, target = canvas.width * place, canvas.width * (place + lean)
        half, low = canvas.width * 0.14, floor + (canvas.height - floor) * 0.55
        beam = canvas.fade("#fff6d0", "#fff6d0", opacities=(0.5, 0.04))
        top = [(x - half * 0.12, 0), (x + half * 0.12, 0)]
        canvas.path(closed([*top, (target + half, low), (target - half, low)]), beam)
        pool = canvas.glow("#fff6d0", "#fff6d0", opacities=(0.5, 0))
        canvas.ellipse(target, low, half * 1.1, half * 0.28, pool)


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
    walls = [(left, right, low - top) for left, top, right, _ in taken if top < low]
    walls.append((board[0] * canvas.width, board[1] * canvas.width, low))

    def hidden(x: float) -> float:
        return sum(
            max(min(right, x + half) - max(left, x - half), 0) * tall for left, right, tall in walls
        )

    shares = (0.72, 0.28, 0.79, 0.21, 0.5, 0.62, 0.38, 0.44, 0.56, 0.67, 0.33)
    places = [canvas.width * share for share in shares]
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
    for _ in range(56):
        left, top = x + width * canvas.random.random(), y + tall * canvas.random.random() * 0.9
        if weather == "snow":
            canvas.ellipse(left, top, canvas.unit * 0.006, canvas.unit * 0.006, "#ffffff")
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


def _draw_appliances(canvas: Canvas, *, floor: float) -> None:
    """A fridge, a cooker under its hood, and a shelf with pots."""
    unit = canvas.unit
    wide, tall = unit * 0.2, min(unit * 0.46, floor * 0.8)
    x, y = canvas.width * 0.03, floor - tall
    canvas.rect(x, y, wide, tall, canvas.fade("#f4f7fa", "#cfd8df"), rx=number(unit * 0.015))
    canvas.rect(x, y + tall * 0.36, wide, unit * 0.005, "#aab6bf")
    for top, long in ((0.2, 0.12), (0.42, 0.2)):
        canvas.rect(x + wide * 0.84, y + tall * top, wide * 0.05, tall * long, "#8f9ba5")
    left, top, depth = canvas.width * 0.3, floor * 0.72, floor * 0.28
    canvas.rect(left, top, unit * 0.2, depth, canvas.fade("#5c636e", "#3a404a"))
    canvas.rect(left + unit * 0.02, top + depth * 0.34, unit * 0.16, depth * 0.5, "#1f242c")
    canvas.rect(
        left + unit * 0.02, top + depth * 0.36, unit * 0.16, depth * 0.2, "#e08a3a", opacity="0.5"
    )
    for knob in range(4):
        canvas.ellipse(
            left + unit * (0.035 + 0.043 * knob),
            top + depth * 0.2,
            unit * 0.008,
            unit * 0.008,
            "#dfe4ea",
        )
    hood = [
        (left + unit * 0.06, floor * 0.2),
        (left + unit * 0.14, floor * 0.2),
        (left + unit * 0.22, floor * 0.36),
        (left - unit * 0.02, floor * 0.36),
    ]
    canvas.path(closed(hood), canvas.fade("#dfe4ea", "#aab3bd"))
    canvas.rect(left + unit * 0.06, 0, unit * 0.08, floor * 0.21, "#c3cbd3")
    canvas.add(_asset("pot-of-food", left + unit * 0.035, top - unit * 0.115, unit * 0.13))


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
