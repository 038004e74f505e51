"""The public names of `limner` and their docstrings -> the page of the Python API."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_overloads, is_typeddict

import msgspec

import limner
from limner import errors
from limner.tools import options

Lines = Iterator[str]
EXAMPLES = Path(__file__).parent.parent / "examples" / "every_call.py"
# The longest line of a signature, in characters.
LINE = 80

INTRODUCTION = """\
# Python

Everything here is `limner.<name>`. The functions of a `Limner` are async; `limner.generate`,
`limner.inspect` and the others below have the same parameters and results, and wait. A keyword
that does not exist is a `TypeError`, before anything is planned. Failures are classes of
`limner.errors`: [errors](errors.md). [Calls](calls.md) has the same names in tools, JSON and flags.
"""
SECTIONS = {
    "Calls that wait": lambda one: inspect.isfunction(one) and one.__module__ == "limner.blocking",
    "Keywords": is_typeddict,
    "Classes": inspect.isclass,
    "Other functions": lambda one: inspect.isfunction(one) or inspect.ismethod(one),
    "Types": lambda one: isinstance(one, UnionType),
}


def python_api() -> Lines:
    """The page.

    Raises:
        ValueError: a public name has no docstring, or no section.
    """
    yield INTRODUCTION
    left = {name: getattr(limner, name) for name in limner.__all__}
    for title, belongs in SECTIONS.items():
        yield f"\n## {title}\n"
        for name in [name for name, one in left.items() if belongs(one)]:
            yield from _entry(name, left.pop(name))
    if left:
        raise ValueError(f"public names without a section: {sorted(left)}")
    yield "\n## Errors\n\nEach is a class of `limner.errors`.\n\n```\n"
    tree = (errors.__doc__ or "").partition("::\n\n")[2]
    yield f"{inspect.cleandoc(tree)}\n```\n"


def _entry(name: str, one: Any) -> Lines:
    yield f"\n### {name}\n\n"
    if isinstance(one, UnionType):
        members = ", ".join(f"`{getattr(kind, '__name__', kind)}`" for kind in get_args(one))
        yield f"{members}\n\n{_alias_text(name)}\n"
        return
    if is_typeddict(one):
        yield from _keywords(name, one)
        return
    if not inspect.isclass(one):
        yield f"{block(_overloads(name, one))}\n{text(one, name)}\n{_example(name)}"
        return
    yield f"{block(f'class {signature(name, one)}')}\n{text(one, name)}\n{_example(name)}"
    for member, value in _members(one):
        if isinstance(value, property | cached_property):
            getter = value.fget if isinstance(value, property) else value.func
            result = inspect.signature(getter).return_annotation if getter else ""
            yield f"\n- `{member}: {result}`: {_first_line(value, member)}\n"
            continue
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        prefix = "await " if inspect.iscoroutinefunction(function) else ""
        forms = [f"{prefix}{form}" for form in _overloads(member, function).splitlines()]
        if len(forms) == 1 and len(forms[0]) <= LINE:
            yield f"\n- `{forms[0]}`: {_first_line(function, member)}\n"
        else:
            shown = textwrap.indent(block("\n".join(forms)), "    ")
            yield f"\n- `{member}`: {_first_line(function, member)}\n\n{shown}"


def _example(name: str) -> str:
    """The block of examples/every_call.py under the name, or nothing."""
    source = EXAMPLES.read_text(encoding="utf-8")
    found = re.search(
        rf"^# limner\.{name}\n(.*?)(?=^# limner\.|\Z)", source, re.DOTALL | re.MULTILINE
    )
    return f"\n```python\n{found[1].strip()}\n```\n" if found else ""


def _keywords(name: str, kind: Any) -> Lines:
    """The keywords of a call with their types, those that every call has last."""
    yield f"{_first_line(kind, name)}\n\n| keyword | type | meaning |\n|---|---|---|\n"
    described: dict[str, str] = {}
    for one in (kind, options.CallHooks):
        described |= dict(re.findall(r"^- `(\w+)`: (.*)$", text(one, name), re.MULTILINE))
    own = [key for key in kind.__annotations__ if key not in options.CallHooks.__annotations__]
    for key in [*own, *(key for key in kind.__annotations__ if key not in own)]:
        written = getattr(kind.__annotations__[key], "__forward_arg__", kind.__annotations__[key])
        words = str(written).removesuffix(" | None").replace("|", "\\|")
        yield f"| `{key}` | `{words}` | {described[key]} |\n"


def _overloads(name: str, one: Any) -> str:
    """The signature, or one line for each overload."""
    return "\n".join(signature(name, form) for form in get_overloads(one) or [one])


def _members(kind: type) -> list[tuple[str, Any]]:
    """The calls and properties of a class, in the order of its source; parts are left out."""
    shown = {*dir(kind)} if kind is not limner.Limner else {*limner.Limner().__dir__()}
    shown -= getattr(kind, "_internal", frozenset[str]())
    ours = [one for one in reversed(kind.__mro__) if one.__module__.startswith("limner")]
    members = {name: value for one in ours for name, value in vars(one).items()}
    kinds = (property, cached_property, classmethod, staticmethod)
    return [
        (name, value)
        for name, value in members.items()
        if name[0] != "_"
        and name in shown
        and (isinstance(value, kinds) or inspect.isfunction(value))
    ]


def signature(name: str, one: Any) -> str:
    """The signature of a function or a class, as Python writes it."""
    if "__init__" in getattr(one, "_internal", ()):
        return name
    try:
        whole = inspect.signature(one)
    except ValueError:  # a protocol
        return name
    parameters = [value for key, value in whole.parameters.items() if key not in ("self", "cls")]
    text = str(whole.replace(parameters=parameters))
    if inspect.isclass(one):
        text = text.removesuffix(" -> 'None'").removesuffix(" -> None")
        if issubclass(one, msgspec.Struct):
            return _struct_signature(name, one)
    text = re.sub(r"<function (\w+) at 0x\w+>", r"\1", text)
    text = re.sub(r"<function [^>]*<lambda> at 0x\w+>", "…", text)
    return f"{name}{text.replace(chr(39), '')}"


def block(written: str) -> str:
    """Signatures as a block of code; a long one has a line for each parameter."""
    shown = [line if len(line) <= LINE else _broken(line) for line in written.splitlines()]
    return "```python\n" + "\n".join(shown) + "\n```\n"


def _broken(line: str) -> str:
    head, _, rest = line.partition("(")
    inner, _, result = rest.rpartition(")")
    depth, parts = 0, [""]
    for sign in inner:
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return f"{head}(\n" + "".join(f"    {part.strip()},\n" for part in parts) + f"){result}"


def _struct_signature(name: str, kind: type[msgspec.Struct]) -> str:
    fields = [
        field.name if field.required else f"{field.name}=…"
        for field in msgspec.structs.fields(kind)
    ]
    return f"{name}({', '.join(fields)})"


def text(one: Any, name: str) -> str:
    """A docstring as Markdown: sections of Google's style as lists."""
    text = inspect.getdoc(one)
    if not text:
        raise ValueError(f"{name} has no docstring")
    lines: list[str] = []
    in_list = False
    for line in text.replace("``", "`").splitlines():
        if line in ("Args:", "Attributes:", "Raises:"):
            in_list = True
            lines.append(f"**{line[:-1]}**\n")
        elif in_list and line.startswith(" " * 8):
            lines[-1] += f" {line.strip()}"
        elif in_list and line:
            lines.append(re.sub(r"^ {4}(\w+): ", r"- `\1`: ", line))
        else:
            lines.append(line.replace("::", ":") if line.endswith("::") else line)
    return "\n".join(lines)


def _first_line(one: Any, name: str) -> str:
    return text(one, name).splitlines()[0]


def _alias_text(name: str) -> str:
    """The text below the assignment of a type alias."""
    module = import_module(limner._HOMES[name])  # pyright: ignore[reportPrivateUsage]
    body = ast.parse(inspect.getsource(module)).body
    for before, after in pairwise(body):
        is_it = isinstance(before, ast.Assign) and ast.unparse(before.targets[0]) == name
        if is_it and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            return inspect.cleandoc(str(after.value.value)).replace("``", "`")
    raise ValueError(f"{name} has no text below it")
