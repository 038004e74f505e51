"""`asset_search`: words in, names of ready-made pictures and a sheet of them out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest
from tests.agent.agent_pictures import program

import limner
from limner import Limner
from limner.tools.base import ToolCall, ToolResult


@pytest.fixture(scope="module")
def lim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limner]:
    made = program(tmp_path_factory.mktemp("searching"))
    yield made
    asyncio.run(made.aclose())


async def call(lim: Limner, **arguments: object) -> ToolResult:
    [result] = await limner.ToolRegistry(lim.tools()).execute_parallel(
        [ToolCall(name="asset_search", arguments=arguments)], lim.context()
    )
    return result


async def test_a_search_returns_the_names_and_one_picture_of_them(lim: Limner) -> None:
    result = await call(lim, words="red fruit", limit=6)
    [sheet] = result.content
    assert isinstance(sheet, limner.Picture)
    value = json.loads(result.value)
    assert value == {"names": value["names"], "image": sheet.handle}
    assert len(value["names"]) == 6
    assert {"red-apple", "cherries"} & set(value["names"])
    assert (sheet.width, sheet.height, result.cost_nano) == (1040, 420, 0)


async def test_a_search_without_a_hit_returns_no_picture(lim: Limner) -> None:
    result = await call(lim, words="qwzk")
    assert (json.loads(result.value), result.content) == ({"names": []}, ())


async def test_a_search_returns_at_most_forty(lim: Limner) -> None:
    result = await call(lim, words="face", limit=41)
    assert (result.code, result.field) == ("input_invalid", "limit")
