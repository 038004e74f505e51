"""The text of a YAML file -> lists, tables and texts, which is all of YAML that is understood.

Every scalar stays the text it was written as, so that ``no`` is a word and ``~`` is a folder. Tags,
anchors and aliases are refused, and with them the documents that grow when they are read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

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
