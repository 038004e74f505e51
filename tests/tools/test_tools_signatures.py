"""What a model can read of a Python function, and what the function gets of the model's JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.errors import InputInvalid
from limner.tools.arguments import conform
from limner.tools.base import ToolContext
from limner.tools.signatures import read_signature


@dataclass
class Box:
    """A part of the screen."""

    x: int
    y: int = 0


class Window(msgspec.Struct):
    title: str
    box: Box | None = None


class Tree(msgspec.Struct):
    branches: list[Tree]


MARKER = object()


def everything(
    target: str,
    count: Annotated[int, msgspec.Meta(ge=1)],
    context: ToolContext,
    zoom: float = 1.0,
    quick: bool = False,
    kind: Literal["window", "screen"] = "window",
    names: list[str] | None = None,
    more: dict[str, int] = {"a": 1},  # noqa: B006 - how users write it
    box: Box = Box(x=1),  # noqa: B008 - and this
    windows: tuple[Window, ...] = (),
    marker: Any = MARKER,
) -> None:
    """Take a picture.

    Of a window, or of
    all of the screen.

    Args:
        target: what to look at, as in
            `Terminal: 1`.
        zoom (float): how near.
        unknown: nothing.

    Returns:
        zoom: not an argument.
    """


def nothing() -> None:
    """Say nothing."""


def test_types_defaults_and_docstring_become_a_schema() -> None:
    box = {
        "title": "Box",
        "description": "A part of the screen.",
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
        "required": ["x"],
    }
    window = {
        "title": "Window",
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "box": {"anyOf": [{"type": "null"}, box], "default": None},
        },
        "required": ["title"],
    }
    signature = read_signature(everything)
    assert signature.description == "Take a picture.\n\nOf a window, or of\nall of the screen."
    assert signature.context == "context"
    schema = json.loads(json.dumps(signature.schema))
    nullable = schema["properties"]["windows"]["items"]["properties"]["box"]
    nullable["anyOf"].sort(key=len)
    schema["properties"]["names"]["anyOf"].sort(key=len)
    assert schema == {
        "type": "object",
        "properties": {
            "target": {"type": "string", "description": "what to look at, as in `Terminal: 1`."},
            "count": {"type": "integer", "minimum": 1},
            "zoom": {"type": "number", "description": "how near.", "default": 1.0},
            "quick": {"type": "boolean", "default": False},
            "kind": {"type": "string", "enum": ["screen", "window"], "default": "window"},
            "names": {
                "anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "string"}}],
                "default": None,
            },
            "more": {
                "type": "object",
                "additionalProperties": {"type": "integer"},
                "default": {"a": 1},
            },
            "box": {**box, "default": {"x": 1, "y": 0}},
            "windows": {"type": "array", "items": window, "default": []},
            "marker": {},
        },
        "required": ["target", "count"],
    }


def test_the_text_in_annotated_is_the_description_of_a_parameter() -> None:
    def shot(
        window: Annotated[str, "The title of the window."],
        zoom: Annotated[float, msgspec.Meta(ge=1, le=4, description="How near.")] = 1.0,
        edge: Annotated[int, pydantic.Field(description="The width in pixels.")] = 64,
        note: Annotated[str | None, "Read later."] = None,
        other: Annotated[int, object()] = 0,
    ) -> None:
        """Take a picture.

        Args:
            window: another text, which loses.
            other: from the docstring.
        """

    assert read_signature(shot).schema["properties"] == {
        "window": {"type": "string", "description": "The title of the window."},
        "zoom": {
            "type": "number",
            "minimum": 1,
            "maximum": 4,
            "description": "How near.",
            "default": 1.0,
        },
        "edge": {"type": "integer", "description": "The width in pixels.", "default": 64},
        "note": {
            "anyOf": [{"type": "string"}, {"type": "null"}],
            "description": "Read later.",
            "default": None,
        },
        "other": {"type": "integer", "description": "from the docstring.", "default": 0},
    }


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    signature = read_signature(nothing)
    assert signature.schema == {"type": "object", "properties": {}, "required": []}
    assert signature.read({"surplus": 1}) == {}


def test_arguments_arrive_as_the_types_say_and_those_left_out_are_not_there() -> None:
    given = {
        "target": "x",
        "count": 2.0,
        "box": {"x": 3},
        "windows": [{"title": "t", "box": {"x": 1, "y": 2}}],
        "surplus": True,
    }
    signature = read_signature(everything)
    conform(signature.schema, given)
    assert signature.read(given) == {
        "target": "x",
        "count": 2,
        "box": Box(x=3),
        "windows": (Window(title="t", box=Box(x=1, y=2)),),
    }


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"target": 7}, "target"),
        ({"count": 0}, "count"),
        ({"box": {"x": "1"}}, "box.x"),
        ({"windows": [{"title": None}]}, "windows[0].title"),
    ],
)
def test_an_argument_of_another_type_is_named(wrong: dict[str, Any], field: str) -> None:
    signature = read_signature(everything)
    with pytest.raises(InputInvalid) as caught:
        signature.read({"target": "x", "count": 1, **wrong})
    assert caught.value.field == field


def _untyped(x) -> None:
    """Do."""


def _starred(*names: str) -> None:
    """Do."""


def _open_ended(**options: str) -> None:
    """Do."""


def _by_place(x: int, /) -> None:
    """Do."""


def _not_json(x: Callable[[], int]) -> None:
    """Do."""


def _endless(tree: Tree) -> None:
    """Do."""


def _nowhere(x: NoSuchType) -> None:  # noqa: F821  # pyright: ignore
    """Do."""


@pytest.mark.parametrize(
    "function", [_untyped, _starred, _open_ended, _by_place, _not_json, _endless, _nowhere]
)
def test_what_a_model_cannot_be_told_is_an_error_that_names_the_function(
    function: Callable[..., Any],
) -> None:
    with pytest.raises(TypeError, match=function.__name__):
        read_signature(function)


@given(st.text())
def test_any_docstring_can_be_read(text: str) -> None:
    def function(x: int) -> None: ...

    function.__doc__ = text
    signature = read_signature(function)
    assert set(signature.schema["properties"]) == {"x"}


@given(st.text(alphabet="Args:\n x()*"))
def test_any_part_about_arguments_can_be_read(text: str) -> None:
    def function(x: int) -> None: ...

    function.__doc__ = f"Do.\n\nArgs:\n{text}"
    assert read_signature(function).description == "Do."
