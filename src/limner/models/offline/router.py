"""An intent and the available tools -> the tool call, or the text that says why not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from limner.models.offline import phrases
from limner.models.offline.album import AlbumPicture
from limner.models.offline.draw_requests import DrawIntent
from limner.models.offline.edits import adapt
from limner.models.offline.intents import (
    ChangeIntent,
    HelpIntent,
    LookIntent,
    SayIntent,
    ShowIntent,
    UnclearIntent,
    WhereIntent,
    Wish,
)
from limner.models.offline.replies import introduction, whereabouts
from limner.models.offline.transcript import EDIT, GENERATE, ILLUSTRATOR, INSPECT, RECALL
from limner.wires.base import ToolOffer

_OWN = frozenset({GENERATE, EDIT, INSPECT, RECALL})
# The words in a sentence, or in a name such as `take_shot` or `takeShot`.
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+|[^\W\d_]+")

MAX_EDGE = 4_096
MIN_EDGE = 64
# What is kept of an order when its picture is drawn again: not its file, nor how many.
_KEPT = ("prompt", "size", "quality", "provider", "model", "seed", "background", "negative_prompt")


class OfflineCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool to be called."""

    tool: str
    arguments: Mapping[str, Any]


def route(wish: Wish, offers: Sequence[ToolOffer], *, words: str) -> OfflineCall | SayIntent:
    """What to do about a wish; ``words`` are the user's, which may name another tool."""
    tools = {offer.name: offer for offer in offers}
    match wish:
        case DrawIntent():
            step = _draw(wish)
        case LookIntent():
            step = _look(wish)
        case ShowIntent():
            step = OfflineCall(tool=RECALL, arguments={"handle": wish.picture.handle or ""})
        case ChangeIntent():
            step = _change(wish, tools)
        case WhereIntent():
            step = SayIntent(words=whereabouts(wish.picture))
        case HelpIntent() | UnclearIntent():
            lost = isinstance(wish, UnclearIntent)
            step = _call_by_name(words, offers) or SayIntent(words=introduction(tools, lost=lost))
        case SayIntent():
            step = _call_by_name(words, offers) or wish
    return _offered(step, tools) if isinstance(step, OfflineCall) else step


def is_redrawn(wish: Wish) -> bool:
    """Whether a change is made by drawing anew, from the words that are known."""
    if not isinstance(wish, ChangeIntent) or wish.pixels:
        return False
    picture = wish.picture
    return picture.order is not None and picture.provider == ILLUSTRATOR


def _offered(call: OfflineCall, tools: Mapping[str, ToolOffer]) -> OfflineCall | SayIntent:
    """The call with the arguments its tool takes, if that is there."""
    if call.tool not in tools:
        return SayIntent(words=f"That takes the tool {call.tool}, which is not offered here.")
    takes: Mapping[str, Mapping[str, Any]] = tools[call.tool].schema.get("properties", {})
    given = {name: value for name, value in call.arguments.items() if name in takes}
    if "n" in given:
        given["n"] = min(given["n"], takes["n"].get("maximum", given["n"]))
    return OfflineCall(tool=call.tool, arguments=given)


def _call_by_name(words: str, offers: Sequence[ToolOffer]) -> OfflineCall | None:
    """The call of a tool of another program that the user names, as in "take a shot".

    A text that the tool needs is all that the user said.
    """
    said = {word.lower() for word in _WORD.findall(words)}
    for offer in offers:
        name = {word.lower() for word in _WORD.findall(offer.name)}
        if offer.name in _OWN or not name or not name <= said:
            continue
        takes: Mapping[str, Any] = offer.schema.get("properties", {})
        needs = {member: takes.get(member, {}) for member in offer.schema.get("required", ())}
        if all(kind.get("type") == "string" for kind in needs.values()):
            return OfflineCall(tool=offer.name, arguments=dict.fromkeys(needs, words))
    return None


def _draw(wish: DrawIntent) -> OfflineCall | SayIntent:
    if not wish.prompt:
        return SayIntent(
            words='Of what? Say it in a few words, as in "draw a red robot with a hat".'
        )
    return OfflineCall(tool=GENERATE, arguments={"prompt": wish.prompt, **wish.options})


def _look(wish: LookIntent) -> OfflineCall:
    first, *others = [picture.source for picture in wish.pictures]
    more = {"paths": others} if others else {}
    return OfflineCall(tool=INSPECT, arguments={"path": first, "question": wish.question, **more})


def _change(wish: ChangeIntent, tools: Mapping[str, ToolOffer]) -> OfflineCall | SayIntent:
    new: dict[str, Any] = _size(wish.picture, wish.shape)
    if wish.output_path is not None:
        new["output_path"] = wish.output_path
    if not is_redrawn(wish) or GENERATE not in tools:
        if wish.is_copy:
            return SayIntent(words=f"I cannot copy files. {whereabouts(wish.picture)}")
        edit = {"image": wish.picture.lasting, "prompt": wish.request, **new}
        return OfflineCall(tool=EDIT, arguments=edit)
    order = wish.picture.order or {}
    kept = {name: order[name] for name in _KEPT if name in order}
    # The document shows the picture in any shape, but no word changes it.
    if "svg" in order and not wish.words:
        kept["svg"] = order["svg"]
    if wish.words:
        prompt = adapt(str(order.get("prompt", "")), wish.words)
        if prompt is None:
            return SayIntent(words=_NOT_FOUND.format(prompt=order.get("prompt", "")))
        kept["prompt"] = prompt
    if wish.again:
        seed = order.get("seed")
        kept["seed"] = seed + 1 if isinstance(seed, int) else 1
    return OfflineCall(tool=GENERATE, arguments={**kept, **new})


_NOT_FOUND = (
    'I cannot take that out of the words the picture was drawn from: "{prompt}". '
    "Say the whole picture as you want it."
)


def _size(picture: AlbumPicture, shape: Mapping[str, str]) -> dict[str, str]:
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
