"""Weights on this machine, named by a model: its reach holds for them as for every path."""

from __future__ import annotations

from tests.acceptance.conftest import Studio

from limner.errors import ReachDenied


async def test_a_folder_to_draw_with_that_is_out_of_reach_is_denied(studio: Studio) -> None:
    result = await studio.call(prompt="a fox", provider="diffusers", model="/etc")
    assert result.domain_code == "PATH_DENIED"


async def test_a_folder_within_reach_is_not_denied(studio: Studio) -> None:
    (studio.cwd / "weights").mkdir()
    folder = str(studio.cwd / "weights")
    result = await studio.call(prompt="a fox", provider="diffusers", model=folder)
    assert result.domain_code not in (None, ReachDenied.code, "PATH_DENIED")
