"""Prompts that name a genre: every text and number of the prompt is read back from the pixels."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from limner.illustrator.draw import draw
from limner.imaging.pool import Imaging

pytestmark = pytest.mark.slow

# Each line: the size, the prompt, and the texts that must be in the picture.
ROWS = [
    line.split("\t")
    for line in Path(__file__).with_name("genre_prompts.tsv").read_text().splitlines()
]
# What OCR takes for another character of the same look.
ALIKE = str.maketrans({"\N{MINUS SIGN}": "-", "\N{EN DASH}": "-", "²": "2", "“": '"', "”": '"'})


@pytest.fixture(scope="module")
def imaging() -> Iterator[Imaging]:
    made = Imaging()
    yield made
    asyncio.run(made.aclose())


def plain(text: str) -> str:
    return re.sub(r"\s+", "", text.translate(ALIKE)).lower()


def missing(expected: list[str], lines: list[str]) -> list[str]:
    """The texts that are neither in one line nor, word by word, in several."""
    read = plain("".join(lines))
    words = {plain(word) for line in lines for word in re.split(r"[\s,]+", line)}
    words |= {plain(line) for line in lines}
    return [
        text
        for text in expected
        if plain(text) not in (words if text.isdecimal() else read)
        and not all(plain(word) in (words if word.isdecimal() else read) for word in text.split())
    ]


async def pixels(imaging: Imaging, prompt: str, size: str) -> bytes:
    """The picture of a prompt, encoded anew, so that nothing but its pixels is left."""
    width, height = map(int, size.split("x"))
    made = draw(prompt=prompt, svg=None, width=width, height=height, seed=None)
    png = await imaging.render_svg(made.svg, width=width, height=height, assets=made.assets)
    bare = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").save(bare, "PNG")
    return bare.getvalue()


@pytest.mark.parametrize(("size", "prompt", "texts"), ROWS, ids=[row[1][:40] for row in ROWS])
async def test_every_text_and_number_of_a_prompt_is_read_from_its_pixels(
    imaging: Imaging, size: str, prompt: str, texts: str
) -> None:
    page = await imaging.read_page(await pixels(imaging, prompt, size))
    expected = [text.strip() for text in texts.split(" | ") if text.strip()]
    assert missing(expected, [line.text for line in page.lines]) == []
