"""Every command that a text of limner names is one that the command line takes."""

from __future__ import annotations

import ast
import re
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import limner
from limner.frontends.cli.main import COMMANDS

SOURCE = Path(limner.__file__).parent
NAMED = re.compile(r"`limner ([a-z][^`]*)`")


class Parser(ArgumentParser):
    def error(self, message: str) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        raise ValueError(message)


def texts(path: Path) -> Iterator[str]:
    """The texts of a module; a value in a text is ``x``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def named_commands() -> list[str]:
    found = {
        " ".join(command.split())
        for path in SOURCE.rglob("*.py")
        for text in texts(path)
        for command in NAMED.findall(text)
    }
    return sorted(found)


def parse(command: str) -> None:
    name, *words = shlex.split(command.partition(" >")[0])
    module = import_module(f"limner.frontends.cli.{name.replace('-', '_')}")
    parser = Parser(exit_on_error=False)
    module.configure(parser)
    parser.add_argument("--json", action="store_true")
    if hasattr(module, "read"):
        return  # it passes its words on
    try:
        parser.parse_intermixed_args(words)
    except ValueError as problem:
        # A text may name a command without its arguments, but none that the command lacks.
        if "required" not in str(problem):
            raise


def test_the_texts_name_commands() -> None:
    assert {"jobs recover x", "jobs settle ID --cost USD", "doctor --repair"} <= {*named_commands()}


@pytest.mark.parametrize("command", named_commands())
def test_a_command_that_a_text_names_is_taken(command: str) -> None:
    assert command.split(maxsplit=1)[0] in COMMANDS
    parse(command)
