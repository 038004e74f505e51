"""Pixels and text lines -> colours of text, panels, controls and shapes. Runs in the OCR worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from msgspec.structs import replace

from limner.imaging.evidence.colour_names import hex_code, is_greyish
from limner.imaging.evidence.record import Box, Control, Panel, Shape, TextLine

# Channels of one flat colour differ by at most this much after the picture was enlarged.
_SAME = 3
_MAX_COLOURS = 40
_MAX_FLATS = 600
_LEAST_SIDE = 8
# By WCAG, large text below this ratio cannot be read well; a grey button below it is disabled.
_DISABLED_CONTRAST = 3.0
# Parts of the height of the text beside it: a checkbox is neither a bullet nor a picture.
_LEAST_MARK, _MOST_MARK = 0.4, 1.7

Pixels = Any
Shade = tuple[int, int, int]


@dataclass(frozen=True)
class Flat:
    """A connected area of one colour; ``area`` counts its holes too, ``own`` does not."""

    shade: Shade
    box: Box
    area: float
    own: int
    kind: str


class Surfaces:
    """One page of pixels, with its connected areas by colour."""

    def __init__(self, rgb: Pixels) -> None:
        self._np: Any = import_module("numpy")
        self._cv: Any = import_module("cv2")
        self._rgb = self._np.ascontiguousarray(rgb)
        self.height, self.width = rgb.shape[:2]
        self._labels: dict[Shade, tuple[Any, Any]] = {}
        # The most common colour; its areas between lines are no shapes.
        self.page_shade = next(iter(self._common_shades()), None)

    def style(self, line: TextLine) -> TextLine:
        """The line with the colours of its letters and of its paper."""
        np, crop = self._np, self._crop(line.box).reshape(-1, 3)
        if not len(crop):
            return line
        shades, counts = np.unique(crop, axis=0, return_counts=True)
        paper = shades[counts.argmax()]
        distance = np.abs(crop.astype(np.int16) - paper).sum(axis=1)
        ink = np.median(crop[distance >= 0.7 * distance.max()], axis=0)
        codes = [hex_code(_shade(colour)) for colour in (ink, paper)]
        ratio = contrast(_shade(ink), _shade(paper))
        return replace(line, ink=codes[0], paper=codes[1], contrast=ratio)

    def panels(self, lines: Sequence[TextLine]) -> list[tuple[Panel, list[TextLine]]]:
        """The flat areas behind the text, the page itself left out."""
        groups: dict[tuple[Shade, int], list[TextLine]] = {}
        for line in lines:
            shade = shade_of(line.paper)
            labels, _ = self._areas(shade)
            inside = self._part(labels, line.box)
            counts = self._np.bincount(inside.ravel())
            if len(counts) > 1:
                groups.setdefault((shade, int(counts[1:].argmax()) + 1), []).append(line)
        found: list[tuple[Panel, list[TextLine]]] = []
        for (shade, number), inside in groups.items():
            box = _stats_box(self._areas(shade)[1][number])
            if not self.is_page(box):
                texts = tuple(line.text for line in inside)
                found.append((Panel(colour=hex_code(shade), box=box, texts=texts), inside))
        return found

    def is_page(self, box: Box) -> bool:
        """Whether a box is nearly the whole picture."""
        return box.width >= 0.96 * self.width and box.height >= 0.9 * self.height

    def boxed_control(self, panel: Panel, line: TextLine) -> Control | None:
        """A button or a field, if the panel around a single text looks like one."""
        box, text = panel.box, line.box
        fits = 1.05 * text.height <= box.height <= 4.5 * text.height
        if not fits or box.width > 0.7 * self.width or box.width < 0.9 * text.width:
            return None
        if self._np.count_nonzero(self._outside(box, shade_of(panel.colour))) < 3:
            return None  # it is a part of the page that lines cut off
        left, right = text.x - box.x, box.x + box.width - text.x - text.width
        centred = abs(left - right) <= max(0.6 * text.height, 0.12 * box.width)
        if centred:
            grey = is_greyish(shade_of(line.ink)) and is_greyish(shade_of(line.paper))
            dim = grey and line.contrast < _DISABLED_CONTRAST
            state = "disabled" if dim else "enabled"
            return Control(
                kind="button", label=line.text, state=state, colour=panel.colour, box=box
            )
        if left <= 1.5 * text.height and self.is_bordered(box, panel.colour):
            return Control(kind="field", label="", state=line.text, colour=panel.colour, box=box)
        return None

    def _outside(self, box: Box, shade: Shade) -> Any:
        """Which of four points right outside a box have another colour than the box."""
        middle_x, middle_y = box.x + box.width // 2, box.y + box.height // 2
        sides = [
            [(box.x - away, middle_y) for away in (1, 2)],
            [(box.x + box.width - 1 + away, middle_y) for away in (1, 2)],
            [(middle_x, box.y - away) for away in (1, 2)],
            [(middle_x, box.y + box.height - 1 + away) for away in (1, 2)],
        ]
        return self._np.array([any(self._differs(x, y, shade) for x, y in side) for side in sides])

    def _differs(self, x: int, y: int, shade: Shade) -> bool:
        if not (0 <= x < self.width and 0 <= y < self.height):
            return True
        pixel = self._rgb[y, x].astype(int)
        return bool(self._np.abs(pixel - shade).max() > 2 * _SAME)

    def is_bordered(self, box: Box, colour: str) -> bool:
        """Whether the paper of a box goes on behind its border."""
        reach = max(8, box.height // 3)
        around = [(box.x - reach, box.y + box.height // 2), (box.x + 4, box.y - reach)]
        return not all(self._differs(x, y, shade_of(colour)) for x, y in around)

    def mark(self, line: TextLine) -> Control | None:
        """A checkbox or a radio button left of a line."""
        text, np = line.box, self._np
        reach = round(2.4 * text.height)
        left = max(0, text.x - reach)
        # OCR often counts the mark as a part of the text, so the strip goes into its box.
        strip = Box(
            x=left,
            y=max(0, text.y - text.height // 4),
            width=text.x - left + round(1.3 * text.height),
            height=round(1.5 * text.height),
        )
        crop = self._crop(strip).astype(np.int16)
        if crop.shape[1] < _LEAST_SIDE:
            return None
        ink = (np.abs(crop - np.array(shade_of(line.paper))).max(axis=2) > 24).astype(np.uint8)
        count, _, stats, _ = self._cv.connectedComponentsWithStats(ink, connectivity=8)
        for number in sorted(range(1, count), key=lambda one: -int(stats[one][0])):
            inner = _stats_box(stats[number])
            if _touches_edge(inner, strip) or not _stands_alone(inner, strip, ink, line):
                continue
            found = self._mark_in(crop, ink, stats[number], line)
            if found is not None:
                kind, on = found
                box = replace(inner, x=inner.x + strip.x, y=inner.y + strip.y)
                state, colour = "on" if on else "off", self._middle_colour(box)
                return Control(kind=kind, label=line.text, state=state, colour=colour, box=box)
        return None

    def _mark_in(self, crop: Pixels, ink: Pixels, stats: Any, line: TextLine) -> Any:
        """The kind of a mark and whether it is on; None if this is no mark."""
        np, (x, y, width, height) = self._np, (int(value) for value in stats[:4])
        least, most = _LEAST_MARK * line.box.height, _MOST_MARK * line.box.height
        if not (least <= width <= most and abs(width - height) <= 0.15 * width + 1 and width >= 8):
            return None
        inside = ink[y : y + height, x : x + width]
        edge = max(1, round(width / 12))
        middle = slice(width // 4, width - width // 4)
        sides = [
            inside[: edge + 1, middle].max(axis=0),
            inside[-edge - 1 :, middle].max(axis=0),
            inside[middle, : edge + 1].max(axis=1),
            inside[middle, -edge - 1 :].max(axis=1),
        ]
        if min(float(side.mean()) for side in sides) < 0.8:
            return None
        core = crop[y : y + height, x : x + width].astype(np.int16)
        middle_rows = core[height // 3 : height - height // 3, width // 3 : width - width // 3]
        busy = float((np.abs(middle_rows - np.array(shade_of(line.paper))).max(axis=2) > 40).mean())
        inner = core[height // 6 : height - height // 6, width // 6 : width - width // 6]
        even = float((np.abs(inner - core[height // 2, width // 2]).max(axis=2) <= 24).mean())
        if busy > 0.9 and even > 0.95:
            # A light box with a border is empty; without one it is a swatch of a legend.
            fill = _shade(core[height // 2, width // 2])
            if float(inside[0].mean()) < 0.7 or not is_greyish(fill):
                return None
            rim = np.concatenate(
                [core[0, width // 3 : -width // 3], core[-1, width // 3 : -width // 3]]
            )
            if float(np.abs(rim - core[height // 2, width // 2]).max(axis=1).min()) <= 24:
                return None
            busy = 0.0
        # The first row of a square is almost as wide as the square; that of a circle is not.
        if float(inside[0].mean()) < 0.7:
            return "radio", busy > 0.4
        return "checkbox", busy > 0.15

    def _middle_colour(self, box: Box) -> str:
        return hex_code(_shade(self._rgb[box.y + box.height // 2, box.x + box.width // 2]))

    def flats(self, lines: Sequence[TextLine]) -> list[Flat]:
        """The connected areas of the common colours that are neither page nor letters."""
        found: list[Flat] = []
        for shade in self._common_shades():
            labels, stats = self._areas(shade)
            for number in range(1, len(stats)):
                box = _stats_box(stats[number])
                small = min(box.width, box.height) < _LEAST_SIDE
                if small or self._is_border(box) or _is_letter(box, lines):
                    continue
                mask = (self._part(labels, box) == number).astype(self._np.uint8)
                area, kind = self._outline(mask, box)
                own = int(stats[number][4])
                found.append(Flat(shade=shade, box=box, area=area, own=own, kind=kind))
        return sorted(found, key=lambda flat: -flat.area)[:_MAX_FLATS]

    def _is_border(self, box: Box) -> bool:
        return box.width >= 0.96 * self.width or box.height >= 0.96 * self.height

    def _common_shades(self) -> list[Shade]:
        """The colours of pixels that equal both neighbours, the most common first."""
        np, rgb = self._np, self._rgb
        packed = rgb.astype(np.uint32) @ np.array([65536, 256, 1], np.uint32)
        here = packed[:-1, :-1]
        flat = here[(here == packed[:-1, 1:]) & (here == packed[1:, :-1])]
        values, counts = np.unique(flat, return_counts=True)
        least = max(40, 0.00005 * packed.size)
        order = [index for index in (-counts).argsort() if counts[index] >= least]
        shades: list[Shade] = []
        for index in order[: 4 * _MAX_COLOURS]:
            value = int(values[index])
            shade = (value >> 16, value >> 8 & 255, value & 255)
            if all(max(map(_distance, shade, other)) > _SAME for other in shades):
                shades.append(shade)
        return shades[:_MAX_COLOURS]

    def _outline(self, mask: Pixels, box: Box) -> tuple[float, str]:
        """The area within the outline of an area, and the kind of its shape."""
        cv = self._cv
        contours, _ = cv.findContours(mask, cv.RETR_EXTERNAL, cv.CHAIN_APPROX_NONE)
        outline = max(contours, key=cv.contourArea)
        # The contour runs through the middle of the border pixels.
        around = cv.arcLength(outline, True)
        area = cv.contourArea(outline) + around / 2 + 1
        extent = area / (box.width * box.height)
        even = 0.93 <= box.width / box.height <= 1.075
        corners = len(cv.approxPolyDP(cv.convexHull(outline), 0.03 * around, True))
        convex = area / max(1.0, cv.contourArea(cv.convexHull(outline)) + around / 2)
        return area, _kind(extent, even=even, corners=corners, convex=convex)

    def toggle(self, flat: Flat) -> str | None:
        """The state of a toggle, "on" or "off"; None if this is none."""
        box, np = flat.box, self._np
        if not (1.35 <= box.width / box.height <= 2.7 and 10 <= box.height <= 90):
            return None
        crop = self._crop(box).astype(np.int16)
        other = (np.abs(crop - np.array(flat.shade)).max(axis=2) > 20).astype(np.uint8)
        corner = max(1, box.height // 8)
        if not (other[:corner, :corner].mean() > 0.4 and other[-corner:, -corner:].mean() > 0.4):
            return None
        # The knob is the largest area of another colour around the middle row.
        count, labels, stats, centres = self._cv.connectedComponentsWithStats(other, connectivity=4)
        middle = set(labels[box.height // 2].tolist()) - {0}
        knob = max(middle, key=lambda one: stats[one][4], default=0)
        if not knob or count < 2:
            return None
        width, height, area = (int(value) for value in stats[knob][2:5])
        round_enough = abs(width - height) <= 0.25 * box.height and area >= 0.6 * width * height
        if not round_enough or not 0.4 <= height / box.height <= 1.01:
            return None
        place = float(centres[knob][0]) / box.width
        return None if 0.42 < place < 0.58 else "on" if place > 0.5 else "off"

    def _areas(self, shade: Shade) -> tuple[Any, Any]:
        if shade not in self._labels:
            low, high = (
                [max(0, min(255, value + step)) for value in shade] for step in (-_SAME, _SAME)
            )
            mask = self._cv.inRange(self._rgb, self._np.array(low), self._np.array(high))
            _, labels, stats, _ = self._cv.connectedComponentsWithStats(mask, connectivity=4)
            self._labels[shade] = labels, stats
        return self._labels[shade]

    def _crop(self, box: Box) -> Pixels:
        return self._part(self._rgb, box)

    def _part(self, array: Any, box: Box) -> Any:
        return array[box.y : box.y + box.height, box.x : box.x + box.width]


def shapes(flats: Iterable[Flat], lines: Sequence[TextLine], *, pixels: int) -> Iterator[Shape]:
    """The flat areas that a person would count as shapes: of some size, and without text."""
    for flat in flats:
        large = flat.area >= max(80.0, 0.0008 * pixels)
        if large and not any(_contains(flat.box, line.box) for line in lines):
            yield Shape(kind=flat.kind, colour=hex_code(flat.shade), box=flat.box)


def contrast(one: Shade, other: Shade) -> float:
    """The contrast ratio of two colours by WCAG 2, from 1 to 21."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return round((light + 0.05) / (dark + 0.05), 2)


