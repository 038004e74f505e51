"""A light and a canvas -> landscapes: mountains, water, fields and towns."""

from __future__ import annotations

from limner.illustrator.sky import Light
from limner.rendering.canvas import Canvas, Point, closed, flowing, mix, number

GRASS = {
    "summer": ("#9fd06a", "#6fb54a", "#4c9a3c"),
    "autumn": ("#e0b45a", "#c98f3e", "#a86f30"),
    "wheat": ("#f0d27a", "#e6bd52", "#d9a63a"),
}
SNOW = ("#f4f9ff", "#e2edf8", "#ffffff")
SAND = ("#f6dfa8", "#efcf8c", "#e3bb74")


def draw_mountains(canvas: Canvas, light: Light, *, foot: float, height: float) -> None:
    """Draw two ranges of snow-capped peaks on the line ``foot``."""
    for distance, share, count, colour in ((0.7, 1.0, 5, "#6577b4"), (0.2, 0.72, 4, "#43558f")):
        base = light.far(colour, distance)
        places = [(peak + 0.5) / count for peak in range(count)]
        canvas.random.shuffle(places)
        for place in places:
            x = canvas.width * (place + canvas.random.uniform(-0.06, 0.06))
            tall = height * share * canvas.random.uniform(0.62, 1.0)
            _draw_peak(canvas, light, x=x, foot=foot, tall=tall, colour=base)


def _draw_peak(
    canvas: Canvas, light: Light, *, x: float, foot: float, tall: float, colour: str
) -> None:
    half = max(tall * canvas.random.uniform(0.75, 1.0), canvas.width * 0.14)
    top = (x, foot - tall)
    left = _slope(canvas, top, (x - half, foot))
    right = _slope(canvas, top, (x + half, foot))
    spine = [
        (x + half * swing, foot - tall * up)
        for swing, up in ((0.05, 0.8), (-0.04, 0.6), (0.1, 0.38), (0.02, 0.18), (0.12, 0.0))
    ]
    lit = canvas.fade(mix(colour, "#ffffff", 0.16), light.far("#6f9a8c", 0.5))
    canvas.path(closed([*reversed(left), *right[1:]]), lit)
    canvas.path(
        closed([top, *spine, *reversed(right[1:])]), mix(colour, "#101830", 0.28), opacity="0.55"
    )
    snow = light.on("#ffffff")
    edge_left, edge_right = left[2], right[2]
    zigzag = [
        (
            edge_right[0] + (edge_left[0] - edge_right[0]) * step,
            edge_right[1] + (edge_left[1] - edge_right[1]) * step + tall * dip,
        )
        for step, dip in ((0.2, -0.04), (0.38, 0.06), (0.55, -0.03), (0.72, 0.05), (0.86, -0.02))
    ]
    canvas.path(closed([top, *right[1:3], *zigzag, *reversed(left[1:3])]), snow, opacity="0.92")


def _slope(canvas: Canvas, top: Point, bottom: Point) -> list[Point]:
    """Six points from a peak to its foot, a little rough."""
    points = [top]
    for step in (0.14, 0.3, 0.52, 0.76):
        rough = canvas.random.uniform(-0.03, 0.03)
        points.append(
            (
                top[0] + (bottom[0] - top[0]) * (step + rough),
                top[1] + (bottom[1] - top[1]) * (step - rough),
            )
        )
    points.append(bottom)
    return points


def draw_hills(canvas: Canvas, light: Light, *, top: float, colours: tuple[str, str, str]) -> None:
    """Three rolling layers from the line ``top`` to the bottom of the picture."""
    depth = canvas.height - top
    for layer, colour in enumerate(colours):
        rise = depth * (0.10 - 0.02 * layer)
        y = top + depth * (-0.06, 0.16, 0.48)[layer]
        points = [
            (canvas.width * step / 5, y + canvas.random.uniform(-rise, rise) * (step % 6 > 0))
            for step in range(-1, 7)
        ]
        near = light.far(colour, 0.35 - 0.17 * layer)
        paint = canvas.fade(near, mix(near, light.on("#1d3a20"), 0.22))
        _fill_below(canvas, points, paint)


def draw_plain(canvas: Canvas, light: Light, *, top: float, colours: tuple[str, str, str]) -> None:
    """Almost level ground, for things to stand on."""
    first, middle, last = (light.on(colour) for colour in colours)
    points = [
        (canvas.width * step / 4, top + canvas.random.uniform(-0.006, 0.006) * canvas.unit)
        for step in range(-1, 6)
    ]
    _fill_below(canvas, points, canvas.fade(first, middle, last))


