"""Sizes: what is read, what is legal, and the nearest legal one."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from limner.catalogue.sizes import AnySize, ListedSizes, Size, SizeRange, SizeRule, parse_size
from limner.errors import InputInvalid

LISTED = ListedSizes(sizes=(Size(1024, 1024), Size(1024, 1792), Size(1792, 1024)))
RANGE = SizeRange(
    multiple_of=16, max_edge=3840, min_pixels=655_360, max_pixels=8_294_400, max_ratio=3
)
ANY = AnySize(min_edge=64, max_edge=2048)

edges = st.integers(1, 16_384)
sizes = st.builds(Size, edges, edges)
rules = st.sampled_from([LISTED, RANGE, ANY])


@given(sizes)
def test_property_a_size_survives_being_written_and_read(size: Size) -> None:
    assert parse_size(str(size)) == size


@pytest.mark.parametrize(
    "text", ["1024x768", "1024X768", "1024 x 768", "1024\u00d7768", "1024*768", " 1024x768\n"]
)
def test_near_misses_of_a_size_are_understood(text: str) -> None:
    assert parse_size(text) == Size(1024, 768)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1024",
        "1024x",
        "x1024",
        "1024 1024",
        "1024x1024x3",
        "0x1024",
        "1024x0",
        "-1x1024",
        "+1x1024",
        "01024x1024",
        "1_024x1024",
        "1e3x1024",
        "1024.0x1024",
        "16385x1",
        "1x16385",
        "99999999999999999999x1",
        "\u0661\u0660\u0662\u0664x1024",
        "auto",
    ],
)
def test_anything_but_width_x_height_is_refused_naming_the_field(text: str) -> None:
    with pytest.raises(InputInvalid) as caught:
        parse_size(text)
    assert (caught.value.field, caught.value.code) == ("size", "INPUT_INVALID")
    assert caught.value.hint is not None
    assert "1024x1024" in caught.value.hint


@given(st.text(max_size=30))
def test_property_hostile_text_gives_a_size_that_prints_the_same_or_an_error(text: str) -> None:
    try:
        size = parse_size(text)
    except InputInvalid:
        return
    assert str(size) == text


def test_a_long_bad_size_is_not_echoed_whole() -> None:
    with pytest.raises(InputInvalid) as caught:
        parse_size("9" * 100_000)
    assert len(caught.value.message) < 100


@given(rules, sizes)
def test_property_the_nearest_size_is_always_legal(rule: SizeRule, size: Size) -> None:
    assert rule.allows(rule.nearest(size))


@given(rules, sizes)
def test_property_a_legal_size_is_its_own_nearest(rule: SizeRule, size: Size) -> None:
    legal = rule.nearest(size)
    assert rule.nearest(legal) == legal


@given(rules, sizes)
@example(RANGE, Size(522, 1520))
def test_property_turning_the_size_turns_the_shape_of_the_nearest(
    rule: SizeRule, size: Size
) -> None:
    nearest, turned = rule.nearest(size), rule.nearest(Size(size.height, size.width))
    assert sorted(nearest) == sorted(turned)


@pytest.mark.parametrize(
    ("rule", "asked", "nearest"),
    [
        (LISTED, "512x512", "1024x1024"),
        (LISTED, "1000x1100", "1024x1024"),
        (LISTED, "1080x1920", "1024x1792"),
        (LISTED, "3840x2160", "1792x1024"),
        (RANGE, "512x512", "816x816"),
        (RANGE, "1000x1000", "1008x1008"),
        (RANGE, "1024x1792", "1024x1792"),
        (RANGE, "1920x1080", "1920x1088"),
        (RANGE, "16384x16384", "2880x2880"),
        (RANGE, "16384x1", "1408x480"),
        (ANY, "32x32", "64x64"),
        (ANY, "32x64", "64x128"),
        (ANY, "3840x2160", "2048x1152"),
        (ANY, "1x16384", "64x2048"),
    ],
)
def test_the_nearest_size_keeps_the_shape_before_the_area(
    rule: SizeRule, asked: str, nearest: str
) -> None:
    assert str(rule.nearest(parse_size(asked))) == nearest


@pytest.mark.parametrize(
    ("asked", "legal"),
    [
        ("1024x1024", True),
        ("1024x640", True),  # the smallest area there is
        ("1008x640", False),
        ("3840x2160", True),  # the largest area there is
        ("3840x2176", False),
        ("3856x1296", False),  # an edge too long
        ("1536x512", True),  # three to one
        ("1552x512", False),
        ("512x1536", True),
        ("1000x1000", False),  # no multiple of 16
    ],
)
def test_a_range_holds_at_each_of_its_limits(asked: str, legal: bool) -> None:
    assert RANGE.allows(parse_size(asked)) is legal
