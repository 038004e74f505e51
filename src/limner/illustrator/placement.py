"""Groups and a backdrop frame -> the place of every picture on the canvas, back to front."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

import msgspec
from msgspec.structs import replace

from limner.illustrator import figures
from limner.illustrator.attachments import Clip, Part
from limner.illustrator.backdrop import BackdropFrame
from limner.illustrator.groups import Group, order_by_position

_MAX_ZOOM = 1.45
_FILLED = 0.46
# The most of the height that the tallest thing takes, so that the scene can be seen around it.
_FOCUS, _FOCUS_OF_SEVERAL = 0.6, 0.7
_ROW_OF = 4
_MARGIN = 0.05
# Depth -> where on the ground its row stands, 0 is the far edge, and how large things are there.
_DEPTHS = {"far": (-0.12, 0.5), "back": (0.1, 1.0), "front": (0.9, 1.0), "near": (1.05, 1.25)}
_ONLY_ROW = 0.5
_TRIES = 70
# How much larger the nearest thing may be drawn than the farthest of the same size.
_NEAREST = 1.5
# The depth of ground that has room for several rows, in parts of the height.
_DEEP = 0.06
# Where the top of a table is in a picture of it alone.
_TABLE_TOP = 0.68

Box = tuple[float, float, float, float]


class Placed(msgspec.Struct, frozen=True):
    """A group on the canvas: the pixels of one unit, and the position of its foot point.

    ``grounded`` things cast a shadow, ``wet`` ones are in water.
    """

    group: Group
    scale: float
    x: float
    y: float
    grounded: bool = False
    wet: bool = False

    def parts(self) -> list[Part]:
        """Its pictures in pixels, back to front."""
        ordered = sorted(self.group.parts, key=lambda part: part.nearness)
        return [
            replace(
                part,
                left=self.x + part.left * self.scale,
                top=self.y + part.top * self.scale,
                size=part.size * self.scale,
                clip=part.clip and self._clip(part.clip),
            )
            for part in ordered
        ]

    def _clip(self, clip: Clip) -> Clip:
        left, top, right, low, bulge = (edge * self.scale for edge in clip)
        return left + self.x, top + self.y, right + self.x, low + self.y, bulge

    @property
    def box(self) -> Box:
        """The smallest box around it, in pixels."""
        left, top, right, bottom = self.group.bounds
        return (
            self.x + left * self.scale,
            self.y + top * self.scale,
            self.x + right * self.scale,
            self.y + bottom * self.scale,
        )

    def fraction_of(self, width: int, height: int) -> Box:
        """Its box in parts of the canvas."""
        left, top, right, bottom = self.box
        return left / width, top / height, right / width, bottom / height


def place(
    groups: Sequence[Group], frame: BackdropFrame, *, width: int, height: int, random: Random
) -> list[Placed]:
    """Give every group a place where it covers no other group in its row."""
    field = _Field(left=0, width=width, height=height, unit=min(width, height), random=random)
    if frame.afloat:
        low = [one for one in groups if figures.lies_on_seabed(one.parts[0].info)]
        floating = [one for one in groups if one not in low]
        if not low or not floating or frame.ground[0] < 0.85 * height:
            return field.scatter(groups, frame.air)
        # Things on the ground must not hide what swims.
        water, seabed = replace(field, width=width * 0.75), replace(field, left=width * 0.72)
        seabed = replace(seabed, width=width * 0.28)
        return water.scatter(floating, frame.air) + seabed.in_rows(low, *frame.ground)
    flying = [group for group in groups if group.aloft]
    grounded = [group for group in groups if not group.aloft]
    swimming = [group for group in grounded if frame.water and _swims(group)]
    standing = [group for group in grounded if not (frame.water and _swims(group))]
    placed = field.in_air(flying, frame, alone=not grounded)
    shore = _part(field, frame.across)
    sea = _part(field, frame.wet_across)
    if standing and swimming and shore.width == width:
        # Things on the shore must not hide things on the water.
        shore = replace(field, width=width * 0.55)
        sea = replace(field, left=width * 0.5, width=width * 0.5)
    afloat = sea.in_rows(swimming, *frame.water) if frame.water else []
    ashore = shore.in_rows(standing, *frame.ground)
    if afloat and ashore:
        # A frog on the shore is not much larger than a duck on the water.
        most = _NEAREST * min(one.scale for one in afloat + ashore)
        afloat, ashore = (
            [replace(one, scale=min(one.scale, most)) for one in row] for row in (afloat, ashore)
        )
    return [*placed, *(replace(one, wet=True, grounded=False) for one in afloat), *ashore]


def _part(field: _Field, across: tuple[float, float]) -> _Field:
    return replace(field, left=across[0] * field.width, width=(across[1] - across[0]) * field.width)


def close_up(one: Placed, *, width: int, height: int) -> Placed:
    """A table with things on it, near to the viewer: its legs are outside of the picture."""
    left, top, right, _ = one.group.parts[0].drawn
    tall = top - one.group.bounds[1]
    zoom = min(width * 1.04 / (right - left), height * 0.52 / max(tall, 0.01))
    x = width / 2 - (left + right) / 2 * zoom
    return replace(one, scale=zoom, x=x, y=height * _TABLE_TOP - top * zoom)


def _swims(group: Group) -> bool:
    return figures.swims(group.parts[0].info)


class _Field(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the canvas, from ``left`` on, in which groups are arranged."""

    left: float
    width: float
    height: int
    unit: float
    random: Random

    def in_rows(self, groups: Sequence[Group], far: float, near: float) -> list[Placed]:
        """Side by side with their feet between two lines, the tall ones behind."""
        if not groups:
            return []
        # On a narrow top there is room for one row.
        is_deep = near - far > _DEEP * self.height
        rows = self._rows(groups) if is_deep else [("front", list(groups))]
        only = len(rows) == 1
        zoom = min(self._zoom(row, head_room=far) / _DEPTHS[depth][1] for depth, row in rows)
        kinds = dict(rows)
        if "back" in kinds and "front" in kinds:
            gap = (near - far) * 0.8
            zoom = min(zoom, _zoom_to_show(kinds["front"], kinds["back"], gap=gap))
        placed: list[Placed] = []
        for depth, row in rows:
            down, larger = _DEPTHS[depth]
            line = far + (near - far) * (_ONLY_ROW if only and depth == "front" else down)
            # A thing in front stands beside the middle, so that it does not hide what is behind.
            aside = 0.0 if only else {"back": -0.5, "front": 0.5}.get(depth, 0.0)
            play = (near - far) * (0.16 if depth in ("back", "front") else 0.03)
            placed += self._side_by_side(row, zoom * larger, line, play=play, aside=aside)
        return placed

    def scatter(self, groups: Sequence[Group], span: tuple[float, float]) -> list[Placed]:
        """Spread over an area so that nothing overlaps; several of a kind stay together."""
        if not groups:
            return []
        top, bottom = span
        zoom = self._zoom(groups[:1], head_room=(bottom - top) * 0.85)
        order = sorted(range(len(groups)), key=lambda at: -_area(groups[at]))
        while zoom > self.unit * 0.1:
            found = self._spread(groups, order, zoom, span)
            if found is not None:
                return [found[at] for at in range(len(groups))]
            zoom *= 0.93
        return self._side_by_side(groups, zoom, (top + bottom) / 2, play=0, aside=0.0)

    def _spread(
        self,
        groups: Sequence[Group],
        order: Sequence[int],
        zoom: float,
        span: tuple[float, float],
    ) -> dict[int, Placed] | None:
        """A place for each group at this zoom; None if there is no room."""
        made: dict[int, Placed] = {}
        for at in order:
            group = groups[at]
            options = [
                one
                for one in (
                    self._somewhere(group, zoom, span, alone=len(groups) == 1)
                    for _ in range(_TRIES)
                )
                if one is not None
                and not any(_overlap(one.box, other.box) for other in made.values())
            ]
            if not options:
                return None
            family = [one for one in made.values() if _kind(one.group) == _kind(group)]
            others = [one for one in made.values() if _kind(one.group) != _kind(group)]
            made[at] = max(options, key=lambda one: _score(one, family, others, self))
        return made

    def _somewhere(
        self, group: Group, zoom: float, span: tuple[float, float], *, alone: bool
    ) -> Placed | None:
        left, upper, right, lower = group.bounds
        wide, tall = (right - left) * zoom, (lower - upper) * zoom
        free_x = self.width * (1 - 2 * _MARGIN) - wide
        free_y = span[1] - span[0] - tall
        if free_x < 0 or free_y < 0:
            return None
        across = 0.5 if alone else self.random.random()
        across = {"left": across * 0.3, "right": 0.7 + across * 0.3}.get(group.position, across)
        down = 0.5 if alone else self.random.random()
        x = self.left + self.width * _MARGIN + free_x * across
        y = span[0] + free_y * down
        turned = x + wide / 2 < self.left + self.width * 0.4 and not alone
        one = group.mirrored() if turned else group
        return Placed(one, zoom, x - one.bounds[0] * zoom, y - upper * zoom)

    def in_air(self, groups: Sequence[Group], frame: BackdropFrame, *, alone: bool) -> list[Placed]:
        """Spread over the sky, away from the middle if other groups stand below."""
        top, bottom = frame.air
        placed: list[Placed] = []
        ordered = order_by_position(groups, [one.position for one in groups])
        for number, group in enumerate(ordered):
            left, upper, right, lower = group.bounds
            tall, wide = lower - upper, right - left
            room = (bottom - top) * (1.25 if alone else 0.85)
            scale = min(
                self.unit * (1.2 if alone else 1.0),
                room / tall,
                self.width * 0.9 / len(groups) / wide,
            )
            slot = (number + 0.5) / len(groups)
            if len(groups) == 1 and not alone:
                slot = self.random.choice((0.2, 0.78))
            if len(groups) == 1:
                slot = {"left": 0.2, "right": 0.8, "middle": 0.5}.get(group.position, slot)
            half = min(wide * scale / 2, self.width / 2)
            x = self.width * (slot + self.random.uniform(-0.03, 0.03))
            x = min(max(x, half), self.width - half)
            sway = (bottom - top - tall * scale) * self.random.uniform(0.1, 0.7)
            y = top + max(sway, 0) - upper * scale
            placed.append(Placed(group, scale, x - (left + right) / 2 * scale, y))
        return placed

    def _zoom(self, row: Sequence[Group], *, head_room: float) -> float:
        wide = sum(group.bounds[2] - group.bounds[0] for group in row)
        gaps = 0.04 * (len(row) + 1)
        tall = max(group.bounds[3] - group.bounds[1] for group in row)
        across = self.width * (1 - 2 * _MARGIN) / (wide + gaps)
        focus = _FOCUS if all(len(group.parts) == 1 for group in row) else _FOCUS_OF_SEVERAL
        up = max(min(head_room * 0.92, focus * self.height), self.unit * 0.2) / max(tall, 0.01)
        # Small things that are alone in a picture fill a large part of it.
        largest = self.unit * max(_MAX_ZOOM, _FILLED / max(tall, 0.01))
        return min(largest, across, up)

    def _side_by_side(
        self, row: Sequence[Group], zoom: float, line: float, *, play: float, aside: float
    ) -> list[Placed]:
        ordered = order_by_position(row, [one.position for one in row])
        widths = [(group.bounds[2] - group.bounds[0]) * zoom for group in ordered]
        free = self.width * (1 - 2 * _MARGIN) - sum(widths)
        # The gap between two things is never much wider than the things.
        gap = min(free / (len(row) + 1), max(widths) * 0.45)
        slack = max(free - gap * (len(row) - 1), 0)
        x = self.left + self.width * _MARGIN + slack * (0.5 + aside * 0.4)
        placed: list[Placed] = []
        for group, wide in zip(ordered, widths, strict=True):
            # Things at the left and right keep to their side, and the others to the middle.
            shift = {"left": -0.5, "right": 0.5}.get(group.position, 0.0) * slack * 0.9
            middle = x + wide / 2 + shift
            turned = middle < self.left + self.width * 0.46 and len(row) > 1
            one = group.mirrored() if turned else group
            left, _, right, _ = one.bounds
            jitter = self.random.uniform(-0.25, 0.25) * max(gap, 0)
            foot = middle - (left + right) / 2 * zoom + jitter
            y = line + self.random.uniform(-1, 1) * play
            placed.append(Placed(one, zoom, foot, y, grounded=True))
            x += wide + gap
        return placed

    def _rows(self, groups: Sequence[Group]) -> list[tuple[str, list[Group]]]:
        """Rows from back to front: as the prompt says, or buildings, trees and furniture behind."""
        placed = [group for group in groups if group.depth]
        free = [group for group in groups if not group.depth]
        rows = [
            ("far", [group for group in placed if group.depth == "far"]),
            *self._free_rows(free),
            ("near", [group for group in placed if group.depth == "near"]),
        ]
        return [(depth, row) for depth, row in rows if row]

    def _free_rows(self, groups: Sequence[Group]) -> list[tuple[str, list[Group]]]:
        back = [
            group
            for group in groups
            if figures.stands_behind(group.parts[0].info) and group.position != "middle"
        ]
        front = [group for group in groups if group not in back]
        if back and front and _taller(back, front):
            return [("back", back), ("front", front)]
        wide = sum(group.bounds[2] - group.bounds[0] for group in groups) * self.unit
        if len(groups) < _ROW_OF or wide < 1.1 * self.width:
            return [("front", list(groups))]
        by_height = sorted(groups, key=lambda group: group.bounds[1])
        half = len(groups) // 2
        return [("back", by_height[:half]), ("front", by_height[half:])]


