"""Text and shapes within boxes: what charts, tables, diagrams and layouts are drawn with."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

import msgspec

from limner.imaging.fonts import FontStyle
from limner.rendering.canvas import Canvas
from limner.rendering.colours import Theme
from limner.rendering.elements import Align, TextSize, TitledElement
from limner.rendering.text import LINE_HEIGHT, TextLines, shorten, width, wrap

# Text sizes in parts of the body size.
SIZES: dict[TextSize, float] = {
    "small": 0.8,
    "body": 1.0,
    "heading": 1.45,
    "title": 2.1,
    "huge": 3.2,
}
_CURRENCIES = tuple("$€£¥₹")
_SHORT_UNITS = ("", "%", "k", "K", "M", "B", "bn", "°", "°C", "°F")
# The baseline of a line, in parts of the font size from its top.
_BASELINE = 0.93
# How much of the spare width is on the left.
SHARES: dict[Align, float] = {"start": 0.0, "center": 0.5, "end": 1.0}
_ANCHORS: dict[Align, tuple[Literal["start", "middle", "end"], float]] = {
    "start": ("start", 0.0),
    "center": ("middle", 0.5),
    "end": ("end", 1.0),
}


class Rect(NamedTuple):
    """A rectangle of the picture, in pixels."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """The right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.y + self.height

    @property
    def middle(self) -> tuple[float, float]:
        """The point in the middle."""
        return self.x + self.width / 2, self.y + self.height / 2

    def inset(self, across: float, down: float | None = None) -> Rect:
        """The box without a margin on each side."""
        down = across if down is None else down
        return Rect(
            self.x + across,
            self.y + down,
            max(self.width - 2 * across, 1.0),
            max(self.height - 2 * down, 1.0),
        )

    def below(self, height: float) -> Rect:
        """The box without its upper part."""
        return Rect(self.x, self.y + height, self.width, max(self.height - height, 1.0))


class Style(msgspec.Struct, frozen=True, kw_only=True):
    """Colours, font and the size of body text, in pixels."""

    theme: Theme
    base: float
    font: FontStyle = "sans"
    align: Align = "start"
    ink: str

    def pixels(self, size: TextSize | float) -> float:
        """A text size in pixels."""
        return SIZES[size] * self.base if isinstance(size, str) else float(size)


class Brush(msgspec.Struct, frozen=True, kw_only=True):
    """A canvas and the style to draw with; ``notes`` collects what the caller should know.

    ``extents`` remembers what was measured: a container asks for the size of a child at each step.
    """

    canvas: Canvas
    style: Style
    notes: list[str]
    extents: dict[object, tuple[float, float]] = {}

    def with_style(self, **changes: object) -> Brush:
        """The same canvas with another style."""
        style = msgspec.structs.replace(self.style, **changes)
        return msgspec.structs.replace(self, style=style)

    def wrap(
        self, text: str, size: TextSize | float, max_width: float, *, bold: bool = False
    ) -> TextLines:
        """Break a text into lines of this font."""
        return wrap(text, self.style.pixels(size), max_width, self.style.font, bold=bold)

    def width(self, text: str, size: TextSize | float, *, bold: bool = False) -> float:
        """The width of one line of text."""
        return width(text, self.style.pixels(size), self.style.font, bold=bold)

    def line(
        self,
        x: float,
        y: float,
        text: str,
        size: TextSize | float = "body",
        *,
        align: Align = "center",
        color: str | None = None,
        bold: bool = False,
        italic: bool = False,
        max_width: float | None = None,
        **more: str,
    ) -> None:
        """One line of text around x, with its middle at y."""
        pixels = self.style.pixels(size)
        if max_width is not None:
            text = shorten(text, pixels, max_width, self.style.font, bold=bold)
        self.canvas.text(
            x,
            y + pixels * 0.35,
            pixels,
            color or self.style.ink,
            text,
            anchor=_ANCHORS[align][0],
            bold=bold,
            italic=italic,
            style=self.style.font,
            **more,
        )

    def lines(
        self,
        box: Rect,
        text: TextLines,
        *,
        align: Align = "start",
        color: str | None = None,
        bold: bool = False,
        italic: bool = False,
        centred: bool = False,
    ) -> None:
        """Wrapped text in a box, from its top or around its middle."""
        anchor, share = _ANCHORS[align]
        top = box.y + max((box.height - text.height) / 2, 0.0) if centred else box.y
        top += text.size * (LINE_HEIGHT - 1) / 2
        for place, words in enumerate(text.lines):
            if words:
                self.canvas.text(
                    box.x + box.width * share,
                    top + place * text.line_height + text.size * _BASELINE,
                    text.size,
                    color or self.style.ink,
                    words,
                    anchor=anchor,
                    bold=bold,
                    italic=italic,
                    style=self.style.font,
                )

    def panel(
        self, box: Rect, fill: str, *, radius: float = 0.0, stroke: str | None = None
    ) -> None:
        """A filled rectangle with round corners, and a border if there is a stroke."""
        more = {"rx": f"{radius:.1f}"} if radius else {}
        if stroke is not None:
            more |= {"stroke": stroke, "stroke_width": f"{max(self.style.base / 14, 1):.1f}"}
        self.canvas.rect(*box, fill, **more)

    def title(self, box: Rect, element: TitledElement) -> Rect:
        """Draw the title of an element at the top of a box; returns what is left below it."""
        heading, small = self._title_lines(element, box.width)
        self.lines(box, heading, align="center", bold=True)
        muted = self.style.theme.muted
        self.lines(box.below(heading.height), small, align="center", color=muted)
        return box.below(self.title_height(element, box.width))

    def title_height(self, element: TitledElement, max_width: float) -> float:
        """The height of a title and a subtitle, and the gap below them."""
        high = sum(lines.height for lines in self._title_lines(element, max_width))
        return high + self.style.base * 0.5 if high else 0.0

    def _title_lines(self, element: TitledElement, max_width: float) -> tuple[TextLines, TextLines]:
        none = TextLines(lines=(), size=0.0, width=0.0)
        title, subtitle = element.title, element.subtitle
        heading = self.wrap(title, "heading", max_width, bold=True) if title else none
        return heading, self.wrap(subtitle, "small", max_width) if subtitle else none


def format_number(value: float | None, unit: str = "", *, thousands: bool = False) -> str:
    """A number as people write it: a currency before it ($3), a short unit after it (3%, 3M)."""
    if value is None:
        return ""
    text = f"{value:.10g}" if abs(value) < 1e15 else f"{value:.3e}"
    if "e" in text and abs(value) < 1e15:
        text = f"{value:.6f}".rstrip("0").rstrip(".") if abs(value) < 1 else f"{value:.0f}"
    if thousands and re.fullmatch(r"-?\d{4,}(?:\.\d+)?", text):
        whole, point, rest = text.partition(".")
        text = f"{int(whole):,}{point}{rest}"
    if not is_attached(unit):
        return text
    sign, after = (unit[0], unit[1:]) if unit[0] in _CURRENCIES else ("", unit)
    return f"-{sign}{text[1:]}{after}" if text.startswith("-") else f"{sign}{text}{after}"


def is_attached(unit: str) -> bool:
    """Whether a unit is written at each number, and not beside the axis."""
    after = unit[1:] if unit[:1] in _CURRENCIES else unit
    return bool(unit) and after in _SHORT_UNITS
