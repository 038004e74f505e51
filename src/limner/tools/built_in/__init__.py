"""A folder with one module per tool -> the tools of every `Limner`, in the order a model sees them.

A new tool is a new module here, named like the tool. It has the tool's declaration under its name
in capitals, and a function ``build`` that makes the tool from `ToolParts`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

# A program that needs one tool loads the modules of that tool alone.
if TYPE_CHECKING:
    from limner.pictures.take import Pictures
    from limner.tools.base import Tool
    from limner.tools.batches import Batches
    from limner.tools.declaration import ToolDeclaration
    from limner.tools.drawing_arguments import DrawingDefaults
    from limner.tools.generation import ImageGenerator
    from limner.tools.handles import Handles
    from limner.tools.inspection import Inspector
    from limner.tools.picture_checker import PictureChecker
    from limner.tools.rendering import SourceRenderer
    from limner.tools.transformation import PictureTransformer

# The main tools come first, the others by name.
_FIRST = (
    *("image_generate", "image_edit", "image_render", "image_transform", "inspect_image"),
    "image_check",
)


class ToolParts(msgspec.Struct, frozen=True, kw_only=True):
    """What the tools work with."""

    generator: ImageGenerator
    inspector: Inspector
    renderer: SourceRenderer
    transformer: PictureTransformer
    checker: Callable[[], PictureChecker]
    defaults: DrawingDefaults
    pictures: Pictures
    handles: Handles
    batches: Callable[[], Batches]


@cache
def declarations() -> dict[str, ToolDeclaration[Any]]:
    """The declaration of every tool, by name."""
    from pkgutil import iter_modules  # noqa: PLC0415 - most commands need one tool

    found = {module.name for module in iter_modules(__path__)}
    names = [*_FIRST, *sorted(found - set(_FIRST))]
    return {name: getattr(_module(name), name.upper()) for name in names}


def built_in_tools(parts: ToolParts, *, in_conversation: bool = False) -> list[Tool]:
    """The tools; ``in_conversation`` adds those that need a conversation stored by limner."""
    return [
        _module(name).build(parts)
        for name, declaration in declarations().items()
        if in_conversation or not declaration.in_conversation
    ]


def _module(name: str) -> Any:
    return import_module(f"{__name__}.{name}")
