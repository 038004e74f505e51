"""The text of a YAML file -> plain tables, lists and texts, or an error that names the file.

This is a module of its own because the library takes longer to load than all other settings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from limner.errors import SettingsError

_SHOWN_CHARS = 200


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
