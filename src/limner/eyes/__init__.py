"""The embedded vision model ``limner/eyes``: a picture and a question -> an answer from evidence.

`Eyes` gathers the evidence, ``look`` answers from it, `EyesModel` is both as a model. The way of a
question: ``rules`` knows what it asks for, ``measured`` and ``reading`` answer that from what was
measured and read, ``report`` tells everything where no rule fits. Nothing here guesses: it cannot
see objects, and says so. All of that is loaded when something is first looked at.
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
