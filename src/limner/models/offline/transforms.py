"""Words about the pixels of a picture -> the arguments of `image_transform`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

Size = tuple[int, int]
Arguments = dict[str, Any]
Read = Callable[[re.Match[str], Size | None], Arguments | None]

_WHOLE_TURN = 360.0


def read_transform(words: str, size: Size | None) -> Arguments | None:
    """What a request in small letters asks for; None if it asks for something else."""
    for pattern, read in _RULES:
        if found := pattern.search(words):
            return read(found, size)
    return None


def _rotate(found: re.Match[str], _: Size | None) -> Arguments:
    if found["over"]:
        return {"rotate": 180}
    degrees = float(found["degrees"] or 90) % _WHOLE_TURN
    is_left = found["way"] in ("left", "counterclockwise", "anticlockwise")
    return {"rotate": -degrees if is_left else degrees}


def _flip(found: re.Match[str], _: Size | None) -> Arguments:
    return {"flip": "vertical" if found["way"] else "horizontal"}


def _crop(found: re.Match[str], size: Size | None) -> Arguments | None:
    if found["x"]:
        x, y, wide, high = (int(found[name]) for name in ("x", "y", "width", "height"))
        return {"crop": {"x": x, "y": y, "width": wide, "height": high}}
    if size is None:
        return None
    wide, high = size
    half = found["half"]
    if found["across"]:
        wide, high = min(int(found["across"]), wide), min(int(found["down"]), high)
    elif half in ("left", "right"):
        wide //= 2
    elif half in ("top", "bottom", "upper", "lower"):
        high //= 2
    elif found["middle"]:
        wide, high = wide // 2, high // 2
    else:
        wide = high = min(size)
    x, y = (size[0] - wide) // 2, (size[1] - high) // 2
    if half:
        x = 0 if half == "left" else size[0] - wide
        y = size[1] - high if half in ("bottom", "lower") else 0
    return {"crop": {"x": x, "y": y, "width": wide, "height": high}}


def _resize(found: re.Match[str], _: Size | None) -> Arguments:
    if found["across"]:
        return {"resize": f"{found['across']}x{found['down']}"}
    if found["percent"]:
        return {"resize": f"{found['percent']}%"}
    return {"resize": "50%" if found["less"] else "200%"}


def _grey(_found: re.Match[str], _size: Size | None) -> Arguments:
    return {"grey": True}


def _blur(_found: re.Match[str], size: Size | None) -> Arguments | None:
    whole = None if size is None else {"x": 0, "y": 0, "width": size[0], "height": size[1]}
    return None if whole is None else {"blur": [whole]}


def _compress(found: re.Match[str], _: Size | None) -> Arguments:
    return {"max_bytes": f"{found['size']}{found['unit']}"}


def _convert(found: re.Match[str], _: Size | None) -> Arguments:
    return {"output_format": {"jpg": "jpeg"}.get(found["format"], found["format"])}


def _cut_out(_found: re.Match[str], _size: Size | None) -> Arguments:
    return {"cut_out": True}


_IT = r"(?:it|this|that|the (?:picture|image|photo|drawing))"
_LEFT_OR_RIGHT = r"(?P<way>left|right|clockwise|counterclockwise|anticlockwise)"
_RULES: Sequence[
    tuple[re.Pattern[str], Callable[[re.Match[str], Size | None], Arguments | None]]
] = (
    (
        re.compile(
            rf"\b(?:rotate(?: {_IT})?|turn {_IT})(?: by)?"
            r"(?: (?P<degrees>\d{1,3}) ?(?:degrees?|°)?)?"
            rf"(?: (?:to the )?{_LEFT_OR_RIGHT})?(?P<over> upside down)?$"
        ),
        _rotate,
    ),
    (
        re.compile(
            rf"\b(?:flip|mirror)(?: {_IT})?(?: (?:.{{0,40}}(?P<way>vertical|upside)|\w+ly))?"
            r"(?:\w*)(?: down)?$"
        ),
        _flip,
    ),
    (
        re.compile(
            r"\bcrop\b.{0,40}?(?:(?P<x>\d{1,5}) ?, ?(?P<y>\d{1,5}) ?, ?(?P<width>\d{1,5}) ?, ?"
            r"(?P<height>\d{1,5})|(?P<across>\d{1,5}) ?(?:x|\u00d7|by) ?(?P<down>\d{1,5})"
            r"|square|(?P<half>left|right|top|bottom|upper|lower) half"
            r"|(?P<middle>middle|cent(?:re|er)))"
        ),
        _crop,
    ),
    (
        re.compile(
            r"\b(?:resize|scale|shrink|enlarge)\b.{0,40}?(?:(?P<across>\d{2,5}) ?(?:x|\u00d7|by) ?"
            r"(?P<down>\d{2,5})|(?P<percent>\d{1,3}) ?(?:%|percent))$"
            rf"|^(?:make {_IT} |{_IT} )?(?:(?P<less>smaller|half the size|half as big|shrink {_IT})"
            rf"|bigger|larger|twice as big|double the size|enlarge {_IT})$"
        ),
        _resize,
    ),
    (
        re.compile(
            rf"^(?:(?:make|turn|convert) {_IT} |in |as |to )?(?:(?:in)?to |in )?(?:an? )?(?:gr[ae]y"
            r"(?:scale)?|monochrome|shades of gr[ae]y|black and white)(?: picture| image| photo)?$"
        ),
        _grey,
    ),
    (re.compile(rf"^(?:blur(?: {_IT})?|make {_IT} blurry|blur the whole \w+)$"), _blur),
    (
        re.compile(
            r"\b(?:compress|shrink|save|get|make|reduce)\b.{0,40}?"
            r"(?P<size>\d{1,6}(?:\.\d)?) ?(?P<unit>kb|mb)\b"
        ),
        _compress,
    ),
    (
        re.compile(r"\b(?:convert|save|export|turn)\b.{0,40}\b(?P<format>jpe?g|png|webp)\b"),
        _convert,
    ),
    (
        re.compile(
            r"\bcut (?:it|this|that|the \w+) out\b|\bcut out\b|\b(?:remove|erase|delete) the "
            r"background\b|\bbackground transparent\b|\btransparent background\b"
        ),
        _cut_out,
    ),
)
