from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.fuzz import examples

from limner.content import Content, Picture, Text
from limner.tools.base import ToolResult
from limner.tools.result_budget import fit_all, measure, share, shorten_json, shorten_text, to_json

strings = st.text() | st.text(alphabet='ab "\\\n\x00é😀', min_size=50, max_size=400)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | strings,
    lambda inner: (
        st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=20), inner, max_size=30)
    ),
    max_leaves=20,
)
values = st.dictionaries(st.text(max_size=20), json_values, max_size=12)
limits = st.integers(-5, 60) | st.integers(0, 2_000)


def chars(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def number_in(mark: str) -> int:
    return int(mark.rpartition("… [")[2].split()[0].replace(",", ""))


def removed(before: Any, after: Any, *, outermost: bool = False) -> int:
    """Count what is missing, by comparing the two values and believing only the marks' places."""
    if before == after and type(before) is type(after):
        return 0
    if isinstance(before, str):
        kept, mark, _ = after.rpartition("… [")
        assert mark
        assert before.startswith(kept)
        assert number_in(after) == len(before) - len(kept)
        return len(before) - len(kept)
    kept_values = list(after) if isinstance(after, list) else list(after.items())
    all_values = list(before) if isinstance(before, list) else list(before.items())
    if len(kept_values) == len(all_values) and _has_no_mark(before, after):
        rest = 0
    else:
        mark = kept_values.pop()
        kept = (
            before[: len(kept_values)]
            if isinstance(before, list)
            else dict(all_values[: len(kept_values)])
        )
        rest = chars(before) - chars(kept)
        if not outermost:
            name = mark if isinstance(before, list) else mark[0]
            assert number_in(name) == len(all_values) - len(kept_values)
    pairs = zip(all_values, kept_values, strict=False)
    if isinstance(before, list):
        return rest + sum(removed(old, new) for old, new in pairs)
    return rest + sum(removed(old[1], new[1]) for old, new in pairs)


def _has_no_mark(before: Any, after: Any) -> bool:
    if isinstance(before, dict):
        return list(before) == list(after)
    last = after[-1]
    return not (isinstance(last, str) and re.fullmatch(r"… \[[\d,]+ items? cut\]", last))


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(values, limits)
def test_the_text_always_parses_and_keeps_within_the_limit(
    value: dict[str, Any], limit: int
) -> None:
    text, cut = shorten_json(value, limit)
    assert isinstance(json.loads(text), dict)
    assert text.encode().decode() == text
    assert len(text) <= max(limit, 2)
    assert (cut > 0) == (text != to_json(value))


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(values, limits)
def test_the_number_of_characters_cut_is_exact(value: dict[str, Any], limit: int) -> None:
    before = json.loads(to_json(value))
    text, cut = shorten_json(value, limit)
    after = json.loads(text)
    if text == "{}":
        assert cut == chars(before) - 2
        return
    assert removed(before, after, outermost=True) == cut
    if list(after) != list(before):
        assert after["cut_chars"] == cut


@given(st.text(), st.integers(-5, 100))
def test_a_shortened_text_keeps_within_the_limit_and_counts_exactly(text: str, limit: int) -> None:
    shorter, cut = shorten_text(text, limit)
    assert len(shorter) <= max(limit, 0)
    assert (cut > 0) == (shorter != text)
    if cut and "cut]" in shorter:
        kept = shorter.rpartition("… [")[0]
        assert text.startswith(kept)
        assert cut == len(text) - len(kept) == number_in(shorter)


@given(st.integers(-10, 1_000), st.lists(st.integers(0, 500), max_size=12))
def test_shares_are_fair_and_leave_nothing_over(total: int, demands: list[int]) -> None:
    allotted = share(total, demands)
    assert all(got <= wanted for got, wanted in zip(allotted, demands, strict=True))
    assert sum(allotted) == min(max(total, 0), sum(demands))
    cut = [got for got, wanted in zip(allotted, demands, strict=True) if got < wanted]
    if cut:
        assert max(allotted) <= min(cut) + 1


texts = st.text(max_size=300)
contents = st.lists(
    st.builds(Text, texts)
    | st.just(Picture(handle="a" * 64, mime="image/png", width=1, height=1, size_bytes=1)),
    max_size=3,
).map(tuple)


def success(value: dict[str, Any], content: tuple[Content, ...]) -> ToolResult:
    return ToolResult(
        call_id="c", name="t", ok=True, value=to_json(value), content=content, cost_nano=7
    )


def failure(error: str, hint: str | None, extras: dict[str, Any]) -> ToolResult:
    return ToolResult(
        call_id="c", name="t", ok=False, error=error, hint=hint, extras=extras, cost_nano=7
    )


results = st.builds(success, values, contents) | st.builds(
    failure, texts, st.none() | texts, values
)


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(
    st.lists(st.tuples(results, st.integers(2, 1_500)), min_size=1, max_size=5),
    st.integers(0, 4_000),
)
@example([(success({}, (Text("0"),)), 2)], 2)
def test_a_batch_keeps_its_limits_and_nothing_is_cut_without_need(
    batch: list[tuple[ToolResult, int]], total: int
) -> None:
    before = [result for result, _ in batch]
    caps = [cap for _, cap in batch]
    after = fit_all(before, caps=caps, total=total)
    # Each object has a floor of two characters, whatever its share.
    floor = [2 * bool(result.value) + 2 * bool(result.extras) for result in before]
    for old, new, cap, least in zip(before, after, caps, floor, strict=True):
        assert measure(new) <= cap + least
        assert new.cost_nano == 7
        assert (new.cut_chars > 0) == (new != old)
        if new.ok:
            json.loads(new.value)
    assert sum(map(measure, after)) <= total + sum(floor)
    if sum(min(measure(old), cap) for old, cap in zip(before, caps, strict=True)) <= total:
        # One that is longer may stay whole, too, by what the floors allow above.
        assert all(
            new == old
            for old, new, cap in zip(before, after, caps, strict=True)
            if measure(old) <= cap
        )
