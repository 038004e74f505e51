"""Groups and a backdrop frame -> the place of every picture on the canvas, back to front."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

import msgspec
from msgspec.structs import replace

from limner.illustrator import figures
from limner.illustrator.attachments import Part
from limner.illustrator.backdrop import BackdropFrame
from limner.illustrator.groups import Group

_MAX_ZOOM = 1.45
_FILLED = 0.46
_ROW_OF = 4
_MARGIN = 0.05


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
            )
            for part in ordered
        ]


def place(
    groups: Sequence[Group], frame: BackdropFrame, *, width: int, height: int, random: Random
) -> list[Placed]:
    """Give every group a place where it covers no other group in its row."""
    field = _Field(left=0, width=width, height=height, random=random)
    if frame.afloat:
        low = [one for one in groups if figures.lies_on_seabed(one.parts[0].info)]
        floating = [one for one in groups if one not in low]
        if not low or not floating or frame.ground[0] < 0.85 * height:
            return field.afloat(groups, frame)
        # Things on the ground must not hide what swims.
        water, seabed = replace(field, width=width * 0.7), replace(field, left=width * 0.7)
        seabed = replace(seabed, width=width * 0.3)
        return water.afloat(floating, frame) + seabed.in_rows(low, *frame.ground)
    flying = [group for group in groups if group.aloft]
    grounded = [group for group in groups if not group.aloft]
    swimming = [group for group in grounded if frame.water and _swims(group)]
    standing = [group for group in grounded if not (frame.water and _swims(group))]
    placed = field.in_air(flying, frame, alone=not grounded)
    shore, sea = field, field
    if standing and swimming:
        # Things on the shore must not hide things on the water.
        shore = replace(field, width=width * 0.55)
        sea = replace(field, left=width * 0.5, width=width * 0.5)
    if frame.water:
        rows = sea.in_rows(swimming, *frame.water)
        placed += [replace(one, wet=True, grounded=False) for one in rows]
    return placed + shore.in_rows(standing, *frame.ground)


def _swims(group: Group) -> bool:
    return figures.swims(group.parts[0].info)


class _Field(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the canvas, from ``left`` on, in which groups are arranged."""

    left: float
    width: float
    height: int
    random: Random

    @property
    def unit(self) -> float:
        return float(min(self.width, self.height))

    def in_rows(self, groups: Sequence[Group], far: float, near: float) -> list[Placed]:
        """Side by side with their feet between two lines, the tall ones behind."""
        if not groups:
            return []
        rows = self._rows(groups)
        zoom = min(self._zoom(row, head_room=far) for row in rows)
        if len(rows) > 1:
            zoom = min(zoom, _zoom_to_show(rows[1], rows[0], gap=(near - far) * 0.8))
        placed: list[Placed] = []
        for number, row in enumerate(rows):
            depth = 0.5 if len(rows) == 1 else (0.1, 0.9)[number]
            line = far + (near - far) * depth
            placed += self._side_by_side(row, zoom, line, play=(near - far) * 0.16)
        return placed

    def afloat(self, groups: Sequence[Group], frame: BackdropFrame) -> list[Placed]:
        """Side by side, at different heights."""
        if not groups:
            return []
        top, bottom = frame.air
        zoom = self._zoom(groups, head_room=(bottom - top) * 0.8)
        middle = (top + bottom) / 2
        rows = self._side_by_side(groups, zoom, middle, play=0)
        moved: list[Placed] = []
        for number, one in enumerate(rows):
            upper, lower = one.group.bounds[1], one.group.bounds[3]
            centre = -(upper + lower) / 2 * one.scale
            swing = (bottom - top) * 0.12 * (1 if number % 2 else -1) * (len(rows) > 1)
            y = middle + centre + swing * self.random.uniform(0.5, 1)
            moved.append(replace(one, y=y, grounded=False))
        return moved

    def in_air(self, groups: Sequence[Group], frame: BackdropFrame, *, alone: bool) -> list[Placed]:
        """Spread over the sky, away from the middle if other groups stand below."""
        top, bottom = frame.air
        placed: list[Placed] = []
        for number, group in enumerate(groups):
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
        up = max(head_room * 0.92, self.unit * 0.2) / max(tall, 0.01)
        # Small things that are alone in a picture fill a large part of it.
        largest = self.unit * max(_MAX_ZOOM, _FILLED / max(tall, 0.01))
        return min(largest, across, up)

    def _side_by_side(
        self, row: Sequence[Group], zoom: float, line: float, *, play: float
    ) -> list[Placed]:
        widths = [(group.bounds[2] - group.bounds[0]) * zoom for group in row]
        free = self.width * (1 - 2 * _MARGIN) - sum(widths)
        # The gap between two things is never much wider than the things.
        gap = min(free / (len(row) + 1), max(widths) * 0.45)
        x = self.left + (self.width - sum(widths) - gap * (len(row) - 1)) / 2
        placed: list[Placed] = []
        for group, wide in zip(row, widths, strict=True):
            middle = x + wide / 2
            turned = middle < self.left + self.width * 0.46 and len(row) > 1
            one = group.mirrored() if turned else group
            left, _, right, _ = one.bounds
            jitter = self.random.uniform(-0.25, 0.25) * max(gap, 0)
            foot = middle - (left + right) / 2 * zoom + jitter
            y = line + self.random.uniform(-1, 1) * play
            placed.append(Placed(one, zoom, foot, y, grounded=True))
            x += wide + gap
        return placed

    def _rows(self, groups: Sequence[Group]) -> list[list[Group]]:
        """One row; or buildings, trees and furniture behind the rest; or the taller half behind."""
        back = [group for group in groups if figures.stands_behind(group.parts[0].info)]
        front = [group for group in groups if group not in back]
        if back and front and _taller(back, front):
            return [back, front]
        wide = sum(group.bounds[2] - group.bounds[0] for group in groups) * self.unit
        if len(groups) < _ROW_OF or wide < 1.1 * self.width:
            return [list(groups)]
        by_height = sorted(groups, key=lambda group: group.bounds[1])
        half = len(groups) // 2
        return [by_height[:half], by_height[half:]]


def _taller(back: Sequence[Group], front: Sequence[Group]) -> bool:
    """Whether everything in the back can be seen above what is in front."""
    return min(-group.bounds[1] for group in back) > 1.1 * max(-one.bounds[1] for one in front)


def _zoom_to_show(front: Sequence[Group], back: Sequence[Group], *, gap: float) -> float:
    """The largest zoom at which the front row hides at most half of the back row."""
    tall = max(-group.bounds[1] for group in front)
    behind = min(-group.bounds[1] for group in back)
    excess = tall - behind / 2
    return gap / excess if excess > 0 else math.inf