def _kind(group: Group) -> str:
    return group.parts[0].info.name


def _area(group: Group) -> float:
    left, top, right, bottom = group.bounds
    return (right - left) * (bottom - top)


def _overlap(one: Box, other: Box) -> bool:
    apart = 0.04 * min(one[2] - one[0], other[2] - other[0])
    return (
        one[0] < other[2] + apart
        and other[0] < one[2] + apart
        and one[1] < other[3] + apart
        and other[1] < one[3] + apart
    )


def _middle(box: Box) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def _score(one: Placed, family: list[Placed], others: list[Placed], field: _Field) -> float:
    """How good a place is: near to its kind, or near to the middle if it is the first."""
    here = _middle(one.box)
    if family:
        return -math.fsum(math.dist(here, _middle(other.box)) for other in family)
    if others:
        return min(math.dist(here, _middle(other.box)) for other in others)
    target = field.left + field.width * 0.4
    return -abs(here[0] - target)


def _taller(back: Sequence[Group], front: Sequence[Group]) -> bool:
    """Whether everything in the back can be seen above what is in front."""
    return min(-group.bounds[1] for group in back) > 0.95 * max(-one.bounds[1] for one in front)


def _zoom_to_show(front: Sequence[Group], back: Sequence[Group], *, gap: float) -> float:
    """The largest zoom at which the front row hides at most half of the back row."""
    tall = max(-group.bounds[1] for group in front)
    behind = min(-group.bounds[1] for group in back)
    excess = tall - behind / 2
    return gap / excess if excess > 0 else math.inf
