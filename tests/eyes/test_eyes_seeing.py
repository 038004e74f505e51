from __future__ import annotations

import random

import pytest
from eyes_screens import documents, png, screens
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from limner.errors import UnrecognizedImage
from limner.eyes import Eyes
from limner.eyes.quotes import MARK
from limner.illustrator import illustrate
from limner.imaging.pool import Imaging

LEAST_ACCURACY = 0.97


@pytest.fixture
def eyes(imaging: Imaging) -> Eyes:
    return Eyes(imaging)


def circle() -> bytes:
    image = Image.new("RGB", (300, 200), "white")
    ImageDraw.Draw(image).ellipse((100, 50, 200, 150), fill="red")
    return png(image)


async def test_a_question_about_pixels_is_answered_without_reading(eyes: Eyes) -> None:
    answer = await eyes.see([circle()], "What colour is the circle?")
    assert answer.startswith(
        "Answer: The colours are white #ffffff 87 %, red #ff0000 13 %. "
        "Apart from the background, most of it is red."
    )


async def test_pictures_may_be_fetched_when_their_turn_comes(eyes: Eyes) -> None:
    answer = await eyes.see([circle, lambda: png(Image.new("RGB", (9, 9)))], "How wide is it?")
    assert "Picture 1\nAnswer: The picture is 300 x 200 pixels" in answer
    assert "Picture 2\nAnswer: The picture is 9 x 9 pixels" in answer


async def test_bytes_that_are_no_picture_are_an_error(eyes: Eyes) -> None:
    with pytest.raises(UnrecognizedImage):
        await eyes.see([b"no picture"], "What does it say?")


def distance(one: str, other: str) -> int:
    """How many letters must be put in, taken out or exchanged to make one of the other."""
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, start=1):
        before, row[0] = row[0], number
        for index, another in enumerate(other, start=1):
            keep = before + (letter != another)
            before, row[index] = row[index], min(row[index] + 1, row[index - 1] + 1, keep)
    return row[-1]


def test_the_distance_counts_what_must_be_changed() -> None:
    pairs = [("", "abc"), ("kitten", "sitting"), ("flaw", "lawn"), ("same", "same")]
    assert [distance(one, other) for one, other in pairs] == [3, 3, 2, 0]


def spoken(answer: str) -> str:
    """The text that an answer quotes, with single spaces."""
    lines = (line.removeprefix(MARK) for line in answer.splitlines() if line.startswith(MARK))
    return " ".join(" ".join(lines).split())


@pytest.mark.slow
async def test_twenty_screens_are_read_with_97_of_100_characters_right(
    eyes: Eyes, imaging: Imaging, record_property: pytest.RecordProperty
) -> None:
    pictures = [(screen.name, screen.png, screen.text) for screen in screens()]
    for document in documents():
        drawn = await imaging.render_svg(
            document.svg, width=document.width, height=document.height, assets={}
        )
        pictures.append(("SVG", drawn, document.text))
    assert len(pictures) == 20
    wrong = total = 0
    for name, picture, text in pictures:
        expected = " ".join(text.split())
        mistakes = distance(expected, spoken(await eyes.see([picture], "What does it say?")))
        record_property(name, f"{mistakes} mistakes in {len(expected)} characters")
        wrong, total = wrong + mistakes, total + len(expected)
    accuracy = 1 - wrong / total
    record_property("accuracy", accuracy)
    assert accuracy >= LEAST_ACCURACY


def shapes() -> Image.Image:
    image = Image.new("RGB", (600, 400), "#fdf6e3")
    pen = ImageDraw.Draw(image)
    dice = random.Random(7)
    for _ in range(40):
        x, y, size = dice.randrange(560), dice.randrange(360), dice.randrange(10, 120)
        colour = tuple(dice.randrange(256) for _ in range(3))
        pen.ellipse((x, y, x + size, y + size * 0.7), fill=colour)
    return image


def foliage() -> Image.Image:
    dice = random.Random(3)
    layers = [
        Image.frombytes("RGB", size, dice.randbytes(size[0] * size[1] * 3)).resize((640, 480))
        for size in ((640, 480), (160, 120), (40, 30), (10, 8))
    ]
    mixed = layers[0]
    for layer in layers[1:]:
        mixed = ImageChops.blend(mixed, layer, 0.6)
    return mixed.filter(ImageFilter.GaussianBlur(1))


def noise() -> Image.Image:
    return Image.frombytes("RGB", (400, 300), random.Random(1).randbytes(400 * 300 * 3))


def lines() -> Image.Image:
    image = Image.new("L", (600, 400), 255)
    dice = random.Random(5)
    pen = ImageDraw.Draw(image)
    for _ in range(25):
        points = [(dice.randrange(600), dice.randrange(400)) for _ in range(2)]
        pen.line(points, fill=0, width=2)
    return image


TEXTLESS = {
    "shapes": shapes,
    "foliage": foliage,
    "noise": noise,
    "lines": lines,
    "gradient": lambda: Image.linear_gradient("L").resize((500, 400)),
    "nothing": lambda: Image.new("RGB", (300, 300), "teal"),
}
NO_TEXT = "Answer: There is no text in the picture that can be read."


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTLESS)
async def test_where_there_is_no_text_none_is_read(eyes: Eyes, name: str) -> None:
    assert (await eyes.see([png(TEXTLESS[name]())], "What does it say?")).startswith(NO_TEXT)


@pytest.mark.slow
@pytest.mark.parametrize(
    "prompt", ["a red fox in a forest", "a cat on a table", "a house by a lake with mountains"]
)
async def test_a_drawn_scene_says_nothing(eyes: Eyes, imaging: Imaging, prompt: str) -> None:
    drawing = illustrate(prompt=prompt, svg=None, width=768, height=512, seed=None)
    picture = await imaging.render_svg(drawing.svg, width=768, height=512, assets=drawing.assets)
    assert (await eyes.see([picture], "What does it say?")).startswith(NO_TEXT)
