"""The embedded provider: words or an SVG document -> vector art, offline, without a model.

`illustrate` is the door, ``assets`` the picture pack. The way of a prompt: ``words`` splits it,
``reading`` understands it with the tables of ``grammar``, ``vocabulary`` and ``scenes``,
``backdrop`` draws the scene, ``grouping`` and ``placing`` arrange the things by ``figures``, and
``compose`` puts it together. Nothing here parses XML or touches pixels.

All of that is loaded when something is first drawn: most programs with a key never do.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from limner.illustrator.draw import draw as illustrate

__all__ = ["illustrate"]


def __getattr__(name: str) -> object:
    if name != "illustrate":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from limner.illustrator.draw import draw  # noqa: PLC0415 - loaded on first use

    return draw
