"""A message -> the first rule that knows it, and its next step: a tool call, or an answer in words.

`RULES` is the table. The pattern of a rule is matched at the start of the message, in small
letters and with "it" in place of each file. The rule makes the step, or leaves it to the next one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from limner.dollars import format_usd
from limner.errors import NANO_PER_USD
from limner.models.offline import phrases
from limner.models.offline.album import AlbumPicture
from limner.models.offline.draw_requests import drawn_size, read_draw, read_idea, resized
from limner.models.offline.message import OfflineMessage
from limner.models.offline.named_tools import OfflineCall, call_by_name, call_by_words
from limner.models.offline.replies import A_REAL_MODEL, introduction, whereabouts
from limner.models.offline.sources import MARK
from limner.models.offline.transcript import (
    EDIT,
    GENERATE,
    ILLUSTRATOR,
    INSPECT,
    RECALL,
    RENDER,
    SEARCH,
    TRANSFORM,
)
from limner.models.offline.transforms import read_transform

WHAT_IS_IT = "What is in this picture?"
NOTHING_YET = "There is no picture in this conversation yet. Draw one, or name a file."
NEEDS_TWO = "It takes two pictures to compare. Draw another one, or name two files."
NO_WEB = "I do not open addresses on the web. Save the picture as a file and name that."
NO_SUBJECT = 'Of what? Say it in a few words, as in "draw a red robot with a hat".'
WELCOME = "You are welcome."
GO_ON = 'Say what comes next, as in "draw a fox", "make it wider" or "what colours does it have?".'
SAY_WHAT_TO_CHANGE = 'Say what to change, as in "add a dog", "make it blue" or "another one".'
ONLY_PICTURES = f"I make pictures and look at them, and nothing else. {A_REAL_MODEL}"
NO_DELETING = "I delete no files. {place} Delete it as any other file."
TO_LEAVE = "In a chat at the terminal, /exit leaves, and so does Ctrl-D."
ASSETS = "`limner assets search WORD` lists the ready-made pictures."
READ_IT_YOURSELF = (
    "I cannot open {file}. Paste its text into the message, or type: limner render {file}"
)

# What is kept of an order when its picture is drawn again: not its file, nor how many.
_KEPT = ("prompt", "size", "quality", "provider", "model", "seed", "background", "negative_prompt")
_FILE_TO_RENDER = re.compile(r"(\S{1,200}\.(?:json|svg|dot|gv|mmd|mermaid|typ))\b", re.IGNORECASE)

Step = OfflineCall | str


class OfflineRule(msgspec.Struct, frozen=True):
    """A row of the table.

    Attributes:
        name: what the rule is about.
        pattern: matches the start of a message that the rule may know.
        act: makes the step, or returns None if the rule does not know the message after all.
        follows: whether it can be a later step of a request ("draw a cat, then …").
    """

    name: str
    pattern: re.Pattern[str]
    act: Callable[[OfflineMessage], Step | None]
    follows: bool = True


def understand(message: OfflineMessage) -> tuple[OfflineRule, Step]:
    """The first rule that knows the message, and its step with what the tool takes."""
    for rule in RULES:
        if rule.pattern.match(message.low or message.words.lower()):
            step = rule.act(message)
            if step is not None:
                return rule, _offered(step, message) if isinstance(step, OfflineCall) else step
    return UNCLEAR, _unclear(message)


def _offered(call: OfflineCall, message: OfflineMessage) -> Step:
    """The call with the arguments that its tool takes, if the tool is offered."""
    if call.tool not in message.tools:
        return f"That takes the tool {call.tool}, which is not offered here."
    takes: Mapping[str, Mapping[str, Any]] = message.tools[call.tool].schema.get("properties", {})
    given = {name: value for name, value in call.arguments.items() if name in takes}
    if "n" in given:
        given["n"] = min(given["n"], takes["n"].get("maximum", given["n"]))
    return OfflineCall(tool=call.tool, arguments=given)


# --- answers in words ---


def _say(words: str) -> Callable[[OfflineMessage], Step | None]:
    """The answer, if the message has no picture that it may be about."""
    return lambda message: None if message.named or message.attached else words


def _thanks(message: OfflineMessage) -> Step | None:
    is_thanks = phrases.THANKS.fullmatch(message.words.lower()) and not message.attached
    return WELCOME if is_thanks else None


def _introduce(message: OfflineMessage) -> Step | None:
    if message.attached or message.output_path is not None:
        return None
    return introduction(message.tools)


def _where(message: OfflineMessage) -> Step | None:
    return whereabouts(message.pictures[0]) if message.pictures else NOTHING_YET


def _cost(message: OfflineMessage) -> Step:
    known = [one.cost_usd for one in message.album.pictures if one.cost_usd is not None]
    newest, total = message.album.newest, format_usd(round(sum(known) * NANO_PER_USD))
    last = "" if newest is None or newest.cost_usd is None else f"{_price(newest.cost_usd)} "
    return (
        f"{last}The pictures of this conversation cost {total}. What I draw and measure without a "
        "key is free. `limner spend` lists every call."
    )


def _price(usd: float) -> str:
    return (
        f"The last picture cost {format_usd(round(usd * NANO_PER_USD))}." if usd else "It was free."
    )


def _list_pictures(message: OfflineMessage) -> Step:
    lines = [
        f"{number}. {whereabouts(picture).removeprefix('The picture is ')}"
        for number, picture in enumerate(message.album.pictures, start=1)
    ]
    return "\n".join(["The pictures of this conversation:", *lines]) if lines else NOTHING_YET


def _delete(message: OfflineMessage) -> Step:
    pictures = message.pictures
    return NO_DELETING.format(place=whereabouts(pictures[0])) if pictures else NOTHING_YET


def _unclear(message: OfflineMessage) -> str:
    """That no rule knows the message, and what to type instead."""
    if message.is_question or not message.plain:
        return introduction(message.tools, instead="")
    first, _, rest = message.plain.partition(" ")
    near = difflib.get_close_matches(first.lower(), phrases.VERBS, n=1, cutoff=0.75)
    is_verb = near == [first.lower()]
    if near and rest and not is_verb:
        return introduction(message.tools, instead=f'Did you mean "{near[0]} {rest[:200]}"?')
    thing = rest if is_verb and rest else message.plain
    return introduction(message.tools, instead=f"To draw it, type: draw {thing[:200]}")


# --- tools ---


def _render(message: OfflineMessage) -> Step | None:
    document = message.document
    if document is None or MARK not in message.words:
        file = _FILE_TO_RENDER.search(message.words)
        return READ_IT_YOURSELF.format(file=file[1]) if file and not message.named else None
    arguments = {"source": document.text, **drawn_size(message.plain), **_output(message)}
    if RENDER in message.tools:
        takes: Mapping[str, Mapping[str, Any]] = message.tools[RENDER].schema["properties"]
        if document.language in takes["source_format"]["enum"]:
            arguments["source_format"] = document.language
    return OfflineCall(tool=RENDER, arguments=arguments)


def _render_help(message: OfflineMessage) -> Step | None:
    topics = {"chart": "charts", "diagram": "diagrams", "page": "pages", "svg": "svg"}
    topic = next((topics[word] for word in topics if word in message.low), "formats")
    return OfflineCall(tool=RENDER, arguments={"help": topic})


def _search(message: OfflineMessage) -> Step:
    found = phrases.ASSETS.match(message.low)
    query = ((found and found["query"]) or "").strip()
    if SEARCH in message.tools and query:
        return OfflineCall(tool=SEARCH, arguments={"words": query})
    return ASSETS


def _compare(message: OfflineMessage) -> Step | None:
    pictures = message.pictures
    if len(pictures) == 1:
        others = [one for one in message.album.newest_two() if one != pictures[0]]
        is_named = bool(message.named or message.attached)
        pictures = (*pictures, *others[-1:]) if is_named else (*others[:1], *pictures)
    if len(pictures) > 1:
        return _look_at(pictures, message.words)
    return NEEDS_TWO if phrases.COMPARE.match(message.low) else None


def _show(message: OfflineMessage) -> Step | None:
    if not message.pictures:
        return NOTHING_YET
    # A file that is not in the conversation can be looked at, but not brought back.
    handle = message.pictures[0].handle
    return None if handle is None else OfflineCall(tool=RECALL, arguments={"handle": handle})


def _undo(message: OfflineMessage) -> Step:
    newest, previous = message.album.newest, message.album.at(-2)
    if newest is not None and newest.provider == ILLUSTRATOR and newest.order is None:
        # It was edited, and knows the picture that it was before.
        return OfflineCall(tool=EDIT, arguments={"image": newest.lasting, "prompt": "undo"})
    if previous is None or previous.handle is None:
        return NOTHING_YET if newest is None else "There is no earlier picture."
    return OfflineCall(tool=RECALL, arguments={"handle": previous.handle})


def _draw(message: OfflineMessage) -> Step | None:
    found = read_draw(message.plain)
    return None if found is None else _order(found, message)


def _surprise(message: OfflineMessage) -> Step:
    ideas = phrases.SURPRISES
    return _order((ideas[len(message.album.pictures) % len(ideas)], {}), message)


def _draw_idea(message: OfflineMessage) -> Step | None:
    """A noun alone, as "a cat on a bicycle": what else could be wanted than a picture of it?"""
    if message.is_question or message.named or message.attached:
        return None
    found = read_idea(message.plain)
    return None if found is None else _order(found, message)


def _order(found: tuple[str, dict[str, Any]], message: OfflineMessage) -> Step:
    prompt, options = found
    if not prompt:
        return NO_SUBJECT
    return OfflineCall(tool=GENERATE, arguments={"prompt": prompt, **options, **_output(message)})


def _look(message: OfflineMessage) -> Step | None:
    is_look = message.is_question or phrases.LOOK.match(message.low) is not None
    has_own = bool(message.named or message.attached)
    if is_look and not has_own and phrases.WEB.search(message.words):
        return NO_WEB
    if message.pictures and (is_look or has_own):
        is_bare = message.low in ("", "it")
        return _look_at(message.pictures, WHAT_IS_IT if is_bare else message.words)
    is_about_one = re.search(rf"\b{phrases.IT}\b", message.low) is not None
    return NOTHING_YET if is_look and is_about_one else None


def _look_at(pictures: Sequence[AlbumPicture], question: str) -> OfflineCall:
    first, *others = [picture.source for picture in pictures]
    more = {"paths": others} if others else {}
    return OfflineCall(tool=INSPECT, arguments={"path": first, "question": question, **more})


# --- changes of a picture: its shape is drawn again, everything else is an edit ---


def _change(message: OfflineMessage) -> Step | None:
    if not message.pictures:
        # One can "paint the town" without a picture, but not "make the sky green".
        return None if message.low.startswith("paint the") else NOTHING_YET
    shape, words = _shape_and_rest(message.pointing)
    return _edit(message, shape, words) if words else _redraw(message, shape)


def _reshape(message: OfflineMessage) -> Step | None:
    """A change of the shape or the file alone, as in "wider" or "save it as x.png"."""
    shape, rest = _shape_and_rest(message.pointing)
    if rest or not (shape or message.output_path):
        return None
    if not message.pictures:
        return NOTHING_YET
    of_picture = phrases.PICTURE_NOUN.search(message.low) is not None
    if "scale" in shape and message.pictures[0].provider == ILLUSTRATOR and not of_picture:
        # The thing in the picture is meant, not the number of pixels.
        return _edit(message, {})
    return _redraw(message, shape)


def _again(message: OfflineMessage) -> Step | None:
    if not message.pictures:
        return NOTHING_YET
    found = phrases.VARIANTS.match(message.low)
    count = phrases.count_of(found["count"]) if found else 1
    return _redraw(message, {}, again=True, count=count)


def _fragment(message: OfflineMessage) -> Step | None:
    newest = message.album.newest
    if newest is None or newest.provider != ILLUSTRATOR:
        return None
    return _edit(message, {}, message.plain)


def _transform(message: OfflineMessage) -> Step | None:
    """A change of pixels that needs no model."""
    picture = message.pictures[0] if message.pictures else None
    found = read_transform(message.low, None if picture is None else picture.size)
    if found is None or TRANSFORM not in message.tools:
        return None
    if picture is None:
        return NOTHING_YET
    if picture.provider == ILLUSTRATOR and found.keys() & {"resize", "grey"}:
        return None
    return OfflineCall(
        tool=TRANSFORM, arguments={"image": picture.lasting, **found, **_output(message)}
    )


def _edit_pixels(message: OfflineMessage) -> Step | None:
    if not message.pictures:
        return NOTHING_YET
    return _edit(message, _shape_and_rest(message.pointing)[0])


def _redraw(
    message: OfflineMessage, shape: Mapping[str, str], *, again: bool = False, count: int = 1
) -> Step:
    """The same picture in another shape or file, or with another seed."""
    picture = message.pictures[0]
    order = picture.order
    if order is None or picture.provider != ILLUSTRATOR or GENERATE not in message.tools:
        if not (shape or again):
            return f"I cannot copy files. {whereabouts(picture)}"
        return _edit(message, shape)
    kept = {name: order[name] for name in (*_KEPT, "svg") if name in order}
    if again:
        seed = order.get("seed")
        kept["seed"] = seed + 1 if isinstance(seed, int) else 1
    if count > 1:
        kept["n"] = count
    changes = {**resized(picture.size, shape), **_output(message)}
    return OfflineCall(tool=GENERATE, arguments={**kept, **changes})


def _edit(message: OfflineMessage, shape: Mapping[str, str], words: str = "") -> Step:
    picture = message.pictures[0]
    changes = {**resized(picture.size, shape), **_output(message)}
    # Where to save it is an argument of its own, and no change of the picture.
    said = message.words if message.output_path is None else message.plain
    edit = {"image": picture.lasting, "prompt": words or said, **changes}
    return OfflineCall(tool=EDIT, arguments=edit)


def _shape_and_rest(words: str) -> tuple[dict[str, str], str]:
    """What is said of a picture's shape, and what else is said."""
    parts = [part for part in re.split(r" ?(?:,|\band\b) ?", words) if part]
    for number, part in enumerate(parts):
        if found := phrases.SHAPING.fullmatch(part.lower()):
            said = {name: value for name, value in found.groupdict().items() if value}
            return said, " and ".join(parts[:number] + parts[number + 1 :])
    return {}, words