def draw_tufts(canvas: Canvas, light: Light, *, top: float, flowers: float) -> None:
    """Blades of grass, and flowers of a size among them; 0 means none."""
    for _ in range(46):
        x = canvas.random.uniform(0, canvas.width)
        y = canvas.random.uniform(top, canvas.height)
        size = canvas.unit * 0.012 * (0.6 + (y - top) / max(canvas.height - top, 1))
        data = "".join(
            f"M{number(x)} {number(y)}q{number(lean * size * 0.3)} {number(-size * 0.6)} "
            f"{number(lean * size)} {number(-size)}"
            for lean in (-0.7, 0.0, 0.7)
        )
        canvas.line(data, light.on("#3d7f33"), max(size * 0.18, 0.4), opacity="0.6")
        if flowers and canvas.random.random() < 0.4 * flowers:
            petal = canvas.random.choice(("#ffffff", "#ffd84d", "#ff8fb1", "#c9a6ff"))
            radius = size * 0.28 * flowers
            canvas.ellipse(x, y - size, radius, radius, light.on(petal))


def draw_ears(canvas: Canvas, light: Light, *, top: float) -> None:
    """Ears of wheat, larger in front."""
    for row in range(7):
        y = top + (canvas.height * 1.04 - top) * (row + 1) / 7
        size = canvas.unit * (0.03 + 0.012 * row)
        for place in range(int(canvas.width / (size * 0.7)) + 1):
            x = (place + canvas.random.uniform(-0.3, 0.3)) * size * 0.7
            lean = canvas.random.uniform(-0.15, 0.15) * size
            stalk = f"M{number(x)} {number(y)}l{number(lean)} {number(-size)}"
            canvas.line(stalk, light.on("#c9952f"), max(size * 0.06, 0.4))
            canvas.ellipse(x + lean, y - size, size * 0.09, size * 0.3, light.on("#f3cf62"))


def draw_bamboo(canvas: Canvas, light: Light, *, foot: float) -> None:
    """Rows of bamboo stalks from the ground to the top of the picture."""
    for distance, count, wide in ((0.85, 26, 0.012), (0.5, 17, 0.018), (0.15, 10, 0.026)):
        shade = light.far("#5fa544", distance)
        for place in range(count + 1):
            x = canvas.width * (place + canvas.random.uniform(-0.35, 0.35)) / count
            width, low = canvas.unit * wide, foot + (1 - distance) * canvas.height * 0.06
            canvas.rect(x, 0, width, low, shade)
            y = canvas.random.uniform(0, 0.08) * canvas.height
            while y < low:
                dark = mix(shade, "#173a12", 0.4)
                canvas.rect(x - width * 0.08, y, width * 1.16, width * 0.22, dark)
                y += canvas.height * 0.09


def draw_cliff(canvas: Canvas, light: Light, *, top: float) -> None:
    """A high rock above the sea, with grass on it."""
    width, height = canvas.width, canvas.height
    edge = [(0.16, 0.0), (0.13, 0.1), (0.2, 0.16), (0.15, 0.26), (0.22, 0.34), (0.17, 0.5)]
    left = [(width * x, top + y * height) for x, y in edge]
    right = [(width * (1 - x * 0.7), top + y * height) for x, y in reversed(edge)]
    rock = canvas.fade(light.on("#a08a78"), light.on("#5c4d45"))
    canvas.path(closed([*left, *right]), rock)
    for share in (0.3, 0.5, 0.68):
        x = width * share
        crack = f"M{number(x)} {number(top + height * 0.05)}l{number(width * 0.03)} "
        crack += f"{number(height * 0.08)}l{number(-width * 0.02)} {number(height * 0.1)}"
        canvas.line(crack, light.on("#4a3d37"), canvas.unit * 0.005, opacity="0.6")
    rim = [(width * 0.14, top), (width * 0.5, top - height * 0.03), (width * 0.91, top)]
    low = [(width * 0.9, top + height * 0.06), (width * 0.15, top + height * 0.06)]
    canvas.path(closed([*rim, *low]), light.on("#6fa552"))


def draw_forest(
    canvas: Canvas, light: Light, *, foot: float, height: float, colour: str = "#2f6b45"
) -> None:
    """Rows of conifers, pale behind and dark in front."""
    for distance, share, count in ((0.8, 0.7, 20), (0.5, 0.85, 15), (0.18, 1.0, 11)):
        shade = light.far(colour, distance)
        for place in range(count + 1):
            x = canvas.width * (place + canvas.random.uniform(-0.3, 0.3)) / count
            tall = height * share * canvas.random.uniform(0.65, 1.0)
            _draw_conifer(
                canvas, x=x, foot=foot + (1 - distance) * height * 0.12, tall=tall, colour=shade
            )


