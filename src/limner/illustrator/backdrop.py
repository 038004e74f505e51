"""A scene -> its layers on a canvas, back to front, and the places for things in it."""

from __future__ import annotations

import msgspec

from limner.illustrator import land, other_backdrops, sky
from limner.illustrator.scenes import INDOORS, Scene
from limner.illustrator.sky import LIGHTS, Light
from limner.rendering.canvas import Canvas, mix

_SEA = "#1b86c0"


class BackdropFrame(msgspec.Struct, frozen=True, kw_only=True):
    """The space that a backdrop leaves for things, in pixels from the top.

    Things stand between the two lines of ``ground``, fly between those of ``air`` and swim between
    those of ``water``. If ``afloat``, all things float.
    """

    air: tuple[float, float]
    ground: tuple[float, float]
    water: tuple[float, float] | None = None
    afloat: bool = False


def draw_backdrop(canvas: Canvas, scene: Scene, *, orb: bool, standing: bool) -> BackdropFrame:
    """Draw the scene.

    ``orb`` means that the sky may have a sun or moon, ``standing`` that something needs dry
    ground.
    """
    height = canvas.height
    if scene.paper is not None or not scene.places:
        other_backdrops.draw_plain_paper(canvas, scene.paper or "#eef1f6")
        return BackdropFrame(
            air=(0.06 * height, 0.5 * height), ground=(0.74 * height, 0.84 * height)
        )
    if scene.has(*INDOORS):
        return _indoors(canvas, scene)
    if scene.has("space", "moon"):
        return _space(canvas, scene)
    if scene.has("underwater"):
        other_backdrops.draw_underwater(canvas, floor=0.84 * height)
        span = (0.1 * height, 0.9 * height)
        return BackdropFrame(air=span, ground=(0.88 * height, 0.97 * height), afloat=True)
    return _outdoors(canvas, scene, orb=orb, standing=standing)


def draw_foreground(canvas: Canvas, scene: Scene) -> None:
    """Draw rain, snow and the light of the hour over the finished picture."""
    if scene.paper is not None or not scene.places or scene.has("space", "moon", "underwater"):
        return
    indoors = scene.has(*INDOORS)
    if scene.weather & {"rain", "storm"} and not indoors:
        sky.draw_rain(canvas)
    if "snowfall" in scene.weather and not indoors:
        sky.draw_snowfall(canvas)
    if not indoors:
        sky.draw_veil(canvas, LIGHTS[scene.hour])


def _indoors(canvas: Canvas, scene: Scene) -> BackdropFrame:
    room = next(place for place in scene.places if place in INDOORS)
    floor = 0.66 * canvas.height
    other_backdrops.draw_room(
        canvas, other_backdrops.ROOMS[room], hour=scene.hour, floor=floor, outside=_outside(scene)
    )
    return BackdropFrame(
        air=(0.06 * canvas.height, 0.4 * canvas.height),
        ground=(0.72 * canvas.height, 0.95 * canvas.height),
    )


def _outside(scene: Scene) -> str:
    """The weather in the window of a room."""
    if scene.has("snow") or "snowfall" in scene.weather:
        return "snow"
    return "rain" if scene.weather & {"rain", "storm"} else ""


def _space(canvas: Canvas, scene: Scene) -> BackdropFrame:
    other_backdrops.draw_space(canvas)
    height = canvas.height
    if scene.has("moon"):
        other_backdrops.draw_moon_ground(canvas, top=0.68 * height)
        return BackdropFrame(
            air=(0.05 * height, 0.45 * height), ground=(0.76 * height, 0.95 * height)
        )
    return BackdropFrame(
        air=(0.08 * height, 0.92 * height), ground=(0.6 * height, 0.8 * height), afloat=True
    )


def _outdoors(canvas: Canvas, scene: Scene, *, orb: bool, standing: bool) -> BackdropFrame:
    light = _light(scene)
    height = canvas.height
    # The land is the same at every hour and in every weather.
    land_seed = canvas.random.random()
    horizon = height * (0.5 if scene.has("sea", "beach", "lake") else 0.6)
    open_view = not scene.has("mountains", "city", "street", "forest", "bamboo forest")
    sun = sky.draw_sky(canvas, light, horizon=horizon, orb=orb, open_view=open_view)
    if "storm" in scene.weather:
        sky.draw_storm(canvas, bottom=horizon)
    if "aurora" in scene.weather:
        sky.draw_aurora(canvas, bottom=horizon)
    _draw_cloud_cover(canvas, scene, light, bottom=horizon)
    if scene.places == ("sky",):
        return BackdropFrame(
            air=(0.08 * height, 0.9 * height), ground=(0.6 * height, 0.8 * height), afloat=True
        )
    canvas.random.seed(land_seed)
    before = len(canvas.shapes)
    _draw_far(canvas, scene, light, horizon=horizon)
    far = canvas.shapes[before:]
    if scene.has("cliff"):
        frame = _cliff(canvas, light, horizon=horizon)
    elif scene.has("sea", "beach"):
        dry = standing or scene.has("beach")
        frame = _sea(canvas, light, horizon=horizon, dry=dry, sun=sun if open_view else None)
    elif scene.has("lake"):
        frame = _lake(canvas, scene, light, far, horizon=horizon, standing=standing)
    else:
        frame = _ground(canvas, scene, light, horizon=horizon)
    if "fog" in scene.weather:
        sky.draw_fog(canvas, light, horizon=horizon)
    return frame


