"""A history that a client of the first protocol sends -> its items, checked against the schema.

The schema is the one that Codex published, in `response_items.json`. Items are stored as they came.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import fastjsonschema

from limner.errors import InputInvalid
from limner.frontends.appserver.protocol.params import MAX_SHOWN_CHARS, describe, one_of
from limner.wires.items import Item, flatten_output

_OUTPUT = "function_call_output"
_TYPES = {
    "string": "a string",
    "boolean": "a boolean",
    "integer": "an integer",
    "array": "a sequence",
    "object": "a map",
}


def read_history(history: Sequence[Item]) -> list[dict[str, Any]]:
    """The items in the form in which they are stored.

    Raises:
        InputInvalid: an item does not match the schema; the message names the member.
    """
    for number, item in enumerate(history):
        _check(item, f"history[{number}]")
    return [flatten_output(item) for item in history]


def _check(item: Item, path: str) -> None:
    if "type" not in item:
        raise _invalid("missing field `type`", "type")
    kind, known = item["type"], _validators()
    if not isinstance(kind, str):
        raise _invalid(f"invalid type: {describe(kind)}, expected a string", f"{path}.type")
    if kind not in known:
        raise _unknown(kind, list(known), f"{path}.type")
    if kind == _OUTPUT and isinstance(item.get("output"), str | list):
        # Clients send the bare output. The schema has it in a payload.
        item = {**item, "output": {"body": item["output"]}}
    try:
        known[kind](item)
    except fastjsonschema.JsonSchemaValueException as error:
        raise _problem(error, path + (error.name or "").removeprefix("data")) from error


@cache
def _validators() -> Mapping[str, Callable[[Any], Any]]:
    """A validator for each type of item. The schema is ours, so it is safe to compile it."""
    file = Path(__file__).with_name("response_items.json")
    definitions = json.loads(file.read_text(encoding="utf-8"))
    return {
        kind["properties"]["type"]["enum"][0]: fastjsonschema.compile(
            {**kind, "definitions": definitions}, use_default=False
        )
        for kind in definitions["ResponseItem"]["oneOf"]
    }


def _problem(error: fastjsonschema.JsonSchemaValueException, path: str) -> InputInvalid:
    """What is wrong, in the words that clients know."""
    value, wanted = error.value, error.rule_definition
    if error.rule == "required":
        missing = next(name for name in wanted if name not in value)
        return _invalid(f"missing field `{missing}`", missing)
    if error.rule == "enum":
        return _unknown(value, wanted, path)
    if error.rule == "type":
        names = [wanted] if isinstance(wanted, str) else wanted
        types = " or ".join(_TYPES[name] for name in names if name != "null")
        return _invalid(f"invalid type: {describe(value)}, expected {types}", path)
    if error.rule == "minimum":
        return _invalid(f"invalid value: {describe(value)}, expected u64", path)
    return _invalid("data did not match any variant", path)


def _unknown(value: str, names: Sequence[str], path: str) -> InputInvalid:
    return _invalid(f"unknown variant `{value[:MAX_SHOWN_CHARS]}`, expected {one_of(names)}", path)


def _invalid(problem: str, path: str) -> InputInvalid:
    where = "" if problem.startswith("missing") else f", in `{path[:MAX_SHOWN_CHARS]}`"
    return InputInvalid(f"Invalid request: {problem}{where}", field=path)
