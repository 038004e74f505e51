"""The results of tools -> text for the user: the path of a picture, an answer or an error."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from limner.dollars import format_usd
from limner.errors import NANO_PER_USD
from limner.json_shapes import as_list, as_object
from limner.models.offline.album import Album, AlbumPicture
from limner.models.offline.transcript import (
    ABORTED,
    EDIT,
    GENERATE,
    INSPECT,
    OWN_TOOLS,
    RECALL,
    RENDER,
    SEARCH,
    TRANSFORM,
    PastAction,
    drawn_in,
    size_in,
)

NAME = "limner/offline"
IS_A_RULE = f"(This is {NAME}: rules, not a language model.)"
KEY = "OPENAI_API_KEY"
MAX_LISTED_TOOLS = 12
CANNOT_SEE = "limner/eyes cannot see objects"
A_REAL_MODEL = f"For a model that understands, set {KEY}, or store it: limner keys set {KEY}"

# What each tool is good for, with an example.
_ABILITIES: Mapping[str, Sequence[str]] = {
    GENERATE: (
        'draw: "draw a red robot with a hat, wide, save it as robot.png"',
        'draw it again: "make it wider", "another one"',
        'chart: "a bar chart of sales: Q1 12, Q2 18, Q3 9"',
    ),
    RENDER: ("render: paste SVG, DOT, Mermaid or the JSON of a chart",),
    INSPECT: (
        'look: "what does it say?", "which colours are in photo.png?"',
        'compare: "compare a.png and b.png"',
    ),
    TRANSFORM: ('transform: "rotate it", "crop it to 300x200", "compress it to 200 kB"',),
    EDIT: (
        'change what I drew: "remove the tree", "make it night", "two more ducks"',
        'edit a file, with a service that can: "put a hat on the dog in photo.png"',
    ),
    RECALL: ('show again: "show the first one again"',),
    SEARCH: ('find ready-made pictures: "search icons for coffee"',),
}


def introduction(tools: Collection[str], *, instead: str | None = None) -> str:
    """What this is and can do; ``instead`` is what to type if no rule knows the message."""
    able = [
        example for tool, examples in _ABILITIES.items() if tool in tools for example in examples
    ]
    others = sorted(set(tools) - OWN_TOOLS)[:MAX_LISTED_TOOLS]
    if others:
        able.append(f"call a tool that you name: {', '.join(others)}")
    lines = [
        f"I am {NAME}, a set of rules and not a language model"
        + ("." if instead is None else ", and no rule of mine fits that."),
        *([instead] if instead else []),
        *(["I can:", *(f"- {example}" for example in able)] if able else []),
        A_REAL_MODEL,
    ]
    return "\n".join(lines)


def whereabouts(picture: AlbumPicture) -> str:
    """Where a picture is and what it cost, as far as that is known."""
    facts = [] if picture.size is None else [_dimensions(picture.size)]
    facts += [] if picture.cost_usd is None else [_cost(picture.cost_usd)]
    known = f" ({', '.join(facts)})" if facts else ""
    return f"The picture is {picture.name}{known}."


def report(deed: PastAction, *, redrawn: bool, album: Album) -> str:
    """What a tool did; ``redrawn`` if the picture is another version of an earlier one."""
    if not deed.ok:
        return _failure(deed)
    if deed.tool in (GENERATE, EDIT, RENDER, TRANSFORM) and "path" in deed.value:
        return _drawn(deed, redrawn=redrawn and deed.tool == GENERATE)
    if deed.tool == RECALL:
        handle, size = str(deed.value.get("image", "")), size_in(deed.value)
        return (
            f"Here it is again: picture {handle[:12]}{f' ({_dimensions(size)})' if size else ''}."
        )
    return _passed_on(deed, album)


def _passed_on(deed: PastAction, album: Album) -> str:
    """What a tool answered in words."""
    value = deed.value
    if deed.tool == SEARCH:
        names = _names(value, "names")
        return f"Ready-made pictures: {', '.join(names)}." if names else "There is none for that."
    if [*value] == ["images"]:
        count = len(deed.pictures)
        return f"{deed.tool} is done and returned {count} picture{'' if count == 1 else 's'}."
    text = value.get("text", value.get("help"))
    if not isinstance(text, str):
        return deed.words or "The tool is done."
    return "\n\n".join([text, *_known_words(deed, album, text)])


def _known_words(deed: PastAction, album: Album, text: str) -> list[str]:
    """The words that a picture was drawn from, if the look at it did not say what it shows."""
    orders = [album.find(picture).order or {} for picture in deed.pictures]
    prompts = [str(order["prompt"]) for order in orders if "prompt" in order]
    if deed.tool != INSPECT or CANNOT_SEE not in text or not prompts:
        return []
    return [f'It was drawn from these words: "{prompts[0]}".']


def _failure(deed: PastAction) -> str:
    if deed.words == ABORTED:
        return "That was stopped before it was done."
    told = as_object(deed.value.get("error"))
    if not told:
        return f"That did not work: {deed.words or 'the tool does not say why.'}"
    sentences = [f"That did not work: {_sentence(told.get('message'))}"]
    if told.get("hint"):
        sentences.append(_sentence(told["hint"]))
    if told.get("billed"):
        sentences.append(f"It cost {_cost(told.get('cost_usd'))}.")
    return " ".join(sentences)


def _drawn(deed: PastAction, *, redrawn: bool) -> str:
    value = deed.value
    made = drawn_in(value)
    begin = "I drew it again" if redrawn else "Here it is"
    lines = [f"{begin}: {_picture(made[0])}."]
    if len(made) > 1:
        lines = ["Here they are:", *(f"- {_picture(one)}" for one in made)]
    if changes := _names(value, "changes"):
        lines.append(f"Changed: {'; '.join(changes)}.")
    if value.get("account"):
        lines.append(str(value["account"]))
    lines += _names(value, "notes") if deed.tool == RENDER else []
    if failed := as_list(value.get("failed")):
        lines.append(f"{len(failed)} could not be drawn.")
    return "\n".join(lines)


def _picture(value: Mapping[str, Any]) -> str:
    size = size_in(value)
    # A document is always free, and its value has no price.
    facts = ([_dimensions(size)] if size else []) + [_cost(value.get("cost_usd", 0))]
    return f"{value.get('path')} ({', '.join(facts)})"


def _names(value: Mapping[str, Any], member: str) -> list[str]:
    return [str(one) for one in as_list(value.get(member))]


def _dimensions(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]}"


def _cost(usd: object) -> str:
    if not isinstance(usd, int | float):
        return "at an unknown cost"
    return format_usd(round(usd * NANO_PER_USD)) if usd else "free"


def _sentence(words: object) -> str:
    text = str(words).strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."
