"""A tool declared once: a Struct of arguments -> JSON schema, checked values, a tool.

A field of the Struct is an argument. Its type, its default and its ``Meta`` (description, bounds)
are the only place where the argument is described; ``Meta.extra`` says how a flag of the command
line differs from the field's name.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from types import NoneType
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import Meta

from limner.errors import InputInvalid
from limner.tools.arguments import conform, is_blank
from limner.tools.base import Outcome, Tool, ToolContext, ToolHints

S = TypeVar("S", bound=msgspec.Struct)

PathText = Annotated[str, Meta(extra={"path": True})]
"""A file path. Python callers may give a `Path`."""

ImageText = Annotated[str, Meta(extra={"image": True})]
"""A picture: its file path or its handle. Python callers may give any `ImageInput`."""

OutputPath = Annotated[
    PathText,
    Meta(
        description="File path to save it. Default: a new file in limner's folder.",
        extra={"flag": "--out", "metavar": "PATH"},
    ),
]
"""Where the file of a new picture goes."""

Overwrite = Annotated[bool, Meta(description="Replace an existing file at output_path.")]

Handle = Annotated[str, Meta(description="The handle of the picture.")]

_TYPES: Mapping[type, str] = {str: "string", int: "integer"}


class Dimensions(msgspec.Struct, frozen=True, kw_only=True):
    """Width and height in pixels."""

    width: int
    height: int


class ToolDeclaration(msgspec.Struct, Generic[S], frozen=True, kw_only=True):
    """Everything that is known of a tool without the parts that it runs on.

    Attributes:
        name: how a model calls it.
        title: its name for people.
        description: what a model reads about it.
        arguments: a Struct with a field for each argument.
        answer: a Struct with the members of its value.
        hints: what it may do.
        max_result_chars: the most that one result may have.
        toolset: the group of tools that it belongs to.
        keeps_books: a call of it may cost money, and it writes the cost to the ledger itself.
        first: the arguments that a model reads first; the others follow as they are declared.
        in_conversation: the tool needs a conversation that limner stores.
    """

    name: str
    title: str
    description: str
    arguments: type[S]
    answer: type[msgspec.Struct]
    hints: ToolHints
    max_result_chars: int
    toolset: str = "image"
    keeps_books: bool = False
    first: tuple[str, ...] = ()
    in_conversation: bool = False

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON schema of its arguments."""
        return argument_schema(self.arguments, self.first)

    def tool(
        self,
        run: Callable[[S, ToolContext], Awaitable[Outcome]],
        *,
        timeout_s: float | None = None,
        parts: Callable[[Mapping[str, Any]], int] = lambda _: 1,
        quote: Callable[[S, ToolContext], Awaitable[int]] | None = None,
    ) -> Tool:
        """The tool itself, which calls ``run`` and ``quote`` with its arguments as the Struct."""

        def run_with(arguments: Mapping[str, Any], context: ToolContext) -> Awaitable[Outcome]:
            return run(convert_arguments(self.arguments, arguments), context)

        def quote_with(arguments: Mapping[str, Any], context: ToolContext) -> Awaitable[int]:
            assert quote is not None
            return quote(convert_arguments(self.arguments, arguments), context)

        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            schema=self.schema,
            arguments=self.arguments,
            answer=self.answer,
            hints=self.hints,
            run=run_with,
            toolset=self.toolset,
            max_result_chars=self.max_result_chars,
            timeout_s=timeout_s,
            parts=parts,
            keeps_books=self.keeps_books,
            quote=None if quote is None else quote_with,
        )


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a Struct of arguments.

    Attributes:
        name: the name in JSON and in Python.
        kind: its type, without None.
        plain: its type, without None and without annotations.
        choices: the values it can have, if there are only a few.
        required: it has no default.
        default: None if there is no default to show.
        description: what it is for.
        extra: what front ends have to know besides.
    """

    name: str
    kind: Any
    plain: Any
    choices: tuple[Any, ...]
    required: bool
    default: Any
    description: str
    extra: Mapping[str, Any]


@cache
def arguments_of(kind: type[msgspec.Struct]) -> Mapping[str, Argument]:
    """The arguments that a Struct declares, by name."""
    return {field.name: _argument(field) for field in msgspec.structs.fields(kind)}


@cache
def argument_schema(kind: type[msgspec.Struct], first: tuple[str, ...] = ()) -> dict[str, Any]:
    """The JSON schema of a tool's arguments: no references, no null, no titles."""
    declared = arguments_of(kind)
    properties: dict[str, Any] = {}
    for name in dict.fromkeys([*first, *declared]):
        argument = declared[name]
        properties[name] = _type_schema(argument.kind)
        if argument.choices:
            properties[name]["enum"] = list(argument.choices)  # as declared, not sorted
        if argument.default is not None:
            properties[name].setdefault("default", argument.default)
    required = [name for name in properties if declared[name].required]
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return schema | ({"required": required} if required else {})


@cache
def answer_schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON schema of a tool's answer. It promises the type of each member, and no member."""
    properties = {
        field.encode_name: _without_required(_type_schema(field.type))
        for field in msgspec.structs.fields(kind)
    }
    return {"type": "object", "properties": properties}


