"""The public names for authors of plug-ins and of tests -> the page of the reference."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import msgspec
import python_page

from limner import plugins, testing

Lines = Iterator[str]


def plug_ins() -> Lines:
    yield "# Plug-ins and tests\n\n"
    yield "What the authors of plug-ins and of tests import. [The guide](../guides/plug-ins.md) "
    yield "shows how the parts work together.\n"
    yield from _module(plugins)
    yield from _module(testing)


def _module(module: ModuleType) -> Lines:
    yield f"\n## {module.__name__}\n"
    for name in module.__all__:
        thing: Any = getattr(module, name)
        yield f"\n### {name}\n\n"
        if not _is_class_of(thing, tuple | enum.Enum | msgspec.Struct):
            yield f"{python_page.block(python_page.signature(name, thing))}\n"
        yield f"{python_page.text(thing, name)}\n"
        yield from _fields(thing)
        rules = [one for one in _methods(thing) if one.startswith("test_")]
        for member, function in _methods(thing).items():
            if member in rules:
                continue
            prefix = "await " if inspect.iscoroutinefunction(function) else ""
            shown = python_page.block(f"{prefix}{python_page.signature(member, function)}")
            yield f"\n#### {name}.{member}\n\n{shown}\n"
            yield f"{python_page.text(function, member)}\n"
        if rules:
            yield "\n**Rules**\n\n"
            for rule in rules:
                words = rule.removeprefix("test_").replace("_", " ")
                yield f"- {words}: {python_page.text(_methods(thing)[rule], rule)}\n"


def _is_class_of(thing: Any, kinds: Any) -> bool:
    """Whether it is a class of one of the kinds."""
    return isinstance(thing, type) and issubclass(thing, kinds)


def _fields(thing: Any) -> Lines:
    """The fields of a value with their types and defaults."""
    if not _is_class_of(thing, msgspec.Struct) or not thing.__struct_fields__:
        return
    yield "\n| field | type | default |\n|---|---|---|\n"
    written = {
        name: str(one)
        for kind in reversed(thing.__mro__)
        for name, one in inspect.get_annotations(kind).items()
    }
    for field in msgspec.structs.fields(thing):
        default = "" if field.required else "…"
        if field.default is not msgspec.NODEFAULT:
            default = f"`{field.default!r}`" if _is_short(field.default) else "…"
        kind = re.sub(r"Annotated\[(\w+), Meta\(.*\)\]", r"\1", written[field.name])
        yield f"| `{field.name}` | `{kind.replace('|', chr(92) + '|')}` "
        yield f"| {default} |\n"


def _is_short(value: object) -> bool:
    return value is None or (isinstance(value, bool | int | float | str | tuple | dict))


def _methods(thing: Any) -> dict[str, FunctionType]:
    """The public methods of a class, in the order of its source."""
    if not isinstance(thing, type) or issubclass(thing, tuple | enum.Enum):
        return {}
    internal: frozenset[str] = getattr(thing, "_internal", frozenset())
    return {
        name: member
        for one in reversed(thing.__mro__)
        for name, member in vars(one).items()
        if isinstance(member, FunctionType)
        and one.__module__.startswith("limner")
        and name[0] != "_"
        and name not in internal
        and inspect.getdoc(member)
    }
