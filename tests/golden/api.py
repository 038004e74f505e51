"""The package as programs import it -> tools, names, signatures, fields, errors, settings."""

from __future__ import annotations

import inspect
import re
import tempfile
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import cached_property
from operator import attrgetter
from pathlib import Path, PurePath
from types import FunctionType, UnionType
from typing import Any, cast, get_args

import msgspec
from tests.golden.shapes import inlined, without_words

import limner
from limner import errors, plugins, testing

Json = Any

_META = r"Annotated\[([^,]+), Meta\((?:[^()]|\([^()]*\))*\)\]"

# Texts of which at least one changes each setting from its default.
SAMPLES = ("true", "false", "3", "0.5", "fast", "auto", "never", "read-only", "png,bmp", "path")


# --- tools ---


def tools() -> dict[str, Any]:
    """The tools that a model can call, with their schemas and limits."""
    with tempfile.TemporaryDirectory() as folder:
        lim = limner.Limner(env=_environment(folder), cwd=Path(folder))
        offered = {
            "create_image_tools": limner.create_image_tools(lim),
            "conversation": lim.conversation_registry().definitions(),
        }
    return {
        **{name: [tool.name for tool in found] for name, found in offered.items()},
        "tools": {tool.name: _tool(tool) for found in offered.values() for tool in found},
    }


def _tool(tool: limner.Tool) -> dict[str, Any]:
    return {
        "toolset": tool.toolset,
        "max_result_chars": tool.max_result_chars,
        "timeout_s": tool.timeout_s,
        "foreign": tool.foreign,
        "order of properties": list(cast("dict[str, Json]", tool.schema["properties"])),
        "schema": without_words(tool.schema),
    }


def _environment(folder: str, **more: str) -> dict[str, str]:
    return {"HOME": folder, "LIMNER_HOME": f"{folder}/limner-home", **more}


# --- settings ---


def settings() -> dict[str, Any]:
    """Every key with its type, bounds, default and variable; the tables of `[[models]]`."""
    keys = dict(_keys())
    fields = {field.name: field for field in msgspec.structs.fields(limner.Settings)}
    return {
        "sections": [name for name in fields if name not in ("home", "models")],
        "keys": {
            key: {
                **_schema(field.type),
                "default": _plain(field.default),
                "variable": _variable(key, field.default),
            }
            for key, field in keys.items()
        },
        "models": _schema(fields["models"].type),
    }


def _keys() -> Iterator[tuple[str, msgspec.structs.FieldInfo]]:
    for section in msgspec.structs.fields(limner.Settings):
        if isinstance(section.default, msgspec.Struct):
            for field in msgspec.structs.fields(section.default):
                yield f"{section.name}.{field.name}", field


def _schema(kind: Any) -> dict[str, Any]:
    (schema,), definitions = msgspec.json.schema_components([kind])
    return without_words(inlined(schema, definitions), "title")


def _variable(key: str, default: object) -> str:
    """The variable that sets a key, after it was seen to."""
    name = f"LIMNER_{key.upper().replace('.', '_')}"
    section, _, member = key.partition(".")
    with tempfile.TemporaryDirectory() as folder:
        for sample in SAMPLES:
            env = _environment(folder, **{name: sample})
            try:
                found = limner.Limner(env=env, cwd=Path(folder)).settings
            except errors.SettingsError:
                continue
            if getattr(getattr(found, section), member) != default:
                return name
    raise AssertionError(f"{name} does not set {key}")


def _plain(value: Any) -> Json:
    if isinstance(value, Decimal):
        return str(value)
    return list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value


# --- errors ---


def error_classes() -> dict[str, Any]:
    """Every error: what it is a kind of, and what it says to programs."""
    found = {
        name: kind
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.LimnerError)
    }
    return {
        name: {
            "bases": [base.__name__ for base in kind.__bases__],
            "code": kind.code,
            "model_code": getattr(kind, "model_code", None),
            "kind": kind.kind,
            "exit_status": kind.exit_status,
            "retryable": kind.retryable,
            "signature": _signature(kind.__init__),
            "as_json": list(kind("text").as_json()),
            "attributes": sorted(vars(kind("text"))),
        }
        for name, kind in found.items()
    }


# --- names ---


