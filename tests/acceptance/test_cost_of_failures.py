"""The table of failures in the guide to budgets -> what each failure costs."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from limner import GeneratedImage, Inspection, Limner
from limner.errors import ProviderError
from limner.testing import FakeServices
from limner.testing.sample_pictures import make_png

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "budgets.md"
FOX = make_png(64, 64, pixel=b"\xe6\x5c\x00\xff")


def _rows() -> dict[str, tuple[str, str]]:
    part = GUIDE.read_text("utf-8").partition("## Which failures cost nothing")[2]
    rows = re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", part.partition("\n## ")[0], re.MULTILINE)
    return {failure: (picture, question) for failure, picture, question in rows}


STATUSES = {
    int(status): said
    for failure, said in _rows().items()
    if failure[0].isdigit()
    for status in re.findall(r"\b\d{3}\b", failure)
}


async def _draw(lim: Limner) -> GeneratedImage:
    return await lim.generate("a fox")


async def _ask(lim: Limner) -> Inspection:
    return await lim.inspect(FOX, "What is it?", model="openai/gpt-5.4")


CALLS: list[tuple[str, Callable[[Limner], Awaitable[object]]]] = [
    ("images", _draw),
    ("responses", _ask),
]


@pytest.mark.parametrize(("service", "call"), CALLS, ids=["picture", "question"])
async def test_each_status_costs_what_the_guide_says(
    service: str, call: Callable[[Limner], Awaitable[object]], limner_fake: FakeServices
) -> None:
    assert len(STATUSES) == 15
    column = 0 if service == "images" else 1
    found: dict[int, str] = {}
    async with limner_fake.limner() as lim:
        for status in STATUSES:
            later = {"retry-after": "3600"}
            getattr(limner_fake, service).respond(status, {"error": {}}, headers=later)
            with pytest.raises(ProviderError) as caught:
                await call(lim)
            unknown = (True, "unknown")
            is_unknown = (caught.value.billed, caught.value.cost_source) == unknown
            found[status] = "unknown" if is_unknown else "nothing"
            assert is_unknown or not caught.value.billed
    assert found == {status: said[column] for status, said in STATUSES.items()}


async def test_a_refusal_and_a_broken_connection_cost_what_the_guide_says(
    limner_fake: FakeServices,
) -> None:
    found: list[str] = []
    limner_fake.images.refuse()
    limner_fake.images.hang_up()
    limner_fake.responses.refuse()
    limner_fake.responses.hang_up()
    async with limner_fake.limner() as lim:
        for call in (_draw, _draw, _ask, _ask):
            with pytest.raises(ProviderError) as caught:
                await call(lim)
            error = caught.value
            found.append(error.cost_source if error.billed else "nothing")
    assert found == ["nothing", "unknown", "computed", "unknown"]
