"""What changed between two scenes: their shades are no shapes, and their main colours count."""

from __future__ import annotations

from eyes_samples import evidence
from msgspec.structs import replace

from limner.eyes.differences import answer_difference
from limner.eyes.evidence import Evidence
from limner.imaging.evidence import Box, Colour, PageReading, Shape, Texture

SCENE = Texture(equal=90, sharp=0, two_colours=4, grey=0, focus=67)


def scene(*colours: str) -> Evidence:
    shapes = tuple(
        Shape(kind="circle", colour="#102030", box=Box(x=n * 50, y=9, width=40, height=40))
        for n in range(len(colours))
    )
    seen = evidence(
        lines=(),
        texture=SCENE,
        colours=tuple(Colour(name=name, hex="#102030", percent=40) for name in colours),
    )
    return replace(seen, page=PageReading(lines=(), shapes=shapes))


def test_two_scenes_differ_in_their_main_colours_and_not_in_each_shade() -> None:
    found = answer_difference(scene("orange", "pink"), scene("navy"), "what has changed?")
    assert found.answer == "colour: orange, pink -> navy"


def test_two_scenes_of_the_same_colours_are_not_called_the_same() -> None:
    found = answer_difference(scene("orange", "pink"), scene("orange"), "what has changed?")
    assert found.answer == (
        "No difference of size, text, controls or main colours was found; `limner check` "
        "compares the pixels."
    )
