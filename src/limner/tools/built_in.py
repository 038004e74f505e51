"""The tools of every `Limner`, in the order a model sees them: a new tool is a line here."""

from __future__ import annotations

from typing import Any

from limner.tools.base import Tool
from limner.tools.declaration import ToolDeclaration
from limner.tools.drawing_arguments import DrawingDefaults
from limner.tools.generation import ImageGenerator
from limner.tools.image_edit import IMAGE_EDIT, image_edit
from limner.tools.image_generate import IMAGE_GENERATE, image_generate
from limner.tools.image_recall import IMAGE_RECALL
from limner.tools.inspect_image import INSPECT_IMAGE, inspect_image
from limner.tools.inspection import Inspector

BUILT_IN: tuple[ToolDeclaration[Any], ...] = (IMAGE_GENERATE, IMAGE_EDIT, INSPECT_IMAGE)
# No tool of another package can have one of these names.
NAMES = frozenset(tool.name for tool in (*BUILT_IN, IMAGE_RECALL))


def built_in_tools(
    generator: ImageGenerator, inspector: Inspector, defaults: DrawingDefaults
) -> list[Tool]:
    """The tools, which draw with ``generator`` and look with ``inspector``."""
    return [
        image_generate(generator, defaults),
        image_edit(generator, defaults),
        inspect_image(inspector),
    ]
