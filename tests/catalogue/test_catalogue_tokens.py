"""Token rules against every published example, and against slower ways to the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor, sqrt
from typing import cast

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from limner.catalogue.sizes import Size, parse_size
from limner.catalogue.tokens import (
    ClaudePatches,
    Frame,
    ImageTokens,
    MediaResolution,
    OpenAIPatches,
    OpenAITiles,
    TokenRule,
)
from limner.catalogue.vision import vision_model, vision_models
from limner.errors import ImageTooLarge, InputInvalid


def rule_of(name: str) -> TokenRule:
    rule = vision_model(name).rule
    assert rule is not None
    return rule


GPT_56 = rule_of("openai/gpt-5.6-sol")
GPT_55 = rule_of("openai/gpt-5.5")
GPT_54 = rule_of("openai/gpt-5.4")
GPT_4O = rule_of("openai/gpt-4o")
CLAUDE_HIGH = cast("ClaudePatches", rule_of("anthropic/claude-opus-5-5"))
CLAUDE_STANDARD = cast("ClaudePatches", rule_of("anthropic/claude-haiku-4-5"))

# Rules hold dictionaries and cannot be hashed, so one of each is found by what it prints as.
EVERY_RULE = {repr(model.rule): model.rule for model in vision_models() if model.rule}.values()


def details_of(rule: TokenRule) -> list[str]:
    match rule:
        case OpenAIPatches():
            return ["auto", *rule.frames]
        case OpenAITiles():
            return ["auto", "low", "high"]
        case ClaudePatches():
            return ["auto"]
        case MediaResolution():
            return ["auto", *rule.tokens]


EVERY_WAY = [(rule, detail) for rule in EVERY_RULE for detail in details_of(rule)]

edges = st.integers(1, 12_000)
sizes = st.builds(Size, edges, edges)
small_edges = st.integers(1, 800)
small_sizes = st.builds(Size, small_edges, small_edges)
large_edges = st.integers(3_000, 12_000)
large_sizes = st.builds(Size, large_edges, large_edges)
ways = st.sampled_from(EVERY_WAY)


def look(rule: TokenRule, size: str, detail: str = "auto") -> tuple[int, str]:
    seen = rule.count(parse_size(size), detail)
    return seen.tokens, str(seen.size)


# --- what the vendors print ---


def test_a_4k_screenshot_on_gpt_5_6_takes_9792_tokens_by_default() -> None:
    assert GPT_56.count(Size(3840, 2160), "auto") == ImageTokens(
        tokens=9_792, width=3840, height=2160, exact=True
    )


@pytest.mark.parametrize(
    ("size", "standard", "high"),
    [
        ("1920x1080", (1560, "1456x819"), (2691, "1920x1080")),
        ("3840x2160", (1560, "1456x819"), (4784, "2576x1449")),
        ("1075x1520", (1551, "924x1307"), (2145, "1075x1520")),
        # The vendor's table says 1269x952, the code beside it 1270x952; the tokens are the same.
        ("2000x1500", (1564, "1270x952"), (3888, "2000x1500")),
        ("1092x1092", (1521, "1092x1092"), (1521, "1092x1092")),
    ],
)
def test_claude_sees_the_published_sizes(
    size: str, standard: tuple[int, str], high: tuple[int, str]
) -> None:
    assert (look(CLAUDE_STANDARD, size), look(CLAUDE_HIGH, size)) == (standard, high)


@pytest.mark.parametrize(
    ("detail", "size", "tokens", "seen"),
    [
        ("high", "1024x1024", 765, "768x768"),
        ("high", "2048x4096", 1105, "768x1536"),
        ("high", "512x512", 255, "512x512"),
        ("high", "1920x1080", 1105, "1365x768"),
        ("low", "4096x8192", 85, "256x512"),
    ],
)
def test_tiles_come_out_as_published_and_nothing_is_enlarged(
    detail: str, size: str, tokens: int, seen: str
) -> None:
    assert look(GPT_4O, size, detail) == (tokens, seen)


def test_the_published_walk_through_of_a_patch_budget_comes_out() -> None:
    assert Frame(max_edge=65_535, max_patches=1_536).seen(Size(1800, 2400)) == Size(1056, 1408)


@pytest.mark.parametrize(
    ("name", "detail", "tokens"),
    [
        ("google/gemini-3.8-flash", "auto", 1120),
        ("google/gemini-3.8-flash", "low", 280),
        ("google/gemini-3.8-flash", "medium", 560),
        ("google/gemini-3.8-flash", "high", 1120),
        ("google/gemini-4-argon", "ultra_high", 2240),
        ("google/gemini-2.5-flash", "low", 64),
        ("google/gemini-2.5-flash", "medium", 256),
        ("google/gemini-2.5-pro", "auto", 2048),
    ],
)
def test_gemini_counts_by_media_resolution_and_only_up_to_it(
    name: str, detail: str, tokens: int
) -> None:
    assert rule_of(name).count(Size(640, 480), detail) == ImageTokens(
        tokens=tokens, width=640, height=480, exact=False
    )


@pytest.mark.parametrize(
    ("rule", "detail", "size", "tokens", "seen"),
    [
        (GPT_56, "low", "3840x2160", 173, "512x288"),
        (GPT_56, "high", "3840x2160", 2765, "2048x1152"),
        (GPT_56, "high", "4032x3024", 2942, "1824x1368"),
        (GPT_56, "auto", "4032x3024", 14_364, "4032x3024"),
        (GPT_55, "auto", "4032x3024", 11_868, "3669x2752"),
        (GPT_55, "auto", "12000x100", 452, "6000x50"),
        (GPT_54, "auto", "3840x2160", 2765, "2048x1152"),
        (GPT_54, "original", "3840x2160", 9792, "3840x2160"),
        (rule_of("openai/gpt-5.2"), "auto", "2048x2048", 4916, "2048x2048"),
        (rule_of("openai/gpt-4.1-mini"), "auto", "1024x1024", 1659, "1024x1024"),
        (rule_of("openai/gpt-5"), "high", "1024x1024", 630, "768x768"),
        (rule_of("openai/gpt-4o-mini"), "high", "1024x1024", 25_501, "768x768"),
        (rule_of("openai/o3"), "high", "1024x1024", 675, "768x768"),
        (rule_of("openai/o3"), "low", "1024x1024", 75, "512x512"),
    ],
)
def test_openai_models_count_by_their_own_tables(
    rule: TokenRule, detail: str, size: str, tokens: int, seen: str
) -> None:
    assert look(rule, size, detail) == (tokens, seen)


def test_on_gpt_5_4_low_detail_can_take_more_than_high() -> None:
    assert [look(GPT_54, "2048x2048", detail) for detail in ("low", "high")] == [
        (4916, "2048x2048"),
        (3000, "1600x1600"),
    ]


@pytest.mark.parametrize("detail", ["auto", "low", "high", "original"])
def test_what_is_not_published_is_marked_as_an_estimate(detail: str) -> None:
    gpt_6 = rule_of("openai/gpt-6-astra")
    assert gpt_6.count(Size(2560, 1440), detail).exact is False


def test_an_estimate_is_not_below_the_one_public_count_that_is_higher() -> None:
    assert look(rule_of("openai/gpt-6-astra"), "2560x1440", "high") == (2931, "2104x1184")


def test_a_tile_model_left_to_choose_is_counted_at_its_dearer_choice() -> None:
    assert [GPT_4O.count(Size(1024, 1024), detail) for detail in ("auto", "high")] == [
        ImageTokens(tokens=765, width=768, height=768, exact=False),
        ImageTokens(tokens=765, width=768, height=768, exact=True),
    ]


# --- what is refused ---


def test_more_than_30000_patches_are_refused_naming_the_largest_size_that_is_not() -> None:
    with pytest.raises(ImageTooLarge) as caught:
        GPT_56.count(Size(12_000, 9_000), "auto")
    assert (caught.value.message, caught.value.hint) == (
        "A picture of 12000x9000 is more than 30000 patches",
        "Send it at 6400x4800, or ask for less detail.",
    )


def test_exactly_30000_patches_are_taken() -> None:
    assert look(GPT_56, "6400x4800") == (36_000, "6400x4800")
    with pytest.raises(ImageTooLarge):
        GPT_56.count(Size(6401, 4800), "original")


@pytest.mark.parametrize(
    ("rule", "detail", "hint"),
    [
        (GPT_56, "ultra_high", "Use auto or low or high or original."),
        (rule_of("openai/gpt-5.2"), "original", "Use auto or low or high."),
        (GPT_4O, "original", "Use auto or low or high."),
        (CLAUDE_HIGH, "high", "Use auto."),
        (rule_of("google/gemini-2.5-pro"), "ultra_high", "Use auto or low or medium or high."),
        (GPT_56, "", "Use auto or low or high or original."),
    ],
)
def test_a_detail_the_model_does_not_have_is_refused_naming_those_it_has(
    rule: TokenRule, detail: str, hint: str
) -> None:
    for ask in (rule.count, rule.useful):
        with pytest.raises(InputInvalid) as caught:
            ask(Size(10, 10), detail)
        assert (caught.value.field, caught.value.hint) == ("detail", hint)


# --- what holds for every picture ---


def most_tokens(rule: TokenRule, detail: str) -> int:
    """The budget of a rule, counted in tokens."""
    match rule:
        case OpenAIPatches():
            frame = rule.frames[rule.auto if detail == "auto" else detail]
            square = (-(-frame.max_edge // 32)) ** 2
            return ceil(
                (frame.max_patches or frame.refused_above_patches or square) * rule.multiplier
            )
        case OpenAITiles():
            # At most 768 by 2048 pixels: two tiles by four.
            return rule.base_tokens + (0 if detail == "low" else 8 * rule.tile_tokens)
        case ClaudePatches():
            return rule.max_tokens
        case MediaResolution():
            return rule.tokens[rule.auto if detail == "auto" else detail]


def shape_error(original: Size, seen: Size) -> Fraction:
    """How many pixels an edge is off, measured along the edge that is less so."""
    return min(
        abs(Fraction(seen.width * original.height, original.width) - seen.height),
        abs(Fraction(seen.height * original.width, original.height) - seen.width),
    )


@given(ways, sizes)
@example((GPT_56, "auto"), Size(1, 1))
@example((GPT_55, "auto"), Size(1, 12_000))
@example((CLAUDE_STANDARD, "auto"), Size(12_000, 1))
def test_property_the_size_sent_is_seen_as_it_is_and_stays_within_the_budget(
    way: tuple[TokenRule, str], size: Size
) -> None:
    rule, detail = way
    sent = rule.useful(size, detail)
    seen = rule.count(sent, detail)
    assert (seen.size, rule.useful(sent, detail)) == (sent, sent)
    assert 1 <= sent.width <= size.width
    assert 1 <= sent.height <= size.height
    assert 0 < seen.tokens <= most_tokens(rule, detail)
    # The vendors round once or twice, by at most half a pixel and then by less than one.
    assert shape_error(size, sent) < Fraction(3, 2)


@given(ways, sizes)
def test_property_shrinking_first_changes_neither_what_is_seen_nor_what_it_takes(
    way: tuple[TokenRule, str], size: Size
) -> None:
    rule, detail = way
    try:
        unshrunk = rule.count(size, detail)
    except ImageTooLarge:
        return
    sent = rule.useful(size, detail)
    assert rule.count(sent, detail).tokens == unshrunk.tokens
    if not isinstance(rule, MediaResolution):
        assert sent == unshrunk.size


@given(ways, small_sizes, small_sizes)
def test_property_of_two_pictures_seen_whole_the_larger_never_takes_less(
    way: tuple[TokenRule, str], one: Size, other: Size
) -> None:
    rule, detail = way
    smaller = Size(min(one.width, other.width), min(one.height, other.height))
    larger = Size(max(one.width, other.width), max(one.height, other.height))
    assume(rule.useful(smaller, detail) == smaller and rule.useful(larger, detail) == larger)
    assert rule.count(smaller, detail).tokens <= rule.count(larger, detail).tokens


@given(ways, sizes)
def test_property_a_picture_on_its_side_takes_as_much(
    way: tuple[TokenRule, str], size: Size
) -> None:
    rule, detail = way
    sent = rule.useful(size, detail)
    turned = rule.useful(Size(size.height, size.width), detail)
    assert turned == Size(sent.height, sent.width)
    assert rule.count(turned, detail).tokens == rule.count(sent, detail).tokens


@given(large_sizes, st.sampled_from([1_536, 2_500, 6_144, 8_000]))
def test_property_a_patch_budget_agrees_with_the_published_floats(size: Size, budget: int) -> None:
    assert ceil(size.width / 32) * ceil(size.height / 32) > budget
    scale = sqrt(1024 * budget / size.pixels)
    patches = [edge * scale / 32 for edge in size]
    # On a whole patch the floats fall to either side; integers do not.
    assume(all(abs(count - round(count)) > 1e-9 for count in patches))
    scale *= min(floor(count) / count for count in patches)
    published = [int(edge * scale) for edge in size]
    exact = Frame(max_edge=12_000, max_patches=budget).seen(size)
    # The edge that ends on a patch can come out a pixel short as a float.
    assert all(0 <= mine - theirs <= 1 for mine, theirs in zip(exact, published, strict=True))
    assert [-(-edge // 32) for edge in exact] == [-(-edge // 32) for edge in published]


@given(st.sampled_from([CLAUDE_STANDARD, CLAUDE_HIGH]), sizes)
@settings(max_examples=30)
def test_property_claudes_size_is_the_first_that_fits_on_the_way_down(
    rule: ClaudePatches, size: Size
) -> None:
    def fits(candidate: Size) -> bool:
        columns, rows = ceil(candidate.width / 28), ceil(candidate.height / 28)
        return max(columns, rows) * 28 <= rule.max_edge and columns * rows <= rule.max_tokens

    def on_the_way_down() -> Iterator[Size]:
        for edge in range(max(size), 0, -1):
            width, height = (max(1, round(Fraction(old * edge, max(size)))) for old in size)
            yield Size(width, height)

    assert rule.useful(size, "auto") == next(filter(fits, on_the_way_down()))
