"""A wish and the tools on offer -> the call that grants it, or the words that say why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from limner.models.offline import phrases
from limner.models.offline.adapting import adapt
from limner.models.offline.album import Seen
from limner.models.offline.drawing import Draw
from limner.models.offline.hearing import EDIT, GENERATE, ILLUSTRATOR, INSPECT, RECALL
from limner.models.offline.telling import introduction, whereabouts
from limner.models.offline.wishes import Change, Help, Look, Say, Show, Unclear, Where, Wish
from limner.wires.base import Offer

MAX_EDGE = 4_096
MIN_EDGE = 64
# What is kept of an order when its picture is drawn again: not its file, nor how many.
_KEPT = ("prompt", "size", "quality", "provider", "model", "seed", "background", "negative_prompt")


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool to be called."""

    tool: str
    arguments: Mapping[str, Any]


def route(wish: Wish, offers: Sequence[Offer]) -> Call | Say:
    """What to do about a wish."""
    tools = {offer.name: offer for offer in offers}
    match wish:
        case Draw():
            step = _draw(wish)
        case Look():
            step = _look(wish)
        case Show():
            step = Call(tool=RECALL, arguments={"handle": wish.picture.handle or ""})
        case Change():
            step = _change(wish, tools)
        case Where():
            step = Say(words=whereabouts(wish.picture))
        case Help() | Unclear():
            lost = isinstance(wish, Unclear)
            step = Say(words=introduction(tools, lost=lost))
        case Say():
            step = wish
    return _offered(step, tools) if isinstance(step, Call) else step


def is_redrawn(wish: Wish) -> bool:
    """Whether a change is made by drawing anew, from the words that are known."""
    if not isinstance(wish, Change) or wish.pixels:
        return False
    picture = wish.picture
    return picture.order is not None and picture.provider == ILLUSTRATOR


def _offered(call: Call, tools: Mapping[str, Offer]) -> Call | Say:
    """The call with the arguments its tool takes, if that is there."""
    if call.tool not in tools:
        return Say(words=f"That takes the tool {call.tool}, which is not offered here.")
    takes: Mapping[str, Mapping[str, Any]] = tools[call.tool].schema.get("properties", {})
    given = {name: value for name, value in call.arguments.items() if name in takes}
    if "n" in given:
        given["n"] = min(given["n"], takes["n"].get("maximum", given["n"]))
    return Call(tool=call.tool, arguments=given)


def _draw(wish: Draw) -> Call | Say:
    if not wish.prompt:
        return Say(words='Of what? Say it in a few words, as in "draw a red robot with a hat".')
    return Call(tool=GENERATE, arguments={"prompt": wish.prompt, **wish.options})


def _look(wish: Look) -> Call:
    first, *others = [picture.source for picture in wish.pictures]
    more = {"paths": others} if others else {}
    return Call(tool=INSPECT, arguments={"path": first, "question": wish.question, **more})


def _change(wish: Change, tools: Mapping[str, Offer]) -> Call | Say:
    new: dict[str, Any] = _size(wish.picture, wish.shape)
    if wish.output_path is not None:
        new["output_path"] = wish.output_path
    if not is_redrawn(wish) or GENERATE not in tools:
        if wish.is_copy:
            return Say(words=f"I cannot copy files. {whereabouts(wish.picture)}")
        edit = {"image": wish.picture.lasting, "prompt": wish.request, **new}
        return Call(tool=EDIT, arguments=edit)
    order = wish.picture.order or {}
    kept = {name: order[name] for name in _KEPT if name in order}
    # The document shows the picture in any shape, but no word changes it.
    if "svg" in order and not wish.words:
        kept["svg"] = order["svg"]
    if wish.words:
        prompt = adapt(str(order.get("prompt", "")), wish.words)
        if prompt is None:
            return Say(words=_NOT_FOUND.format(prompt=order.get("prompt", "")))
        kept["prompt"] = prompt
    if wish.again:
        seed = order.get("seed")
        kept["seed"] = seed + 1 if isinstance(seed, int) else 1
    return Call(tool=GENERATE, arguments={**kept, **new})


_NOT_FOUND = (
    'I cannot take that out of the words the picture was drawn from: "{prompt}". '
    "Say the whole picture as you want it."
)


def _size(picture: Seen, shape: Mapping[str, str]) -> dict[str, str]:
    """The size that was asked for, from the one that a picture has."""
    width, height = picture.size or (1024, 1024)
    match [*shape.items()]:
        case [("shape", word)]:
            return {"size": phrases.SHAPES[word]}
        case [("step", word)]:
            return {"size": _further(width / height, phrases.STEPS[word])}
        case [("scale", word)]:
            return {"size": _scaled(width, height, phrases.SCALES[word])}
        case [("size", said)]:
            digits = "".join(c if c.isdecimal() else " " for c in said).split()
            return {"size": "x".join(digits)}
        case [("ratio", said)]:
            return {"size": said}
        case _:
            return {}


def _further(ratio: float, step: int) -> str:
    """The next shape in a direction from the one that is nearest."""

    def distance(number: int) -> float:
        across, down = map(int, phrases.LADDER[number].split(":"))
        return abs(across / down - ratio) / (across / down)

    nearest = min(range(len(phrases.LADDER)), key=distance)
    return phrases.LADDER[min(max(nearest + step, 0), len(phrases.LADDER) - 1)]


def _scaled(width: int, height: int, scale: float) -> str:
    scale = min(scale, MAX_EDGE / max(width, height, 1))
    return f"{max(MIN_EDGE, round(width * scale))}x{max(MIN_EDGE, round(height * scale))}"
