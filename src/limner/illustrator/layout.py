"""Placed groups <-> the layout that is kept with a picture, so that an edit moves nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from limner.illustrator import assets
from limner.illustrator.backdrop import BackdropFrame
from limner.illustrator.grammar import MAX_COUNT
from limner.illustrator.groups import Group
from limner.illustrator.parsed_prompt import Subject
from limner.illustrator.placement import Box, Placed
from limner.illustrator.scenes import HOURS, PLACES, WEATHERS, Scene

Fraction = Annotated[float, Meta(ge=-4, le=4)]
Wish = tuple[float | None, float | None]

_COLUMNS, _ROWS = 25, 3
_CROWDED = 0.35
_SHRINK, _MAX_SHRINKS = 0.85, 2
_MARGIN = 0.02
_MAX_THINGS = 24


class Spot(msgspec.Struct, frozen=True, array_like=True):
    """The place of the copy ``nth`` of a thing: its foot point and zoom in parts of the canvas."""

    thing: int
    nth: int
    x: Fraction
    y: Fraction
    zoom: Fraction
    is_mirrored: bool = False
    grounded: bool = False
    wet: bool = False


class KeptRoom(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What decided where a room has its window and furniture: the boxes of the first things."""

    furnished: bool = False
    taken: tuple[tuple[Fraction, Fraction, Fraction, Fraction], ...] = ()


