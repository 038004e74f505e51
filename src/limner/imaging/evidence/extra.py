"""The extra ``limner[eyes]``: whether it is installed, and the command that installs it."""

from __future__ import annotations

from importlib.util import find_spec

INSTALL = "pip install 'limner[eyes]'"


def can_read_text() -> bool:
    """Whether the models and what runs them are here; neither is loaded to find out."""
    return find_spec("rapidocr") is not None and find_spec("onnxruntime") is not None
