from __future__ import annotations

import io
from functools import cache
from random import Random

import pytest
from PIL import Image, ImageChops

from limner.illustrator import assets, scenes
from limner.illustrator.compose import compose, used_assets
from limner.illustrator.draw import draw
from limner.illustrator.prompt_parser import parse_prompt
from limner.imaging.limits import WorkerLimits
from limner.imaging.svg.renderer import render

EDGE = 80
# A colour that differs so much is seen.
SEEN = 20
# How much of the picture must differ, if not 6 %. Gusts are thin lines.
SHARE = {"wind, weather": 0.03}
# What a picture without a scene shows anyway.
USUAL = {"meadow", "day", "summer, weather"}


@cache
def picture(prompt: str) -> tuple[Image.Image, tuple[float, ...]]:
    """The picture of a prompt, and the box of its dog."""
    made = compose(parse_prompt(prompt), width=EDGE, height=EDGE, random=Random(1))
    ready = {name: assets.get(name) for name in used_assets(made.document)}
    pictures = {**ready, **made.drawings}
    limits = WorkerLimits()
    png = render(made.document, width=EDGE, height=EDGE, assets=pictures, limits=limits)
    spot = made.layout.spots[0]
    x, y, half = spot.x * EDGE, spot.y * EDGE, spot.zoom * EDGE * 0.2
    return Image.open(io.BytesIO(png)).convert("RGB"), (x - half, y - 2 * half, x + half, y)


def seen_share(prompt: str) -> float:
    """The share of the picture around the dog that differs from a dog in a meadow by day."""
    (usual, first), (shown, second) = picture("a dog in a meadow"), picture(prompt)
    bands = ImageChops.difference(usual, shown).split()
    apart = ImageChops.lighter(ImageChops.lighter(bands[0], bands[1]), bands[2])
    free = [
        (x, y)
        for x in range(EDGE)
        for y in range(EDGE)
        if not any(a < x < c and b < y < d for a, b, c, d in (first, second))
    ]
    levels = apart.tobytes()
    return sum(levels[x + y * EDGE] > SEEN for x, y in free) / len(free)


@pytest.mark.slow
def test_every_place_hour_and_weather_that_counts_as_drawn_is_seen_beside_the_subject() -> None:
    weathers = scenes.WEATHERS.items()
    prompts = {
        **{name: f"a dog in the {name}" for name in scenes.PLACES},
        "hill": "a dog on a hill",
        "moon": "a dog on the moon",
        "clouds": "a dog in the clouds",
        "crowd": "a dog in front of a crowd",
        **{name: f"a dog, {listed.split(', ')[0]}" for name, listed in scenes.HOURS.items()},
        **{f"{name}, weather": f"a dog, {listed.split(', ')[0]}" for name, listed in weathers},
    }
    shares = {name: seen_share(prompt) for name, prompt in prompts.items() if name not in USUAL}
    assert {name: share for name, share in shares.items() if share < SHARE.get(name, 0.06)} == {}


@pytest.mark.parametrize(
    ("prompt", "place"),
    [
        ("a castle on a hill", "hill"),
        ("a goat on a mountain", "mountain top"),
        ("a goat standing on a mountain", "mountain top"),
        ("a goat in the mountains", "mountains"),
        ("a village in the hills", "village, hills"),
        ("a mars rover on mars", "mars"),
        ("a cat in the clouds", "clouds"),
        ("a snowy mountain village", "snow, mountains, village"),
    ],
)
def test_a_word_for_a_place_is_the_place_that_is_drawn(prompt: str, place: str) -> None:
    made = draw(prompt=prompt, svg=None, width=64, height=64, seed=None)
    assert made.facts["background"] == place


def test_a_castle_on_a_hill_stands_on_its_top() -> None:
    kept = draw(prompt="a castle on a hill", svg=None, width=400, height=400, seed=None).kept
    assert kept is not None
    assert kept.layout is not None
    (spot,) = kept.layout.spots
    assert 0.6 < spot.y < 0.66


@pytest.mark.parametrize(
    ("prompt", "things", "account"),
    [
        ("a stone house", {"house": 1}, "Left out: stone."),
        ("a scarecrow in a pumpkin field", {"scarecrow": 1, "jack-o-lantern": 9}, ""),
        (
            "a flower shop",
            {"blossom": 1, "convenience-store": 1},
            "Approximated: flower (a flower beside it).",
        ),
        ("a red dog house", {"dog-house": 1}, ""),
        ("a cat on a wall", {"cat": 1, "stone-wall": 1}, ""),
    ],
)
def test_a_noun_before_a_noun_is_not_claimed_as_a_thing_of_its_own(
    prompt: str, things: dict[str, int], account: str
) -> None:
    parsed = parse_prompt(prompt)
    assert {thing.asset: thing.count for thing in parsed.things} == things
    assert parsed.account.replace("Approximated: in.", "").strip() == account


def test_each_of_a_band_holds_an_instrument_and_the_crowd_is_in_front() -> None:
    parsed = parse_prompt("a rock band on a stage in front of a crowd")
    assert {thing.asset: thing.count for thing in parsed.things} == {
        "singer": 3,
        "guitar": 1,
        "microphone": 1,
        "drum": 1,
    }
    assert parsed.scene.places == ("stage", "crowd")