def public_api() -> dict[str, Any]:
    """Every public name of the public modules, with signatures and fields."""
    with tempfile.TemporaryDirectory() as folder:
        parts = vars(limner.Limner(env=_environment(folder), cwd=Path(folder)))
    return {
        "limner": {name: _described(getattr(limner, name)) for name in limner.__all__},
        "attributes of a Limner": sorted(name for name in parts if name[0] != "_"),
        "limner.plugins": {name: _described(getattr(plugins, name)) for name in plugins.__all__},
        "limner.testing": {name: _described(getattr(testing, name)) for name in testing.__all__},
    }


def _described(thing: Any) -> Json:
    if isinstance(thing, UnionType):
        return {"one of": [getattr(one, "__name__", str(one)) for one in get_args(thing)]}
    if not isinstance(thing, type):
        return {"function": _signature(thing)}
    about: dict[str, Any] = {}
    if issubclass(thing, msgspec.Struct):
        config = thing.__struct_config__
        about["fields"] = _fields(thing)
        about["frozen"] = config.frozen
    elif "__init__" in _members(thing) and not getattr(thing, "_is_protocol", False):
        about["constructor"] = _signature(thing.__init__)
    about["methods"] = {
        name: _signature(member)
        for name, member in sorted(_members(thing).items())
        if name[0] != "_" and isinstance(member, FunctionType)
    }
    about["properties"] = {
        name: _result(member)
        for name, member in sorted(_members(thing).items())
        if name[0] != "_" and isinstance(member, property | cached_property)
    }
    about["class methods"] = {
        name: _signature(member.__func__)
        for name, member in sorted(_members(thing).items())
        if name[0] != "_" and isinstance(member, classmethod | staticmethod)
    }
    return {name: value for name, value in about.items() if value not in ({}, None)}


def _members(kind: type) -> dict[str, Any]:
    """What a class and those it inherits from define, as far as they are ours."""
    ours = [one for one in reversed(kind.__mro__) if one.__module__.partition(".")[0] == "limner"]
    return {name: member for one in ours for name, member in vars(one).items()}


def _fields(kind: type[msgspec.Struct]) -> list[str]:
    # As they are written: a type that is resolved reads differently in each version of Python.
    written = {
        name: text
        for one in reversed(kind.__mro__)
        for name, text in inspect.get_annotations(one).items()
    }
    return [
        f"{field.name}: {_written(written[field.name])}{_default(field)}"
        for field in msgspec.structs.fields(kind)
    ]


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return ""
    if field.default is msgspec.NODEFAULT:
        return " = (made for each)"
    return f" = {_shown(field.default)}"


def _signature(function: Any) -> list[str]:
    """The parameters as they are written, one by one, and what comes back."""
    signature = inspect.signature(function)
    words: list[str] = []
    before = None
    for parameter in signature.parameters.values():
        if before is parameter.POSITIONAL_ONLY and parameter.kind is not before:
            words.append("/")
        if parameter.kind is parameter.KEYWORD_ONLY and before not in (
            parameter.VAR_POSITIONAL,
            parameter.KEYWORD_ONLY,
        ):
            words.append("*")
        before = parameter.kind
        if parameter.name != "self":
            words.append(_parameter(parameter))
    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    arrow = "async ->" if is_async else "->"
    return [*words, f"{arrow} {_written(signature.return_annotation)}"]


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = f"{stars}{parameter.name}: {_written(parameter.annotation)}"
    if parameter.default is parameter.empty:
        return text
    return f"{text} = {_shown(parameter.default)}"


def _result(member: Any) -> str | None:
    function: Any = member.fget if isinstance(member, property) else member.func
    if isinstance(function, attrgetter):  # a part of the components
        name = repr(function).rpartition(".")[2].removesuffix("')")
        function = getattr(type(limner.Limner().components), name).func
    return _written(inspect.signature(function).return_annotation)


def _written(annotation: Any) -> str | None:
    if annotation is inspect.Parameter.empty:
        return None
    if annotation is None:  # in the constructor that `dataclass` writes
        return "None"
    assert isinstance(annotation, str), annotation
    # What a field is described and bounded with is wording.
    return re.sub(_META, r"\1", annotation.strip("\"'"))


def _shown(value: Any) -> str:
    """A default as it is written; a function is only said to be one."""
    if callable(value):
        return "a function"
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, msgspec.Struct):
        inside = cast("Mapping[str, Any]", msgspec.structs.asdict(value))
        named = ", ".join(f"{name}={_shown(one)}" for name, one in inside.items())
        return f"{type(value).__name__}({named})"
    return repr(value)
