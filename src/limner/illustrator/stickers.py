"""A prompt for a sticker -> its pictures and words, cut out with a white edge."""

from __future__ import annotations

from limner.illustrator import assets
from limner.illustrator.parsed_prompt import Subject
from limner.illustrator.prompt_texts import PagePrompt
from limner.rendering.canvas import Canvas, number
from limner.rendering.text import width, wrap

_GROUND = "#dfe5ef"
_INK = "#20283c"
# Words for what a sticker is stuck on, not for what it shows.
_CARRIERS = frozenset({"laptop", "car", "window", "wall", "phone", "bottle", "notebook"})
# Where a worn picture goes on the one that wears it: its middle and its width, in shares.
_WORN_AT = {"glasses": (0.36, 0.62), "sunglasses": (0.36, 0.62), "goggles": (0.3, 0.6)}
_ON_HEAD = (0.0, 0.55)
_HEADWEAR = ("hat", "crown", "cap", "helmet")


def sticker(prompt: PagePrompt) -> str | None:
    """The SVG of a sticker; None if the prompt names neither a picture nor a text."""
    words = [thing for thing in prompt.things if thing.words not in _CARRIERS]
    things = words or list(prompt.things)
    texts = list(prompt.texts)
    if not things and not texts:
        return None
    canvas = Canvas(prompt.width, prompt.height)
    canvas.rect(0, 0, canvas.width, canvas.height, prompt.colour or _GROUND)
    cut = _cut_out(canvas, prompt.edge)
    canvas.add(f'<g filter="{cut}">')
    below = _draw_words(canvas, texts, prompt, alone=not things)
    _draw_things(canvas, things, bottom=below)
    canvas.add("</g>")
    return canvas.document()


def _cut_out(canvas: Canvas, edge: float) -> str:
    """A filter that puts a white edge around everything, and a shadow below it."""
    return canvas.define(
        '<filter id="{id}" x="-20%" y="-40%" width="140%" height="180%" '
        'color-interpolation-filters="sRGB">'
        f'<feGaussianBlur in="SourceAlpha" stdDeviation="{number(edge * 0.014)}"/>'
        '<feComponentTransfer result="grown"><feFuncA type="linear" slope="30" intercept="-1"/>'
        "</feComponentTransfer>"
        '<feFlood flood-color="#ffffff"/><feComposite in2="grown" operator="in" result="white"/>'
        f'<feDropShadow in="white" dx="0" dy="{number(edge * 0.008)}" '
        f'stdDeviation="{number(edge * 0.01)}" flood-color="#1a2338" flood-opacity="0.35" '
        'result="edge"/>'
        '<feMerge><feMergeNode in="edge"/><feMergeNode in="SourceGraphic"/></feMerge></filter>'
    )


def _draw_words(canvas: Canvas, texts: list[str], prompt: PagePrompt, *, alone: bool) -> float:
    """Draw the texts on a white label, from the bottom up; returns where it begins."""
    if not texts:
        return canvas.height * 0.92
    size = prompt.edge * (0.1 if max(map(len, texts)) < 30 else 0.065)
    blocks = [wrap(text, size, canvas.width * 0.76, "sans", bold=True) for text in texts]
    lines = [line for block in blocks for line in block.lines]
    wide = max(width(line, size, "sans", bold=True) for line in lines) + size * 1.2
    high = size * (1.15 * len(lines) + 0.6)
    top = canvas.height * (0.5 if alone else 0.93) - high * (0.5 if alone else 1)
    canvas.rect((canvas.width - wide) / 2, top, wide, high, "#ffffff", rx=number(size * 0.5))
    for place, line in enumerate(lines):
        canvas.text(canvas.width / 2, top + size * (1.15 * (place + 1) + 0.08), size, _INK, line)
    return top + size * 0.1


def _draw_things(canvas: Canvas, things: list[Subject], *, bottom: float) -> None:
    worn = [thing for thing in things if _is_worn(thing)] if len(things) > 1 else []
    others = [thing for thing in things if thing not in worn]
    shown = [thing for thing in others for _ in range(min(thing.count or 1, 3))][:4]
    top = canvas.height * 0.08
    room = max(bottom - top, 1.0)
    side = min(room, canvas.width * 0.84 / (0.25 + 0.75 * max(len(shown), 1)))
    left = canvas.width / 2 - side * (1 + 0.75 * (len(shown) - 1)) / 2
    y = top + (room - side) / 2
    for place, thing in enumerate(shown):
        x = left + side * 0.75 * place
        _draw_asset(canvas, thing, x, y, side)
        if place == 0:
            for one in worn:
                _draw_worn(canvas, one, thing, (x, y, side))


def _draw_worn(
    canvas: Canvas, worn: Subject, wearer: Subject, square: tuple[float, float, float]
) -> None:
    x, y, side = square
    left, top, right, bottom = assets.info(wearer.asset).box
    place, share = _WORN_AT.get(worn.asset, _ON_HEAD)
    size = (right - left) * side * share
    own = assets.info(worn.asset).box
    size /= own[2] - own[0]
    middle = x + (left + right) / 2 * side
    down = y + (top + (bottom - top) * place) * side
    _draw_asset(canvas, worn, middle - size / 2, down - size * (own[1] + own[3]) / 2, size)


def _is_worn(thing: Subject) -> bool:
    return thing.asset in _WORN_AT or thing.asset.endswith(_HEADWEAR)


def _draw_asset(canvas: Canvas, thing: Subject, x: float, y: float, size: float) -> None:
    canvas.add(
        f'<asset name="{thing.asset}" x="{number(x)}" y="{number(y)}" size="{number(size)}"/>'
    )
