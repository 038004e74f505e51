"""The public names for authors of plug-ins and of tests -> the page of the reference."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import msgspec

from limner import plugins, testing

Lines = Iterator[str]


def plug_ins() -> Lines:
    yield "# Plug-ins and tests\n\n"
    yield "What the authors of plug-ins and of tests import. [The guide](../guides/plug-ins.md) "
    yield "shows how the parts work together.\n"
    yield from _module(plugins)
    yield from _module(testing)


def _module(module: ModuleType) -> Lines:
    yield f"\n## {module.__name__}\n\n| name | what it is |\n|---|---|\n"
    for name in module.__all__:
        thing: Any = getattr(module, name)
        yield f"| `{name}` | {_first_line(thing)}{_fields(thing)} |\n"
        for member, function in sorted(_methods(thing).items()):
            yield f"| `{name}.{member}` | {_first_line(function)} |\n"


def _first_line(thing: Any) -> str:
    text = inspect.getdoc(thing)
    if not text:
        raise ValueError(f"{thing} has no docstring")
    return text.partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def _fields(thing: Any) -> str:
    if not (isinstance(thing, type) and issubclass(thing, msgspec.Struct)):
        return ""
    names = ", ".join(f"`{field.name}`" for field in msgspec.structs.fields(thing))
    return f" Fields: {names}." if names else ""


def _methods(thing: Any) -> dict[str, FunctionType]:
    """The public methods of a class; a value has fields instead, and a contract has its tests."""
    if not isinstance(thing, type) or issubclass(thing, msgspec.Struct | tuple):
        return {}
    return {
        name: member
        for one in reversed(thing.__mro__)
        for name, member in vars(one).items()
        if isinstance(member, FunctionType) and name[0] != "_" and inspect.getdoc(member)
    }
