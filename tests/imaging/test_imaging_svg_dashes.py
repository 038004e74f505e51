"""Dashes in parts of ``pathLength``: lengths of shapes and paths, and what is drawn."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.imaging.svg.dashes import scale_dashes
from limner.imaging.svg.parser import Element


def dash(tag: str, **attributes: str) -> float:
    """The length that half of an outline gets."""
    own = {name.replace("_", "-"): text for name, text in attributes.items()}
    element = Element(tag, {**own, "pathLength": "100", "stroke-dasharray": "50 100"})
    scale_dashes(element)
    assert "pathLength" not in element.attributes
    return float(element.attributes["stroke-dasharray"].split()[0])


@pytest.mark.parametrize(
    ("tag", "attributes", "half"),
    [
        ("circle", {"r": "20"}, math.pi * 20),
        ("ellipse", {"rx": "20", "ry": "20"}, math.pi * 20),
        ("rect", {"width": "30", "height": "10"}, 40.0),
        ("rect", {"width": "40", "height": "40", "rx": "20"}, math.pi * 20),
        ("line", {"x1": "0", "x2": "30", "y2": "40"}, 25.0),
        ("polyline", {"points": "0,0 30,0 30,40"}, 35.0),
        ("polygon", {"points": "0,0 30,0 30,40"}, 60.0),
        ("path", {"d": "M0 0h30v40H0V0z"}, 70.0),
        ("path", {"d": "m10-10 30 0 0 40"}, 35.0),
        ("path", {"d": "M0 0C0 0 30 0 30 0S60 0 60 0Q75 0 90 0T120 0"}, 60.0),
        ("path", {"d": "M20 60 A 40 40 0 0 1 100 60"}, math.pi * 20),
        ("path", {"d": "M20 60a40 40 0 0180 0"}, math.pi * 20),
        ("path", {"d": "M50 10 A40 40 0 1 1 49.99 10"}, math.pi * 40),
    ],
)
def test_half_of_an_outline_is_half_of_its_length(
    tag: str, attributes: dict[str, str], half: float
) -> None:
    assert dash(tag, **attributes) == pytest.approx(half, rel=5e-3)


def test_dashes_in_a_style_are_scaled_and_an_outline_without_a_length_stays() -> None:
    style = "stroke-dasharray: 25 75; stroke-dashoffset:-10;fill:none"
    styled = Element("line", {"x2": "200", "pathLength": "100", "style": style})
    scale_dashes(styled)
    assert styled.attributes["style"] == "stroke-dasharray: 50 150; stroke-dashoffset:-20;fill:none"
    empty = Element("path", {"d": "nonsense", "pathLength": "9", "stroke-dasharray": "1"})
    scale_dashes(empty)
    assert empty.attributes == {"d": "nonsense", "stroke-dasharray": "1"}


@given(st.text(alphabet="MmLlHhVvCcSsQqTtAaZz0123456789.,-+ e", max_size=60))
def test_any_path_is_measured(data: str) -> None:
    element = Element("path", {"d": data, "pathLength": "10", "stroke-dasharray": "5"})
    scale_dashes(element)
    assert float(element.attributes["stroke-dasharray"]) >= 0
