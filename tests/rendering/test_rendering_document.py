"""limner's own documents: what is drawn, how large it is, and what an author is told."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from limner.errors import InputInvalid
from limner.rendering.canvas import RenderedDocument
from limner.rendering.charts import nice_scale
from limner.rendering.document import draw_document, parse_document
from limner.rendering.help import help_text
from limner.rendering.text import missing_characters, shorten, width, wrap


def drawn(document: dict[str, Any], size: tuple[int, int] | None = None) -> RenderedDocument:
    return draw_document(parse_document(msgspec.json.encode(document).decode())[0], size)


def texts(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


SALES = {"type": "bar", "title": "Sales", "labels": ["Q1", "Q2"], "values": [12, 18]}
DOCUMENTS: dict[str, dict[str, Any]] = {
    "bar": SALES,
    "stacked": {**SALES, "stacked": True, "series": [{"name": "B", "values": [3, 4]}]},
    "horizontal": {**SALES, "horizontal": True},
    "line": {**SALES, "type": "line", "x_label": "Quarter", "y_label": "Units", "unit": "k"},
    "area": {**SALES, "type": "area"},
    "pie": {"type": "pie", "values": {"tea": 3, "coffee": 5}, "donut": True},
    "scatter": {"type": "scatter", "points": [[160, 55], [185, 84]]},
    "table": {"type": "table", "columns": ["Plan", "Price"], "rows": [["Free", 0], ["Team", 12]]},
    "steps": {"type": "steps", "steps": ["One", ["Two", "the second"]]},
    "qr": {"type": "qr", "data": "https://example.org/menu", "caption": "Our menu"},
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_text_and_number_of_a_document_is_in_its_drawing(name: str) -> None:
    document = DOCUMENTS[name]
    shown = " ".join(texts(drawn(document).svg))
    wanted = [document.get("title", ""), document.get("caption", "")]
    wanted += [str(one) for one in document.get("labels", [])]
    values = document.get("values", [])
    wanted += [str(one) for one in (values.values() if isinstance(values, dict) else values)]
    wanted += [str(cell) for row in document.get("rows", []) for cell in row]
    wanted += [str(one) for point in document.get("points", []) for one in point]
    assert [word for word in wanted if word not in shown] == []


def test_the_document_decides_its_size_and_a_caller_may_choose_another() -> None:
    assert (drawn(SALES).width, drawn(SALES).height) == (1024, 768)
    page = {"type": "page", "size": "640 x 480", "children": [SALES]}
    assert (drawn(page).width, drawn(page).height) == (640, 480)
    chosen = drawn(page, (300, 200))
    assert (chosen.width, chosen.height) == (300, 200)


def test_a_table_is_as_high_as_its_rows() -> None:
    short, long = (drawn({"type": "table", "rows": [["a", "b"]] * rows}).height for rows in (2, 20))
    assert long > short * 4


def test_text_becomes_smaller_until_everything_fits_and_then_the_author_is_told() -> None:
    words = {"type": "text", "text": "many words " * 40}
    assert drawn({"type": "page", "children": [words] * 6}).notes == ()
    assert drawn({"type": "page", "size": "200x200", "children": [words] * 30}).notes == (
        "The content is larger than the picture; give it a larger size.",
    )


def test_a_character_that_no_font_has_is_reported() -> None:
    assert drawn({**SALES, "title": "ไทย Ж λ"}).notes == (
        "No bundled font has these characters: ไทย",
    )
    assert missing_characters("Aé Ж λ → √ ☐ ♞ ⤵ ❄ ∇ ⊕ 😀 ⚠\ufe0f 👩\u200d💻 🇩🇪 1\ufe0f\u20e3") == ""
    assert missing_characters("👍🏽") == "🏽"


def test_a_sign_and_an_emoji_have_the_width_of_their_own_fonts() -> None:
    assert width("🚀", 10) == width("🚀\ufe0f", 10) == width("👩\u200d", 10) == 10
    assert width("☐", 100) == pytest.approx(82.1)


@pytest.mark.parametrize(
    ("source", "message", "hint"),
    [
        (
            '{"type": "page", "children": [{"type": "bar", "values": ["x"]}]}',
            "Expected `int | float | null`, got `str` - at `$.children[0].values[0]`",
            None,
        ),
        (
            '{"type": "page",\n"children": [}',
            "the JSON is broken: Expecting value: line 2 column 14 (char 30)",
            None,
        ),
    ],
)
def test_an_error_says_where_it_is_and_what_to_write_instead(
    source: str, message: str, hint: str | None
) -> None:
    with pytest.raises(InputInvalid) as caught:
        parse_document(source)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_an_unknown_type_gets_a_suggestion_and_the_list() -> None:
    with pytest.raises(InputInvalid) as caught:
        parse_document('{"type": "barz"}')
    assert (caught.value.hint or "").startswith("Did you mean bar? The types are text, asset,")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"type": "bar"}, "the chart has no values"),
        ({"type": "bar", "labels": ["a"], "values": [1, 2]}, "the chart has 2 values and 1 labels"),
        ({"type": "pie", "values": {"a": -1}}, "the shares of a pie must be positive numbers"),
    ],
)
def test_data_that_cannot_be_drawn_is_refused(document: dict[str, Any], message: str) -> None:
    with pytest.raises(InputInvalid) as caught:
        drawn(document)
    assert caught.value.message == message


@pytest.mark.parametrize("topic", ["charts", "pages"])
def test_the_example_in_the_help_can_be_drawn(topic: str) -> None:
    example = help_text(topic).rpartition("Example: ")[2]
    assert drawn(msgspec.json.decode(example)).svg.startswith("<svg")


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9))
@example(0.0, 5e-324)
def test_property_a_scale_covers_its_values_with_rising_round_ticks(
    low: float, spread: float
) -> None:
    ticks = list(nice_scale(low, low + spread).ticks)
    assert ticks == sorted(set(ticks))
    slack = (ticks[1] - ticks[0]) * 1e-6
    assert ticks[0] - slack <= low
    assert low + spread <= ticks[-1] + slack
    assert 2 <= len(ticks) <= 12


@settings(max_examples=60)
@given(
    st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=200),
    st.floats(20, 400),
)
def test_property_wrapped_lines_have_all_words_and_fit(text: str, room: float) -> None:
    lines = wrap(text, 16, room)
    assert "".join(lines.lines).replace(" ", "") == text.replace(" ", "")
    assert all(width(line, 16) <= room or len(line) == 1 for line in lines.lines)
    assert width(shorten(text, 16, room), 16) <= max(room, width("…", 16))


NUMBERS = st.one_of(st.none(), st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["bar", "line", "area"]),
    st.lists(NUMBERS, min_size=1, max_size=30).filter(lambda v: any(x is not None for x in v)),
    st.booleans(),
    st.sampled_from([(64, 64), (1024, 768), (300, 2000)]),
)
def test_property_any_numbers_make_a_chart(
    kind: str, values: list[float | None], flag: bool, size: tuple[int, int]
) -> None:
    document: dict[str, Any] = {"type": kind, "values": values}
    if kind == "bar":
        document |= {"stacked": flag, "horizontal": not flag}
    svg = drawn(document, size).svg
    assert not re.search(r"nan|inf", svg)


def test_an_axis_reaches_as_far_as_its_author_says_and_never_cuts_the_data() -> None:
    line = {"type": "line", "labels": ["a", "b"], "values": [90, 120]}
    assert {"60", "160"} <= set(texts(drawn({**line, "y_min": 60, "yMax": 160}).svg))
    assert {"90", "120"} <= set(texts(drawn({**line, "y_min": 100, "y_max": 110}).svg))


@pytest.mark.parametrize("way", ["upright", "horizontal"])
def test_each_bar_of_one_series_has_its_own_colour_and_a_chart_names_its_source(
    way: str,
) -> None:
    chart = {**SALES, "horizontal": way == "horizontal", "colors": ["#112233", "#445566"]}
    svg = drawn({**chart, "source": "Source: our books"}).svg
    assert [color for color in re.findall(r'fill="(#\w{6})"', svg) if color in chart["colors"]] == [
        "#112233",
        "#445566",
    ]
    assert "Source: our books" in texts(svg)


def test_the_labels_of_horizontal_bars_have_one_size() -> None:
    names = ["a text turn", "the last ten of fifty tool turns with a large screenshot each"]
    labels = [*names, *(f"work {number}" for number in range(18))]
    chart = {"type": "bar", "horizontal": True, "labels": labels, "values": [1] * len(labels)}
    svg = drawn(chart, (800, 600)).svg
    found = re.findall(r'font-size="([\d.]+)"[^>]*>(a text turn|the last|work \d+)', svg)
    assert len(found) == len(labels)
    assert len({size for size, _ in found}) == 1


def test_a_line_has_a_gap_where_a_value_is_missing() -> None:
    svg = drawn({"type": "line", "labels": [*"abcd"], "values": [1, 2, None, 4]}).svg
    assert len(re.findall(r'd="M[\d. ]+L[\d. ]+M[\d. ]+"', svg)) == 1


def test_a_long_label_of_a_checkbox_is_wrapped_and_not_cut_off() -> None:
    label = "Fresh water in the morning and again in the evening, before the walk"
    box = {"type": "column", "width": 200, "children": [{"type": "checkbox", "label": label}]}
    shown = texts(drawn({"type": "page", "size": "400x400", "children": [box]}).svg)
    assert " ".join(shown) == label
    assert len(shown) > 1


@pytest.mark.parametrize(
    ("tasks", "texts_of_axis"),
    [
        ([["Plan", "2026-03-02", "2026-03-06"]], {"2 Mar", "6 Mar"}),
        ([["Plan", "2026-01-10", "2027-06-01"]], {"Mar 2026", "Jan 2027"}),
        ([["Plan", 1, 4]], {"1", "4"}),
        ([["Plan", "Week 1", "Week 3"]], {"1", "3"}),
    ],
)
def test_a_plan_has_an_axis_of_days_months_or_numbers(
    tasks: list[Any], texts_of_axis: set[str]
) -> None:
    shown = set(texts(drawn({"type": "gantt", "tasks": tasks}).svg))
    assert {"Plan"} | texts_of_axis <= shown


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"name": "a", "start": "soon"}, "'soon' is not a date"),
        ({"name": "a", "start": "2026-01-01", "days": 1e99}, "'a' ends too late"),
    ],
)
def test_a_task_without_a_time_is_refused(task: dict[str, Any], message: str) -> None:
    with pytest.raises(InputInvalid, match=message):
        drawn({"type": "gantt", "tasks": [task]})


def test_values_of_near_lines_do_not_touch_and_shares_end_at_a_hundred() -> None:
    near = {"A": [10, 10], "B": [10.1, 10.2], "C": [9.9, 9.8]}
    svg = drawn({"type": "line", "y_max": 100, "labels": ["x", "y"], "series": near}).svg
    places = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>(?:9|10)[.\d]*<', svg)
    heights = [
        [float(y) for x, y in places if (float(x) > 500) is right] for right in (False, True)
    ]
    # The first number of the left side is the tick 10 of the axis.
    for column in (heights[0][1:], heights[1]):
        lines = sorted(column)
        assert len(lines) == 3
        assert min(low - high for high, low in pairwise(lines)) > 15
    shown = texts(drawn({"type": "bar", "unit": "%", "labels": ["x"], "values": [98]}).svg)
    assert "100%" in shown
    assert "125%" not in shown