class Layout(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The things of a drawing, its scene with nothing left open, and where everything is.

    ``dry`` if the backdrop has ground to stand on. ``wishes`` are the places that the next drawing
    gives to things: the middle of the thing in parts of the canvas, None for any. ``focus`` is the
    thing that the last edit named: "it" in the next one.
    """

    things: tuple[Subject, ...]
    scene: Scene
    dry: bool = False
    spots: tuple[Spot, ...] = ()
    room: KeptRoom | None = None
    wishes: Mapping[int, Wish] | None = None
    focus: int = 0


class KeptDrawing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept with a picture: enough to draw it again, the same or changed.

    Without a layout it is a page, such as a chart or a card; ``source`` is the document that it
    was drawn from.
    """

    prompt: str
    source: str = ""
    seed: int | None = None
    layout: Layout | None = None
    texts: tuple[str, ...] = ()
    style: str = ""


def decode_kept(data: bytes) -> KeptDrawing | None:
    """Decode what was kept with a picture; None if it is not what limner writes.

    It may come from a file of another author.
    """
    try:
        kept = msgspec.json.decode(data, type=KeptDrawing)
    except (msgspec.DecodeError, RecursionError):
        return None
    layout = kept.layout
    return kept if layout is None or _is_sound(layout) else None


def _is_sound(layout: Layout) -> bool:
    """Whether a layout can be drawn: known pictures, and relations without a circle."""
    things, names = layout.things, assets.names()
    if len(things) > _MAX_THINGS or not set(layout.scene.places) <= {*PLACES}:
        return False
    if layout.scene.hour not in HOURS or not layout.scene.weather <= {*WEATHERS}:
        return False
    for at, thing in enumerate(things):
        if thing.asset not in names or not 1 <= thing.count <= MAX_COUNT:
            return False
        step: int | None = at
        for _ in things:
            relation = None if step is None else things[step].relation
            step = None if relation is None else relation.to
            if step is not None and not 0 <= step < len(things):
                return False
        if step is not None:
            return False
    return True


def spots_of(placed: Sequence[Placed], width: int, height: int) -> tuple[Spot, ...]:
    """The spots of placed groups, by thing and copy."""
    unit = min(width, height)
    spots = (
        Spot(
            thing=one.group.thing,
            nth=one.group.nth,
            x=round(one.x / width, 6),
            y=round(one.y / height, 6),
            zoom=round(one.scale / unit, 6),
            is_mirrored=one.group.is_mirrored,
            grounded=one.grounded,
            wet=one.wet,
        )
        for one in placed
    )
    return tuple(sorted(spots, key=lambda spot: (spot.thing, spot.nth)))


def keep_places(
    placed: Sequence[Placed],
    groups: Sequence[Group],
    kept: Layout,
    frame: BackdropFrame,
    *,
    width: int,
    height: int,
) -> list[Placed]:
    """Put the groups that have a spot back there, and the others where they cover the least.

    ``groups`` are the same groups, before any of them was mirrored.
    """
    unturned = {(one.thing, one.nth): one for one in groups}
    spots = {(spot.thing, spot.nth): spot for spot in kept.spots}
    room = _Room(width=width, height=height, frame=frame)
    done, new = list[Placed](), list[Placed]()
    for one in placed:
        name = one.group.thing, one.group.nth
        if name in spots:
            done.append(room.put_back(unturned[name], spots[name]))
        else:
            new.append(one)
    zoom = median(one.scale for one in done) if done else None
    for one in new:
        alike = [other.scale for other in done if other.group.thing == one.group.thing]
        most = _MAX_SHRINKS if not alike else 0
        done.append(room.find_place(one, done, zoom=alike[0] if alike else zoom, shrinks=most))
    return room.grant(done, kept.wishes or {})


class _Room(msgspec.Struct, frozen=True, kw_only=True):
    """A canvas with groups on it."""

    width: int
    height: int
    frame: BackdropFrame

    def put_back(self, group: Group, spot: Spot) -> Placed:
        return Placed(
            group.mirrored() if spot.is_mirrored else group,
            spot.zoom * min(self.width, self.height),
            spot.x * self.width,
            spot.y * self.height,
            grounded=spot.grounded,
            wet=spot.wet,
        )

    def find_place(
        self, one: Placed, others: Sequence[Placed], *, zoom: float | None, shrinks: int
    ) -> Placed:
        """The place that covers the least of the others; smaller if there is no room."""
        boxes = [other.box for other in others]
        best = one = one if zoom is None else replace(one, scale=zoom)
        for _ in range(shrinks + 1):
            choices = [self._inside(choice) for choice in self._choices(one)]
            best = min(choices, key=lambda choice: _covered(choice, boxes, near=one.x))
            if _covered(best, boxes, near=best.x) <= _CROWDED * _area(best.box):
                break
            one = replace(one, scale=one.scale * _SHRINK)
        return best

    def _choices(self, one: Placed) -> Iterable[Placed]:
        if one.grounded:
            top, bottom = self.frame.ground
        elif one.wet and self.frame.water is not None:
            top, bottom = self.frame.water
        else:
            top, bottom = one.y, one.y + (self.frame.ground[0] - one.y) * 0.5
        for row in range(_ROWS):
            y = one.y if row == 0 else top + (bottom - top) * (0.15, 0.9)[row - 1]
            for column in range(_COLUMNS):
                yield replace(one, x=self.width * (column + 0.5) / _COLUMNS, y=y)

    def _inside(self, one: Placed) -> Placed:
        """Moved so far that all of it is on the canvas, if it fits."""
        left, top, right, bottom = one.box
        across = _shift(left, right, self.width)
        down = _shift(top, bottom, self.height)
        return replace(one, x=one.x + across, y=one.y + down)

    def grant(self, placed: Sequence[Placed], wishes: Mapping[int, Wish]) -> list[Placed]:
        """Move the things with a wish; several copies keep their distances."""
        moved = list[Placed]()
        for one in placed:
            if one.group.thing not in wishes:
                moved.append(one)
                continue
            across, down = wishes[one.group.thing]
            copies = [other.box for other in placed if other.group.thing == one.group.thing]
            x = sum((box[0] + box[2]) / 2 for box in copies) / len(copies)
            y = sum((box[1] + box[3]) / 2 for box in copies) / len(copies)
            shifted = replace(
                one,
                x=one.x + (0 if across is None else across * self.width - x),
                y=one.y + (0 if down is None else down * self.height - y),
            )
            inside = self._inside(shifted)
            # A thing that was lifted from the ground casts no shadow there.
            grounded = one.grounded and inside.y >= self.frame.ground[0] - 0.05 * self.height
            moved.append(replace(inside, grounded=grounded))
        return moved


def _area(box: Box) -> float:
    return max(box[2] - box[0], 0) * max(box[3] - box[1], 0)


def _covered(one: Placed, boxes: Sequence[Box], *, near: float) -> float:
    """The area that a group shares with others; of equal choices, the nearest wins."""
    box = one.box
    shared = sum(
        _area(
            (
                max(box[0], other[0]),
                max(box[1], other[1]),
                min(box[2], other[2]),
                min(box[3], other[3]),
            )
        )
        for other in boxes
    )
    return shared + abs(one.x - near)


def _shift(low: float, high: float, edge: int) -> float:
    margin = _MARGIN * edge
    if high - low > edge - 2 * margin:
        return edge / 2 - (low + high) / 2
    return max(margin - low, 0) + min(edge - margin - high, 0)
