"""The declared arguments of a tool -> flags of a command; the words of a command line -> values."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from limner.errors import InputInvalid
from limner.imaging.fit import Region
from limner.tools.declaration import Argument, arguments_of, read_words
from limner.tools.regions import RegionArgument

S = TypeVar("S", bound=msgspec.Struct)

# The flags of commands that are no parameters of a call in Python, and why.
NOT_IN_PYTHON = {
    "budget_usd": "`Limner(budget_usd=…)`, or a scope of it: a command has a `Limner` of its own",
    "csv": "`Table.csv`, in `evidence`",
    "debug": "`Limner(observe=…)`",
    "dry_run": "`quote`",
    "evidence": "`evidence`",
    "junit": "the result has the verdicts: `PictureCheck.criteria`",
    "output_path": "the result has the bytes: `FittedImage.data`",
    "overwrite": "the result has the bytes: `FittedImage.data`",
    "print": "a program runs turns one by one",
    "show": "shows the picture in the terminal",
    "stream": "a program gets each event",
    "topic": "the guide says how to write documents",
}

_REGION = r"(\d{1,6}),(\d{1,6}),([1-9]\d{0,5}),([1-9]\d{0,5})"


def add_flags(
    parser: ArgumentParser,
    kind: type[msgspec.Struct],
    *,
    without: tuple[str, ...] = (),
    helps: Mapping[str, str] | None = None,
    types: Mapping[str, Callable[[str], Any]] | None = None,
) -> None:
    """Add a flag for each argument that a Struct declares.

    Args:
        parser: the parser of the command.
        kind: the Struct.
        without: the arguments that are no flags, as those without a dash.
        helps: help texts that differ from the description of the argument.
        types: functions that parse the word of a flag.
    """
    for name, argument in arguments_of(kind).items():
        if name not in without:
            words = (helps or {}).get(name) or _help(argument)
            parser.add_argument(
                *flags_of(argument),
                dest=name,
                help=words,
                **_action(argument, (types or {}).get(name)),
            )


def flags_of(argument: Argument) -> list[str]:
    """The flags of an argument: its short name if it has one, and its own name."""
    own = f"--{argument.name.replace('_', '-')}"
    return list(dict.fromkeys([argument.extra.get("flag", own), own]))


def add_budget_flag(parser: ArgumentParser, words: str = "refuse to spend more than this") -> None:
    """Add the flag for the `budget_usd` of the command's `Limner` or session."""
    parser.add_argument(
        *("--budget", "--budget-usd"),
        dest="budget_usd",
        metavar="USD",
        help=words,
    )


def read_flags(kind: type[S], args: Namespace, **more: Any) -> S:
    """The Struct of arguments that a command line gave; ``more`` replaces what the flags say.

    Raises:
        InputInvalid: one is missing or wrong.
    """
    given = {
        name: _word(one, getattr(args, name, None)) for name, one in arguments_of(kind).items()
    }
    given |= more
    plain = msgspec.to_builtins({name: one for name, one in given.items() if one is not None})
    try:
        return read_words(kind, plain)
    except InputInvalid as error:
        # An option may be shorter than its argument: `--count` is `n`.
        if error.field is not None and "flag" in (named := arguments_of(kind)[error.field]).extra:
            flag = flags_of(named)[0]
            error.message = error.message.replace(error.field, flag, 1)
        raise


def region(text: str) -> Region:
    """Four numbers as a part of a picture."""
    match = re.fullmatch(_REGION, text)
    if match is None:
        raise ArgumentTypeError("give X,Y,WIDTH,HEIGHT in pixels, as in 2400,100,800,600")
    x, y, width, height = map(int, match.groups())
    return Region(x=x, y=y, width=width, height=height)


def _word(argument: Argument, value: Any) -> Any:
    """The value of a flag; one that is a list in one word is taken apart."""
    separator = argument.extra.get("separator")
    if value is None or separator is None:
        return value
    return [part.strip() for part in value.split(separator) if part.strip()]


def _action(argument: Argument, parse: Callable[[str], Any] | None) -> dict[str, Any]:
    """How argparse reads the flag of an argument."""
    if argument.plain is bool:
        return {"action": "store_true"}
    if argument.choices:
        # Not as `choices` of argparse: the words are read with the other arguments of the call.
        return {"metavar": f"{{{','.join(argument.choices)}}}"}
    how: dict[str, Any] = {"metavar": argument.extra.get("metavar", argument.name.upper())}
    is_list = get_origin(argument.plain) is tuple and "separator" not in argument.extra
    if is_list:
        how |= {"action": "append", "default": []}
    if parse is not None:
        return how | {"type": parse}
    if RegionArgument in (argument.plain, *(get_args(argument.plain) if is_list else ())):
        return how | {"metavar": "X,Y,WIDTH,HEIGHT", "type": region}
    return how


def _help(argument: Argument) -> str:
    """The description as the help of a flag: no capital at the start, no full stop at the end."""
    text = argument.description.rstrip(".").replace("%", "%%")
    is_word = text[1:2].islower() or text[1:2].isspace()
    text = text[:1].lower() + text[1:] if is_word else text
    is_shown = argument.default not in (None, False, 0) and "efault" not in text
    return f"{text}; default {argument.default}" if is_shown else text
