"""Pictures above 100 megapixels: refused, and read in parts if the user allows it."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest
from tests.acceptance.conftest import Studio
from tests.acceptance.hardship import limner

pytestmark = pytest.mark.slow

SIZE = (12_000, 9_000)
# A black square on white, in one bit for each pixel.
SQUARE = {"x": 8_000, "y": 4_000, "width": 80, "height": 60}


@pytest.fixture
def plan(tmp_path: Path) -> str:
    """A PNG of 108 megapixels that no memory has to hold."""
    row_bytes = SIZE[0] // 8
    left, right = SQUARE["x"] // 8, (SQUARE["x"] + SQUARE["width"]) // 8
    white = b"\0" + b"\xff" * row_bytes
    marked = b"\0" + b"\xff" * left + b"\0" * (right - left) + b"\xff" * (row_bytes - right)
    rows = range(SIZE[1])
    inside = range(SQUARE["y"], SQUARE["y"] + SQUARE["height"])
    pixels = b"".join(marked if row in inside else white for row in rows)
    path = tmp_path / "plan.png"
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", struct.pack(">IIBBBBB", *SIZE, 1, 0, 0, 0, 0))
        + _chunk(b"IDAT", zlib.compress(pixels))
        + _chunk(b"IEND", b"")
    )
    return str(path)


def _chunk(kind: bytes, body: bytes) -> bytes:
    checksum = zlib.crc32(kind + body)
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checksum)


async def test_the_refusal_names_the_setting(studio: Studio, plan: str) -> None:
    status, told = await limner("fit", plan, env=studio.env, cwd=Path(plan).parent)
    assert status == 4
    error = told["error"]
    assert error["message"] == "12000x9000 is 108 megapixels; at most 100 are accepted"
    assert error["hint"] == "scale the picture down first, or set images.max_megapixels"


async def test_a_part_of_it_is_inspected_in_full_detail(studio: Studio, plan: str) -> None:
    env = {**studio.env, "LIMNER_IMAGES_MAX_MEGAPIXELS": "200"}
    env |= {"LIMNER_MODEL_ROLES_VISION": "limner/eyes"}
    region = ",".join(str(value) for value in SQUARE.values())
    question = "What is the main colour?"
    words = ("inspect", plan, question, "--region", region)
    status, told = await limner(*words, env=env, cwd=Path(plan).parent)
    assert status == 0, told
    assert "black" in told["text"].splitlines()[0]
    assert "white" not in told["text"].splitlines()[0]


async def test_the_whole_of_it_is_inspected_at_the_size_of_the_model(
    studio: Studio, plan: str
) -> None:
    env = {**studio.env, "LIMNER_IMAGES_MAX_MEGAPIXELS": "200"}
    env |= {"LIMNER_MODEL_ROLES_VISION": "limner/eyes"}
    status, told = await limner(
        "inspect", plan, "What is the main colour?", env=env, cwd=Path(plan).parent
    )
    assert status == 0, told
    assert "white" in told["text"].splitlines()[0]
    details = told["details"]
    assert details["part"] == {"x": 0, "y": 0, "width": 12_000, "height": 9_000}
    assert (details["width"], details["height"]) == (1568, 1176)
    assert details["scale"] == pytest.approx({"x": 12_000 / 1568, "y": 9_000 / 1176})
