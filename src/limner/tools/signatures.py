"""A typed Python function -> the JSON schema of its arguments, and JSON -> those arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, get_type_hints

import msgspec

from limner.tools.base import ToolContext
from limner.tools.declaration import convert_arguments, inlined

_SECTION = r"([A-Z][a-z]+(?: [a-z]+)?):\s*$"
_ARGUMENTS = ("Args", "Arguments", "Parameters")
_ENTRY = r"(\*{0,2}\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$"
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a function.

    Attributes:
        description: its docstring without the section about its arguments.
        schema: a JSON schema of its arguments.
        fields: a struct with a field for each of them.
        context: the parameter that gets the `ToolContext`, if one does.
    """

    description: str
    schema: Mapping[str, Any]
    fields: type[msgspec.Struct]
    context: str | None

    def read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function takes them, without those that were not given.

        Raises:
            InputInvalid: one is missing or of another type.
        """
        given = convert_arguments(self.fields, arguments)
        values = ((name, getattr(given, name)) for name in self.fields.__struct_fields__)
        return {name: value for name, value in values if value is not msgspec.UNSET}


def read_signature(function: Callable[..., Any]) -> Signature:
    """Read the parameters of a function from its annotations and its Google-style docstring.

    The description of a parameter is the text in its `Annotated`, else its entry in the docstring.

    Raises:
        TypeError: a parameter has no type, or one that JSON cannot express.
    """
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"{function.__name__}: {error}; its types must be global names") from error
    description, described = _read_docstring(inspect.getdoc(function) or "")
    fields: list[tuple[str, Any, Any]] = []
    defaults: dict[str, Any] = {}
    context: str | None = None
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in _NAMED:
            raise TypeError(f"{function.__name__}: the parameter {name} cannot be given by name")
        if name not in hints:
            raise TypeError(f"{function.__name__}: the parameter {name} needs a type")
        if hints[name] is ToolContext:
            context = name
            continue
        kind = hints[name]
        if words := _annotated_words(kind) or described.get(name):
            kind = Annotated[kind, msgspec.Meta(description=words)]
        if parameter.default is inspect.Parameter.empty:
            fields.append((name, kind, msgspec.field()))
        else:
            # The function applies its own default; the schema only shows it.
            fields.append((name, kind | msgspec.UnsetType, msgspec.UNSET))
            defaults[name] = parameter.default
    struct = msgspec.defstruct(function.__name__, fields, kw_only=True)
    return Signature(
        description=description,
        schema=_schema(function.__name__, struct, defaults),
        fields=struct,
        context=context,
    )


def _annotated_words(kind: Any) -> str | None:
    """The text of ``Annotated[…, "text"]``; also of a ``Meta`` or a pydantic ``Field`` there."""
    for extra in getattr(kind, "__metadata__", ()):
        words = extra if isinstance(extra, str) else getattr(extra, "description", None)
        if isinstance(words, str) and words.strip():
            return words.strip()
    return None


def _schema(name: str, struct: type[msgspec.Struct], defaults: Mapping[str, Any]) -> dict[str, Any]:
    try:
        (whole,), definitions = msgspec.json.schema_components(
            [struct], ref_template="#/$defs/{name}"
        )
        found = inlined(whole, definitions)
    except (TypeError, RecursionError) as error:
        raise TypeError(f"{name}: its arguments cannot be JSON: {error}") from error
    properties = found.get("properties", {})
    for field, default in defaults.items():
        plain = _plain(default)
        if plain is not msgspec.UNSET:
            properties[field]["default"] = plain
    return {"type": "object", "properties": properties, "required": found.get("required", [])}


def _plain(value: Any) -> Any:
    """A default as JSON, or UNSET if it is not JSON, as a marker object."""
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, msgspec.MsgspecError, RecursionError):
        return msgspec.UNSET


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description of the function, and that of each argument."""
    description: list[str] = []
    arguments: list[str] = []
    section = ""
    for line in text.splitlines():
        header = re.match(_SECTION, line)
        if header is not None:
            section = header[1]
        elif not section:
            description.append(line)
        elif section in _ARGUMENTS:
            arguments.append(line)
    return "\n".join(description).strip(), dict(_entries(arguments))


def _entries(lines: list[str]) -> Iterator[tuple[str, str]]:
    """``name: words`` from lines; a line that is indented more continues the one before it."""
    written = [line for line in lines if line.strip()]
    shallowest = min((len(line) - len(line.lstrip()) for line in written), default=0)
    name, words = "", list[str]()
    for line in written:
        is_deeper = line[: shallowest + 1].isspace()
        entry = None if is_deeper else re.match(_ENTRY, line.strip())
        if entry is not None:
            if name:
                yield name, " ".join(words)
            name, words = entry[1], [entry[2]]
        else:
            words.append(line.strip())
    if name:
        yield name, " ".join(words)
