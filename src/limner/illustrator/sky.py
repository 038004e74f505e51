"""An hour and a canvas -> light, sky and weather."""

from __future__ import annotations

import math

import msgspec

from limner.rendering.canvas import Canvas, flowing, mix, number


class Light(msgspec.Struct, frozen=True, kw_only=True):
    """The colours of an hour of the day.

    ``sky`` goes from the top to the horizon, ``haze`` is the air in front of distant things.
    ``veil`` is drawn over the whole picture at the end, so that ready-made pictures get the light
    too. ``sun`` is the height of the sun above the horizon as a fraction of the sky, or None.
    """

    sky: tuple[str, str, str]
    haze: str
    shade: str
    shade_share: float
    veil: str
    veil_opacity: float
    cloud: str
    glow_share: float = 0.0
    sun: float | None = None
    sun_colour: str = "#fff6d0"
    stars: float = 0.0

    def on(self, colour: str) -> str:
        """A colour as it looks in this light."""
        return mix(mix(colour, self.shade, self.shade_share), self.sky[2], self.glow_share)

    def on_water(self, colour: str) -> tuple[str, str, str]:
        """The colours of water from the far shore to the near one; it reflects the sky."""
        share = min(0.45 + 1.6 * self.shade_share, 0.88)
        near, middle, far = (mix(self.on(colour), sky, share) for sky in self.sky)
        return far, middle, mix(near, self.on(colour), 0.35)

    def far(self, colour: str, distance: float) -> str:
        """A colour in this light through haze; distance 1 is the horizon."""
        return mix(self.on(colour), self.haze, distance * 0.7)


LIGHTS = {
    "day": Light(
        sky=("#3f9be8", "#8ccbf5", "#e2f4fb"),
        haze="#cfe4f4",
        shade="#ffffff",
        shade_share=0.0,
        veil="#fff4d8",
        veil_opacity=0.0,
        cloud="#ffffff",
        sun=0.76,
    ),
    "dawn": Light(
        sky=("#5f7cc0", "#e9a5b4", "#ffe2b4"),
        haze="#dcb3cf",
        shade="#8f7ab0",
        shade_share=0.22,
        veil="#ff9e7d",
        veil_opacity=0.07,
        cloud="#ffd9cf",
        glow_share=0.1,
        sun=0.12,
        sun_colour="#fff1c4",
    ),
    "sunset": Light(
        sky=("#40407f", "#e0607a", "#ffb357"),
        haze="#b8628c",
        shade="#6b3a72",
        shade_share=0.26,
        veil="#ff7a3c",
        veil_opacity=0.09,
        cloud="#ffb08a",
        glow_share=0.18,
        sun=0.10,
        sun_colour="#ffe08a",
    ),
    "dusk": Light(
        sky=("#1d2756", "#67508f", "#e0917f"),
        haze="#7d5f95",
        shade="#2c2a55",
        shade_share=0.45,
        veil="#2a2a66",
        veil_opacity=0.16,
        cloud="#8f6f9f",
        stars=0.35,
    ),
    "night": Light(
        sky=("#060a22", "#121b48", "#33467f"),
        haze="#2c3f78",
        shade="#0d1538",
        shade_share=0.58,
        veil="#0a1440",
        veil_opacity=0.18,
        cloud="#4a5a8a",
        stars=1.0,
    ),
}


def draw_sky(
    canvas: Canvas, light: Light, *, horizon: float, orb: bool, open_view: bool
) -> float | None:
    """Draw the sky down to the horizon, with a sun or moon if ``orb``.

    Without an ``open_view`` something high is in front of the horizon, and the sun is higher.
    Returns the x of the sun or the moon, or None if there is none.
    """
    canvas.rect(0, 0, canvas.width, canvas.height, light.sky[2])
    canvas.rect(0, 0, canvas.width, horizon + 1, canvas.fade(*light.sky))
    if light.stars:
        draw_stars(canvas, bottom=horizon * 0.9, share=light.stars)
    if orb and light.sun is not None:
        high = light.sun > 0.5
        y = horizon * (1 - light.sun if open_view or high else 0.48)
        return _draw_sun(canvas, light, y=y, halo=0.28 if high else 0.42)
    if orb and light.stars >= 1:
        return _draw_moon(canvas, horizon=horizon)
    return None


