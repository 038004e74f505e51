"""The prompt or the size of a picture and a change to it -> that of the changed picture."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from limner.models.offline import phrases

_ARTICLE = r"(?:an?|the|its|his|her|their|some|all|my)"
_IT = rf"(?:{phrases.IT}|him|her|everything)"
_IN_IT = re.compile(
    r"(?: (?:to|in|into|on|from|of|next to|beside|behind|under|near|above|below|around|in front of)"
    rf" {_IT}| instead| as well| too)+$",
    re.IGNORECASE,
)
_ADD = re.compile(
    rf"(?:add|insert|put|place|include|draw|with|give {_IT}|make {_IT} with)(?: in| on)?\s+"
    r"(?P<new>.+)",
    re.IGNORECASE,
)
_REMOVE = re.compile(
    r"(?:remove|erase|delete|without|no|get rid of|take (?:out|away|off)|drop|(?:make|draw) it "
    rf"without)\s+(?:{_ARTICLE}\s+)?(?P<old>.+)",
    re.IGNORECASE,
)
_REPLACE = re.compile(
    rf"(?:replace|swap|change|turn|make|exchange)\s+(?:{_ARTICLE}\s+)?(?P<old>.+?)\s+"
    r"(?:with|by|for|into|to)\s+(?P<new>.+)",
    re.IGNORECASE,
)
_COLOUR = re.compile(
    r"(?:make|turn|paint|colou?r|recolou?r|have|let|draw|redraw|do|render)\s+"
    rf"(?P<what>{_IT}|{_ARTICLE}\s+.+?)\s+"
    r"(?:again\s+|but\s+|be\s+|in\s+|look\s+|bright\s+|light\s+|dark\s+)*(?P<colour>\w+)",
    re.IGNORECASE,
)
_SHOULD = re.compile(
    rf"(?P<what>{_IT}|{_ARTICLE}\s+.+?)\s+(?:should|must|needs to|has to|could)\s+be\s+"
    r"(?P<colour>\w+)",
    re.IGNORECASE,
)
# "In blue", and "a blue one".
_TINT = re.compile(r"(?:(?:in|but)\s+|.*\ban?\s+)?(?P<colour>\w+)(?P<what>\s+one)?", re.IGNORECASE)
_BECOME = re.compile(
    rf"(?:turn|change|make|transform|convert)\s+{_IT}\s+(?:in)?to\s+(?P<new>.+)", re.IGNORECASE
)
_MAKE_IT = re.compile(
    rf"(?:make|draw|paint|do|turn|render|change|redraw)\s+{_IT}\s+"
    r"(?:again\s+|look\s+|be\s+|but\s+)*(?P<rest>.+)",
    re.IGNORECASE,
)
_KIND_OF_IT = re.compile(
    rf"(?:make|draw|create|do|design)\s+(?P<kind>an?\s+.+?)\s+(?:of|from|out of)\s+{_IT}",
    re.IGNORECASE,
)
_LEADS = r"(?:,?\s*\b(?:with|and|wearing|holding|beside|near|next to|in|on|under)\s+)?"
_COLOUR_WORD = rf"(?:{'|'.join(sorted(phrases.COLOURS))})"


def adapt(prompt: str, change: str) -> str | None:
    """The prompt after a change; None if the thing to remove is not in it."""
    whole = change.strip(" .!,;")
    if (kind := _KIND_OF_IT.fullmatch(whole)) is not None:
        return f"{kind['kind']} of {prompt}"
    wanted = _IN_IT.sub("", whole)
    for pattern, rewrite in _REWRITES:
        if (found := pattern.fullmatch(wanted)) is not None:
            adapted = rewrite(prompt, found)
            if adapted is not None:
                return adapted or None
    return f"{prompt}, {wanted}"


# Each returns None if another one may know the change, and an empty text if none can make it.


def _recolour(prompt: str, found: re.Match[str]) -> str | None:
    colour = found["colour"].lower()
    if colour not in phrases.COLOURS:
        return None
    what = (found["what"] or "it").strip()
    if what == "one" or re.fullmatch(_IT, what, re.IGNORECASE):
        return _coloured(prompt, colour)
    thing = _bare(what)
    noun = re.compile(rf"(?:\b{_COLOUR_WORD}\s+)?\b({re.escape(thing)})\b", re.IGNORECASE)
    if noun.search(prompt):
        return noun.sub(rf"{colour} \1", prompt, count=1)
    return _joined(prompt, f"a {colour} {thing}")


def _coloured(prompt: str, colour: str) -> str:
    """The first thing in the prompt in another colour."""
    if re.search(rf"\b{_COLOUR_WORD}\b", prompt, re.IGNORECASE):
        return re.sub(rf"\b{_COLOUR_WORD}\b", colour, prompt, count=1, flags=re.IGNORECASE)
    return re.sub(rf"^(?:({_ARTICLE})\s+)?", rf"\1 {colour} ", prompt, count=1).strip()


def _replace(prompt: str, found: re.Match[str]) -> str:
    old, new = _bare(found["old"]), found["new"]
    thing = re.compile(rf"(?:\b{_ARTICLE}\s+)?(?:\b{_COLOUR_WORD}\s+)?\b{re.escape(old)}\b", re.I)
    if not thing.search(prompt):
        return _joined(prompt, new)
    return thing.sub(lambda _: new, prompt, count=1)


def _remove(prompt: str, found: re.Match[str]) -> str:
    old = re.escape(_bare(found["old"]))
    thing = re.compile(
        rf"{_LEADS}(?:\b{_ARTICLE}\s+)?(?:\b{_COLOUR_WORD}\s+)?\b{old}\b", re.IGNORECASE
    )
    left = thing.sub("", prompt, count=1).strip(" ,")
    return "" if left == prompt else left


def _add(prompt: str, found: re.Match[str]) -> str:
    return _joined(prompt, found["new"])


def _become(prompt: str, found: re.Match[str]) -> str:
    new = found["new"]
    # A watercolour is a way to draw the same thing, a cat is another thing.
    return f"{new} of {prompt}" if phrases.PICTURE_NOUN.search(new) else new


def _make_it(prompt: str, found: re.Match[str]) -> str:
    rest = found["rest"]
    is_kind = rest.startswith(("a ", "an ")) and phrases.PICTURE_NOUN.search(rest)
    return f"{rest} of {prompt}" if is_kind else f"{prompt}, {rest}"


def _joined(prompt: str, new: str) -> str:
    joint = "and" if re.search(r"\bwith\b", prompt, re.IGNORECASE) else "with"
    return f"{prompt} {joint} {new}"


def _bare(thing: str) -> str:
    return re.sub(rf"^{_ARTICLE}\s+", "", thing.strip(), flags=re.IGNORECASE)


_REWRITES: Sequence[tuple[re.Pattern[str], Callable[[str, re.Match[str]], str | None]]] = (
    (_COLOUR, _recolour),
    (_SHOULD, _recolour),
    (_TINT, _recolour),
    (_REMOVE, _remove),
    (_BECOME, _become),
    (_REPLACE, _replace),
    (_MAKE_IT, _make_it),
    (_ADD, _add),
)

MAX_EDGE = 4_096
MIN_EDGE = 64


def resized(size: tuple[int, int] | None, shape: Mapping[str, str]) -> dict[str, str]:
    """The size that the words of `phrases.SHAPING` ask for, from the size that a picture has."""
    width, height = size or (1024, 1024)
    match [*shape.items()]:
        case [("shape", word)]:
            return {"size": phrases.SHAPES[word]}
        case [("step", word)]:
            return {"size": _further(width / max(height, 1), phrases.STEPS[word])}
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
