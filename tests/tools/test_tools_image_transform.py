"""`image_transform`: a new picture from a stored one, free, with its lineage."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from tests.agent.agent_pictures import program

import limner
from limner import Limner, Mark
from limner.errors import InputInvalid, OutputExists
from limner.imaging.fit import Region
from limner.tools.base import ToolCall, ToolResult


@pytest.fixture(scope="module")
def lim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limner]:
    made = program(tmp_path_factory.mktemp("transforming"))
    yield made
    asyncio.run(made.aclose())


@pytest.fixture
def screen(lim: Limner, tmp_path: Path) -> Path:
    path = tmp_path / "screen.png"
    Image.new("RGB", (200, 100), "white").save(path)
    return path


async def call(lim: Limner, **arguments: object) -> ToolResult:
    registry = limner.ToolRegistry(lim.tools())
    [result] = await registry.execute_parallel(
        [ToolCall(name="image_transform", arguments=arguments)], lim.context()
    )
    return result


async def test_a_model_gets_the_new_picture_and_its_facts(lim: Limner) -> None:
    drawn = await lim.render({"type": "pie", "values": [1, 2]}, size="400x300")
    result = await call(lim, image=drawn.image.handle, resize="50%", output_format="webp")
    value = json.loads(result.value)
    [picture] = result.content
    assert isinstance(picture, limner.Picture)
    assert value == {
        "path": value["path"],
        "dimensions": {"width": 200, "height": 150},
        "bytes": picture.size_bytes,
        "image": picture.handle,
        "original": drawn.image.handle,
        "notes": [],
    }
    assert Path(value["path"]).suffix == ".webp"
    assert (result.cost_nano, result.untrusted) == (0, False)
    family = await lim.pictures.family(picture.handle)
    assert family is not None
    assert family.record.parent == drawn.image.handle


async def test_a_picture_from_outside_stays_untrusted(lim: Limner, screen: Path) -> None:
    taken = await lim.take(screen)
    result = await call(lim, image=taken.handle, crop={"x": 0, "y": 0, "width": 9, "height": 9})
    assert result.untrusted


@pytest.mark.parametrize(
    ("arguments", "field", "message"),
    [
        ({}, None, "there is nothing to do"),
        ({"resize": "large"}, "resize", "resize is 'large'"),
        ({"resize": "x"}, "resize", "resize is 'x'"),
        ({"resize": "0%"}, "resize", "resize is '0%'"),
        ({"pad": "5x"}, "pad", "pad is '5x'"),
        ({"max_bytes": "small"}, "max_bytes", "max_bytes is 'small'"),
        (
            {"marks": [{"shape": "arrow", "at": [1, 2]}]},
            "marks",
            "arrow: at needs 4 numbers, and has 2",
        ),
        (
            {"output_format": "png", "output_path": "a.webp"},
            "output_format",
            "output_format is png, and output_path names a webp file",
        ),
    ],
)
async def test_what_cannot_be_understood_is_refused(
    lim: Limner, screen: Path, arguments: dict[str, object], field: str | None, message: str
) -> None:
    with pytest.raises(InputInvalid) as caught:
        await lim.transform(screen, **arguments)  # type: ignore[arg-type] - wrong on purpose
    assert (caught.value.field, caught.value.message) == (field, message)


async def test_a_file_is_written_in_the_format_of_its_name_within_the_size(
    lim: Limner, tmp_path: Path
) -> None:
    drawn = await lim.generate("a mountain lake at dusk", size="512x512")
    made = await lim.transform(drawn, max_bytes="12kB", output_path=tmp_path / "small.jpg")
    assert made.path == tmp_path / "small.jpg"
    assert made.path.read_bytes().startswith(b"\xff\xd8")
    assert made.path.stat().st_size <= 12_000, "the label is counted"
    again = await lim.take(made.path)
    assert again == made.image, "the file names its picture"
    with pytest.raises(OutputExists):
        await lim.transform(drawn, resize="10x", output_path=tmp_path / "small.jpg")


async def test_marks_and_blurs_are_in_pixels_of_the_original(
    lim: Limner, screen: Path, tmp_path: Path
) -> None:
    out = tmp_path / "marked.png"
    await lim.transform(
        screen,
        marks=[Mark(shape="box", at=[20, 30, 100, 40], label="Total", color="#0000ff")],
        blur=[Region(x=150, y=50, width=40, height=40)],
        crop=Region(x=10, y=10, width=150, height=80),
        output_path=out,
    )
    image = Image.open(out).convert("RGB")
    assert image.size == (150, 80)
    assert image.getpixel((10, 40)) == (0, 0, 255), "the left side of the box"
    assert image.getpixel((60, 40)) == (255, 255, 255), "its inside"