def _draw_conifer(canvas: Canvas, *, x: float, foot: float, tall: float, colour: str) -> None:
    canvas.rect(
        x - tall * 0.025, foot - tall * 0.12, tall * 0.05, tall * 0.14, mix(colour, "#3a2412", 0.5)
    )
    for level, half in ((0.06, 0.22), (0.3, 0.18), (0.54, 0.13)):
        y = foot - tall * level
        points = [(x - tall * half, y), (x + tall * half, y), (x, y - tall * 0.44)]
        canvas.path(closed(points), mix(colour, "#ffffff", level * 0.12))


def draw_water(
    canvas: Canvas, light: Light, *, top: float, bottom: float, colour: str, sun: float | None
) -> None:
    """Water with the light of the sky on it, and the path of a low sun."""
    canvas.rect(0, top, canvas.width, bottom - top, canvas.fade(*light.on_water(colour)))
    if sun is not None:
        _draw_sun_path(canvas, light, x=sun, top=top, bottom=bottom)
    _draw_ripples(canvas, light, top=top, bottom=bottom)


def _draw_sun_path(canvas: Canvas, light: Light, *, x: float, top: float, bottom: float) -> None:
    for step in range(16):
        depth = step / 16
        half = canvas.unit * (0.055 + 0.07 * depth) * canvas.random.uniform(0.5, 1.1)
        y = top + (bottom - top) * (depth + 0.02)
        canvas.ellipse(
            x,
            y,
            half,
            canvas.unit * (0.0025 + 0.003 * depth),
            light.sun_colour,
            opacity=f"{0.75 - 0.5 * depth:.2f}",
        )


def _draw_ripples(canvas: Canvas, light: Light, *, top: float, bottom: float) -> None:
    for _ in range(34):
        depth = canvas.random.random()
        y = top + (bottom - top) * depth
        length = canvas.width * (0.03 + 0.12 * depth) * canvas.random.uniform(0.6, 1.4)
        x = canvas.random.uniform(-0.05, 1) * canvas.width
        bend = number(canvas.unit * 0.004)
        data = f"M{number(x)} {number(y)}q{number(length / 2)} -{bend} {number(length)} 0"
        width = max(canvas.unit * (0.0012 + 0.0022 * depth), 0.4)
        canvas.line(data, mix(light.sky[2], "#ffffff", 0.5), width, opacity="0.4")


def draw_reflection(
    canvas: Canvas, light: Light, drawn: list[str], *, shore: float, bottom: float
) -> None:
    """Mirror the shapes above a shore in the still water below it."""
    mirror = number(2 * shore)
    clip = canvas.define(
        f'<clipPath id="{{id}}"><rect x="0" y="{number(shore)}" width="{canvas.width}" '
        f'height="{number(max(bottom - shore, 0))}"/></clipPath>'
    )
    canvas.rect(0, shore, canvas.width, bottom - shore, canvas.fade(*reversed(light.sky)))
    canvas.add(
        f'<g clip-path="{clip}"><g transform="translate(0 {mirror}) scale(1 -1)" opacity="0.6">'
        + "".join(drawn)
        + "</g></g>"
    )
    deep = mix(light.on("#2b6a8f"), light.sky[0], 0.35)
    canvas.rect(
        0, shore, canvas.width, bottom - shore, canvas.fade(deep, deep, opacities=(0.12, 0.6))
    )
    _draw_ripples(canvas, light, top=shore, bottom=bottom)
    canvas.rect(
        0,
        shore - canvas.unit * 0.003,
        canvas.width,
        canvas.unit * 0.006,
        light.far("#5d7f5a", 0.3),
        opacity="0.7",
    )


def draw_shore(canvas: Canvas, light: Light, *, top: float) -> None:
    """Sand, with a line of foam at the sea."""
    points = [
        (canvas.width * step / 5, top + canvas.random.uniform(-0.012, 0.018) * canvas.unit)
        for step in range(-1, 7)
    ]
    wet = [(x, y - canvas.unit * 0.016) for x, y in points]
    _fill_below(canvas, wet, mix(light.on("#ffffff"), light.sky[2], 0.25))
    _fill_below(canvas, points, canvas.fade(*(light.on(colour) for colour in SAND)))
    for _ in range(60):
        x, y = canvas.random.uniform(0, canvas.width), canvas.random.uniform(top, canvas.height)
        if y > top + canvas.unit * 0.04:
            radius = canvas.unit * canvas.random.uniform(0.001, 0.0025)
            canvas.ellipse(x, y, radius * 1.6, radius, light.on("#c79a58"), opacity="0.5")


