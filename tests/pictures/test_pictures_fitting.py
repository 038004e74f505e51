"""A picture and a model -> a request within that model's limits, and tiles at full detail."""

from __future__ import annotations

import io
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from PIL import Image, ImageDraw

from limner.catalogue.sizes import Size
from limner.catalogue.vision import VisionModel, tokens, vision_model, vision_models
from limner.client import Limner
from limner.errors import InputInvalid
from limner.imaging.fit import FitRequest, Region
from limner.pictures.fitting import (
    GENEROUS_BYTES,
    GENEROUS_EDGE,
    MAX_TILES,
    OVERLAP_SHARE,
    READABLE_SHRINK,
    conversation_request,
    request_for,
    tiles,
)

SEEING = [model for model in vision_models() if model.takes_images]
sizes = st.builds(Size, st.integers(1, 12_000), st.integers(1, 12_000))


def screenshot(width: int, height: int) -> bytes:
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    for y in range(0, height, 40):
        draw.text((20, y), f"line {y // 40} of a long page", fill="black")
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


@pytest.fixture
async def lim(tmp_path: Path) -> AsyncIterator[Limner]:
    async with Limner(env={"LIMNER_HOME": str(tmp_path / "home")}, cwd=tmp_path) as made:
        yield made


def with_images(tmp_path: Path, **images: str) -> Limner:
    env = {f"LIMNER_IMAGES_{name.upper()}": value for name, value in images.items()}
    return Limner(env={"LIMNER_HOME": str(tmp_path / "home"), **env}, cwd=tmp_path)


@pytest.mark.parametrize("mode", ["seed", "fast"])
def test_without_a_model_the_limits_are_those_of_the_specification(
    mode: Literal["seed", "fast"],
) -> None:
    asked = request_for(Size(9000, 9000), mode=mode, model=None)
    assert asked == FitRequest(
        mode=mode,
        max_width=1568,
        max_height=1568,
        max_bytes=500 * 1024,
        quality=75,
        formats=("image/png", "image/jpeg", "image/webp", "image/gif"),
    )


@pytest.mark.parametrize("mode", ["seed", "fast", "model"])
@pytest.mark.parametrize("model", SEEING, ids=lambda model: model.name)
def test_a_model_is_sent_no_type_that_it_does_not_accept(
    mode: Literal["seed", "fast", "model"], model: VisionModel
) -> None:
    asked = request_for(Size(4000, 3000), mode=mode, model=model)
    assert set(asked.formats) <= set(model.formats)
    assert "image/jpeg" in asked.formats


@pytest.mark.parametrize("name", ["ollama/llava", "llama.cpp/any", "lm-studio/any"])
def test_a_local_server_is_sent_no_webp(name: str) -> None:
    asked = request_for(Size(4000, 3000), mode="seed", model=vision_model(name))
    assert asked.formats == ("image/png", "image/jpeg")


def test_for_a_claude_of_the_standard_tier_nothing_is_left_to_shrink() -> None:
    model = vision_model("anthropic/claude-haiku-4-5")
    asked = request_for(Size(1920, 1080), mode="model", model=model)
    assert (asked.mode, asked.max_width, asked.max_height) == ("fast", 1456, 819)


def test_many_pictures_in_a_request_are_each_smaller_where_the_service_says_so() -> None:
    model = vision_model("anthropic/claude-opus-4-7")
    few = request_for(Size(2576, 1000), mode="model", model=model, images_in_request=20)
    many = request_for(Size(2576, 1000), mode="model", model=model, images_in_request=21)
    assert (few.max_width, many.max_width) == (2576, 2000)


def test_a_service_that_states_no_limit_is_still_not_sent_everything() -> None:
    model = vision_model("google/gemini-3.8-flash")
    asked = request_for(Size(12_000, 9_000), mode="model", model=model)
    assert (asked.max_width, asked.max_height) == (GENEROUS_EDGE, GENEROUS_EDGE)
    assert asked.max_bytes == GENEROUS_BYTES


@pytest.mark.parametrize(
    ("name", "detail", "size", "box"),
    [
        ("openai/gpt-5.5", "auto", (3840, 2160), (3840, 2160)),
        ("openai/gpt-5.5", "high", (3840, 2160), (2048, 1152)),
        ("openai/gpt-5.5", "auto", (5120, 2880), (3072, 2394)),
        ("openai/gpt-5.6-sol", "auto", (5120, 2880), (5120, 2880)),
        ("openai/gpt-5.4", "auto", (3840, 2160), (2048, 1152)),
        ("anthropic/claude-haiku-4-5", "auto", (3840, 2160), (1456, 819)),
        ("google/gemini-3.8-flash", "auto", (3840, 2160), (3072, 2160)),
    ],
)
def test_in_a_conversation_a_model_gets_all_pixels_that_it_is_known_to_see(
    name: str, detail: str, size: tuple[int, int], box: tuple[int, int]
) -> None:
    model = vision_model(name)
    asked = conversation_request(Size(*size), model=model, detail=detail, images_in_request=1)
    assert (asked.max_width, asked.max_height) == box