def luminance(shade: Shade) -> float:
    """The relative luminance of a colour by WCAG 2, from 0 to 1."""
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (channel / 255 for channel in shade)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def shade_of(code: str) -> Shade:
    """The channels of a code such as #ff8800."""
    red, green, blue = bytes.fromhex(code.removeprefix("#"))
    return red, green, blue


def _shade(colour: Any) -> Shade:
    red, green, blue = (round(float(value)) for value in colour)
    return red, green, blue


def _distance(one: int, other: int) -> int:
    return abs(one - other)


def _stats_box(stats: Any) -> Box:
    x, y, width, height = (int(value) for value in stats[:4])
    return Box(x=x, y=y, width=width, height=height)


def _kind(extent: float, *, even: bool, corners: int, convex: float) -> str:
    if extent > 0.93 or (extent > 0.86 and convex > 0.93 and corners == 4):
        return "square" if even else "rectangle"
    if convex < 0.8:
        return "shape"
    if 0.74 <= extent <= 0.83 and corners > 5:
        return "circle" if even else "ellipse"
    if corners in {3, 4} and 0.4 <= extent <= 0.62:
        return "triangle" if corners == 3 else "diamond"
    return {4: "quadrilateral", 5: "pentagon", 6: "hexagon"}.get(corners, "shape")


def _touches_edge(inner: Box, strip: Box) -> bool:
    right, bottom = inner.x + inner.width, inner.y + inner.height
    return inner.x == 0 or inner.y == 0 or bottom == strip.height or right == strip.width


def _stands_alone(inner: Box, strip: Box, ink: Pixels, line: TextLine) -> bool:
    """Whether a mark in the box of a text is followed by a space, which the letter O is not."""
    end = inner.x + inner.width
    if strip.x + end <= line.box.x:
        return True
    gap = max(2, round(0.18 * line.box.height))
    after = ink[inner.y : inner.y + inner.height, end : end + gap]
    return strip.x + inner.x <= line.box.x + 0.6 * line.box.height and not after.any()


def _is_letter(box: Box, lines: Sequence[TextLine]) -> bool:
    return any(box.height <= 1.1 * line.box.height and _contains(line.box, box) for line in lines)


def _contains(outer: Box, inner: Box) -> bool:
    x, y = inner.x + inner.width / 2, inner.y + inner.height / 2
    return outer.x <= x <= outer.x + outer.width and outer.y <= y <= outer.y + outer.height