def draw_dunes(canvas: Canvas, light: Light, *, top: float) -> None:
    """Dunes of sand, lit from one side."""
    depth = canvas.height - top
    for layer, colour in enumerate(("#f2c98a", "#e8b06a", "#dd9a55")):
        y = top + depth * (0.0, 0.16, 0.42)[layer]
        swell = depth * (0.16, 0.14, 0.1)[layer]
        points = [
            (canvas.width * step / 4, y - swell * ((step + layer) % 2)) for step in range(-1, 6)
        ]
        near = light.far(colour, 0.3 - 0.14 * layer)
        _fill_below(
            canvas, points, canvas.fade(mix(near, "#ffffff", 0.12), mix(near, "#7a3d12", 0.25))
        )


def draw_skyline(canvas: Canvas, light: Light, *, foot: float, height: float) -> None:
    """Two rows of towers; their windows are lit after sunset."""
    dark = light.shade_share > 0.3
    for distance, share, colour in ((0.7, 1.0, "#6f86ab"), (0.25, 0.72, "#50648c")):
        x = -canvas.random.uniform(0, 0.04) * canvas.width
        while x < canvas.width:
            width = canvas.unit * canvas.random.uniform(0.07, 0.14)
            tall = height * share * canvas.random.uniform(0.4, 1.0)
            shade = light.far(colour, distance)
            canvas.rect(x, foot - tall, width, tall, canvas.fade(shade, mix(shade, "#0d1430", 0.2)))
            _draw_windows(canvas, x=x, top=foot - tall, width=width, tall=tall, dark=dark)
            x += width + canvas.unit * canvas.random.uniform(0.0, 0.012)


def _draw_windows(
    canvas: Canvas, *, x: float, top: float, width: float, tall: float, dark: bool
) -> None:
    cell = max(canvas.unit * 0.026, 1.0)
    pane = canvas.fade("#ffe9a0", "#ffc95c") if dark else canvas.fade("#e4f3ff", "#b9d7f2")
    rows, columns = min(int(tall / cell) - 1, 20), max(int(width / cell) - 1, 1)
    left = x + (width - columns * cell) / 2
    for row in range(rows):
        for column in range(columns):
            if canvas.random.random() < (0.45 if dark else 0.75):
                canvas.rect(
                    left + (column + 0.22) * cell,
                    top + (row + 0.7) * cell,
                    cell * 0.55,
                    cell * 0.5,
                    pane,
                    opacity="0.75",
                )


def draw_street(canvas: Canvas, light: Light, *, top: float) -> None:
    """A pavement and a road with a dashed line."""
    depth = canvas.height - top
    canvas.rect(
        0, top, canvas.width, depth * 0.24, canvas.fade(light.on("#c9c6cf"), light.on("#aeaab8"))
    )
    canvas.rect(0, top + depth * 0.24, canvas.width, depth * 0.05, light.on("#8d8998"))
    road = canvas.fade(light.on("#5a5866"), light.on("#413f4c"))
    canvas.rect(0, top + depth * 0.29, canvas.width, depth, road)
    dash = canvas.unit * 0.09
    x = dash * 0.4
    while x < canvas.width:
        canvas.rect(x, top + depth * 0.74, dash, depth * 0.035, light.on("#f4f0dc"), opacity="0.8")
        x += dash * 1.8


def draw_rails(canvas: Canvas, *, foot: float) -> None:
    """Rails from one side of the picture to the other, with their upper edge on ``foot``."""
    unit, step = canvas.unit, canvas.unit * 0.045
    canvas.rect(0, foot - unit * 0.022, canvas.width, unit * 0.066, "#8d8378", opacity="0.9")
    for place in range(int(canvas.width / step) + 1):
        x = place * step
        sleeper = [(x, foot - unit * 0.016), (x + step * 0.4, foot - unit * 0.016)]
        sleeper += [(x + step * 0.3, foot + unit * 0.036), (x - step * 0.2, foot + unit * 0.036)]
        canvas.path(closed(sleeper), "#5f4a3a")
    for down in (-0.01, 0.018):
        canvas.rect(0, foot + unit * down, canvas.width, unit * 0.009, "#4a4c55")
        canvas.rect(0, foot + unit * down, canvas.width, unit * 0.003, "#b4b8c4")


def _fill_below(canvas: Canvas, points: list[Point], paint: str) -> None:
    bottom = number(canvas.height + 1)
    last, first = number(points[-1][0]), number(points[0][0])
    canvas.path(f"{flowing(points)}L{last} {bottom}L{first} {bottom}Z", paint)