def _light(scene: Scene) -> Light:
    return LIGHTS["night" if "aurora" in scene.weather else scene.hour]


def _draw_cloud_cover(canvas: Canvas, scene: Scene, light: Light, *, bottom: float) -> None:
    heavy = bool(scene.weather & {"clouds", "rain", "storm"}) or scene.has("sky")
    if scene.places == ("sky",):
        sky.draw_clouds(canvas, light, bottom=canvas.height * 1.3, count=9, opacity=0.9)
    elif heavy:
        sky.draw_clouds(canvas, light, bottom=bottom, count=7, opacity=0.9)
    elif not light.stars:
        sky.draw_clouds(canvas, light, bottom=bottom, count=3, opacity=0.75)
    if scene.weather & {"rain", "storm"}:
        canvas.rect(0, 0, canvas.width, canvas.height, "#4c5a70", opacity="0.3")


def _draw_far(canvas: Canvas, scene: Scene, light: Light, *, horizon: float) -> None:
    height = canvas.height
    if scene.has("mountains"):
        land.draw_mountains(
            canvas, light, foot=horizon, height=min(0.38 * height, canvas.unit * 0.5)
        )
    if scene.has("city", "street"):
        land.draw_skyline(canvas, light, foot=horizon, height=0.42 * height)
    if scene.has("bamboo forest"):
        land.draw_bamboo(canvas, light, foot=horizon)
    if scene.has("forest"):
        leaves = "#b8702e" if "autumn" in scene.weather else "#2f6b45"
        land.draw_forest(canvas, light, foot=horizon, height=0.36 * height, colour=leaves)
    elif scene.has("lake", "snow"):
        pines = mix("#2f6b45", "#ffffff", 0.3) if scene.has("snow") else "#2f6b45"
        land.draw_forest(canvas, light, foot=horizon, height=0.09 * height, colour=pines)


def _sea(
    canvas: Canvas, light: Light, *, horizon: float, dry: bool, sun: float | None
) -> BackdropFrame:
    height = canvas.height
    shore = (0.68 if dry else 1.0) * height
    land.draw_water(canvas, light, top=horizon, bottom=shore + 2, colour=_SEA, sun=sun)
    if dry:
        land.draw_shore(canvas, light, top=shore)
    return BackdropFrame(
        air=(0.06 * height, 0.42 * height),
        ground=(0.76 * height, 0.94 * height),
        water=(horizon + 0.06 * height, shore - (0.02 if dry else 0.06) * height),
    )


def _cliff(canvas: Canvas, light: Light, *, horizon: float) -> BackdropFrame:
    height = canvas.height
    land.draw_water(canvas, light, top=horizon, bottom=height, colour=_SEA, sun=None)
    land.draw_cliff(canvas, light, top=0.66 * height)
    return BackdropFrame(air=(0.06 * height, 0.4 * height), ground=(0.68 * height, 0.72 * height))


def _lake(
    canvas: Canvas, scene: Scene, light: Light, far: list[str], *, horizon: float, standing: bool
) -> BackdropFrame:
    height = canvas.height
    bank = (0.76 if standing else 0.9) * height
    land.draw_reflection(canvas, light, far, shore=horizon, bottom=height)
    land.draw_plain(canvas, light, top=bank, colours=_turf(scene))
    land.draw_tufts(canvas, light, top=bank, blossoms=not scene.has("snow"))
    return BackdropFrame(
        air=(0.05 * height, 0.4 * height),
        ground=(bank + 0.05 * height, 0.95 * height),
        water=(horizon + 0.08 * height, bank - 0.02 * height),
    )


def _ground(canvas: Canvas, scene: Scene, light: Light, *, horizon: float) -> BackdropFrame:
    height = canvas.height
    if scene.has("desert"):
        land.draw_dunes(canvas, light, top=horizon)
    elif scene.has("city", "street"):
        land.draw_street(canvas, light, top=horizon)
    else:
        land.draw_hills(canvas, light, top=horizon, colours=_turf(scene))
        if scene.has("wheat field"):
            land.draw_ears(canvas, light, top=0.66 * height)
        elif not scene.has("snow"):
            flowers = "autumn" not in scene.weather
            land.draw_tufts(canvas, light, top=0.76 * height, blossoms=flowers)
    return BackdropFrame(air=(0.06 * height, 0.42 * height), ground=(0.72 * height, 0.94 * height))


def _turf(scene: Scene) -> tuple[str, str, str]:
    if scene.has("snow"):
        return land.SNOW
    if scene.has("wheat field"):
        return land.GRASS["wheat"]
    return land.GRASS["autumn" if "autumn" in scene.weather else "summer"]
