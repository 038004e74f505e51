"""A JSON schema and the evidence of pictures -> the JSON that could be read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from limner.errors import UserError
from limner.eyes import lookup
from limner.eyes.appearance import state
from limner.eyes.evidence import Evidence, EyesQuestion
from limner.eyes.words import hits, stems
from limner.imaging.evidence.layout import to_number

Schema = Mapping[str, Any]
_ALL_TEXT = frozenset({"text", "transcript", "content"})


def fill(schema: Schema, pictures: Sequence[Evidence]) -> str:
    """The JSON text that follows a schema, from the first picture that has each value.

    Raises:
        UserError: a required value was not read, or the schema asks for no object.
    """
    if "object" not in _types(schema):
        raise _cannot("a schema that is not an object")
    return json.dumps(_object(schema, pictures), ensure_ascii=False)


def _object(schema: Schema, pictures: Sequence[Evidence]) -> dict[str, Any]:
    filled: dict[str, Any] = {}
    properties = cast("Mapping[str, Schema]", schema.get("properties", {}))
    for name, part in properties.items():
        value = _value(name, part, pictures)
        if value is not None:
            filled[name] = value
        elif "null" in _types(part):
            filled[name] = None
        elif name in schema.get("required", ()):
            raise _cannot(f"{name!r}")
    return filled


def _cannot(what: str) -> UserError:
    return UserError(
        f"limner/eyes cannot fill in {what}: it was not read in the picture.",
        code="MODEL_CANNOT",
        hint="Make it optional, or name a vision model.",
    )


def _types(schema: Schema) -> list[str]:
    kinds = schema.get("type", "object" if "properties" in schema else "string")
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _value(name: str, schema: Schema, pictures: Sequence[Evidence]) -> Any:
    """The value of one property; None if it was not read."""
    types = _types(schema)
    if "object" in types:
        return _object(schema, pictures)
    for picture in pictures:
        found = _rows(schema, picture) if "array" in types else _scalar(name, schema, picture)
        if found is not None:
            return found
    return None


def _scalar(name: str, schema: Schema, picture: Evidence) -> Any:
    words, types = _words(name), _types(schema)
    if "boolean" in types:
        found = state(EyesQuestion(picture=picture, question=f"is {words} on?"))
        return None if found is None else found.answer.startswith("Yes")
    if words in _ALL_TEXT:
        return "\n".join(picture.rows)
    match = lookup.find(EyesQuestion(picture=picture, question=f"what is the {words}?"))
    return None if match is None else _convert(match.value, schema)


def _convert(text: str, schema: Schema) -> Any:
    types = _types(schema)
    if "integer" in types or "number" in types:
        number = to_number(text)
        whole = number is not None and number.is_integer()
        if number is None or ("number" not in types and not whole):
            return None
        return int(number) if "integer" in types and whole else number
    choices = cast("Sequence[Any]", schema.get("enum", ()))
    if choices:
        return next((one for one in choices if hits(stems(str(one)), text)), None)
    return text


def _rows(schema: Schema, picture: Evidence) -> list[Any] | None:
    """The rows of the table whose columns have the names of the properties."""
    items = cast("Schema", schema.get("items", {}))
    properties = cast("Mapping[str, Schema]", items.get("properties", {}))
    if not properties:
        return list(picture.rows) if "string" in _types(items) and picture.rows else None
    for table in picture.page.tables:
        if not table.header:
            continue
        columns = {name: _column(_words(name), table.rows[0]) for name in properties}
        if all(columns.get(name) is not None for name in items.get("required", properties)):
            return [
                {
                    name: _convert(row[column], properties[name])
                    for name, column in columns.items()
                    if column is not None
                }
                for row in table.rows[1:]
            ]
    return None


def _column(words: str, header: Sequence[str]) -> int | None:
    wanted = stems(words)
    return next(
        (n for n, name in enumerate(header) if len(hits(wanted, name)) == len(wanted)), None
    )


def _words(name: str) -> str:
    """The words of a name such as dueDate or due_date."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", name).lower()