def draw_stars(canvas: Canvas, *, bottom: float, share: float) -> None:
    """Small lights, more of them on a larger canvas."""
    area = canvas.width * bottom / max(canvas.unit, 1) ** 2
    for _ in range(min(int(150 * area * share) + 10, 400)):
        x, y = canvas.random.uniform(0, canvas.width), canvas.random.uniform(0, bottom)
        radius = canvas.unit * canvas.random.choice((0.0008, 0.001, 0.0014, 0.0022))
        opacity = number(canvas.random.uniform(0.4, 1.0))
        canvas.ellipse(x, y, max(radius, 0.3), max(radius, 0.3), "#fff", opacity=opacity)


def _draw_sun(canvas: Canvas, light: Light, *, y: float, halo: float) -> float:
    x = canvas.width * canvas.random.choice((0.13, 0.87) if halo < 0.4 else (0.3, 0.68, 0.74))
    shine = canvas.glow(light.sun_colour, light.sun_colour, opacities=(0.85, 0))
    canvas.ellipse(x, y, canvas.unit * halo, canvas.unit * halo, shine)
    canvas.ellipse(x, y, canvas.unit * 0.075, canvas.unit * 0.075, light.sun_colour)
    return x


def _draw_moon(canvas: Canvas, *, horizon: float) -> float:
    x, y = canvas.width * canvas.random.choice((0.2, 0.8)), horizon * 0.26
    halo = canvas.glow("#e9edff", "#e9edff", opacities=(0.5, 0))
    canvas.ellipse(x, y, canvas.unit * 0.2, canvas.unit * 0.2, halo)
    canvas.ellipse(x, y, canvas.unit * 0.055, canvas.unit * 0.055, "#f4f1dc")
    for dx, dy, radius in ((-0.018, -0.012, 0.012), (0.016, 0.014, 0.016), (0.012, -0.024, 0.007)):
        canvas.ellipse(
            x + dx * canvas.unit,
            y + dy * canvas.unit,
            radius * canvas.unit,
            radius * canvas.unit,
            "#dcd8bd",
        )
    return x


def draw_clouds(canvas: Canvas, light: Light, *, bottom: float, count: int, opacity: float) -> None:
    """Soft clouds with a flat base, spread over the sky."""
    for place in range(count):
        width = canvas.unit * canvas.random.uniform(0.16, 0.34)
        x = canvas.width * (place + canvas.random.uniform(0.1, 0.9)) / max(count, 1)
        y = bottom * canvas.random.uniform(0.12, 0.62)
        puffs = ((-0.36, 0.02, 0.2), (-0.14, -0.1, 0.27), (0.14, -0.07, 0.23), (0.36, 0.03, 0.17))
        canvas.add(f'<g opacity="{number(opacity)}">')
        for dx, dy, radius in puffs:
            canvas.ellipse(
                x + dx * width, y + dy * width, radius * width, radius * width * 0.8, light.cloud
            )
        canvas.rect(
            x - 0.52 * width,
            y + 0.02 * width,
            1.04 * width,
            0.14 * width,
            light.cloud,
            rx=number(0.07 * width),
        )
        canvas.add("</g>")


def draw_storm(canvas: Canvas, *, bottom: float) -> None:
    """A dark sky with two flashes of lightning."""
    canvas.rect(0, 0, canvas.width, bottom, canvas.fade("#10131f", "#10131f", opacities=(0.6, 0.1)))
    for place, tall in ((0.24, 0.8), (0.8, 0.62)):
        x, step = canvas.width * place, canvas.unit * 0.045
        y = bottom * 0.08
        data = f"M{number(x)} {number(y)}"
        while y < bottom * tall:
            y += step * canvas.random.uniform(1.2, 2.2)
            x += step * canvas.random.choice((-1.1, 0.9))
            data += f"L{number(x)} {number(y)}"
        canvas.line(data, "#dfe8ff", canvas.unit * 0.022, opacity="0.3")
        canvas.line(data, "#fffbe0", canvas.unit * 0.007)


def draw_aurora(canvas: Canvas, *, bottom: float) -> None:
    """Curtains of green and violet light."""
    for colour, top in (("#53f0a8", 0.16), ("#7d7bff", 0.3), ("#46e0c8", 0.42)):
        paint = canvas.fade(colour, colour, colour, opacities=(0, 0.55, 0))
        swing = canvas.random.uniform(0, math.tau)
        xs = [canvas.width * step / 6 for step in range(-1, 8)]
        ys = [bottom * (top + 0.1 * math.sin(swing + step * 1.3)) for step in range(len(xs))]
        upper = list(zip(xs, ys, strict=True))
        lower = [(x, y + bottom * 0.34) for x, y in reversed(upper)]
        back = flowing(lower).replace("M", "L", 1)
        canvas.path(flowing(upper) + back + "Z", paint)


