"""A scene and where its light comes from -> the shadows, the shade and the tint of its things."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from limner.illustrator.scenes import INDOORS, Scene
from limner.rendering.canvas import Canvas, number

Triple = tuple[float, float, float]


class Lighting(msgspec.Struct, frozen=True, kw_only=True):
    """The light on the things of a picture.

    ``length`` is how long shadows are, in heights of the things, and ``dark`` how dark; ``lean`` is
    how far they fall to the right. ``tint`` is how bright each colour channel of a thing is.
    ``rim`` is the colour of the edge that the light hits.
    """

    length: float = 0.0
    dark: float = 0.0
    lean: float = 0.0
    tint: Triple = (1.0, 1.0, 1.0)
    rim: str = "#ffffff"


# Hour -> its light outdoors, before the sun has a place.
_HOURS = {
    "day": Lighting(length=0.26, dark=0.24, rim="#fff8e0"),
    "dawn": Lighting(length=0.5, dark=0.22, tint=(1.0, 0.93, 0.9), rim="#ffe6b8"),
    "sunset": Lighting(length=0.6, dark=0.3, tint=(0.96, 0.83, 0.75), rim="#ffc06a"),
    "dusk": Lighting(length=0.3, dark=0.1, tint=(0.78, 0.76, 0.9), rim="#c9a0d0"),
    "night": Lighting(length=0.36, dark=0.26, tint=(0.74, 0.79, 0.97), rim="#b8c8ff"),
}
# Weather -> how much of the length and the darkness of a shadow is left; the first that fits.
_WEATHERS = (("fog", 0.0), ("storm", 0.0), ("rain", 0.3), ("clouds", 0.4), ("snowfall", 0.5))
_INDOORS = Lighting(length=0.16, dark=0.2, rim="#fff4dc")
_EVENING = (0.9, 0.84, 0.84)
# Places where a long shadow would leave the ground.
_NARROW = ("cliff", "hill", "mountain top")
_NO_GROUND = ("space", "underwater")
PLAIN = Lighting()


def find_lighting(scene: Scene, source: float | None) -> Lighting:
    """The light of a scene; ``source`` is where it comes from, in parts of the width, if seen."""
    if scene.paper is not None or not scene.places or scene.places == ("sky",):
        return PLAIN
    if scene.has(*_NO_GROUND):
        return Lighting(rim="#d8ecff", tint=(0.92, 0.98, 1.0))
    indoors = scene.has(*INDOORS)
    light = _INDOORS if indoors else _HOURS[scene.hour]
    if indoors and scene.hour in ("night", "dusk"):
        light = replace(light, tint=_EVENING)
    left = next((share for one, share in _WEATHERS if one in scene.weather), 1.0)
    if source is None:
        # Light from everywhere.
        left = min(left, 0.0 if scene.hour == "night" else 0.5)
    length = light.length * (0.4 if scene.has(*_NARROW) else 1.0)
    lean = 0.0 if source is None else (0.5 - source) * 2.2 * length
    return replace(light, length=length * left, dark=light.dark * left, lean=lean * left)


def draw_lit(
    canvas: Canvas, light: Lighting, shapes: Sequence[str], *, foot: float, shore: float | None
) -> None:
    """Draw shapes in the light, with a shadow from the line ``foot`` on.

    If they float, ``shore`` is where their water ends, and they have a reflection instead.
    """
    name = f"t{len(canvas.shapes)}"
    if shore is not None:
        _reflect(canvas, name, foot=foot, shore=shore)
    elif light.dark > 0:
        _cast_shadow(canvas, light, name, foot=foot)
    canvas.add(f'<g filter="{_shade(canvas, light)}"><g id="{name}">{"".join(shapes)}</g></g>')


def _cast_shadow(canvas: Canvas, light: Lighting, name: str, *, foot: float) -> None:
    """The shadow falls towards the viewer."""
    soft = canvas.define(
        '<filter id="{id}" x="-0.1" y="-0.1" width="1.2" height="1.2">'
        f'<feColorMatrix type="matrix" values="0 0 0 0 0.05 0 0 0 0 0.05 0 0 0 0 0.12 '
        f'0 0 0 {light.dark:.2f} 0"/>'
        f'<feGaussianBlur stdDeviation="{canvas.unit * 0.004:.2f}"/></filter>'
    )
    fall = f"matrix(1 0 {-light.lean:.3f} {-light.length:.3f} {number(light.lean * foot)} "
    fall += f"{number(foot * (1 + light.length))})"
    canvas.add(f'<g transform="{fall}"><use href="#{name}" filter="{soft}"/></g>')


def _reflect(canvas: Canvas, name: str, *, foot: float, shore: float) -> None:
    clip = canvas.define(
        f'<clipPath id="{{id}}"><rect x="0" y="0" width="{canvas.width}" '
        f'height="{number(shore)}"/></clipPath>'
    )
    fall = f"matrix(1 0 0 -0.4 0 {number(foot * 1.4)})"
    mirrored = f'<use href="#{name}" transform="{fall}" opacity="0.25"/>'
    canvas.add(f'<g clip-path="{clip}">{mirrored}</g>')


def _shade(canvas: Canvas, light: Lighting) -> str:
    """A filter: bright at the edge towards the light, darker at the other edge."""
    step = canvas.unit * 0.008
    across = -step if light.lean > 0 else step
    red, green, blue = light.tint
    return canvas.define(
        '<filter id="{id}" color-interpolation-filters="sRGB" x="-0.02" y="-0.02" width="1.04" '
        'height="1.04"><feColorMatrix type="matrix" result="t" '
        f'values="{red} 0 0 0 0 0 {green} 0 0 0 0 0 {blue} 0 0 0 0 0 1 0"/>'
        f"{_edge('dark', across, -step, '#1c1238', 0.34)}"
        f"{_edge('lit', -across, step, light.rim, 0.5)}"
        '<feMerge><feMergeNode in="t"/><feMergeNode in="dark"/><feMergeNode in="lit"/></feMerge>'
        "</filter>"
    )


def _edge(name: str, across: float, down: float, colour: str, strength: float) -> str:
    """The steps of a filter that paint the edge which a moved copy of the shapes leaves free."""
    return (
        f'<feOffset in="SourceAlpha" dx="{across:.2f}" dy="{down:.2f}"/>'
        f'<feGaussianBlur stdDeviation="{abs(across) * 0.9:.2f}" result="{name}1"/>'
        f'<feComposite in="SourceAlpha" in2="{name}1" operator="out" result="{name}2"/>'
        f'<feFlood flood-color="{colour}" flood-opacity="{strength}"/>'
        f'<feComposite in2="{name}2" operator="in" result="{name}"/>'
    )
