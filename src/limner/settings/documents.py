"""The bytes of a settings file -> plain tables, lists and values, or an error that names it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, cast

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from limner.errors import SettingsError

_SHOWN_CHARS = 200
_MAX_FILE_BYTES = 256 * 1024


def read_settings_file(path: Path, *, max_bytes: int = _MAX_FILE_BYTES) -> bytes | None:
    """Read a settings file; None if there is none.

    Raises:
        SettingsError: it cannot be read, or is too long.
    """
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return read_bounded(file, path=path, max_bytes=max_bytes)
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error


def parse_yaml(text: str, *, path: Path) -> object:
    """Parse a YAML file; None if it is empty.

    Raises:
        SettingsError: it is not YAML, or uses a part of YAML that limner does not support.
    """
    try:
        return _PlainLoader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" (at line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise _bad_yaml(path, f"{str(error.problem)[:_SHOWN_CHARS]}{place}") from error
    # The scanner raises Python's own errors for bad numbers and characters.
    except (yaml.YAMLError, ValueError, ArithmeticError, RecursionError) as error:
        raise _bad_yaml(path, str(error).partition("\n")[0][:_SHOWN_CHARS]) from error


def _bad_yaml(path: Path, problem: str) -> SettingsError:
    return SettingsError(f"{path} is not valid YAML: {problem}")


class _PlainLoader(yaml.BaseLoader):
    """Loads every scalar as text, without anchors, aliases and tags."""

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        event = cast("Any", self).peek_event()
        if event.anchor is not None:
            raise yaml.MarkedYAMLError(
                problem="anchors and aliases are not supported", problem_mark=event.start_mark
            )
        if event.tag is not None:
            raise yaml.MarkedYAMLError(
                problem="tags are not supported", problem_mark=event.start_mark
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping = super().construct_mapping(node, deep=deep)
        if len(mapping) < len(node.value):
            raise yaml.MarkedYAMLError(problem="a key appears twice", problem_mark=node.start_mark)
        return mapping

    def construct_scalar(self, node: ScalarNode) -> str:
        text = str(super().construct_scalar(node))
        text.encode()  # an escape can produce a lone surrogate, which no file can contain
        return text


def read_bounded(file: BinaryIO, *, path: Path, max_bytes: int) -> bytes:
    """Read a whole file.

    Raises:
        SettingsError: it is longer than ``max_bytes``.
    """
    data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise SettingsError(f"{path} is longer than {max_bytes:,} bytes")
    return data


def decode(data: bytes, *, path: Path) -> str:
    """Decode the text of a file, without a byte order mark.

    Raises:
        SettingsError: it is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not text in UTF-8: {error.reason}") from error


def parse_toml(text: str, *, path: Path) -> dict[str, object]:
    """Parse a TOML file; numbers with a point become decimals, because some are money.

    Raises:
        SettingsError: it is not TOML.
    """
    import tomllib  # noqa: PLC0415 - most commands start without a settings file

    try:
        return tomllib.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise SettingsError(f"{path} is not valid TOML: {error}") from error
