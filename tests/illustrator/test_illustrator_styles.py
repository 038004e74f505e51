from __future__ import annotations

import io

import pytest
from PIL import Image

from limner.illustrator.draw import Illustration, draw
from limner.illustrator.styles import INKS, SQUARES, STYLE_OF
from limner.imaging.pool import Imaging


def drawing(prompt: str) -> Illustration:
    return draw(prompt=prompt, svg=None, width=192, height=96, seed=None)


@pytest.mark.parametrize("style", INKS)
def test_a_drawing_in_lines_has_one_ink_and_one_paper(style: str) -> None:
    made = drawing(f"a {style} drawing of a cat" if style == "line" else f"a {style} of a cat")
    ink, paper = INKS[style]
    body = made.assets["cat"].body
    assert f'fill="{paper}" stroke="{ink}"' in body
    assert made.facts["left_out"] == []
    assert made.facts["background"] == "plain"


def test_a_colour_filter_is_over_the_whole_picture() -> None:
    plain, grey = drawing("a cat in a meadow"), drawing("a black and white cat in a meadow")
    assert "</defs><g filter=" in grey.svg
    assert "</defs><g filter=" not in plain.svg


def test_every_word_for_a_style_is_reported_as_drawn() -> None:
    for words, style in STYLE_OF.items():
        facts = drawing(f"{words} of a cat").facts
        assert (style, words in facts["drawn"]) == (style, True)


async def test_pixel_art_consists_of_squares() -> None:
    made = drawing("pixel art of a cat")
    assert made.squares == SQUARES
    async with Imaging() as imaging:
        png = await imaging.render_svg(
            made.svg, width=192, height=96, assets=made.assets, squares=24
        )
    picture = Image.open(io.BytesIO(png))
    assert picture.size == (192, 96)
    small = picture.resize((48, 24), Image.Resampling.NEAREST)
    assert small.resize((192, 96), Image.Resampling.NEAREST).tobytes() == picture.tobytes()
