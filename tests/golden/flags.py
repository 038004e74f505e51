"""The parsers of the command line -> commands, flags, positional arguments, choices, defaults.

A parser is caught when it is asked to print its help, which is the same for every command.
"""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import Any

from tests.golden.internals import command

# What a value of the command line becomes; a check of limner's own is only said to be there.
_TYPES = {None: "text", int: "integer", float: "number", Path: "path"}
_ACTIONS = {
    "_StoreAction": "value",
    "_StoreTrueAction": "switch",
    "_StoreConstAction": "constant",
    "_AppendAction": "values",
    "_HelpAction": "help",
    "_VersionAction": "version",
}


class _Caught(Exception):
    """Carries a parser out of the program that built it."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


def flags() -> dict[str, Any]:
    """Every command with what it takes; the program itself is ``limner``."""
    overview = _parser([])
    commands = next(action.choices for action in overview._actions if action.choices)
    return {
        "limner": _described(overview),
        **{f"limner {name}": _described(_parser([name])) for name in commands or ()},
    }


def _parser(words: list[str]) -> argparse.ArgumentParser:
    def catch(parser: argparse.ArgumentParser, file: object = None) -> None:
        raise _Caught(parser)

    printing = argparse.ArgumentParser.print_help
    argparse.ArgumentParser.print_help = catch  # pyright: ignore[reportAttributeAccessIssue]
    try:
        with contextlib.suppress(SystemExit):
            command()([*words, "--help"])
    except _Caught as caught:
        return caught.parser
    finally:
        argparse.ArgumentParser.print_help = printing
    raise AssertionError(f"{words} asked no parser for its help")


def _described(parser: argparse.ArgumentParser) -> dict[str, Any]:
    actions = parser._actions
    return {
        "arguments": [_argument(one) for one in actions if not one.option_strings],
        "flags": {
            ", ".join(one.option_strings): _flag(one) for one in actions if one.option_strings
        },
        "exclusive": [
            sorted(", ".join(one.option_strings) or one.dest for one in group._group_actions)
            for group in parser._mutually_exclusive_groups
        ],
    }


def _argument(action: argparse.Action) -> dict[str, Any]:
    return {
        "name": action.metavar or action.dest,
        "count": action.nargs,
        "choices": None if action.choices is None else list(action.choices),
        "takes": _TYPES.get(action.type, "checked text"),
        "default": action.default,
    }


def _flag(action: argparse.Action) -> dict[str, Any]:
    kind = _ACTIONS[type(action).__name__]
    if kind in ("switch", "help", "version"):
        return {"kind": kind}
    return {
        "kind": kind,
        "metavar": action.metavar,
        "count": action.nargs,
        "choices": None if action.choices is None else list(action.choices),
        "takes": _TYPES.get(action.type, "checked text"),
        "default": action.default,
        "constant": action.const,
        "required": action.required,
    }
