from __future__ import annotations

import pytest

from limner.illustrator.draw import draw
from limner.illustrator.scenes import Scene
from limner.illustrator.shadows import PLAIN, find_lighting


def scene(hour: str = "day", *weather: str, places: tuple[str, ...] = ("meadow",)) -> Scene:
    return Scene(places=places, hour=hour, weather=frozenset(weather))


def test_shadows_fall_away_from_the_light() -> None:
    assert find_lighting(scene(), 0.1).lean > 0
    assert find_lighting(scene(), 0.9).lean == -find_lighting(scene(), 0.1).lean


def test_shadows_are_long_when_the_sun_is_low_and_faint_under_clouds() -> None:
    noon, sunset, clouds = (
        find_lighting(scene(*words), 0.2) for words in (("day",), ("sunset",), ("day", "clouds"))
    )
    assert sunset.length > 2 * noon.length
    assert clouds.dark < noon.dark / 2


@pytest.mark.parametrize(
    ("shown", "source"),
    [
        (scene("day", "fog"), None),
        (scene("night"), None),
        (scene("night", "storm"), 0.2),
        (scene(places=("space",)), 0.2),
        (scene(places=("underwater",)), 0.2),
    ],
)
def test_without_a_light_or_a_ground_there_is_no_shadow(shown: Scene, source: float | None) -> None:
    assert find_lighting(shown, source).dark == 0


def test_paper_has_no_light() -> None:
    assert find_lighting(Scene(paper="#ffffff"), 0.2) is PLAIN


@pytest.mark.parametrize(
    ("prompt", "shadows"),
    [
        ("a cat and a dog in a meadow", 2),
        ("two ducks on a lake", 2),
        ("a bird flying over a meadow", 0),
        ("line art of a cat in a meadow", 0),
        ("paper cut art of a cat in a meadow", 0),
    ],
)
def test_what_stands_has_a_shadow_and_what_swims_a_reflection(prompt: str, shadows: int) -> None:
    svg = draw(prompt=prompt, svg=None, width=64, height=64, seed=None).svg
    assert svg.count("<use ") == shadows
