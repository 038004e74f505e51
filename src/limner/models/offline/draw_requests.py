"""The user's text -> what to draw: the prompt, the shape, the count and the output path."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from limner.models.offline import phrases

MAX_EDGE = 4_096
MIN_EDGE = 64

Drawing = tuple[str, dict[str, Any]]
"""A prompt, empty if nothing says of what, and further arguments for a tool that takes them."""


def read_draw(words: str) -> Drawing | None:
    """What is to be drawn, or None if the words do not ask for a picture."""
    strong = phrases.STRONG.match(words)
    weak = None if strong else phrases.WEAK.match(words)
    opening = strong or weak
    rest = words[opening.end() :] if opening else words
    frame = phrases.FRAME.match(rest)
    if strong is None and frame is None and not (weak and _is_drawable(rest)):
        return None
    options: dict[str, Any] = {}
    if frame is not None:
        options |= _manner(frame["manner"].lower()) | _count(frame["count"])
        rest = rest[frame.end() :]
    prompt, more = _without_options(rest)
    return prompt, options | more


def read_idea(words: str) -> Drawing | None:
    """The same for words that only name a thing, as "a cat on a bicycle" or "logo for a bakery"."""
    names = (phrases.STARTS_GENRE, phrases.STARTS_SCENE)
    is_idea = _is_drawable(words) or any(name.match(words) for name in names)
    return _without_options(words) if is_idea else None


def drawn_size(words: str) -> dict[str, Any]:
    """What is said of the size of a document."""
    size = phrases.SIZE.search(words)
    return {} if size is None else {"size": f"{size['width']}x{size['height']}"}


def without_place(words: str) -> tuple[str, str | None]:
    """The words without the file for the picture, and that file."""
    rest, saved = _cut(phrases.SAVE, words, _is_place)
    return rest.strip(" ,;."), None if saved is None else _path(saved["path"])


def _is_drawable(words: str) -> bool:
    """Whether the thing is likely one for a picture."""
    thing = phrases.STARTS_THING.match(words)
    if thing is None:
        return False
    first = re.match(
        r"(?:\w+\s+){0,3}?(\w+)(?=\s+(?:of|for|that|with|about|to|in)\b|\W*$)", thing["thing"]
    )
    is_other = first is not None and first[1].lower().rstrip("s") in phrases.NOT_PICTURES
    return not is_other or phrases.PICTURE_NOUN.search(words) is not None


def _manner(manner: str) -> dict[str, Any]:
    said = re.findall(r"[a-z-]+", manner)
    shape = next((phrases.SHAPES[word] for word in said if word in phrases.SHAPES), None)
    options: dict[str, Any] = {} if shape is None else {"size": shape}
    return options | ({"quality": "hd"} if phrases.HD.search(manner) else {})


def _count(word: str | None) -> dict[str, Any]:
    count = phrases.count_of(word)
    return {"n": count} if count > 1 else {}


def _without_options(words: str) -> Drawing:
    """The prompt alone, and what was said of the size and the quality."""
    options: dict[str, Any] = {}
    words, size = _cut(phrases.SIZE, words)
    words, ratio = _cut(phrases.RATIO, words)
    words, shape = _cut(phrases.SHAPE, words)
    words, hd = _cut(phrases.HD, words)
    if size is not None:
        options["size"] = f"{size['width']}x{size['height']}"
    elif ratio is not None:
        options["size"] = ratio["ratio"]
    elif shape is not None:
        options["size"] = phrases.SHAPES[(shape["formatted"] or shape["bare"]).lower()]
    if hd is not None:
        options["quality"] = "hd"
    return " ".join(words.split()).strip(" ,;.:!?"), options


def _cut(
    pattern: re.Pattern[str], words: str, is_meant: Callable[[re.Match[str]], bool] = lambda _: True
) -> tuple[str, re.Match[str] | None]:
    """The words without what a pattern finds outside of quotation marks."""
    quoted = [found.span() for found in phrases.QUOTED.finditer(words)]
    for found in pattern.finditer(words):
        inside = any(start <= found.start() < end for start, end in quoted)
        if not inside and is_meant(found):
            return words[: found.start()] + words[found.end() :], found
    return words, None


def _is_place(found: re.Match[str]) -> bool:
    """Whether a picture is saved there: "as a pirate" is no file."""
    path = _path(found["path"])
    is_file = re.search(rf"\.{phrases.PATH_ENDS}$", path, re.IGNORECASE) is not None
    return is_file or path.startswith(("/", "~/", "./", "../"))


def _path(said: str) -> str:
    return said.rstrip(".,;!?").strip("\"'`")


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
