"""Results of any length -> results that fit: a fair share for each call, and JSON that stays JSON.

What is counted is characters. ``cut_chars`` counts what was removed: the characters of shortened
texts, and the JSON text of the list items and members that were left out.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import PurePath
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from limner.content import Content, Text
from limner.tools.base import ToolResult

# A string, list or object whose JSON text is no longer than this stays whole: cutting it would
# save little and cost a handle, a model's name or the dimensions.
SHORT_CHARS = 80

_OPEN = 2**62  # more room than any value needs

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class _Room(NamedTuple):
    """How much of a value may stay; lengths are those of JSON texts."""

    path_chars: int
    string_chars: int = _OPEN
    entries: int = _OPEN
    members: int = _OPEN


# What is narrowed, in this order, and how far.
_NARROWEST = {"string_chars": SHORT_CHARS, "entries": 0, "members": 0}


def share(total: int, demands: Sequence[int]) -> list[int]:
    """Split ``total`` fairly: none gets more than its demand, and what is left goes to others.

    No demand is cut while anything is left.
    """
    allotted = [0] * len(demands)
    left = max(total, 0)
    smallest_first = sorted(range(len(demands)), key=demands.__getitem__)
    for position, index in enumerate(smallest_first):
        fair = left // (len(demands) - position)
        allotted[index] = min(demands[index], fair)
        left -= allotted[index]
    return allotted


def fit_all(results: Sequence[ToolResult], *, caps: Sequence[int], total: int) -> list[ToolResult]:
    """The results of several calls, each within its cap and all together within ``total``."""
    demands = [min(measure(result), cap) for result, cap in zip(results, caps, strict=True)]
    allotted = share(total, demands)
    return [fit(result, limit) for result, limit in zip(results, allotted, strict=True)]


def measure(result: ToolResult) -> int:
    """How many characters of the result a model may have to read. Pictures count nothing.

    A model reads the texts of the content, or the value if there are none: the longer one counts.
    A member of the value that repeats a text is that text and counts once.
    """
    return sum(_lengths(result))


def fit(result: ToolResult, limit: int) -> ToolResult:
    """The result within ``limit`` characters; everything but its texts stays as it is.

    The limit is split fairly among value or error, hint and extras. Value and content each get the
    share of the value. The limit is kept down to the two characters of ``{}``, the shortest value
    there is.
    """
    lengths = _lengths(result)
    if sum(lengths) <= limit:
        return result
    for_value, for_error, for_hint, for_extras = share(limit, lengths)
    content, content_cut = _shorten_content(result.content, for_value)
    value, value_cut = _shorten_value(result, content, for_value)
    error, error_cut = _shorten_optional(result.error, for_error)
    hint, hint_cut = _shorten_optional(result.hint, for_hint)
    extras, extras_cut = shorten_json(result.extras, for_extras)
    return replace(
        result,
        value=value,
        error=error,
        hint=hint,
        extras=json.loads(extras),
        content=content,
        cut_chars=value_cut + error_cut + hint_cut + extras_cut + content_cut,
    )


def to_json(value: Mapping[str, Any]) -> str:
    """A value as compact JSON that every parser reads: no NaN, no lone surrogate.

    Raises:
        TypeError, ValueError, RecursionError: the value is not JSON: keys that are not strings,
            members that contain themselves.
    """
    return _dumps(_plain(value))


def shorten_text(text: str, limit: int) -> tuple[str, int]:
    """The text within ``limit`` characters, and how many were cut; the text itself says so too."""
    if len(text) <= limit:
        return text, 0
    kept = max(limit - len(_mark(len(text), "character")), 0)
    cut = len(text) - kept
    return (text[:kept] + _mark(cut, "character"))[: max(limit, 0)], cut


def shorten_json(value: Mapping[str, Any], limit: int) -> tuple[str, int]:
    """JSON text of at most ``limit`` characters, and how many characters were cut.

    Long strings go first, the longest most, each with a mark that says how much is missing; then
    the tails of long lists and inner objects; then members from the end, replaced by one member
    ``cut_chars`` that holds the number this function returns. Whatever is short stays whole until
    its member goes, and so does an absolute path of up to half the limit: a cut path is worth
    nothing. The floor is ``{}``, also for a limit below two.
    """
    plain = _plain(value)
    whole = _dumps(plain)
    if len(whole) <= limit:
        return whole, 0

    def fits(room: _Room) -> bool:
        return len(_render_members(plain, room)[0]) <= limit

    room, narrowed = _Room(path_chars=limit // 2), list[str]()
    for knob, narrowest in _NARROWEST.items():
        narrowed.append(knob)
        room = room._replace(**{knob: narrowest})
        if fits(room):
            break
    else:
        return "{}", len(whole) - len("{}")
    # In reverse, since what is given up last deserves the room first.
    for knob in reversed(narrowed):
        room = _widen(room, knob, most=limit, fits=fits)
    return _render_members(plain, room)


def _widen(room: _Room, knob: str, *, most: int, fits: Callable[[_Room], bool]) -> _Room:
    """The room with one knob opened as far as the value still fits."""
    least = getattr(room, knob)
    wider = range(least, max(least, most) + 1)
    # Every step the search takes to the right was seen to fit, and so does the start.
    refused = bisect_left(wider, True, lo=1, key=lambda n: not fits(room._replace(**{knob: n})))
    return room._replace(**{knob: wider[refused - 1]})


def _render_members(value: dict[str, Any], room: _Room) -> tuple[str, int]:
    kept = dict(islice(value.items(), room.members))
    parts = _render_entries(kept, room)
    cut = sum(cut for _, cut in parts)
    texts = [text for text, _ in parts]
    if len(kept) < len(value):
        cut += len(_dumps(value)) - len(_dumps(kept))
        texts.append(f'"cut_chars":{cut}')
    return f"{{{','.join(texts)}}}", cut


def _render(node: Any, room: _Room) -> tuple[str, int]:
    whole = _dumps(node)
    if len(whole) > SHORT_CHARS:
        if isinstance(node, str):
            return _render_string(node, whole, room)
        if isinstance(node, (list, dict)):
            return _render_container(cast("list[Any] | dict[str, Any]", node), whole, room)
    return whole, 0


def _render_string(text: str, whole: str, room: _Room) -> tuple[str, int]:
    if len(whole) <= room.string_chars:
        return whole, 0
    if len(whole) <= room.path_chars and PurePath(text).is_absolute():
        return whole, 0
    most = room.string_chars - len(_dumps(_mark(len(text), "character")))
    # Escapes make characters of JSON wider than those of the text, so the cut has to be searched.
    kept = bisect_right(range(most + 1), most, key=lambda n: len(_dumps(text[:n])) - 2) - 1
    cut = len(text) - kept
    return _dumps(text[:kept] + _mark(cut, "character")), cut


def _render_container(node: list[Any] | dict[str, Any], whole: str, room: _Room) -> tuple[str, int]:
    kept = _first(node, room.entries)
    missing, dropped = len(node) - len(kept), len(whole) - len(_dumps(kept))
    if isinstance(node, list):
        opening, closing, mark = "[", "]", _dumps(_mark(missing, "item"))
    else:
        opening, closing, mark = "{", "}", _dumps(_mark(missing, "member")) + ":null"
    if dropped <= len(mark):  # the mark is as long as what it replaces
        kept, dropped = node, 0
    parts = _render_entries(kept, room)
    texts = [text for text, _ in parts] + ([mark] if dropped else [])
    return opening + ",".join(texts) + closing, dropped + sum(cut for _, cut in parts)


def _render_entries(node: list[Any] | dict[str, Any], room: _Room) -> list[tuple[str, int]]:
    if isinstance(node, list):
        return [_render(item, room) for item in node]
    rendered = ((key, *_render(item, room)) for key, item in node.items())
    return [(f"{_dumps(key)}:{text}", cut) for key, text, cut in rendered]


def _first(node: list[Any] | dict[str, Any], count: int) -> list[Any] | dict[str, Any]:
    return node[:count] if isinstance(node, list) else dict(islice(node.items(), count))


def _mark(count: int, what: str) -> str:
    return f"… [{count:,} {what} cut]" if count == 1 else f"… [{count:,} {what}s cut]"


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """The same value, made of JSON types only."""
    text = json.dumps(value, ensure_ascii=False, default=_as_json)
    sound = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return json.loads(sound, parse_constant=lambda _: None)


def _as_json(value: object) -> object:
    return dict(cast("Mapping[Any, Any]", value)) if isinstance(value, Mapping) else str(value)


def _lengths(result: ToolResult) -> list[int]:
    return [
        max(len(_split_value(result)[0]), sum(map(len, _texts(result.content)))),
        len(result.error or ""),
        len(result.hint or ""),
        len(to_json(result.extras)) if result.extras else 0,
    ]


def _texts(content: Sequence[Content]) -> list[str]:
    return [item.text for item in content if isinstance(item, Text)]


def _split_value(result: ToolResult) -> tuple[str, dict[str, int]]:
    """The value without the members that repeat a text, and the numbers of the texts of these."""
    texts = _texts(result.content)
    if not texts or not result.value:
        return result.value, {}
    value: dict[str, Any] = json.loads(result.value)
    repeated = {
        name: texts.index(one)
        for name, one in value.items()
        if isinstance(one, str) and one in texts
    }
    return _dumps({name: one for name, one in value.items() if name not in repeated}), repeated


def _shorten_value(result: ToolResult, content: Sequence[Content], limit: int) -> tuple[str, int]:
    """The value within the limit; a member that repeats a text is cut as the text was."""
    rest, repeated = _split_value(result)
    rest, cut = (rest, 0) if len(rest) <= limit else shorten_json(json.loads(rest), limit)
    if not repeated:
        return rest, cut
    texts, kept = _texts(content), json.loads(rest)
    ordered = {
        name: texts[repeated[name]] if name in repeated else kept.pop(name)
        for name in json.loads(result.value)
        if name in repeated or name in kept
    }
    return _dumps(ordered | kept), cut


def _shorten_optional(text: str | None, limit: int) -> tuple[str | None, int]:
    return (None, 0) if text is None else shorten_text(text, limit)


def _shorten_content(content: Sequence[Content], limit: int) -> tuple[tuple[Content, ...], int]:
    limits = iter(share(limit, [len(text) for text in _texts(content)]))
    shortened: list[Content] = []
    total = 0
    for item in content:
        if isinstance(item, Text):
            text, cut = shorten_text(item.text, next(limits))
            shortened.append(Text(text))
            total += cut
        else:
            shortened.append(item)
    return tuple(shortened), total
