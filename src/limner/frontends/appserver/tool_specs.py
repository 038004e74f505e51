"""The tools that a client describes -> checked specs, and the names that the model has for them.

The rules and their error messages are those of the Codex app-server: a client that works there
works here, and gets the same errors.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from limner.errors import InputInvalid
from limner.frontends.appserver.input_schemas import cleaned, problem_of
from limner.frontends.appserver.protocol.base import Shape
from limner.frontends.appserver.protocol.params import read_params

MAX_NAME_CHARS = 128
MAX_NAMESPACE_CHARS = 64
MAX_NAMESPACE_DESCRIPTION_CHARS = 1024
MAX_JOINED_CHARS = 64
"""The longest name of a namespace and a tool together that every provider accepts."""

RESERVED_NAMESPACES = frozenset(
    {"api_tool", "browser", "computer", "container", "file_search", "functions", "image_gen"}
    | {"multi_tool_use", "python", "python_user_visible", "submodel_delegator", "terminal"}
    | {"tool_search", "web"}
)

_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_LEGACY_MEMBERS = frozenset({"namespace", "exposeToContext"})
_MIXED = "Invalid request: dynamic tools must use either canonical or legacy format consistently"
_SHOWN_CHARS = 200


class FunctionSpec(Shape, tag_field="type", tag="function"):
    """A function, as clients describe it."""

    name: str
    description: str
    input_schema: Any
    defer_loading: bool = False


class NamespaceSpec(Shape, tag_field="type", tag="namespace"):
    """A group of functions, as clients describe it."""

    name: str
    description: str
    tools: list[FunctionSpec]


DynamicToolSpec = FunctionSpec | NamespaceSpec
"""An entry of ``dynamicTools``."""


class _Tools(Shape):
    dynamic_tools: list[DynamicToolSpec]


class _Legacy(Shape):
    name: str
    description: str
    input_schema: Any
    namespace: str | None = None
    defer_loading: bool | None = None
    expose_to_context: bool | None = None


class _LegacyTools(Shape):
    dynamic_tools: list[_Legacy]


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that a client answers for.

    Attributes:
        name: the client's name for it.
        namespace: the client's name for its group.
        description: the text for the model.
        schema: the schema of its arguments, as the client sent it.
        deferred: the model has to search for it before it can call it.
        namespace_description: what its group is for.
    """

    name: str
    description: str
    schema: Any
    namespace: str | None = None
    deferred: bool = False
    namespace_description: str = ""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The schema in a form that providers accept: an object with properties of known types."""
        return {"type": "object", "properties": {}, **cleaned(self.schema)}


def read_specs(tools: Sequence[Any] | None) -> tuple[ToolSpec, ...]:
    """Parse and check the tools of a client.

    Args:
        tools: the value of ``dynamicTools``, in today's form or in the older, flat one.

    Raises:
        InputInvalid: one is not a tool, or breaks a rule.
    """
    if not tools:
        return ()
    given = _from_legacy(tools) if _is_legacy(tools) else _canonical(tools)
    specs: list[ToolSpec] = []
    namespaces: set[str] = set()
    for one in given:
        if isinstance(one, FunctionSpec):
            specs.append(_spec(one, None))
            continue
        _check_namespace(one, namespaces)
        namespaces.add(one.name)
        specs += [_spec(tool, one) for tool in one.tools]
    _check_unique(specs)
    return tuple(specs)


def write_specs(specs: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """The tools in the form in which sessions and Codex rollouts store them."""
    written: dict[tuple[str, str], dict[str, Any]] = {}
    for spec in specs:
        function = {
            "type": "function",
            "name": spec.name,
            "description": spec.description,
            "inputSchema": spec.schema,
            **({"deferLoading": True} if spec.deferred else {}),
        }
        if spec.namespace is None:
            written["function", spec.name] = function
            continue
        description = spec.namespace_description
        empty: dict[str, Any] = {
            "type": "namespace",
            "name": spec.namespace,
            "description": description,
        }
        namespace = written.setdefault(("namespace", spec.namespace), {**empty, "tools": []})
        namespace["tools"].append(function)
    return list(written.values())


def names_for_model(specs: Sequence[ToolSpec]) -> dict[str, ToolSpec]:
    """The tools by the names that the model has for them.

    Most providers have no namespaces, so a tool in one is ``namespace__name``. If that is too long
    or taken, it ends in a digest. A tool without a namespace always keeps its name.
    """
    named = {spec.name: spec for spec in specs if spec.namespace is None}
    for spec in specs:
        if spec.namespace is not None:
            name = f"{spec.namespace}__{spec.name}"
            while len(name) > MAX_JOINED_CHARS or name in named:
                digest = hashlib.sha256(
                    f"{name}/{spec.namespace}/{spec.name}".encode()
                ).hexdigest()[:8]
                name = f"{name[: MAX_JOINED_CHARS - len(digest) - 1]}_{digest}"
            named[name] = spec
    return named


def _canonical(tools: Sequence[Any]) -> list[FunctionSpec | NamespaceSpec]:
    return read_params(_Tools, {"dynamicTools": tools}).dynamic_tools


def _is_legacy(tools: Sequence[Any]) -> bool:
    """Whether the tools are in the older form; both forms at once are an error."""
    outer = _objects(tools)
    inner = [tool for one in outer for tool in _objects(one.get("tools"))]
    legacy = {"type" not in one for one in outer}
    has_strays = any("type" not in tool for tool in inner)
    if False in legacy:
        has_strays |= any(_LEGACY_MEMBERS & one.keys() for one in [*outer, *inner])
    if len(legacy) > 1 or has_strays:
        raise InputInvalid(_MIXED, field="dynamicTools")
    return legacy == {True}


def _objects(found: object) -> list[dict[str, Any]]:
    """The objects in a list; other values are refused when the list is parsed."""
    values = cast("list[object]", found) if isinstance(found, list) else []
    return [cast("dict[str, Any]", one) for one in values if isinstance(one, dict)]


def _from_legacy(tools: Sequence[Any]) -> list[FunctionSpec | NamespaceSpec]:
    """The older, flat form in today's form: tools with the same namespace become one group."""
    found: dict[str, FunctionSpec | NamespaceSpec] = {}
    for number, old in enumerate(read_params(_LegacyTools, {"dynamicTools": tools}).dynamic_tools):
        hidden = old.expose_to_context is False
        function = FunctionSpec(
            name=old.name,
            description=old.description,
            input_schema=old.input_schema,
            defer_loading=hidden if old.defer_loading is None else old.defer_loading,
        )
        if old.namespace is None:
            found[f"#{number}"] = function
            continue
        description = f"Tools in the {old.namespace} namespace."
        there = found.get(old.namespace)
        if not isinstance(there, NamespaceSpec):
            there = NamespaceSpec(name=old.namespace, description=description, tools=[])
            found[old.namespace] = there
        there.tools.append(function)
    return list(found.values())