def draw_rain(canvas: Canvas) -> None:
    """Slanting drops over everything."""
    for _ in range(_spread(canvas, 150)):
        x = canvas.random.uniform(-0.1, 1.05) * canvas.width
        y = canvas.random.uniform(-0.05, 1) * canvas.height
        length = canvas.unit * canvas.random.uniform(0.02, 0.045)
        data = f"M{number(x)} {number(y)}l{number(-length * 0.25)} {number(length)}"
        canvas.line(data, "#dcebff", max(canvas.unit * 0.002, 0.5), opacity="0.55")


def draw_snowfall(canvas: Canvas) -> None:
    """Flakes over everything."""
    for _ in range(_spread(canvas, 130)):
        x, y = canvas.random.uniform(0, canvas.width), canvas.random.uniform(0, canvas.height)
        radius = canvas.unit * canvas.random.uniform(0.0015, 0.006)
        canvas.ellipse(x, y, radius, radius, "#fff", opacity="0.8")


def draw_leaves(canvas: Canvas) -> None:
    """Autumn leaves in the air and on the ground."""
    for _ in range(_spread(canvas, 46)):
        x, y = canvas.random.uniform(0, canvas.width), canvas.random.uniform(0, canvas.height)
        size = canvas.unit * canvas.random.uniform(0.008, 0.016)
        colour = canvas.random.choice(("#e0832b", "#c9502a", "#e8b03a", "#a8482a"))
        turn = f"rotate({canvas.random.uniform(0, 180):.0f} {number(x)} {number(y)})"
        canvas.ellipse(x, y, size, size * 0.5, colour, transform=turn, opacity="0.9")


def draw_wind(canvas: Canvas) -> None:
    """Gusts, and leaves that they carry."""
    unit = canvas.unit
    for place, down, long in (
        (0.02, 0.3, 0.4),
        (0.55, 0.14, 0.36),
        (0.56, 0.42, 0.36),
        (0.1, 0.5, 0.3),
    ):
        x, y, curl = canvas.width * place, canvas.height * down, unit * 0.035
        data = f"M{number(x)} {number(y)}h{number(long * canvas.width)}"
        data += f"a{number(curl)} {number(curl)} 0 1 0 {number(-curl)} {number(-curl)}"
        canvas.line(data, "#ffffff", unit * 0.009, opacity="0.75")
        second = f"M{number(x + unit * 0.06)} {number(y + unit * 0.03)}"
        second += f"h{number(long * canvas.width * 0.6)}"
        canvas.line(second, "#ffffff", unit * 0.006, opacity="0.6")
        for step in range(3):
            at = x + long * canvas.width * (0.2 + 0.3 * step), y + unit * (0.015 + 0.02 * step)
            turn = f"rotate({40 + 50 * step} {number(at[0])} {number(at[1])})"
            canvas.ellipse(*at, unit * 0.013, unit * 0.006, "#6f9a3a", transform=turn)


def draw_fog(canvas: Canvas, light: Light, *, horizon: float, share: float) -> None:
    """Mist everywhere, and bands of it near the horizon; ``share`` is how thick it is."""
    pale = mix(mix(light.sky[2], "#ffffff", 0.4), "#8f98a3", 0.12)
    canvas.rect(0, 0, canvas.width, canvas.height, pale, opacity=f"{share * 0.4:.2f}")
    for shift, depth in ((-0.16, 0.3), (0.0, 0.34), (0.14, 0.3)):
        band = canvas.fade(pale, pale, pale, opacities=(0, share * 0.85, 0))
        canvas.rect(0, horizon + shift * canvas.height, canvas.width, depth * canvas.height, band)


def draw_veil(canvas: Canvas, light: Light) -> None:
    """The light of the hour over the finished picture."""
    if light.veil_opacity:
        canvas.rect(
            0, 0, canvas.width, canvas.height, light.veil, opacity=f"{light.veil_opacity:g}"
        )


def _spread(canvas: Canvas, count: int) -> int:
    longer = max(canvas.width, canvas.height) / max(canvas.unit, 1)
    return int(count * min(longer, 3))
