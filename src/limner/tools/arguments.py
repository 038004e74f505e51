"""A tool's JSON schema and a model's arguments -> nothing, or an error that names the field."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, cast

import fastjsonschema

from limner.errors import InputInvalid

_TYPES = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}

# What each rule of a schema asks for, in words that complete "<field> must ...".
_RULES: Mapping[str, Callable[[Any], str]] = {
    "type": lambda wanted: f"be {_type_words(wanted)}",
    "enum": lambda values: f"be one of {', '.join(map(str, values))}",
    "const": lambda value: f"be {value}",
    "minLength": lambda n: f"have at least {_counted(n, 'character')}",
    "maxLength": lambda n: f"have at most {_counted(n, 'character')}",
    "pattern": lambda pattern: f"match the pattern {pattern}",
    "minimum": lambda n: f"be at least {n}",
    "maximum": lambda n: f"be at most {n}",
    "exclusiveMinimum": lambda n: f"be more than {n}",
    "exclusiveMaximum": lambda n: f"be less than {n}",
    "multipleOf": lambda n: f"be a multiple of {n}",
    "minItems": lambda n: f"have at least {_counted(n, 'item')}",
    "maxItems": lambda n: f"have at most {_counted(n, 'item')}",
    "uniqueItems": lambda _: "not hold the same item twice",
    "anyOf": lambda _: "have one of the forms the schema allows",
    "oneOf": lambda _: "have exactly one of the forms the schema allows",
}

# A name the caller made up is shown, but not at any length.
_MAX_FIELD_CHARS = 100


def check(schema: Mapping[str, Any], arguments: object) -> None:
    """Return if the arguments satisfy the schema; nothing is changed or filled in.

    Arguments the schema does not know are ignored, unless it says ``additionalProperties: false``.

    The schema becomes Python source that is executed, and a remote ``$ref`` in it would be
    fetched. That is safe because the schemas of tools are written by the developers of this
    program; a schema that came over a wire must never be given to this function.

    Raises:
        InputInvalid: the arguments are no object, or one of them is missing or wrong.
    """
    if not isinstance(arguments, Mapping):
        raise InputInvalid("the arguments must be an object")
    validate = _compiled(json.dumps(schema))
    try:
        validate(dict(cast("Mapping[str, Any]", arguments)))
    except fastjsonschema.JsonSchemaValueException as error:
        raise _readable(error) from error
    except (ArithmeticError, RecursionError) as error:
        # A number beyond any float, or objects nested without end: valid JSON all the same.
        raise InputInvalid("the arguments are too large or too deep to be checked") from error


@lru_cache(maxsize=256)
def _compiled(schema: str) -> Callable[[Any], Any]:
    return fastjsonschema.compile(json.loads(schema), use_default=False)


def _readable(error: fastjsonschema.JsonSchemaValueException) -> InputInvalid:
    rule, wanted = error.rule or "", error.rule_definition
    path = (error.name or "").removeprefix("data").removeprefix(".")
    if rule == "required":
        path = _join(path, next(name for name in wanted if name not in error.value))
        return _invalid(path, "is required")
    if rule == "additionalProperties":
        known = error.definition.get("properties", {})
        path = _join(path, next(name for name in error.value if name not in known))
        return _invalid(path, "is not an argument here")
    if rule in _RULES:
        return _invalid(path, f"must {_RULES[rule](wanted)}")
    return _invalid(path, error.message.removeprefix(error.name or "").strip())


def _invalid(path: str, problem: str) -> InputInvalid:
    field = path[:_MAX_FIELD_CHARS]
    return InputInvalid(f"{field or 'the arguments'} {problem}", field=field or None)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _type_words(wanted: str | list[str]) -> str:
    names = [wanted] if isinstance(wanted, str) else wanted
    return " or ".join(_TYPES.get(name, name) for name in names)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
