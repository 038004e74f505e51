"""`image_edit` without a key: what limner drew changes by words, and any picture by its pixels."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from tests.agent.agent_pictures import program

from limner import Limner
from limner.errors import InputInvalid, UserError
from limner.imaging.formats import OutputFormat


@pytest.fixture(scope="module")
def lim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limner]:
    made = program(tmp_path_factory.mktemp("editing"))
    yield made
    asyncio.run(made.aclose())


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "photo.png"
    picture = Image.new("RGB", (40, 20), "red")
    picture.paste("blue", (20, 0, 40, 20))
    picture.save(path)
    return path


async def test_an_edit_is_free_and_knows_its_parent(lim: Limner) -> None:
    drawn = await lim.generate("a house and a tree in a meadow", seed=1, size="256x256")
    edited = await lim.edit(drawn.image, "remove the tree")
    assert (edited.provider, edited.cost_usd) == ("illustrator", 0)
    assert edited.extras["changes"] == ["tree removed"]
    assert edited.extras["drawn"] == ["tree"]
    family = await lim.pictures.family(edited.image.handle)
    assert family is not None
    assert family.record.drawn_from == (drawn.image.handle,)
    assert family.record.lineage["untrusted"] is False
    back = await lim.edit(edited.image, "undo that")
    assert back.image == drawn.image


async def test_edits_follow_one_another(lim: Limner) -> None:
    drawn = await lim.generate("two ducks on a lake", seed=1, size="256x256")
    more = await lim.edit(drawn.image, "two more ducks")
    bigger = await lim.edit(more.path, "bigger")
    night = await lim.edit(bigger.image, "make it night", size="512x512")
    assert night.extras["matched"] == [
        {"words": "ducks", "asset": "duck", "count": 4, "colour": None}
    ]
    assert night.extras["background"] == "lake, night"
    assert (night.dimensions.width, night.dimensions.height) == (512, 512)


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp"])
async def test_a_file_that_was_moved_to_another_home_can_be_edited(
    lim: Limner, tmp_path: Path, kind: OutputFormat
) -> None:
    drawn = await lim.generate(
        "a house and a tree in a meadow",
        seed=1,
        size="256x256",
        output_path=str(tmp_path / f"house.{kind}"),
        output_format=kind,
    )
    other = program(tmp_path / "other")
    moved = Path(shutil.copy(drawn.path, tmp_path / f"moved.{kind}"))
    try:
        edited = await other.edit(moved, "remove the tree")
        assert edited.extras["changes"] == ["tree removed"]
        # Its label is the word of a file from outside.
        assert edited.untrusted
    finally:
        await other.aclose()


async def test_what_is_not_in_the_picture_changes_nothing(lim: Limner) -> None:
    drawn = await lim.generate("a penguin on an iceberg", seed=1, size="256x256")
    with pytest.raises(InputInvalid) as refused:
        await lim.edit(drawn.image, "remove the walrus")
    assert refused.value.message == "There is no walrus in this picture. Nothing was changed."
    assert (refused.value.billed, refused.value.cost_nano) == (False, 0)


@pytest.mark.parametrize(
    ("words", "size", "colours"),
    [
        ("rotate it to the left", (20, 40), [(0, 0, 255), (255, 0, 0)]),
        ("flip it", (40, 20), [(0, 0, 255), (255, 0, 0)]),
        ("crop the left half", (20, 20), [(255, 0, 0), (255, 0, 0)]),
        ("crop it to a square and rotate it 180 degrees", (20, 20), [(0, 0, 255), (255, 0, 0)]),
        ("resize it to 80x40", (80, 40), [(255, 0, 0), (0, 0, 255)]),
        ("half the size", (20, 10), [(255, 0, 0), (0, 0, 255)]),
        ("make it black and white", (40, 20), [(76, 76, 76), (29, 29, 29)]),
    ],
)
async def test_any_picture_changes_by_its_pixels(
    lim: Limner, photo: Path, words: str, size: tuple[int, int], colours: list[tuple[int, int, int]]
) -> None:
    edited = await lim.edit(photo, words)
    with Image.open(edited.path) as picture:
        assert picture.size == size
        plain = picture.convert("RGB")
        corners = [plain.getpixel((0, 0)), plain.getpixel((size[0] - 1, size[1] - 1))]
    assert corners == colours


async def test_other_changes_of_a_photo_name_what_works_and_the_key(
    lim: Limner, photo: Path
) -> None:
    with pytest.raises(UserError) as refused:
        await lim.edit(photo, "put a hat on the dog")
    assert refused.value.code == "PROVIDER_CANNOT"
    assert refused.value.message == (
        "The illustrator did not draw this picture, so it cannot change what is in it."
    )
    assert refused.value.hint == (
        "Without a key the illustrator crops, rotates, flips, resizes, greys, blurs or cuts out "
        "any picture: say that, or set OPENAI_API_KEY for a model that changes any picture."
    )


async def test_a_rotated_drawing_is_no_scene_until_the_rotation_is_undone(lim: Limner) -> None:
    drawn = await lim.generate("a house and a tree in a meadow", seed=1, size="256x256")
    turned = await lim.edit(drawn.image, "rotate it")
    with pytest.raises(UserError, match="did not draw this picture"):
        await lim.edit(turned.image, "remove the tree")
    back = await lim.edit(turned.image, "undo")
    assert back.image == drawn.image


async def test_a_chart_from_words_and_one_from_a_source_change_in_their_source(
    lim: Limner,
) -> None:
    source = '{"type": "bar", "title": "Sales", "labels": ["Q1", "Q2"], "values": [12, 18]}'
    rendered = await lim.render(source, size="400x300")
    described = await lim.generate("a bar chart of sales: Q1 12, Q2 18", size="400x300")
    for picture in (rendered.image, described.image):
        edited = await lim.edit(picture, 'change Q2 to 25 and make the title "Revenue"')
        assert edited.extras["changes"] == ["Q2: 25", "title: Revenue"]
        family = await lim.pictures.family(edited.image.handle)
        assert family is not None
        scene = family.record.lineage["scene"]
        assert '"values":[12,25]' in str(scene)
        assert '"title":"Revenue"' in str(scene)
