"""The loop knows no provider and no wire: what differs between them is decided elsewhere."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

from limner.agent import loop, record, tool_runner
from limner.catalogue.images import all_image_models
from limner.catalogue.vision import services
from limner.settings.custom_models import Api

NAMES = {*services(), *get_args(Api), *(model.provider for model in all_image_models())}


@pytest.mark.parametrize("module", [loop, tool_runner, record], ids=lambda module: module.__name__)
def test_the_loop_has_no_branch_on_the_name_of_a_provider_or_a_wire(module: ModuleType) -> None:
    assert module.__file__ is not None
    nodes = list(ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))))
    words = {node.value for node in nodes if isinstance(node, ast.Constant)}
    asked = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert words & NAMES == set()
    # Nor does it ask a model for either, whatever it would compare that with.
    assert asked & {"api", "provider", "base_url", "key_env"} == set()