def _spec(tool: FunctionSpec, namespace: NamespaceSpec | None) -> ToolSpec:
    _check_name("dynamic tool name", tool.name, max_chars=MAX_NAME_CHARS)
    if tool.defer_loading and namespace is None:
        raise _invalid(f"deferred dynamic tool must include a namespace: {tool.name}")
    problem = problem_of(tool.input_schema)
    if problem is not None:
        raise _invalid(f"dynamic tool input schema is not supported for {tool.name}: {problem}")
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        schema=tool.input_schema,
        namespace=None if namespace is None else namespace.name,
        deferred=tool.defer_loading,
        namespace_description="" if namespace is None else namespace.description,
    )


def _check_namespace(namespace: NamespaceSpec, taken: set[str]) -> None:
    what, name = "dynamic tool namespace", namespace.name
    _check_name(what, name, max_chars=MAX_NAMESPACE_CHARS)
    if len(namespace.description) > MAX_NAMESPACE_DESCRIPTION_CHARS:
        raise _invalid(
            f"{what} description must be at most {MAX_NAMESPACE_DESCRIPTION_CHARS} characters"
        )
    if name in RESERVED_NAMESPACES:
        raise _invalid(f"{what} collides with a reserved Responses API namespace: {name}")
    if name in taken:
        raise _invalid(f"duplicate {what}: {name}")
    if not namespace.tools:
        raise _invalid(f"{what} must contain at least one tool: {name}")


def _check_name(what: str, name: str, *, max_chars: int) -> None:
    if not name.strip():
        raise _invalid(f"{what} must not be empty")
    shown = _shown(name)
    if name != name.strip():
        raise _invalid(f"{what} has leading/trailing whitespace: {shown}")
    if not _NAME.fullmatch(name):
        raise _invalid(f"{what} must match ^[a-zA-Z0-9_-]+$ to match Responses API: {shown}")
    if len(name) > max_chars:
        raise _invalid(
            f"{what} must be at most {max_chars} characters to match Responses API: {shown}"
        )
    if name == "mcp" or name.startswith("mcp__"):
        raise _invalid(f"{what} is reserved: {shown}")


def _check_unique(specs: Sequence[ToolSpec]) -> None:
    seen: set[tuple[str | None, str]] = set()
    for spec in specs:
        if (spec.namespace, spec.name) in seen:
            where = "" if spec.namespace is None else f" in namespace {spec.namespace}"
            raise _invalid(f"duplicate dynamic tool name{where}: {spec.name}")
        seen.add((spec.namespace, spec.name))


def _shown(name: str) -> str:
    """A name for a message: shortened, with only visible characters."""
    cut = name[:_SHOWN_CHARS]
    return "".join(c if c.isascii() and c.isprintable() else f"\\u{{{ord(c):x}}}" for c in cut)


def _invalid(message: str) -> InputInvalid:
    return InputInvalid(message, field="dynamicTools")