@given(size=sizes, model=st.sampled_from(SEEING), images=st.integers(1, 60))
def test_a_request_is_within_the_limits_of_the_model(
    size: Size, model: VisionModel, images: int
) -> None:
    asked = request_for(size, mode="model", model=model, images_in_request=images)
    limits = model.limits
    assert 1 <= asked.max_width <= max(size.width, 1)
    assert 1 <= asked.max_height <= max(size.height, 1)
    if limits.max_edge is not None:
        assert max(asked.max_width, asked.max_height) <= limits.max_edge
    if limits.many_images is not None and images > limits.many_images.above:
        assert max(asked.max_width, asked.max_height) <= limits.many_images.max_edge
    if limits.max_base64_bytes is not None:
        assert -(-asked.max_bytes // 3) * 4 <= limits.max_base64_bytes
    # A picture of the size asked for is never one that the service refuses.
    tokens(model, Size(asked.max_width, asked.max_height))


async def test_a_fitted_picture_states_its_tokens_and_cost(lim: Limner, tmp_path: Path) -> None:
    (tmp_path / "page.png").write_bytes(screenshot(1920, 1080))
    fitted = await lim.fit("page.png", model="anthropic/claude-haiku-4-5")
    assert (fitted.width, fitted.height, fitted.model) == (1568, 882, "anthropic/claude-haiku-4-5")
    look = tokens(vision_model("anthropic/claude-haiku-4-5"), Size(1568, 882))
    assert look is not None
    assert (fitted.tokens, fitted.tokens_exact) == (look.tokens, True)
    assert fitted.cost_nano == look.tokens * 1000
    assert fitted.cost_usd == look.tokens * 1e-6
    assert Image.open(io.BytesIO(fitted.data)).size == (1568, 882)
    assert fitted.tiles == ()


async def test_without_a_model_the_tokens_are_unknown(lim: Limner, tmp_path: Path) -> None:
    (tmp_path / "page.png").write_bytes(screenshot(64, 64))
    fitted = await lim.fit(tmp_path / "page.png")
    assert (fitted.model, fitted.tokens, fitted.cost_usd) == (None, None, None)
    assert fitted.fit.untouched


async def test_an_unknown_model_is_an_error_before_the_file_is_read(lim: Limner) -> None:
    with pytest.raises(InputInvalid, match="no vision model"):
        await lim.fit("missing.png", model="nobody/gpt-55")


async def test_a_point_in_what_was_sent_maps_back_to_the_original(
    lim: Limner, tmp_path: Path
) -> None:
    (tmp_path / "page.png").write_bytes(screenshot(3136, 1000))
    whole = await lim.fit("page.png")
    assert whole.to_original(100, 50) == (200.0, 100.0)
    part = await lim.fit("page.png", region=Region(x=1000, y=400, width=300, height=200))
    assert part.to_original(10, 20) == (1010.0, 420.0)


async def test_tiles_are_off_unless_they_are_asked_for(lim: Limner, tmp_path: Path) -> None:
    (tmp_path / "page.png").write_bytes(screenshot(1280, 9000))
    assert (await lim.fit("page.png")).tiles == ()


@pytest.mark.slow
async def test_tiles_show_a_long_page_at_full_detail(tmp_path: Path) -> None:
    (tmp_path / "page.png").write_bytes(screenshot(1280, 9000))
    async with with_images(tmp_path, tile="auto") as lim:
        fitted = await lim.fit("page.png", model="openai/gpt-5.5")
    assert (fitted.width, fitted.height) == (223, 1568)
    assert len(fitted.tiles) == 7
    for tile in fitted.tiles:
        assert (tile.width, tile.height) == (1280, 1370)
        assert (tile.fit.scale_x, tile.fit.scale_y) == (1.0, 1.0)
        assert tile.tokens is not None
    last = fitted.tiles[-1]
    assert last.to_original(0, last.height) == (0.0, 9000.0)


@pytest.mark.slow
async def test_tiles_of_a_model_are_as_large_as_it_can_see(tmp_path: Path) -> None:
    (tmp_path / "page.png").write_bytes(screenshot(1000, 9000))
    model = vision_model("anthropic/claude-haiku-4-5")
    async with with_images(tmp_path, tile="auto", fit="model") as lim:
        fitted = await lim.fit("page.png", model=model.name)
    for tile in fitted.tiles:
        assert (tile.fit.scale_x, tile.fit.scale_y) == (1.0, 1.0)
        look = tokens(model, Size(tile.width, tile.height))
        assert look is not None
        assert (look.width, look.height) == (tile.width, tile.height)


async def test_a_picture_that_stays_readable_has_no_tiles(tmp_path: Path) -> None:
    (tmp_path / "page.png").write_bytes(screenshot(2000, 1500))
    async with with_images(tmp_path, tile="auto") as lim:
        assert (await lim.fit("page.png")).tiles == ()


@pytest.mark.slow
async def test_a_region_is_tiled_within_itself(tmp_path: Path) -> None:
    (tmp_path / "page.png").write_bytes(screenshot(1280, 9000))
    async with with_images(tmp_path, tile="auto") as lim:
        region = Region(x=0, y=4000, width=1280, height=4000)
        fitted = await lim.fit("page.png", region=region)
    assert [tile.fit.part.y for tile in fitted.tiles] == [4000, 5300, 6601]
    assert replace(fitted.tiles[-1].fit.part, height=0) == Region(x=0, y=6601, width=1280, height=0)


BOX = Size(1568, 1568)
lengths = st.integers(1, 40_000)
parts = st.builds(
    Region, x=st.integers(0, 500), y=st.integers(0, 500), width=lengths, height=lengths
)
boxes = st.builds(Size, st.integers(64, 4_000), st.integers(64, 4_000))


def region(x: int, y: int, width: int, height: int) -> Region:
    return Region(x=x, y=y, width=width, height=height)


def test_a_tall_screenshot_becomes_parts_of_its_own_width() -> None:
    assert tiles(region(0, 0, 1280, 9000), box=BOX) == (
        region(0, 0, 1280, 1370),
        region(0, 1271, 1280, 1370),
        region(0, 2543, 1280, 1370),
        region(0, 3815, 1280, 1370),
        region(0, 5086, 1280, 1370),
        region(0, 6358, 1280, 1370),
        region(0, 7630, 1280, 1370),
    )


def test_parts_come_in_reading_order() -> None:
    found = tiles(region(0, 0, 4000, 3000), box=BOX)
    assert [(tile.x, tile.y) for tile in found] == [
        (0, 0), (1300, 0), (2601, 0),
        (0, 1451), (1300, 1451), (2601, 1451),
    ]  # fmt: skip


def test_a_part_of_a_picture_is_tiled_where_it_lies() -> None:
    found = tiles(region(300, 200, 1000, 4000), box=BOX)
    assert [(tile.x, tile.y) for tile in found] == [(300, 200), (300, 1500), (300, 2801)]


@pytest.mark.parametrize("size", [(3136, 3136), (1, 3136), (1568, 100), (1, 1)])
def test_a_picture_that_stays_readable_in_one_piece_has_no_parts(size: tuple[int, int]) -> None:
    assert tiles(region(0, 0, *size), box=BOX) == ()


def test_one_pixel_more_and_it_has_parts() -> None:
    assert len(tiles(region(0, 0, 3137, 100), box=BOX)) == 3


@given(part=parts, box=boxes)
def test_parts_cover_every_pixel_within_the_picture_and_are_few(part: Region, box: Size) -> None:
    found = tiles(part, box=box)
    assert len(found) <= MAX_TILES
    if not found:
        assert part.width <= box.width * READABLE_SHRINK
        assert part.height <= box.height * READABLE_SHRINK
        return
    for first, length, start, end in (
        ("x", "width", part.x, part.x + part.width),
        ("y", "height", part.y, part.y + part.height),
    ):
        spans = sorted({(getattr(tile, first), getattr(tile, length)) for tile in found})
        assert spans[0][0] == start
        assert spans[-1][0] + spans[-1][1] == end
        for (here, size), (beyond, _) in itertools.pairwise(spans):
            # One pixel of the overlap may be lost to rounding.
            assert beyond <= here + size - size // OVERLAP_SHARE + 1


@given(part=parts, box=boxes)
def test_parts_are_at_full_detail_unless_there_would_be_too_many(part: Region, box: Size) -> None:
    found = tiles(part, box=box)
    wanted = -(-part.width // box.width) * -(-part.height // box.height)
    if found and wanted <= MAX_TILES // 4:
        assert max(tile.width for tile in found) <= box.width
        assert max(tile.height for tile in found) <= box.height
