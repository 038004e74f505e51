"""A message that names a tool of the client -> the call of that tool, with the message's values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from limner.json_shapes import as_list, as_object, decode_json
from limner.models.offline.message import OfflineMessage
from limner.models.offline.transcript import OWN_TOOLS
from limner.wires.base import ToolOffer

# The words in a sentence, or in a name such as `take_shot` or `takeShot`.
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+|[^\W\d_]+")
_NUMBER = re.compile(r"(?<![\w.])-?\d{1,15}(?:\.\d{1,15})?(?![\w.]*\w)")
_QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'|`([^`]*)`")
_USE = r"(?:use|call|run|start|invoke|try)(?: the)?(?: tool)? [\"'`]?"
_PARSED: Mapping[str, Any] = {"integer": int, "number": int | float, "boolean": bool, "string": str}
_TYPES = (*_PARSED, "array", "object")
_JOINT = re.compile(r"^[\s\"'`:,]*(?:tool\b)?\s*(?:to|for|with|on|of|and)?\b[\s:,]*", re.IGNORECASE)


class OfflineCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool to call."""

    tool: str
    arguments: Mapping[str, Any]


def call_by_name(message: OfflineMessage) -> OfflineCall | None:
    """The call of the tool that is named exactly: first in the message, or as in "use NAME"."""
    return _call(message, _is_called)


def call_by_words(message: OfflineMessage) -> OfflineCall | None:
    """The call of the tool whose name is in the words, as `take_shot` in "take a shot"."""
    said = {word.lower() for word in _WORD.findall(message.words)}

    def is_said(name: str, _: str) -> bool:
        words = {word.lower() for word in _WORD.findall(name)}
        return bool(words) and words <= said

    return _call(message, is_said)


def _call(message: OfflineMessage, is_meant: Callable[[str, str], bool]) -> OfflineCall | None:
    for offer in message.tools.values():
        if offer.name not in OWN_TOOLS and is_meant(offer.name, message.plain):
            arguments = _arguments(offer, message)
            if arguments is not None:
                return OfflineCall(tool=offer.name, arguments=arguments)
    return None


def _is_called(name: str, words: str) -> bool:
    exact = re.escape(name)
    is_first = re.match(rf"(?:{_USE})?{exact}\b", words, re.IGNORECASE) is not None
    is_one_word = re.fullmatch(r"[a-z]+", name) is not None
    # A name with a capital or an underscore is no word of a sentence.
    return (
        is_first
        or bool(re.search(rf"{_USE}{exact}\b", words, re.IGNORECASE))
        or (not is_one_word and re.search(rf"(?<!\w){exact}(?!\w)", words) is not None)
    )


def _arguments(offer: ToolOffer, message: OfflineMessage) -> Mapping[str, Any] | None:
    """The values that the tool takes; None if one that it requires is not in the message."""
    if given := _object_in(message.words):
        return given
    required = as_list(offer.schema.get("required"))
    rest = _rest(offer.name, message)
    found: dict[str, Any] = {}
    for name, declared in as_object(offer.schema.get("properties")).items():
        kind = _with_one_type(declared)
        value = _named_value(name, kind, message.words)
        if value is None and name in required:
            value = _value(kind, rest, message)
        if value is not None:
            found[name] = value
    return found if all(name in found for name in required) else None


def _with_one_type(declared: object) -> Mapping[str, Any]:
    """The schema of a value; of several types, the first that is not null counts."""
    schema = as_object(declared)
    alternatives = [as_object(one) for one in as_list(schema.get("anyOf"))]
    types: list[Any] = [one.get("type") for one in alternatives]
    if not alternatives:
        named: Any = schema.get("type", "string")
        types = as_list(named) or [named]
        alternatives = [schema] * len(types)
    for one, kind in zip(alternatives, types, strict=True):
        if kind in _TYPES:
            return {**one, "type": kind}
    return {"type": "other"}


def _object_in(words: str) -> Mapping[str, Any]:
    """The JSON object in a message, which is then the arguments as they are."""
    return as_object(decode_json(words[max(words.find("{"), 0) : words.rfind("}") + 1]))


def _rest(name: str, message: OfflineMessage) -> str:
    """The words after the name of the tool, or all if its name is not there as it is written."""
    at = message.words.lower().find(name.lower())
    rest = "" if at < 0 else _JOINT.sub("", message.words[at + len(name) :], count=1)
    return rest.strip(" .!?\"'`") or message.words


def _named_value(name: str, kind: Mapping[str, Any], words: str) -> Any:
    """The value that stands after the name of an argument, as in "level 3" or "level=3"."""
    found = re.search(
        rf"\b{re.escape(name)}\b\s?(?:=|:|is|to)?\s?(\S.{{0,200}})", words, re.IGNORECASE
    )
    if found is None:
        return None
    quoted = _QUOTED.match(found[1])
    text = next((part for part in quoted.groups() if part), "") if quoted else found[1].split()[0]
    return _parse(kind, text.rstrip(",.;!?")) if text else None


def _value(kind: Mapping[str, Any], rest: str, message: OfflineMessage) -> Any:
    """The value of an argument that has no name in the message."""
    numbers = _NUMBER.findall(rest)
    match kind.get("type"):
        case "array":
            members = _with_one_type(kind.get("items"))
            is_number = members.get("type") in ("number", "integer")
            parts = numbers if is_number else re.split(r",\s*|\s+and\s+", rest)
            values = [_parse(members, part.strip()) for part in parts if part.strip()]
            return values if values and None not in values else None
        case "number" | "integer":
            return _parse(kind, numbers[0]) if numbers else None
        case "boolean":
            return True
        case "string" if options := as_list(kind.get("enum")):
            return next((one for one in options if str(one).lower() in rest.lower()), None)
        case "string":
            pictures = [*message.named, *message.attached]
            return pictures[0].source if pictures else rest
        case _:
            return None


def _parse(kind: Mapping[str, Any], text: str) -> Any:
    """A word as a value of that kind; None if it is none."""
    wanted = _PARSED.get(kind["type"])
    if wanted is None:
        return None
    try:
        value = msgspec.convert(text, wanted, strict=False)
    except msgspec.ValidationError:
        return None
    return value if value in (as_list(kind.get("enum")) or [value]) else None
