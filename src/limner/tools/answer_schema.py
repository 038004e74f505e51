"""A model's answer and the caller's JSON schema -> the parsed answer, or what is wrong with it.

The schema may come from a model, so it never becomes code, as in `arguments`. Patterns and formats
are not checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)\n?\s*```", re.DOTALL)
_DEFINITIONS = re.compile(r"#/(\$defs|definitions)/([^/]+)")
# A schema can refer to itself in two branches, and then each step doubles the work.
MAX_STEPS = 100_000
MAX_DEPTH = 100


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: _is_number(value) and value == int(value),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}
# The bounds of a value: the type they are for, whether it is within them, and words for it.
_BOUNDS: Mapping[str, tuple[type | tuple[type, ...], Callable[[Any, Any], bool], str]] = {
    "minimum": ((int, float), lambda value, bound: value >= bound, "is less than"),
    "maximum": ((int, float), lambda value, bound: value <= bound, "is more than"),
    "exclusiveMinimum": ((int, float), lambda value, bound: value > bound, "is not more than"),
    "exclusiveMaximum": ((int, float), lambda value, bound: value < bound, "is not less than"),
    "minLength": (str, lambda value, bound: len(value) >= bound, "is shorter than"),
    "maxLength": (str, lambda value, bound: len(value) <= bound, "is longer than"),
    "minItems": (list, lambda value, bound: len(value) >= bound, "has fewer items than"),
    "maxItems": (list, lambda value, bound: len(value) <= bound, "has more items than"),
}


class AnswerMismatch(Exception):
    """The answer does not follow the schema; the message says why."""


def parse_answer(text: str, schema: Mapping[str, Any]) -> object:
    """The answer as a JSON value that follows the schema; a Markdown fence around it is ignored.

    Raises:
        AnswerMismatch: it is not JSON, or does not follow the schema.
    """
    fenced = _FENCE.fullmatch(text.strip())
    try:
        value = json.loads(fenced[1] if fenced else text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise AnswerMismatch("it is not JSON") from error
    _Check(schema).value(value, schema, "the answer", 0)
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


class _Check:
    """One answer against one schema."""

    def __init__(self, whole: Mapping[str, Any]) -> None:
        self._whole = whole
        self._steps = 0

    def value(self, value: object, schema: object, place: str, depth: int) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS or depth > MAX_DEPTH:
            raise AnswerMismatch("it is too large or too deep to be checked")
        if schema is False:
            raise AnswerMismatch(f"{place} is not in the schema")
        if not isinstance(schema, Mapping):
            return
        rules = cast("Mapping[str, Any]", schema)
        self._plain(value, rules, place)
        self._forms(value, rules, place, depth + 1)
        if isinstance(value, dict):
            self._members(cast("dict[str, object]", value), rules, place, depth + 1)
        if isinstance(value, list) and isinstance(rules.get("items"), Mapping | bool):
            for number, one in enumerate(cast("list[object]", value)):
                self.value(one, rules["items"], f"{place}[{number}]", depth + 1)

    def _plain(self, value: Any, rules: Mapping[str, Any], place: str) -> None:
        kinds = _listed(rules.get("type"))
        if kinds and not any(_TYPES[kind](value) for kind in kinds if kind in _TYPES):
            raise AnswerMismatch(f"{place} is not of type {' or '.join(map(str, kinds))}")
        if isinstance(rules.get("enum"), list) and not any(
            _same(value, one) for one in rules["enum"]
        ):
            raise AnswerMismatch(f"{place} is not one of {json.dumps(rules['enum'])[:200]}")
        if "const" in rules and not _same(value, rules["const"]):
            raise AnswerMismatch(f"{place} is not {json.dumps(rules['const'])[:200]}")
        for rule, (kind, holds, words) in _BOUNDS.items():
            bound = rules.get(rule)
            is_bounded = isinstance(value, kind) and not isinstance(value, bool)
            if is_bounded and _is_number(bound) and not holds(value, bound):
                raise AnswerMismatch(f"{place} {words} {bound}")

    def _forms(self, value: object, rules: Mapping[str, Any], place: str, depth: int) -> None:
        """The rules that refer to other schemas for the same value."""
        named = _DEFINITIONS.fullmatch(str(rules.get("$ref", "")))
        if named is not None:
            self.value(value, self._whole.get(named[1], {}).get(named[2]), place, depth)
        elif rules.get("$ref") == "#":
            self.value(value, self._whole, place, depth)
        for one in _listed(rules.get("allOf")):
            self.value(value, one, place, depth)
        for rule, most in (("anyOf", None), ("oneOf", 1)):
            forms = _listed(rules.get(rule))
            matched = sum(self._matches(value, one, place, depth) for one in forms)
            if forms and (matched == 0 or (most is not None and matched > most)):
                raise AnswerMismatch(f"{place} has none of the forms that the schema allows")

    def _matches(self, value: object, schema: object, place: str, depth: int) -> bool:
        try:
            self.value(value, schema, place, depth)
        except AnswerMismatch:
            return False
        return True

    def _members(
        self, value: dict[str, object], rules: Mapping[str, Any], place: str, depth: int
    ) -> None:
        prefix = "" if place == "the answer" else f"{place}."
        for name in _listed(rules.get("required")):
            if name not in value:
                raise AnswerMismatch(f"{prefix}{name} is missing")
        properties = rules.get("properties")
        known = cast("Mapping[str, Any]", properties if isinstance(properties, Mapping) else {})
        for name, one in value.items():
            schema = known.get(name, rules.get("additionalProperties", True))
            self.value(one, schema, f"{prefix}{name}", depth)


def _listed(value: object) -> Sequence[Any]:
    if isinstance(value, list):
        return cast("list[object]", value)
    return [value] if isinstance(value, str) else []


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1."""
    if isinstance(one, list) and isinstance(other, list):
        pairs = zip(cast("list[object]", one), cast("list[object]", other), strict=False)
        return one == other and all(_same(*pair) for pair in pairs)
    if isinstance(one, dict) and isinstance(other, dict):
        members = cast("dict[str, object]", one)
        return one == other and all(_same(value, other[name]) for name, value in members.items())
    return one == other and isinstance(one, bool) == isinstance(other, bool)
