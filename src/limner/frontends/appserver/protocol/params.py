"""Params from a client -> their type, or an error in upstream's words; and experimental use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, cast

import msgspec
from msgspec import inspect

from limner.errors import InputInvalid

P = TypeVar("P")

MAX_SHOWN_CHARS = 80
MAX_MESSAGE_CHARS = 300

_UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)

# Compiled at the first error.
_MISSING = r"Object missing required field `(?P<field>[^`]*)`"
_PATH = r" - at `(?P<path>[^`]*)`$"
_STEP = r"\.(?P<member>[^.\[\]]+)|\[(?P<index>\d+)\]"
_WANTED = {
    "str": "a string",
    "bool": "a boolean",
    "int": "an integer",
    "float": "a number",
    "array": "a sequence",
    "object": "a map",
}


def decode_params(kind: type[P], params: msgspec.Raw | None) -> P:
    """Decode the params of a request as their type.

    Raises:
        InputInvalid: they are missing, or not of that type; the message names the member.
    """
    if params is None:
        raise InputInvalid("Invalid request: missing field `params`", field="params")
    try:
        return msgspec.json.decode(params, type=kind)
    except msgspec.ValidationError as error:
        wrong = error
    except _UNREADABLE as error:
        raise _unreadable(error) from None
    try:
        whole = msgspec.json.decode(params)
    except _UNREADABLE as error:  # the JSON after the invalid member is broken
        raise _unreadable(error) from None
    raise _invalid(wrong, kind, whole)


def read_params(kind: type[P], params: object) -> P:
    """As `decode_params`, for JSON that has been decoded."""
    try:
        return msgspec.convert(params, kind)
    except msgspec.ValidationError as error:
        raise _invalid(error, kind, params) from None


def experimental_use(
    method: str, params: msgspec.Raw | None, experimental_fields: frozenset[str]
) -> str | None:
    """The first experimental thing that params use, by the name that clients know; or None.

    A member that is null or false uses nothing; an empty list does. Params that are not an object
    are refused when they are decoded.
    """
    if not experimental_fields or params is None:
        return None
    try:
        given = msgspec.json.decode(params, type=dict[str, msgspec.Raw])
    except _UNREADABLE:
        return None
    for name, value in given.items():
        if name in experimental_fields and not _is_null_or_false(value):
            return f"{method}.{name}"
    policy = given.get("approvalPolicy")
    is_object = policy is not None and memoryview(policy)[:1].tobytes() == b"{"
    return "askForApproval.granular" if is_object else None


def _is_null_or_false(value: msgspec.Raw) -> bool:
    view = memoryview(value)
    # A long value is not copied: a history may have a hundred megabytes.
    return view.nbytes <= len(b"false") and view.tobytes() in (b"null", b"false")


def describe(value: object) -> str:
    """A JSON value for an error message: its type, and the value if it is short."""
    import json  # noqa: PLC0415 - only an error needs it

    shown = json.dumps(value)[:MAX_SHOWN_CHARS] if isinstance(value, bool | int | float) else ""
    match value:
        case None:
            return "null"
        case bool():
            return f"boolean `{shown}`"
        case int() | float():
            return f"{'integer' if isinstance(value, int) else 'floating point'} `{shown}`"
        case str():
            return f"string {json.dumps(value[:MAX_SHOWN_CHARS], ensure_ascii=False)}"
        case _:
            return "sequence" if isinstance(value, list | tuple) else "map"


def one_of(names: Sequence[str]) -> str:
    """The allowed words for an error message."""
    quoted = [f"`{name}`" for name in names]
    if len(quoted) <= 2:
        return " or ".join(quoted)
    return f"one of {', '.join(quoted)}"


def _invalid(error: msgspec.ValidationError, kind: Any, params: object) -> InputInvalid:
    message, field = _problem(str(error), kind, params)
    return InputInvalid(f"Invalid request: {message}", field=field)


def _unreadable(error: Exception) -> InputInvalid:
    return InputInvalid(f"Invalid request: {error}"[:MAX_MESSAGE_CHARS])


def _problem(error_text: str, kind: Any, params: object) -> tuple[str, str | None]:
    """The error message, and the member that is wrong."""
    found = re.search(_PATH, error_text)
    steps = list(_steps(found["path"])) if found else []
    field = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in steps).lstrip(".") or None
    if (missing := re.match(_MISSING, error_text)) is not None:
        return f"missing field `{missing['field']}`", missing["field"]
    value = _value_at(params, steps)
    wanted = list(_types_at(inspect.type_info(kind), steps))
    where = f", in `{field}`" if field else ""
    names = list(dict.fromkeys(name for one in wanted for name in _allowed_words(one, steps)))
    if isinstance(value, str) and names and value not in names:
        return (
            f"unknown variant `{value[:MAX_SHOWN_CHARS]}`, expected {one_of(names)}{where}",
            field,
        )
    if not error_text.startswith("Expected"):
        return (error_text[: found.start()] if found else error_text)[:MAX_MESSAGE_CHARS], field
    fault = "invalid value" if isinstance(value, int) and ">=" in error_text else "invalid type"
    return f"{fault}: {describe(value)}, expected {_expectation(error_text)}{where}", field


def _expectation(error_text: str) -> str:
    """What msgspec expected, in the words of the protocol."""
    if ">=" in error_text or "<=" in error_text:
        return "u32"
    wanted = error_text.partition("`")[2].partition("`")[0].split(" | ")
    return " or ".join(_WANTED.get(word, word) for word in wanted if word != "null")


def _steps(path: str) -> Iterator[str | int]:
    for step in re.finditer(_STEP, path):
        yield step["member"] if step["index"] is None else int(step["index"])


def _value_at(value: Any, steps: Sequence[str | int]) -> object:
    for step in steps:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _types_at(kind: inspect.Type, steps: Sequence[str | int]) -> Iterator[inspect.Type]:
    """The types that a value at that path may have; the path of a tag is the path of its object."""
    if isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from _types_at(one, steps)
    elif not steps or (isinstance(kind, inspect.StructType) and steps == [kind.tag_field]):
        yield kind
    elif isinstance(kind, inspect.StructType):
        for field in kind.fields:
            if field.encode_name == steps[0]:
                yield from _types_at(field.type, steps[1:])
    elif isinstance(kind, inspect.ListType | inspect.VarTupleType):
        yield from _types_at(kind.item_type, steps[1:])


def _allowed_words(kind: inspect.Type, steps: Sequence[str | int]) -> list[str]:
    """The words that a value may be, if only some words are allowed."""
    if isinstance(kind, inspect.LiteralType):
        return [
            value for value in cast("tuple[object, ...]", kind.values) if isinstance(value, str)
        ]
    if (
        isinstance(kind, inspect.StructType)
        and kind.tag is not None
        and steps[-1:] == [kind.tag_field]
    ):
        return [str(kind.tag)]
    return []
