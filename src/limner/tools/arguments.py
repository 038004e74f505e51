"""A tool's JSON schema and a caller's arguments -> what is meant, or an error with the field."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from limner.errors import InputInvalid

# Loaded for the first call that needs it: most arguments fit plainly.
if TYPE_CHECKING:
    from fastjsonschema import JsonSchemaValueException

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

_NUMBER = r"[+-]?[0-9]{1,19}(\.[0-9]{1,19})?"
_BOOLEANS = {"true": True, "false": False}
_OWN_RULES = frozenset({"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"})


# The rules that `fits_plainly` knows, with those that ask for nothing.
_PLAIN_RULES = frozenset(
    {"type", "enum", "minimum", "maximum", "description", "default", "title", "examples"}
)
_PLAIN_TYPES: Mapping[type, str] = {str: "string", int: "integer", bool: "boolean"}


def conform(
    schema: Mapping[str, Any], arguments: object, *, drop_blank: bool = False
) -> dict[str, Any]:
    """The arguments as the schema means them; defaults are not filled in.

    ``null`` for an optional argument that cannot be null means "not given". With ``drop_blank`` a
    blank text means the same. A choice in another case, and a number or true and false as text,
    are understood. Arguments the schema does not know are kept, unless it says
    ``additionalProperties: false``.

    The schema becomes Python source that is executed, and a remote ``$ref`` in it would be
    fetched. That is safe because the schemas of tools are written by the developers of this
    program; a schema that came over a wire must never be given to this function.

    Raises:
        InputInvalid: the arguments are no object, or one of them is missing or wrong.
    """
    if not isinstance(arguments, Mapping):
        raise InputInvalid("the arguments must be an object")
    given = _conform_object(schema, cast("Mapping[str, Any]", arguments), drop_blank=drop_blank)
    if fits_plainly(schema, given):
        return given

    import json  # noqa: PLC0415 - as above

    from fastjsonschema import JsonSchemaValueException  # noqa: PLC0415 - as above

    try:
        _compiled(json.dumps(schema))(given)
    except JsonSchemaValueException as error:
        raise _readable(error) from error
    except (ArithmeticError, RecursionError) as error:
        # A number beyond any float, or objects nested without end: valid JSON all the same.
        raise InputInvalid("the arguments are too large or too deep to be checked") from error
    return given


def fits_plainly(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Whether arguments fit by type, choice and bounds alone.

    False says nothing: they may fit by other rules, or not at all. The first call of a tool is
    faster by as much as its schema takes to compile.
    """
    properties = schema.get("properties", {})
    return (
        schema.keys() <= {"type", "properties", "required", "description"}
        and schema.get("type") == "object"
        and {*schema.get("required", ())} <= arguments.keys() <= properties.keys()
        and all(_is_plainly(properties[name], value) for name, value in arguments.items())
    )


def _is_plainly(schema: object, value: object) -> bool:
    if not isinstance(schema, Mapping):
        return False
    rules = cast("Mapping[str, Any]", schema)
    if rules.keys() - _PLAIN_RULES or rules.get("type") != _PLAIN_TYPES.get(type(value), ""):
        return False
    if "enum" in rules and value not in rules["enum"]:
        return False
    if not isinstance(value, int):
        return not {"minimum", "maximum"} & rules.keys()
    return rules.get("minimum", value) <= value <= rules.get("maximum", value)


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: blanks, control characters and those without a width."""
    return not any(one.isprintable() and not one.isspace() for one in text)


def _conform_object(
    schema: Mapping[str, Any], given: Mapping[str, Any], *, drop_blank: bool
) -> dict[str, Any]:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    conformed: dict[str, Any] = {}
    for name, value in given.items():
        declared = properties.get(name)
        if declared is not None and name not in required:
            drops_text = drop_blank and isinstance(value, str) and is_blank(value)
            if drops_text or (value is None and not _allows_null(declared)):
                continue
        conformed[name] = _conform(declared, value)
    return conformed


def _conform(schema: object, value: Any) -> Any:
    """A value that the schema accepts if the value nearly does; else the value itself."""
    if not isinstance(schema, Mapping):
        return value
    rules = cast("Mapping[str, Any]", schema)
    if isinstance(value, Mapping):
        return _conform_object(rules, cast("Mapping[str, Any]", value), drop_blank=False)
    if isinstance(value, list):
        return [_conform(rules.get("items"), one) for one in cast("list[Any]", value)]
    return _conform_text(rules, value) if isinstance(value, str) else value


def _conform_text(rules: Mapping[str, Any], value: str) -> Any:
    if "enum" in rules:
        return _choice(rules["enum"], value)
    text, types = value.strip(), _types_of(rules)
    if "string" in types:
        return value
    if "boolean" in types and text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    number = re.fullmatch(_NUMBER, text)
    if number is not None and number[1] is None and {"integer", "number"} & {*types}:
        return int(text)
    return float(text) if number is not None and "number" in types else value


def _choice(choices: list[Any], value: str) -> Any:
    if value in choices:
        return value
    folded = value.strip().casefold()
    alike = [one for one in choices if isinstance(one, str) and one.casefold() == folded]
    return alike[0] if len(alike) == 1 else value


def _types_of(schema: Mapping[str, Any]) -> list[str]:
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else types


def _allows_null(schema: object) -> bool:
    if not isinstance(schema, Mapping):
        return schema is True
    rules = cast("Mapping[str, Any]", schema)
    if not _OWN_RULES & set(rules):
        return True
    forms = [*rules.get("anyOf", ()), *rules.get("oneOf", ())]
    return (
        "null" in _types_of(rules)
        or None in rules.get("enum", ())
        or "$ref" in rules
        or any(map(_allows_null, forms))
    )


@lru_cache(maxsize=256)
def _compiled(schema: str) -> Callable[[Any], Any]:
    import json  # noqa: PLC0415 - as above

    import fastjsonschema  # noqa: PLC0415 - as above

    return fastjsonschema.compile(json.loads(schema), use_default=False)


def _readable(error: JsonSchemaValueException) -> InputInvalid:
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
