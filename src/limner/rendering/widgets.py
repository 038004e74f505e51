"""The small elements: words, ready-made pictures, buttons, fields, lists, numbers, codes.

Each element has a function that measures it and one that draws it into a box: see ``DRAWINGS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from limner.errors import InputInvalid
from limner.rendering.brush import SHARES, Brush, Rect, format_number
from limner.rendering.canvas import mix, number
from limner.rendering.colours import contrast, parse_colour, readable_on
from limner.rendering.elements import (
    AssetPicture,
    Badge,
    Button,
    Checkbox,
    Divider,
    DocumentElement,
    InputField,
    ItemList,
    Metric,
    ProgressBar,
    QrCode,
    Spacer,
    StepList,
    TextBlock,
    Toggle,
)
from limner.rendering.text import TextLines

Extent = tuple[float, float]
_QUIET_MODULES = 4


class Drawing(NamedTuple):
    """How an element is measured within a width, and drawn into a box.

    A ``flexible`` element takes the room that is left. A ``compact`` one keeps its width in a row.
    """

    measure: Callable[[Any, Brush, float], Extent]
    draw: Callable[[Any, Brush, Rect], None]
    flexible: bool = False
    compact: bool = False


_BUTTON_CONTRAST = 3.0


def _measure_text(element: TextBlock, brush: Brush, max_width: float) -> Extent:
    text = _wrapped(element, _in_font(element, brush), max_width)
    return text.width, text.height


def _draw_text(element: TextBlock, brush: Brush, box: Rect) -> None:
    brush = _in_font(element, brush)
    brush.lines(
        box,
        _wrapped(element, brush, box.width),
        align=element.align or brush.style.align,
        color=parse_colour(element.color) if element.color else None,
        bold=_is_bold(element),
        italic=element.italic,
        centred=True,
    )


def _in_font(element: TextBlock, brush: Brush) -> Brush:
    return brush.with_style(font=element.font) if element.font else brush


def _is_bold(element: TextBlock) -> bool:
    return element.bold or element.size in ("title", "huge", "heading")


def _wrapped(element: TextBlock, brush: Brush, max_width: float) -> TextLines:
    return brush.wrap(element.text, element.size, max_width, bold=_is_bold(element))


def _measure_asset(element: AssetPicture, brush: Brush, max_width: float) -> Extent:
    size = min(element.size or brush.style.base * 6, max_width)
    return size, size


def _draw_asset(element: AssetPicture, brush: Brush, box: Rect) -> None:
    edge = min(box.width, box.height)
    x, y = box.middle
    brush.canvas.asset(element.name, x - edge / 2, y - edge / 2, edge, edge)


def _measure_divider(_: Divider, brush: Brush, max_width: float) -> Extent:
    return max_width, brush.style.base * 0.5


def _draw_divider(_: Divider, brush: Brush, box: Rect) -> None:
    x, y = box.middle
    # In a row it is narrow and goes down.
    down = f"M{number(x)} {number(box.y)}V{number(box.bottom)}"
    across = f"M{number(box.x)} {number(y)}H{number(box.right)}"
    brush.canvas.line(down if box.height > box.width else across, brush.style.theme.line, 2)


def _measure_spacer(_: Spacer, brush: Brush, max_width: float) -> Extent:
    return min(brush.style.base, max_width), brush.style.base


def _draw_spacer(element: Spacer, brush: Brush, box: Rect) -> None:
    """Nothing is drawn."""


def _measure_badge(element: Badge, brush: Brush, max_width: float) -> Extent:
    base = brush.style.base
    return min(brush.width(element.text, "small", bold=True) + base * 1.4, max_width), base * 1.6


def _draw_badge(element: Badge, brush: Brush, box: Rect) -> None:
    color = parse_colour(element.color) if element.color else brush.style.theme.accent
    box = _centred(box, _measure_badge(element, brush, box.width))
    brush.panel(box, color, radius=box.height / 2)
    brush.line(
        *box.middle, element.text, "small", bold=True, color=readable_on(color), max_width=box.width
    )


def _measure_button(element: Button, brush: Brush, max_width: float) -> Extent:
    base = brush.style.base
    return min(brush.width(element.text, "body", bold=True) + base * 2.6, max_width), base * 2.5


def _draw_button(element: Button, brush: Brush, box: Rect) -> None:
    theme = brush.style.theme
    color = parse_colour(element.color) if element.color else theme.accent
    if element.disabled:
        color = mix(color, theme.background, 0.65)
    # Bold white is what people expect on a button, if it can be read.
    light = contrast("#ffffff", color) >= _BUTTON_CONTRAST
    ink = color if element.outline else "#ffffff" if light else readable_on(color)
    fill = "none" if element.outline else color
    high = min(box.height, brush.style.base * 2.9)
    box = Rect(box.x, box.middle[1] - high / 2, box.width, high)
    brush.panel(box, fill, radius=brush.style.base * 0.5, stroke=color)
    brush.line(*box.middle, element.text, "body", bold=True, color=ink, max_width=box.width * 0.95)


def _measure_field(element: InputField, brush: Brush, max_width: float) -> Extent:
    base = brush.style.base
    return max_width, base * (4.0 if element.label else 2.5)


def _draw_field(element: InputField, brush: Brush, box: Rect) -> None:
    base, theme = brush.style.base, brush.style.theme
    if element.label:
        brush.line(box.x, box.y + base * 0.6, element.label, "small", align="start", bold=True)
        box = box.below(base * 1.4)
    box = Rect(box.x, box.y, box.width, min(box.height, base * 2.5))
    brush.panel(box, theme.background, radius=base * 0.4, stroke=theme.line)
    shown = "•" * len(element.value) if element.password else element.value
    brush.line(
        box.x + base * 0.8,
        box.middle[1],
        shown or element.placeholder,
        "body",
        align="start",
        color=readable_on(theme.background) if shown else theme.muted,
        max_width=box.width - base * 1.6,
    )


def _measure_switch(element: Checkbox | Toggle, brush: Brush, max_width: float) -> Extent:
    base = brush.style.base
    label = brush.wrap(element.label, "body", max_width - base * 3.2)
    return min(label.width + base * 3.2, max_width), max(label.height + base * 0.5, base * 1.8)


def _draw_label(text: str, brush: Brush, box: Rect, left: float) -> None:
    """The label of a checkbox or a toggle, in as many lines as it needs."""
    room = Rect(box.x + left, box.y, box.width - left, box.height)
    brush.lines(room, brush.wrap(text, "body", room.width), centred=True)


def _draw_checkbox(element: Checkbox, brush: Brush, box: Rect) -> None:
    base, theme = brush.style.base, brush.style.theme
    y = box.middle[1]
    square = Rect(box.x, y - base * 0.6, base * 1.2, base * 1.2)
    fill = theme.accent if element.checked else theme.background
    radius = base * (0.6 if element.radio else 0.25)
    brush.panel(square, fill, radius=radius, stroke=theme.accent)
    if element.checked and element.radio:
        brush.canvas.ellipse(*square.middle, base * 0.25, base * 0.25, readable_on(theme.accent))
    elif element.checked:
        brush.canvas.line(
            f"M{number(square.x + base * 0.28)} {number(y)}l{number(base * 0.25)} "
            f"{number(base * 0.28)}l{number(base * 0.42)} {number(-base * 0.55)}",
            readable_on(theme.accent),
            base * 0.16,
        )
    _draw_label(element.label, brush, box, base * 1.8)


def _draw_toggle(element: Toggle, brush: Brush, box: Rect) -> None:
    base, theme = brush.style.base, brush.style.theme
    y = box.middle[1]
    track = Rect(box.x, y - base * 0.6, base * 2.2, base * 1.2)
    brush.panel(track, theme.accent if element.on else theme.line, radius=base * 0.6)
    knob = track.right - base * 0.6 if element.on else track.x + base * 0.6
    brush.canvas.ellipse(knob, y, base * 0.46, base * 0.46, "#ffffff")
    _draw_label(element.label, brush, box, base * 2.8)


def _measure_metric(element: Metric, brush: Brush, max_width: float) -> Extent:
    return max_width, brush.style.base * (5.0 if element.change else 3.9)


def _draw_metric(element: Metric, brush: Brush, box: Rect) -> None:
    base, theme = brush.style.base, brush.style.theme
    # Metrics in a row have their numbers at one height, with a change or without.
    top = box.y + max(box.height - base * (5.0 if box.height >= base * 5.0 else 3.9), 0) / 2
    value = element.value if isinstance(element.value, str) else format_number(element.value)
    align = element.align or brush.style.align
    x = box.x + box.width * SHARES[align]
    label, muted = element.label, theme.muted
    brush.line(x, top + base * 0.7, label, "small", align=align, color=muted, max_width=box.width)
    size = base * 1.9
    size *= min(1.0, box.width / max(brush.width(value, size, bold=True), 1))
    brush.line(x, top + base * 2.4, value, size, align=align, bold=True)
    if element.change:
        falls = element.change.lstrip().startswith(("-", "\N{MINUS SIGN}", "▼", "↓"))
        color = "#c2384f" if falls else "#2b8f63"
        y = top + base * 4.1
        brush.line(x, y, element.change, "small", align=align, bold=True, color=color)


def _measure_progress(_: ProgressBar, brush: Brush, max_width: float) -> Extent:
    return max_width, brush.style.base * 2.4


def _draw_progress(element: ProgressBar, brush: Brush, box: Rect) -> None:
    base, theme = brush.style.base, brush.style.theme
    whole = element.max
    if whole is None:
        whole = 1 if 0 < element.value <= 1 and isinstance(element.value, float) else 100
    share = min(max(element.value / (whole or 1), 0.0), 1.0)
    percent = f"{format_number(round(share * 100, 1))}%"
    own = f"{format_number(element.value)} / {format_number(whole)} {element.unit}".rstrip()
    text = element.text or (percent if element.max in (None, 100) and not element.unit else own)
    top = box.y + max(box.height - base * 2.4, 0) / 2
    color = parse_colour(element.color) if element.color else theme.accent
    wide = brush.width(text, "small", bold=True)
    brush.line(
        box.x, top + base * 0.7, element.label, "small", align="start", max_width=box.width - wide
    )
    brush.line(box.right, top + base * 0.7, text, "small", align="end", bold=True)
    track = Rect(box.x, top + base * 1.5, box.width, base * 0.7)
    brush.panel(track, mix(theme.line, theme.background, 0.3), radius=base * 0.35)
    if share:
        filled = track._replace(width=max(track.width * share, base * 0.7))
        brush.panel(filled, color, radius=base * 0.35)


def _item_lines(element: ItemList, brush: Brush, max_width: float) -> list[tuple[str, TextLines]]:
    base = brush.style.base
    marks = [
        f"{place}." if element.ordered else ("•" if element.bullets else "")
        for place in range(1, len(element.items) + 1)
    ]
    indent = _indent(element, base)
    return [
        (mark, brush.wrap(item, "body", max_width - indent))
        for mark, item in zip(marks, element.items, strict=True)
    ]


def _indent(element: ItemList, base: float) -> float:
    return base * (1.9 if element.ordered else 1.2 if element.bullets else 0.8)


def _measure_list(element: ItemList, brush: Brush, max_width: float) -> Extent:
    heights = [lines.height for _, lines in _item_lines(element, brush, max_width)]
    return max_width, sum(heights) + brush.style.base * 0.6 * len(heights)


def _draw_list(element: ItemList, brush: Brush, box: Rect) -> None:
    base, theme = brush.style.base, brush.style.theme
    y = box.y
    for place, (mark, lines) in enumerate(_item_lines(element, brush, box.width)):
        row = Rect(box.x, y, box.width, lines.height + base * 0.5)
        color = None
        if place == element.active:
            brush.panel(row, theme.accent, radius=base * 0.35)
            color = readable_on(theme.accent)
        inner = Rect(box.x + _indent(element, base), y + base * 0.25, box.width, lines.height)
        brush.lines(inner, lines, color=color)
        middle = inner.y + lines.line_height / 2
        brush.line(box.x + base * 0.2, middle, mark, align="start", color=color or theme.accent)
        y += lines.height + base * 0.6


def _measure_steps(_: StepList, brush: Brush, max_width: float) -> Extent:
    return max_width, brush.style.base * 9


def _draw_steps(element: StepList, brush: Brush, box: Rect) -> None:
    base = brush.style.base
    box = brush.title(box, element)
    count = len(element.steps)
    band = box.width / count
    radius = min(base * 1.5, band * 0.3)
    y = box.y + radius + base * 0.4
    for place, step in enumerate(element.steps):
        words = [step] if isinstance(step, str) else step
        x = box.x + band * (place + 0.5)
        color = brush.style.theme.series[place % len(brush.style.theme.series)]
        if element.current is not None and place >= element.current:
            color = mix(color, brush.style.theme.background, 0.7)
        if place:
            brush.canvas.line(
                f"M{number(x - band + radius * 1.4)} {number(y)}H{number(x - radius * 1.4)}",
                brush.style.theme.line,
                base * 0.18,
            )
        brush.canvas.ellipse(x, y, radius, radius, color)
        brush.line(x, y, str(place + 1), radius, bold=True, color=readable_on(color))
        text = Rect(x - band * 0.46, y + radius + base * 0.6, band * 0.92, box.height)
        heading = brush.wrap(words[0], "body", text.width, bold=True)
        brush.lines(text, heading, align="center", bold=True)
        if len(words) > 1:
            more = brush.wrap(words[1], "small", text.width)
            below = text.below(heading.height + base * 0.3)
            brush.lines(below, more, align="center", color=brush.style.theme.muted)


def _measure_qr(element: QrCode, brush: Brush, max_width: float) -> Extent:
    edge = min(element.size or brush.style.base * 10, max_width)
    return edge, edge + (brush.style.base * 1.8 if element.caption else 0)


def _draw_qr(element: QrCode, brush: Brush, box: Rect) -> None:
    import segno  # noqa: PLC0415 - loaded on first use

    base = brush.style.base
    try:
        rows = [list(row) for row in segno.make_qr(element.data, error="m").matrix]
    except (segno.DataOverflowError, ValueError) as error:
        raise InputInvalid(f"no QR code can hold this: {error}", field="data") from error
    room = box.height - (base * 1.8 if element.caption else 0)
    edge = min(box.width, room)
    module = edge / (len(rows) + 2 * _QUIET_MODULES)
    left, top = box.middle[0] - edge / 2, box.y + (room - edge) / 2
    brush.panel(Rect(left, top, edge, edge), "#ffffff")
    # One path for all dark modules: no seams between them, and no thousand elements.
    path = "".join(
        f"M{left + (x + _QUIET_MODULES) * module:.2f} {top + (y + _QUIET_MODULES) * module:.2f}"
        f"h{module:.2f}v{module:.2f}h{-module:.2f}z"
        for y, row in enumerate(rows)
        for x, dark in enumerate(row)
        if dark
    )
    brush.canvas.path(path, "#000000", shape_rendering="crispEdges")
    if element.caption:
        brush.line(
            box.middle[0], top + edge + base, element.caption, bold=True, max_width=box.width
        )


def _centred(box: Rect, extent: Extent) -> Rect:
    wide, high = min(extent[0], box.width), min(extent[1], box.height)
    x, y = box.middle
    return Rect(x - wide / 2, y - high / 2, wide, high)


DRAWINGS: Mapping[type[DocumentElement], Drawing] = {
    TextBlock: Drawing(_measure_text, _draw_text),
    AssetPicture: Drawing(_measure_asset, _draw_asset, flexible=True, compact=True),
    Divider: Drawing(_measure_divider, _draw_divider),
    Spacer: Drawing(_measure_spacer, _draw_spacer, compact=True),
    Badge: Drawing(_measure_badge, _draw_badge, compact=True),
    Button: Drawing(_measure_button, _draw_button),
    InputField: Drawing(_measure_field, _draw_field),
    Checkbox: Drawing(_measure_switch, _draw_checkbox),
    Toggle: Drawing(_measure_switch, _draw_toggle),
    Metric: Drawing(_measure_metric, _draw_metric),
    ProgressBar: Drawing(_measure_progress, _draw_progress),
    ItemList: Drawing(_measure_list, _draw_list),
    StepList: Drawing(_measure_steps, _draw_steps),
    QrCode: Drawing(_measure_qr, _draw_qr, flexible=True, compact=True),
}
