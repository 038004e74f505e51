"""A scene -> its layers on a canvas, back to front, and the places for things in it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from limner.illustrator import foreground, land, scenery, sky, terrain
from limner.illustrator.scenes import INDOORS, SUNLESS, Scene
from limner.illustrator.sky import LIGHTS, Light
from limner.rendering.canvas import Canvas, mix

Box = tuple[float, float, float, float]
_SEA = "#1b86c0"
# Places with something high in front of the horizon.
_HIGH = frozenset(
    {"mountains", "city", "street", "forest", "bamboo forest", "jungle", "park", "garden"}
)
_COASTS = frozenset({"sea", "beach", "harbour"})
# How large the flowers in the grass are in a season.
_FLOWERS = (("autumn", 0.0), ("spring", 2.4), ("summer", 1.6))
_TOPS = frozenset({"hill", "mountain top"})
# Where the near bank of a lake begins, if something stands on it and if not.
_BANK, _FAR_BANK = 0.76, 0.9


class BackdropFrame(msgspec.Struct, frozen=True, kw_only=True):
    """The space that a backdrop leaves for things, in pixels from the top.

    Things stand between the two lines of ``ground``, fly between those of ``air`` and swim between
    those of ``water``. If ``afloat``, all things float. ``across`` is where things may stand, and
    ``wet_across`` where they swim, in parts of the width.
    """

    air: tuple[float, float]
    ground: tuple[float, float]
    water: tuple[float, float] | None = None
    afloat: bool = False
    across: tuple[float, float] = (0.0, 1.0)
    wet_across: tuple[float, float] = (0.0, 1.0)


# Places -> the frame in fractions of the height; the first row with a place of the scene counts.
_FRAMES: Sequence[tuple[frozenset[str], BackdropFrame]] = (
    (INDOORS, BackdropFrame(air=(0.06, 0.4), ground=(0.7, 0.95))),
    (frozenset({"moon"}), BackdropFrame(air=(0.05, 0.45), ground=(0.76, 0.95))),
    (frozenset({"space"}), BackdropFrame(air=(0.06, 0.94), ground=(0.6, 0.8), afloat=True)),
    (frozenset({"underwater"}), BackdropFrame(air=(0.06, 0.88), ground=(0.88, 0.97), afloat=True)),
    (frozenset({"cliff"}), BackdropFrame(air=(0.06, 0.4), ground=(0.68, 0.72))),
    (
        _TOPS,
        BackdropFrame(
            air=(0.05, 0.36), ground=(terrain.TOP, terrain.TOP + 0.025), across=(0.18, 0.82)
        ),
    ),
    (frozenset({"clouds"}), BackdropFrame(air=(0.06, 0.6), ground=(0.78, 0.86))),
    (
        frozenset({"cave"}),
        BackdropFrame(air=(0.26, 0.5), ground=(0.76, 0.92), across=(0.14, 0.86)),
    ),
    (_COASTS, BackdropFrame(air=(0.06, 0.42), ground=(0.76, 0.94))),
    (frozenset({"lake"}), BackdropFrame(air=(0.05, 0.4), ground=(_BANK + 0.05, 0.95))),
    (
        frozenset({"river"}),
        BackdropFrame(
            air=(0.06, 0.42),
            ground=(0.74, 0.94),
            water=(0.86, 0.97),
            across=(0.0, 0.56),
            wet_across=(0.44, 1.0),
        ),
    ),
    (
        frozenset({"waterfall"}),
        BackdropFrame(air=(0.04, 0.3), ground=(0.84, 0.95), across=(0.0, 0.55)),
    ),
)
_PAPER = BackdropFrame(air=(0.06, 0.5), ground=(0.74, 0.84))
_SKY = BackdropFrame(air=(0.06, 0.94), ground=(0.6, 0.8), afloat=True)
_LAND = BackdropFrame(air=(0.06, 0.42), ground=(0.72, 0.94))


def find_frame(scene: Scene, *, height: int, standing: bool) -> BackdropFrame:
    """The space that the scene leaves; ``standing`` means that something needs dry ground."""
    found = next((frame for places, frame in _FRAMES if places & set(scene.places)), _LAND)
    if scene.paper is not None or not scene.places:
        found = _PAPER
    elif scene.places == ("sky",):
        found = _SKY
    elif found.afloat or scene.has(*INDOORS, "moon", "cliff"):
        pass
    elif scene.has(*_COASTS):
        shore = _shore(scene, standing=standing)
        found = replace(found, water=(0.56, shore - (0.02 if shore < 1 else 0.06)))
    elif scene.has("lake"):
        found = replace(found, water=(0.58, (_BANK if standing else _FAR_BANK) - 0.02))
    return replace(
        found,
        air=_times(found.air, height),
        ground=_times(found.ground, height),
        water=found.water and _times(found.water, height),
    )


def _times(span: tuple[float, float], height: int) -> tuple[float, float]:
    return span[0] * height, span[1] * height


def _shore(scene: Scene, *, standing: bool) -> float:
    """Where the sea ends, as a fraction of the height."""
    return 0.68 if standing or scene.has("beach") else 1.0


def draw_backdrop(
    canvas: Canvas,
    scene: Scene,
    *,
    orb: bool,
    standing: bool,
    taken: Sequence[Box] = (),
    furnished: bool = False,
) -> float | None:
    """Draw the scene; returns the x of its light, or None if it is not seen.

    ``orb`` means that the sky may have a sun or moon, ``standing`` that something needs dry
    ground. ``taken`` are the boxes of things, which should not hide the window of a room; a
    ``furnished`` room gets no further furniture.
    """
    if scene.has(*INDOORS) and scene.paper is None:
        return _draw_indoors(canvas, scene, taken, furnished=furnished)
    if scene.paper is None and scene.places and not scene.has("space", "moon", "underwater"):
        return _draw_outdoors(canvas, scene, orb=orb, standing=standing)
    _draw_elsewhere(canvas, scene)
    return canvas.width * 0.2


def _draw_elsewhere(canvas: Canvas, scene: Scene) -> None:
    from limner.illustrator import other_backdrops  # noqa: PLC0415 - loaded on first use

    if scene.paper is not None or not scene.places:
        other_backdrops.draw_plain_paper(canvas, scene.paper or "#eef1f6")
    elif scene.has("space", "moon"):
        other_backdrops.draw_space(canvas)
        if scene.has("moon"):
            other_backdrops.draw_moon_ground(canvas, top=0.68 * canvas.height)
    else:
        other_backdrops.draw_underwater(canvas, floor=0.84 * canvas.height)


def draw_foreground(canvas: Canvas, scene: Scene) -> None:
    """Draw rain, snow and the light of the hour over the finished picture."""
    if scene.paper is not None or not scene.places or scene.has("space", "moon", "underwater"):
        return
    indoors = scene.has(*INDOORS)
    if not indoors:
        foreground.draw_corners(canvas, scene, _light(scene))
    if scene.has("crowd"):
        foreground.draw_crowd(canvas)
    if scene.weather & {"rain", "storm"} and not indoors:
        sky.draw_rain(canvas)
    if "autumn" in scene.weather and not indoors:
        sky.draw_leaves(canvas)
    if "snowfall" in scene.weather and not indoors:
        sky.draw_snowfall(canvas)
    if "fog" in scene.weather and not indoors:
        sky.draw_fog(canvas, LIGHTS[scene.hour], horizon=0.72 * canvas.height, share=0.4)
    if not indoors:
        sky.draw_veil(canvas, LIGHTS[scene.hour])


def _draw_indoors(canvas: Canvas, scene: Scene, taken: Sequence[Box], *, furnished: bool) -> float:
    from limner.illustrator import rooms  # noqa: PLC0415 - loaded on first use

    room = next(place for place in scene.places if place in INDOORS)
    return rooms.draw_room(
        canvas,
        rooms.ROOMS[room],
        hour=scene.hour,
        floor=0.66 * canvas.height,
        outside=_outside(scene),
        taken=taken,
        furnished=furnished,
    )


def _outside(scene: Scene) -> str:
    """The weather in the window of a room."""
    if scene.has("snow") or "snowfall" in scene.weather:
        return "snow"
    return "rain" if scene.weather & {"rain", "storm"} else ""


def _draw_outdoors(canvas: Canvas, scene: Scene, *, orb: bool, standing: bool) -> float | None:
    light = _light(scene)
    height = canvas.height
    # The land is the same at every hour and in every weather.
    land_seed = canvas.random.random()
    horizon = height * _horizon(scene)
    open_view = not scene.has(*_HIGH)
    sun = sky.draw_sky(canvas, light, horizon=horizon, orb=orb, open_view=open_view)
    _draw_weather(canvas, scene, light, bottom=horizon)
    if scene.places == ("sky",):
        return sun
    canvas.random.seed(land_seed)
    before = len(canvas.shapes)
    _draw_far(canvas, scene, light, horizon=horizon)
    terrain.draw_terrain(canvas, scene.places, light, horizon=horizon, far=True)
    far = canvas.shapes[before:]
    if scene.has("cliff"):
        land.draw_water(canvas, light, top=horizon, bottom=height, colour=_SEA, sun=None)
        land.draw_cliff(canvas, light, top=0.66 * height)
    elif scene.has(*_COASTS):
        low = light.sun is not None and light.sun < 0.5
        path = sun if open_view and low else None
        shore = _shore(scene, standing=standing) * height
        land.draw_water(canvas, light, top=horizon, bottom=shore + 2, colour=_SEA, sun=path)
        if shore < height:
            land.draw_shore(canvas, light, top=shore)
    elif scene.has("lake"):
        _draw_lake(canvas, scene, light, far, horizon=horizon, standing=standing)
    else:
        _draw_ground(canvas, scene, light, horizon=horizon)
    _draw_middle(canvas, scene, light, horizon=horizon)
    terrain.draw_terrain(canvas, scene.places, light, horizon=horizon, far=False)
    if scene.has(*_TOPS) and scene.has("village"):
        scenery.draw_hamlet(canvas, light, foot=(terrain.TOP - 0.01) * height)
    if "fog" in scene.weather:
        sky.draw_fog(canvas, light, horizon=horizon, share=0.7)
    return canvas.width * terrain.MARS_SUN if scene.has("mars") else sun


def _horizon(scene: Scene) -> float:
    """Where the ground begins, as a fraction of the height."""
    wet = scene.has(*_COASTS, "lake")
    if scene.has(*_TOPS):
        return 0.66 if wet else 0.76
    return 0.5 if wet else 0.6


def _draw_middle(canvas: Canvas, scene: Scene, light: Light, *, horizon: float) -> None:
    """What stands between the horizon and the foreground."""
    coast = scene.has(*_COASTS, "lake", "cliff")
    for place in scene.places:
        shown = "harbour" if coast and place == "village" else place
        if shown == "harbour" or not coast:
            scenery.draw_scenery(canvas, shown, light, horizon=horizon, weather=scene.weather)


def _light(scene: Scene) -> Light:
    return LIGHTS["night" if "aurora" in scene.weather else scene.hour]


def _draw_weather(canvas: Canvas, scene: Scene, light: Light, *, bottom: float) -> None:
    """The weather in the sky."""
    if "storm" in scene.weather:
        sky.draw_storm(canvas, bottom=bottom)
    if "aurora" in scene.weather:
        sky.draw_aurora(canvas, bottom=bottom)
    _draw_cloud_cover(canvas, scene, light, bottom=bottom)
    if "wind" in scene.weather:
        sky.draw_wind(canvas)


def _draw_cloud_cover(canvas: Canvas, scene: Scene, light: Light, *, bottom: float) -> None:
    heavy = bool(scene.weather & {"clouds", "rain", "storm"}) or scene.has("sky")
    if scene.places == ("sky",):
        sky.draw_clouds(canvas, light, bottom=canvas.height * 1.3, count=9, opacity=0.9)
    elif heavy:
        sky.draw_clouds(canvas, light, bottom=bottom, count=7, opacity=0.9)
    elif not light.stars:
        sky.draw_clouds(canvas, light, bottom=bottom, count=3, opacity=0.75)
    if scene.weather & SUNLESS:
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
        pines = "#b8702e" if "autumn" in scene.weather else "#2f6b45"
        pines = mix(pines, "#ffffff", 0.3) if scene.has("snow") else pines
        land.draw_forest(canvas, light, foot=horizon, height=0.09 * height, colour=pines)


def _draw_lake(
    canvas: Canvas, scene: Scene, light: Light, far: list[str], *, horizon: float, standing: bool
) -> None:
    bank = (_BANK if standing else _FAR_BANK) * canvas.height
    land.draw_reflection(canvas, light, far, shore=horizon, bottom=canvas.height)
    land.draw_plain(canvas, light, top=bank, colours=_turf(scene))
    land.draw_tufts(canvas, light, top=bank, flowers=0.0 if scene.has("snow") else 1.0)


def _draw_ground(canvas: Canvas, scene: Scene, light: Light, *, horizon: float) -> None:
    if scene.has("mars", "clouds"):
        return
    if scene.has("desert", "canyon"):
        land.draw_dunes(canvas, light, top=horizon)
    elif scene.has("city", "street"):
        land.draw_street(canvas, light, top=horizon)
    else:
        land.draw_hills(canvas, light, top=horizon, colours=_turf(scene))
        if scene.has("wheat field"):
            land.draw_ears(canvas, light, top=0.66 * canvas.height)
        elif not scene.has("snow", "savanna"):
            flowers = next((size for one, size in _FLOWERS if one in scene.weather), 1.0)
            land.draw_tufts(canvas, light, top=0.76 * canvas.height, flowers=flowers)


def _turf(scene: Scene) -> tuple[str, str, str]:
    if scene.has("snow"):
        return land.SNOW
    if scene.has("wheat field", "savanna"):
        return land.GRASS["wheat"]
    return land.GRASS["autumn" if "autumn" in scene.weather else "summer"]
