"""A parsed prompt -> the finished SVG document and the pictures it uses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random

import msgspec
from msgspec.structs import replace

from limner.illustrator import assets, figures, grammar, land, styles
from limner.illustrator.assets import AssetInfo
from limner.illustrator.attachments import Part
from limner.illustrator.backdrop import draw_backdrop, draw_foreground, find_frame
from limner.illustrator.groups import Group, group
from limner.illustrator.layout import KeptRoom, Layout, keep_places, spots_of
from limner.illustrator.palette import recolour, recolour_part
from limner.illustrator.parsed_prompt import ParsedPrompt, Relation, Subject
from limner.illustrator.placement import Box, Placed, close_up, place
from limner.illustrator.scenes import HOUR_OF, INDOORS, SUNLESS, Scene, usual_place
from limner.illustrator.shadows import PLAIN, Lighting, draw_lit, find_lighting
from limner.imaging.fonts import CJK
from limner.imaging.svg import Asset
from limner.rendering.canvas import Canvas, number

SIGN = "signboard"
_TABLES = ("table", "laid-table")
_WATERS = frozenset({"sea", "beach", "lake", "river", *INDOORS})
_FALLING = frozenset({"rain", "storm", "snowfall", "fog"})
# Pictures that are repeated to both sides of the canvas, and the share of their width until the
# next; neighbours overlap a little, so that no gap shows.
_LONG = {"stone-bridge": 0.98, "stone-wall": 0.9}
_ON_RAILS = frozenset({"locomotive", "railway-car", "tram-car"})
_MAX_SIGN_LINES = 6
# A room with more things gets no furniture of its own.
_ROOMY = 2
_ASSET_NAME = re.compile(r'<asset name="([^"]+)"')


class Composition(msgspec.Struct, frozen=True):
    """A drawn document, its scene and layout, and the pictures that were made for it alone."""

    document: str
    scene: Scene
    layout: Layout
    drawings: Mapping[str, Asset]


def compose(
    parsed: ParsedPrompt, *, width: int, height: int, random: Random, kept: Layout | None = None
) -> Composition:
    """Draw the scene, the things in it and the light over them.

    With the layout of an earlier drawing, everything that was there keeps its place.
    """
    things = _with_sign(parsed)
    infos = [assets.info(thing.asset) for thing in things]
    # An edit may leave a picture without a place, and has removed a table on purpose.
    is_plain = kept is not None and not parsed.scene.places
    scene = complete = parsed.scene if is_plain else complete_scene(parsed.scene, things)
    if parsed.style in styles.INKS:
        scene = replace(scene, paper=styles.INKS[parsed.style][1], places=())
    if scene.has(*INDOORS):
        # The wall has a window.
        things = _without(things, "window")
    things = _with_table(things, scene, may_add=kept is None)
    canvas = Canvas(width=width, height=height, random=random)
    dry = any(_needs_shore(things, place) for place in range(len(things)))
    dry = dry or (kept is not None and kept.dry)
    frame = find_frame(scene, height=height, standing=dry)
    # Its own numbers, so that the backdrop stays the same if there are other things in it.
    arranging = Random(random.random())  # noqa: S311 - arranges pictures
    groups = group(things)
    placed = place(groups, frame, width=width, height=height, random=arranging)
    if scene.has(*INDOORS) and _is_still_life(groups):
        placed = [close_up(placed[0], width=width, height=height)]
    if kept is not None:
        placed = keep_places(placed, groups, kept, frame, width=width, height=height)
    layout = Layout(
        things=tuple(things),
        scene=complete,
        dry=dry,
        spots=spots_of(placed, width, height),
        room=kept and kept.room,
        focus=kept.focus if kept is not None else 0,
    )
    if layout.room is None and scene.has(*INDOORS):
        furnished = len(placed) > _ROOMY or any(map(_is_furniture, things))
        boxes = tuple(_wall_box(one.fraction_of(width, height), one) for one in placed)
        layout = replace(layout, room=KeptRoom(furnished=furnished, taken=boxes))
    room = layout.room or KeptRoom()
    source = draw_backdrop(
        canvas,
        scene,
        orb=_has_orb(scene, infos),
        standing=dry,
        taken=[(a * width, b * height, c * width, d * height) for a, b, c, d in room.taken],
        furnished=room.furnished,
    )
    light = _find_light(scene, placed, source, width=width, style=parsed.style)
    shore = frame.water[1] if frame.water else height
    drawings = _draw_things(canvas, placed, light, shore=shore, texts=parsed.texts)
    draw_foreground(canvas, scene)
    # The night is dark enough.
    gloomy_night = parsed.style == "gloomy" and scene.hour == "night"
    _apply_style(canvas, drawings, "" if gloomy_night else parsed.style)
    return Composition(canvas.document(), scene, layout, drawings)


def _apply_style(canvas: Canvas, drawings: dict[str, Asset], style: str) -> None:
    """Change the finished picture to a style."""
    if style in styles.INKS:
        drawings |= {name: styles.as_lines(one, style) for name, one in drawings.items()}
    if style in styles.FLAT:
        for name in used_assets("".join(canvas.shapes)):
            one = drawings.get(name) or assets.get(name)
            drawings[name] = replace(one, body=styles.as_flat(one.body))
        flat = styles.as_flat("".join(canvas.shapes), "".join(canvas.definitions))
        canvas.shapes = [styles.as_paper(flat, canvas) if style == "paper cut" else flat]
    steps = styles.filter_of(style)
    if steps:
        # The colours are computed as they are written, not in linear light.
        box = 'x="0" y="0" width="1" height="1" color-interpolation-filters="sRGB"'
        grading = canvas.define(f'<filter id="{{id}}" {box}>{steps}</filter>')
        canvas.shapes = [f'<g filter="{grading}">{"".join(canvas.shapes)}</g>']


def _is_still_life(groups: Sequence[Group]) -> bool:
    """Whether a picture shows only a table and small things on it."""
    if len(groups) != 1:
        return False
    first, *others = groups[0].parts
    small = all(figures.is_tabletop(part.info) for part in others)
    return first.info.name in _TABLES and bool(others) and small


def _wall_box(box: Box, placed: Placed) -> Box:
    """The box of a thing before a wall; above a sofa, the wall can be seen."""
    left, top, right, bottom = box
    low = placed.group.parts[0].info.name == "couch-and-lamp"
    return left, top + (bottom - top) * 0.5 * low, right, bottom


def _is_furniture(thing: Subject) -> bool:
    return thing.asset in _TABLES or figures.stands_behind(assets.info(thing.asset))


def _needs_shore(things: Sequence[Subject], place: int) -> bool:
    """Whether a thing stands on dry ground, and on nothing that swims or flies."""
    on = things[place].relation
    while on is not None:
        place, on = on.to, things[on.to].relation
    info = assets.info(things[place].asset)
    return not figures.flies(info) and not figures.swims(info)


def _has_orb(scene: Scene, infos: list[AssetInfo]) -> bool:
    """Whether the sky shows a sun or moon of its own."""
    return not scene.weather & SUNLESS and not any(map(figures.is_orb, infos))


def used_assets(document: str) -> list[str]:
    """The names of the pictures in a composed document."""
    return list(dict.fromkeys(_ASSET_NAME.findall(document)))


def _with_sign(parsed: ParsedPrompt) -> list[Subject]:
    things = list(parsed.things)
    if parsed.texts and all(thing.asset != SIGN for thing in things):
        things.append(Subject(asset=SIGN, words=parsed.texts[0]))
    return things


def _without(things: list[Subject], name: str) -> list[Subject]:
    """The things without those of a name, with their relations."""
    kept = [place for place, thing in enumerate(things) if thing.asset != name]
    places = {old: new for new, old in enumerate(kept)}
    return [
        replace(
            thing,
            relation=Relation(thing.relation.kind, places[thing.relation.to])
            if thing.relation is not None and thing.relation.to in places
            else None,
        )
        for thing in (things[place] for place in kept)
    ]


def _with_table(things: list[Subject], scene: Scene, *, may_add: bool) -> list[Subject]:
    """Put small things on a table if the scene is indoors."""
    loose = [
        place
        for place, thing in enumerate(things)
        if thing.relation is None
        and not thing.depth
        and thing.position not in ("left", "right")
        and figures.is_tabletop(assets.info(thing.asset))
    ]
    tables = [place for place, thing in enumerate(things) if thing.asset in _TABLES]
    if not loose or not scene.has(*INDOORS) or any(things[table].relation for table in tables):
        return things
    if not (tables or may_add):
        return things
    table = tables[0] if tables else len(things)
    # A table that the prompt does not name is less important than what is on it.
    larger = 1.0 if tables else 1.35
    tied = [
        replace(thing, relation=Relation("on", table), scale=thing.scale * larger)
        if place in loose
        else thing
        for place, thing in enumerate(things)
    ]
    return tied if tables else [*tied, Subject(asset="table", words="table")]


def complete_scene(requested: Scene, things: list[Subject]) -> Scene:
    """The scene of the prompt; what the prompt leaves open follows from the things in it."""
    infos = [assets.info(thing.asset) for thing in things]
    hours = [HOUR_OF[thing.asset] for thing in things if thing.asset in HOUR_OF]
    hour = requested.hour or (hours[0] if hours else "day")
    places = requested.places
    if requested.paper is None and (not places or _needs_ground(places, infos)):
        found = usual_place((info.name, info.group) for info in infos)
        if found in INDOORS and requested.weather & _FALLING:
            found = "meadow"
        sunny = "summer" in requested.weather or any(map(figures.is_orb, infos))
        if found in INDOORS and sunny:
            found = "beach"
        if found is None and (places or requested.hour or requested.weather or hours):
            found = "meadow"
        places = tuple(dict.fromkeys((*places, found))) if found else places
    if places == ("crowd",):
        places = ("stage", *places)
    if "snowfall" in requested.weather and places and not set(places) & INDOORS:
        places = tuple(dict.fromkeys((*places, "snow")))
    if any(thing.asset == "stone-bridge" for thing in things) and not set(places) & _WATERS:
        places = (*places, "lake")
    if hour == "dawn" and set(places) & INDOORS:
        hour = "day"
    return replace(requested, places=places, hour=hour)


def _needs_ground(places: tuple[str, ...], infos: list[AssetInfo]) -> bool:
    """Whether a thing in a sky scene needs ground, such as a house under a rainbow."""
    return places == ("sky",) and not all(figures.flies(info) for info in infos)


def _find_light(
    scene: Scene, placed: Sequence[Placed], source: float | None, *, width: int, style: str
) -> Lighting:
    """The light on the things; a sun or moon that the prompt names decides its side."""
    if style in styles.INKS or style in styles.FLAT:
        return PLAIN
    named = [one.box for one in placed if figures.is_orb(one.group.parts[0].info)]
    if named:
        source = (named[0][0] + named[0][2]) / 2
    return find_lighting(scene, None if source is None else source / width)


def _draw_things(
    canvas: Canvas,
    placed: Sequence[Placed],
    light: Lighting,
    *,
    shore: float,
    texts: Sequence[str],
) -> dict[str, Asset]:
    """Draw the things back to front; returns the pictures that were made for them."""
    drawings: dict[str, Asset] = {}
    for one in sorted(placed, key=lambda one: (one.grounded, one.y)):
        _draw(canvas, one, drawings, light, shore=shore, texts=texts)
        if one.wet:
            _draw_foam(canvas, one)
    return drawings


def _draw(
    canvas: Canvas,
    placed: Placed,
    drawings: dict[str, Asset],
    light: Lighting,
    *,
    shore: float,
    texts: Sequence[str],
) -> None:
    left, _, right, bottom = placed.group.parts[0].drawn
    foot = placed.y + bottom * placed.scale
    if placed.grounded:
        half = (right - left) / 2 * placed.scale
        middle = placed.x + (left + right) / 2 * placed.scale
        shadow = canvas.glow("#000000", "#000000", opacities=(0.38, 0))
        canvas.ellipse(middle, foot, half * 1.08, half * 0.16, shadow)
        if placed.group.parts[0].info.name in _ON_RAILS:
            land.draw_rails(canvas, foot=foot)
    before = len(canvas.shapes)
    _extend(canvas, placed, drawings)
    is_table = placed.group.parts[0].info.name in _TABLES
    for nth, part in enumerate(placed.parts()):
        if is_table and nth:
            _draw_contact(canvas, part)
        _draw_part(canvas, part, drawings)
    shapes = canvas.shapes[before:]
    if light is not PLAIN:
        del canvas.shapes[before:]
        here = light if placed.grounded else replace(light, dark=0.0)
        draw_lit(canvas, here, shapes, foot=foot, shore=shore if placed.wet else None)
    for part in placed.parts():
        if part.info.name == SIGN and texts:
            _draw_lettering(canvas, part, texts)


def _draw_contact(canvas: Canvas, part: Part) -> None:
    """The shadow of a thing right under it."""
    left, _, right, bottom = part.drawn
    half = (right - left) / 2
    dark = canvas.glow("#2a1408", "#2a1408", opacities=(0.45, 0))
    canvas.ellipse((left + right) / 2, bottom - half * 0.02, half * 1.15, half * 0.18, dark)


def _extend(canvas: Canvas, placed: Placed, drawings: dict[str, Asset]) -> None:
    """Let a bridge or a wall reach both sides of the picture."""
    first = placed.group.parts[0].info.name
    bridge = next((part for part in placed.parts() if part.info.name == first), None)
    if bridge is None or first not in _LONG:
        return
    step = bridge.width * _LONG[first]
    for nth in range(1, int(canvas.width / step) + 1):
        for side in (-nth, nth):
            moved = replace(bridge, left=bridge.left + side * step)
            left, _, right, _ = moved.drawn
            if right > 0 and left < canvas.width:
                _draw_part(canvas, moved, drawings)


def _draw_foam(canvas: Canvas, placed: Placed) -> None:
    """Foam where a thing meets the water."""
    left, top, right, bottom = placed.group.parts[0].drawn
    half, tall = (right - left) / 2 * placed.scale, (bottom - top) * placed.scale
    middle = placed.x + (left + right) / 2 * placed.scale
    y = placed.y + bottom * placed.scale
    foam = canvas.glow("#ffffff", "#ffffff", opacities=(0.5, 0))
    canvas.ellipse(middle, y, half * 1.3, tall * 0.09, foam)
    for spread, lift in ((1.15, -0.02), (0.8, 0.045)):
        data = (
            f"M{number(middle - half * spread)} {number(y + tall * lift)}"
            f"q{number(half * spread)} {number(tall * 0.035)} {number(half * spread * 2)} 0"
        )
        canvas.line(data, "#ffffff", max(tall * 0.008, 0.5), opacity="0.5")


def _draw_part(canvas: Canvas, part: Part, drawings: dict[str, Asset]) -> None:
    more = ' flip="horizontal"' if part.mirrored else ""
    if part.angle:
        more += f' rotate="{number(part.angle)}"'
    drawn = (
        f'<asset name="{_drawing(part, drawings)}" x="{number(part.left)}" y="{number(part.top)}" '
        f'size="{number(part.size)}"{more}/>'
    )
    if part.clip is not None:
        left, top, right, low, bulge = part.clip
        edge = (
            f"Q{number((left + right) / 2)} {number(low + 2 * bulge)} {number(left)} {number(low)}"
        )
        data = f"M{number(left)} {number(top)}H{number(right)}V{number(low)}{edge}Z"
        cut = canvas.define(f'<clipPath id="{{id}}"><path d="{data}"/></clipPath>')
        drawn = f'<g clip-path="{cut}">{drawn}</g>'
    canvas.add(drawn)


def _drawing(part: Part, drawings: dict[str, Asset]) -> str:
    """The name of the picture of a part, in its own look if it has one."""
    name = part.info.name
    if part.figure is not None:
        made = part.figure.asset
    else:
        made = assets.get(name)
        if part.colour is not None and not _has_colour(part, part.colour):
            body = recolour(made.body, part.info.colours, grammar.COLOURS[part.colour])
            made = replace(made, body=body)
        for part_name, colour in part.painted:
            made = replace(made, body=recolour_part(made.body, name, part_name, colour))
    number_of = 2
    while drawings.setdefault(name, made) != made:
        name, number_of = f"{part.info.name}-{number_of}", number_of + 1
    return name


def _has_colour(part: Part, colour: str) -> bool:
    basic = grammar.BASIC_COLOUR.get(colour, colour)
    # The blacks of the pack are a dark violet.
    return basic in part.info.colours and basic != "black"


def _draw_lettering(canvas: Canvas, part: Part, texts: Sequence[str]) -> None:
    """Texts on the board of a sign, broken into short lines."""
    lines = [line for text in texts for line in _lines(text)][:_MAX_SIGN_LINES]
    # Inter is about 0.62 of its size wide on average, in bold capitals a little more. A character
    # of Chinese, Japanese or Korean is as wide as it is high.
    longest = max(len(line) + 0.5 * len("".join(CJK.findall(line))) for line in lines)
    size = min(part.size * 0.8 / (longest * 0.66), part.size * 0.36 / len(lines))
    x = part.left + part.size / 2
    y = part.top + part.size * 0.335 - (len(lines) - 1) * size * 0.55 + size * 0.36
    for row, line in enumerate(lines):
        canvas.text(x, y + row * size * 1.1, size, "#4a2c14", line)


def _lines(text: str) -> list[str]:
    words = text.split() or [""]
    target = 8 if len(text) <= 24 else 16
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) <= target:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