def tool_schemas(
    tools: Iterable[ToolDeclaration[Any] | Tool],
) -> list[tuple[Mapping[str, Any], Mapping[str, Any] | None]]:
    """The schemas of each tool's arguments and answer; None if the answer has no type."""
    return [
        (tool.schema, None if tool.answer is None else answer_schema(tool.answer)) for tool in tools
    ]


def read_arguments(kind: type[S], arguments: Mapping[str, Any]) -> S:
    """The Struct of arguments that a caller gave.

    Raises:
        InputInvalid: one is missing or wrong.
    """
    return convert_arguments(kind, conform(argument_schema(kind), arguments, drop_blank=True))


def read_words(kind: type[S], arguments: Mapping[str, Any]) -> S:
    """As `read_arguments`, for the only arguments of a process: it makes a schema only if it must.

    msgspec checks the same types and bounds. A schema understands more, and its errors are better.

    Raises:
        InputInvalid: one is missing or wrong.
    """
    declared = arguments_of(kind)
    if arguments.keys() <= declared.keys() and all(
        type(value) is declared[name].plain and not (isinstance(value, str) and is_blank(value))
        for name, value in arguments.items()
    ):
        with suppress(InputInvalid):
            return convert_arguments(kind, arguments)
    return read_arguments(kind, arguments)


def convert_arguments(kind: type[S], arguments: Mapping[str, Any]) -> S:
    """The Struct of arguments that fit the schema.

    Raises:
        InputInvalid: one is missing or of another type.
    """
    try:
        return msgspec.convert(_whole(arguments), kind)
    except msgspec.ValidationError as error:
        place = re.search(r"`\$\.?([^`]*)`$", str(error))
        field = place[1] if place else None
        raise InputInvalid(str(error).replace("`$.", "`"), field=field) from error


def inlined(schema: Any, definitions: Mapping[str, Any], *, within: tuple[str, ...] = ()) -> Any:
    """The schema without references, which not every service follows.

    Raises:
        TypeError: a type contains itself.
    """
    if isinstance(schema, list):
        return [inlined(one, definitions, within=within) for one in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    given = cast("dict[str, Any]", schema)
    if "$ref" not in given:
        whole = {key: inlined(one, definitions, within=within) for key, one in given.items()}
        return _with_type(whole) if "enum" in whole else whole
    name = given["$ref"].rpartition("/")[2]
    if name in within:
        raise TypeError(f"{name} contains itself")
    beside = {key: one for key, one in given.items() if key != "$ref"}
    return inlined(definitions[name], definitions, within=(*within, name)) | beside


def _argument(field: msgspec.structs.FieldInfo) -> Argument:
    kind = _without_none(field.type)
    metas = [one for one in _parts(kind) if isinstance(one, Meta)]
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    items = _parts(get_args(plain)[0]) if get_origin(plain) is tuple else ()
    extra: dict[str, Any] = {}
    for meta in (*(one for one in items if isinstance(one, Meta)), *metas):
        extra |= meta.extra or {}
    written = [meta.extra_json_schema["default"] for meta in metas if meta.extra_json_schema]
    default = written[0] if written else field.default
    return Argument(
        name=field.name,
        kind=kind,
        plain=plain,
        choices=get_args(plain) if get_origin(plain) is Literal else (),
        required=field.required,
        default=None if default in (msgspec.NODEFAULT, ()) else default,
        description=next((meta.description for meta in metas if meta.description), ""),
        extra=extra,
    )


def _parts(kind: Any) -> Iterator[Any]:
    """A type and what it is annotated with."""
    yield kind
    if get_origin(kind) is Annotated:
        for one in get_args(kind):
            yield from _parts(one)


def _without_none(kind: Any) -> Any:
    members = [one for one in get_args(kind) if one is not NoneType]
    if len(members) == 1 and NoneType in get_args(kind):
        return members[0]
    return kind


def _type_schema(kind: Any) -> dict[str, Any]:
    members = [one for one in get_args(kind) if one is not msgspec.UnsetType]
    if msgspec.UnsetType in get_args(kind):
        kind = Union[tuple(members)]  # noqa: UP007 - a union of types that are known only now
    (schema,), definitions = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    return _plain(inlined(schema, _without_words(definitions)))


def _without_words(definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Definitions without what they say of the Python class that they come from."""
    return {
        name: {key: one for key, one in schema.items() if key not in ("title", "description")}
        for name, schema in definitions.items()
    }


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """A type or null, in the short form that every service reads."""
    alternatives = schema.get("anyOf")
    if alternatives is None or any(set(one) != {"type"} for one in alternatives):
        return schema
    rest = {key: one for key, one in schema.items() if key != "anyOf"}
    return {"type": [one["type"] for one in alternatives], **rest}


def _without_required(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: one for key, one in schema.items() if key != "required"}


def _with_type(choice: dict[str, Any]) -> dict[str, Any]:
    """A choice with the type of its values, which some services insist on."""
    kinds = {type(one) for one in cast("list[object]", choice["enum"])}
    return {"type": _TYPES[kinds.pop()], **choice} if kinds in ({str}, {int}) else choice


def _whole(value: object) -> object:
    """JSON with 1.0 as the whole number that it is there; if a float is wanted, 1 will do."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _whole(one) for key, one in cast("Mapping[str, object]", value).items()}
    if isinstance(value, list):
        return [_whole(one) for one in cast("list[object]", value)]
    return value
