"""The embedded vision model ``limner/eyes``: a picture and a question -> an answer from evidence.

`Eyes` gathers the evidence, ``model.look`` answers from it, and `EyesModel` offers both as a model.
``rules`` finds what a question asks for. ``appearance`` answers about controls, colours and shapes,
``lookup`` from labels, tables and lines, ``measured`` and ``text`` about the whole picture, and
``differences`` compares two pictures, ``things`` knows what limner drew and what the detector
found. ``report`` lists everything if no rule matches. Nothing here guesses. The modules are loaded
on first use.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from limner.eyes.model import Eyes, EyesModel

__all__ = ["Eyes", "EyesModel"]

_HOMES = {
    "Eyes": "limner.eyes.model",
    "EyesModel": "limner.eyes.model",
}


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415 - only the first use needs it

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
