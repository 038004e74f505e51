"""The size of an SVG file that is drawn on its own."""

from __future__ import annotations

import pytest
from format_samples import corners
from hypothesis import given
from hypothesis import strategies as st
from imaging_samples import decoded

from limner.imaging.pool import Imaging
from limner.imaging.svg.parser import Element
from limner.imaging.svg.renderer import MAX_EDGE, natural_size


@pytest.mark.parametrize(
    ("attributes", "size"),
    [
        ("width='120' height='80'", (120, 80)),
        ("width='120px' height='80px' viewBox='0 0 12 8'", (120, 80)),
        ("width='72pt' height='1in'", (96, 96)),
        ("width='210mm' height='297mm'", (794, 1123)),
        ("width='2.54cm' height='6pc'", (96, 96)),
        ("width='1e2' height='.5e2'", (100, 50)),
        ("width='10000' height='5000'", (2048, 1024)),
        ("width='90000' height='1'", (2048, 1)),
        ("viewBox='0 0 24 24'", (1024, 1024)),
        ("viewBox='-5,-5 , 300 150'", (300, 150)),
        ("viewBox='0 0 2400 1200'", (1024, 512)),
        ("width='100%' height='100%' viewBox='0 0 20 10'", (1024, 512)),
        ("width='300' viewBox='0 0 20 10'", (300, 150)),
        ("height='300' viewBox='0 0 20 10'", (600, 300)),
        ("width='50' height='0' viewBox='0 0 20 10'", (50, 25)),
        ("width='64' height='64' viewBox='0 0 0 0'", (64, 64)),
        ("", (1024, 1024)),
    ],
)
async def test_a_drawing_has_the_size_it_gives_itself(
    wide: Imaging, attributes: str, size: tuple[int, int]
) -> None:
    document = f"<svg xmlns='http://www.w3.org/2000/svg' {attributes}/>"
    facts = await wide.verify(document.encode())
    assert (facts.width, facts.height) == size


@pytest.mark.parametrize("unit", ["", "mm"])
async def test_a_drawing_over_the_cap_is_scaled_and_not_cropped(wide: Imaging, unit: str) -> None:
    edge = 96 / 25.4 if unit else 1.0
    half = 2000 * edge
    document = (
        f"<svg width='4000{unit}' height='4000{unit}'>"
        f"<rect width='{half}' height='{half}' fill='red'/>"
        f"<rect x='{half}' y='{half}' width='{half}' height='{half}' fill='blue'/></svg>"
    )
    converted = decoded(await wide.convert(document.encode()))
    assert converted.size == (2048, 2048)
    assert corners(converted) == ("red", "black", "black", "blue")


@given(
    width=st.none() | st.floats(),
    height=st.none() | st.floats(),
    box=st.none() | st.tuples(st.floats(), st.floats()),
    unit=st.sampled_from(["", "px", "mm", "in", "%", "em"]),
)
def test_property_a_drawing_with_any_root_has_a_size(
    width: float | None, height: float | None, box: tuple[float, float] | None, unit: str
) -> None:
    attributes = {
        name: f"{value}{unit}"
        for name, value in (("width", width), ("height", height))
        if value is not None
    }
    if box is not None:
        attributes["viewBox"] = f"0 0 {box[0]} {box[1]}"
    across, down = natural_size(Element("svg", attributes))
    assert 1 <= across <= MAX_EDGE
    assert 1 <= down <= MAX_EDGE


@given(st.floats(1, 2000), st.floats(1, 2000), st.floats(0.01, 100))
def test_property_a_view_box_alone_keeps_its_proportion(
    width: float, height: float, scale: float
) -> None:
    root = Element("svg", {"viewBox": f"0 0 {width * scale:.6f} {height * scale:.6f}"})
    across, down = natural_size(root)
    longer = max(width, height) * scale
    assert max(across, down) == (round(longer) if 300 <= longer <= 2048 else 1024)
    # Each edge is rounded by itself, and has at least a pixel.
    assert abs(across * height - down * width) <= max(width, height) + 2