def _output(message: OfflineMessage) -> dict[str, str]:
    return {} if message.output_path is None else {"output_path": message.output_path}


_ANY = re.compile("")
UNCLEAR = OfflineRule("unclear", _ANY, _unclear, follows=False)
RULES: Sequence[OfflineRule] = (
    OfflineRule("a tool of the client", _ANY, call_by_name),
    OfflineRule("a document", _ANY, _render),
    OfflineRule("thanks", _ANY, _thanks),
    OfflineRule("yes or no", phrases.YES_OR_NO, _say(GO_ON)),
    OfflineRule("leave", phrases.LEAVE, _say(TO_LEAVE)),
    OfflineRule("help", phrases.HELP, _introduce),
    OfflineRule("key", phrases.ABOUT_KEYS, _say(A_REAL_MODEL)),
    OfflineRule("how to write documents", phrases.HOW_TO_WRITE, _render_help),
    OfflineRule("ready-made pictures", phrases.ASSETS, _search),
    OfflineRule("cost", phrases.COST, _cost),
    OfflineRule("where", phrases.WHERE, _where),
    OfflineRule("list", phrases.LIST, _list_pictures),
    OfflineRule("delete", phrases.DELETE, _delete),
    OfflineRule("undo", phrases.UNDO, _undo),
    OfflineRule("compare", phrases.COMPARE_ANY, _compare),
    OfflineRule("show again", phrases.SHOW, _show),
    OfflineRule("again", phrases.AGAIN, _again),
    OfflineRule("variants", phrases.VARIANTS, _again),
    OfflineRule("transform", phrases.TRANSFORM, _transform),
    OfflineRule("pixels", phrases.PIXELS, _edit_pixels),
    OfflineRule("reshape", _ANY, _reshape),
    OfflineRule("change", phrases.CHANGE, _change),
    OfflineRule("surprise", phrases.SURPRISE, _surprise),
    OfflineRule("draw", phrases.STRONG, _draw),
    OfflineRule("draw what is wanted", _ANY, _draw, follows=False),
    OfflineRule("look", _ANY, _look),
    OfflineRule("opinion", phrases.OPINION, _say(SAY_WHAT_TO_CHANGE)),
    OfflineRule("fragment", phrases.FRAGMENT, _fragment, follows=False),
    OfflineRule("words of a tool", _ANY, call_by_words),
    OfflineRule("draw an idea", _ANY, _draw_idea, follows=False),
    OfflineRule(
        "not about pictures", phrases.NOT_ABOUT_PICTURES, _say(ONLY_PICTURES), follows=False
    ),
)
CHANGES = frozenset({"again", "variants", "reshape", "change", "fragment"})
"""The rules whose drawing is another version of a picture."""
