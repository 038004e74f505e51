"""The bytes of a settings file -> plain tables, lists and values, or an error that names it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, cast

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from limner.errors import SettingsError

_SHOWN_CHARS = 200


def parse_yaml(text: str, *, path: Path) -> object:
    """What a YAML file says; None where it says nothing.

    Raises:
        SettingsError: it is not YAML, or more of YAML than limner reads.
    """
    try:
        return _PlainLoader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" (at line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise _refusal(path, f"{str(error.problem)[:_SHOWN_CHARS]}{place}") from error
    # The scanner leaves numbers and characters that Python refuses to Python's own errors.
    except (yaml.YAMLError, ValueError, ArithmeticError, RecursionError) as error:
        raise _refusal(path, str(error).partition("\n")[0][:_SHOWN_CHARS]) from error


def _refusal(path: Path, trouble: str) -> SettingsError:
    return SettingsError(f"{path} is not valid YAML: {trouble}")


class _PlainLoader(yaml.BaseLoader):
    """Makes texts of all scalars, and nothing of what only a larger program would need."""

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        event = cast("Any", self).peek_event()
        if event.anchor is not None:
            raise yaml.MarkedYAMLError(
                problem="anchors and aliases are not read", problem_mark=event.start_mark
            )
        if event.tag is not None:
            raise yaml.MarkedYAMLError(problem="tags are not read", problem_mark=event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Any, Any]:
        made = super().construct_mapping(node, deep=deep)
        if len(made) < len(node.value):
            raise yaml.MarkedYAMLError(problem="a key is there twice", problem_mark=node.start_mark)
        return made

    def construct_scalar(self, node: ScalarNode) -> str:
        text = str(super().construct_scalar(node))
        text.encode()  # an escape can write half of a character, which no file or message can hold
        return text


def read_bounded(file: BinaryIO, *, path: Path, max_bytes: int) -> bytes:
    """All of an open file.

    Raises:
        SettingsError: it is longer than anybody would write.
    """
    data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise SettingsError(f"{path} is longer than {max_bytes:,} bytes")
    return data


def decode(data: bytes, *, path: Path) -> str:
    """The text of a file, without a byte order mark.

    Raises:
        SettingsError: it is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not text in UTF-8: {error.reason}") from error


def parse_toml(text: str, *, path: Path) -> dict[str, object]:
    """The tables of a TOML file; numbers with a point are decimals, since some are money.

    Raises:
        SettingsError: it is not TOML.
    """
    import tomllib  # noqa: PLC0415 - most commands start without a settings file

    try:
        return tomllib.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise SettingsError(f"{path} is not valid TOML: {error}") from error
