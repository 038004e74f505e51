"""Contact sheets: pictures by number, and prompts drawn by models with seeds within a budget."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from tests.testing.conftest import limner_fake

from limner.dollars import format_usd
from limner.errors import BudgetExceeded, InputInvalid, ProviderRefused
from limner.testing import FakeServices

__all__ = ["limner_fake"]


async def test_files_are_numbered_with_their_names_sizes_and_known_prices(
    limner_fake: FakeServices,
) -> None:
    plain = limner_fake.folder / "plain.png"
    Image.new("RGB", (400, 200), "teal").save(plain)
    async with limner_fake.limner() as lim:
        bought = await lim.generate("a fox")
        sheet = await lim.sheet([plain, bought], output_path="sheet.png")
    assert [(one.title, one.lines) for one in sheet.pictures] == [
        ("1  plain.png", ("400 x 200",)),
        (f"2  {bought.image.handle[:12]}", (f"1024 x 1024 · {format_usd(bought.cost_nano)}",)),
    ]
    assert (sheet.path, sheet.cost_nano) == (limner_fake.folder / "sheet.png", 0)
    with Image.open(sheet.path) as shown:
        assert shown.size == (sheet.image.width, sheet.image.height)


async def test_each_prompt_is_drawn_by_each_model_with_each_seed(
    limner_fake: FakeServices,
) -> None:
    async with limner_fake.limner() as lim:
        sheet = await lim.sheet(
            prompts=["a fox", "an owl"],
            models=["illustrator", "openai-image"],
            seeds=[1],
            size="1024x1024",
        )
    spent = limner_fake.bill()
    assert [(one.number, one.title) for one in sheet.pictures] == [
        *((1, "1  a fox"), (2, "2  a fox"), (3, "3  an owl"), (4, "4  an owl")),
    ]
    assert [one.cost_nano == 0 for one in sheet.pictures] == [True, False, True, False]
    assert (len(spent.charges), sheet.cost_usd) == (2, spent.cost_usd)
    assert all(Path(str(one.path)).is_file() for one in sheet.pictures)


async def test_a_picture_that_fails_is_listed_with_its_error(limner_fake: FakeServices) -> None:
    limner_fake.images.refuse("No foxes.")
    async with limner_fake.limner() as lim:
        sheet = await lim.sheet(prompts=["a fox"], models=["openai-image", "illustrator"])
    failed, drawn = sheet.pictures
    assert (failed.image, "No foxes." in str(failed.error)) == (None, True)
    assert drawn.error is None


async def test_the_error_of_the_first_picture_is_raised_if_all_fail(
    limner_fake: FakeServices,
) -> None:
    limner_fake.images.refuse("No foxes.")
    limner_fake.images.refuse("No foxes.")
    async with limner_fake.limner() as lim:
        with pytest.raises(ProviderRefused, match="No foxes"):
            await lim.sheet(prompts=["a fox"], models=["openai-image"], seeds=[1, 2])


async def test_nothing_is_drawn_if_the_sum_is_over_the_budget(limner_fake: FakeServices) -> None:
    async with limner_fake.limner() as lim:
        with pytest.raises(BudgetExceeded, match="3 pictures cost up to"):
            await lim.sheet(
                prompts=["a fox"], models=["openai-image"], seeds=[1, 2, 3], budget_usd="0.01"
            )
    assert limner_fake.requests == []


async def test_a_sheet_needs_pictures_or_prompts(limner_fake: FakeServices) -> None:
    async with limner_fake.limner() as lim:
        with pytest.raises(InputInvalid, match="give pictures, or prompts to draw"):
            await lim.sheet()
        with pytest.raises(InputInvalid, match="models, seeds and size need prompts"):
            await lim.sheet(seeds=[1])
