"""The embedded provider: words or an SVG document -> vector art, offline, without a model.

`illustrate` is the entry point, ``assets`` the picture pack. ``words`` splits a prompt,
``prompt_parser`` parses it into a ``parsed_prompt`` with the tables of ``grammar``,
``vocabulary``, ``people`` and ``scenes``, ``thing_list`` relates the things, ``languages``
translates a prompt that is not English, ``person_art`` draws people, ``palette`` changes the
colours of a picture. ``backdrop`` draws the scene with ``sky``, ``land``, ``scenery`` and
``rooms``, ``groups`` and ``placement`` arrange the things with the tables of ``figures`` and
``sizes``, and ``compose`` puts it all together in one of the ``styles``. Nothing here parses XML
or decodes pixels.

The modules are loaded on first use: most programs with an API key never need them.
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
