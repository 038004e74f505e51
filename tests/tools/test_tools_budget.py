from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from limner.content import Picture, Text
from limner.tools.base import ToolResult
from limner.tools.result_budget import (
    fit,
    fit_all,
    measure,
    share,
    shorten_json,
    shorten_text,
    to_json,
)

PICTURE = Picture(handle="a" * 64, mime="image/png", width=8, height=8, size_bytes=9)


def generated(**more: Any) -> dict[str, Any]:
    """A value as `image_generate` answers it."""
    return {
        "path": "/home/ada/.limner/generated/1715600000000.png",
        "dimensions": {"width": 1024, "height": 1792},
        "cost_usd": 0.08,
        "provider": "openai-dalle",
        "prompt_used": "a fox",
        "cost_source": "table",
        "model": "dall-e-3",
        "image": "b" * 64,
        **more,
    }


def success(value: dict[str, Any], *content: Text | Picture) -> ToolResult:
    return ToolResult(
        call_id="c1",
        name="draw",
        ok=True,
        value=to_json(value),
        content=content,
        cost_nano=80_000_000,
        billed=True,
    )


@pytest.mark.parametrize(
    ("total", "demands", "allotted"),
    [
        (100, [10, 10], [10, 10]),
        (100, [10, 500], [10, 90]),
        (100, [500, 10, 500], [45, 10, 45]),
        (100, [500, 500, 500], [33, 33, 34]),
        (100, [], []),
        (0, [5, 5], [0, 0]),
        (-3, [5], [0]),
    ],
)
def test_what_one_call_leaves_goes_to_the_others(
    total: int, demands: list[int], allotted: list[int]
) -> None:
    assert share(total, demands) == allotted


def test_a_value_that_fits_is_compact_json_in_its_own_order() -> None:
    assert shorten_json({"b": [1, 2.5, None, True], "a": "é"}, 100) == (
        '{"b":[1,2.5,null,true],"a":"é"}',
        0,
    )


def test_a_long_prompt_is_cut_and_says_so_while_all_else_stays() -> None:
    prompt = "a watercolour of a fox in the snow, " * 100
    text, cut = shorten_json(generated(prompt_used=prompt), 1_000)
    shown = json.loads(text)
    kept = len(prompt) - cut
    assert shown == generated(prompt_used=f"{prompt[:kept]}… [{cut:,} characters cut]")
    assert len(text) == 1_000


def test_an_absolute_path_outlives_the_prompt_and_other_members() -> None:
    path = "/home/ada/" + "deep folder/" * 30 + "x.png"
    text, _ = shorten_json(generated(path=path, prompt_used="word " * 40), 800)
    assert json.loads(text)["path"] == path


def test_a_path_that_would_take_more_than_half_is_cut_like_any_text() -> None:
    text, _ = shorten_json(generated(path="/" + "x" * 2_000), 1_000)
    assert json.loads(text) == generated(path=json.loads(text)["path"])
    assert json.loads(text)["path"].endswith("characters cut]")


def test_lists_are_cut_after_strings_and_before_members() -> None:
    text, cut = shorten_json({"path": "/a.png", "words": ["fox"] * 100, "cost_usd": 0.5}, 100)
    dropped = 100 - text.count('"fox"')
    assert json.loads(text) == {
        "path": "/a.png",
        "words": ["fox"] * (100 - dropped) + [f"… [{dropped} items cut]"],
        "cost_usd": 0.5,
    }
    assert cut == dropped * len(',"fox"')


def test_an_inner_object_is_cut_like_a_list() -> None:
    inner = {f"key {number}": number for number in range(100)}
    text, _ = shorten_json({"inner": inner, "cost_usd": 0.5}, 150)
    shown = json.loads(text)
    *kept, mark = shown["inner"].items()
    assert dict(kept) == dict(list(inner.items())[: len(kept)])
    assert mark == (f"… [{100 - len(kept)} members cut]", None)
    assert shown["cost_usd"] == 0.5


def test_members_go_from_the_end_and_leave_their_number() -> None:
    text, cut = shorten_json(generated(), 120)
    assert json.loads(text) == {
        "path": "/home/ada/.limner/generated/1715600000000.png",
        "dimensions": {"width": 1024, "height": 1792},
        "cut_chars": cut,
    }


@pytest.mark.parametrize(
    ("limit", "text"), [(17, '{"cut_chars":276}'), (16, "{}"), (2, "{}"), (1, "{}"), (-5, "{}")]
)
def test_the_floor_is_an_empty_object(limit: int, text: str) -> None:
    assert shorten_json(generated(), limit) == (text, 276)


def test_values_json_has_no_word_for_become_ones_it_has() -> None:
    value = {
        "nan": float("nan"),
        "infinity": float("inf"),
        "path": Path("/a.png"),
        "half": "\ud83d",
        "pair": "\ud83d\ude00",
        "tuple": (1, 2),
        "mapping": MappingProxyType({"a": 1}),
    }
    assert json.loads(to_json(value)) == {
        "nan": None,
        "infinity": None,
        "path": "/a.png",
        "half": "\ufffd",
        "pair": "😀",
        "tuple": [1, 2],
        "mapping": {"a": 1},
    }


def test_a_cut_text_says_how_much_is_missing() -> None:
    assert shorten_text("x" * 100, 40) == ("x" * 18 + "… [82 characters cut]", 82)
    assert shorten_text("x" * 40, 40) == ("x" * 40, 0)
    assert shorten_text("x" * 40, 3) == ("… [", 40)
    assert shorten_text("x" * 40, 0) == ("", 40)


def test_a_result_that_fits_is_returned_as_it_is() -> None:
    result = success(generated(), Text("done"), PICTURE)
    assert fit(result, measure(result)) is result


def test_a_shortened_result_keeps_its_cost_and_its_pictures() -> None:
    result = success({"text": "word " * 500}, Text("more " * 500), PICTURE)
    shorter = fit(result, 1_000)
    text = shorter.content[0]
    assert isinstance(text, Text)
    assert measure(shorter) <= 1_000
    assert (len(shorter.value), len(text.text)) == (1_000, 1_000)
    assert shorter.content[1] == PICTURE
    assert (shorter.cost_nano, shorter.billed) == (80_000_000, True)
    marks = [json.loads(shorter.value)["text"], text.text]
    cuts = [int(mark.split("[")[1].split()[0].replace(",", "")) for mark in marks]
    assert shorter.cut_chars == sum(cuts)


def test_an_error_its_hint_and_its_extras_are_shortened_too() -> None:
    failure = ToolResult(
        call_id="c1",
        name="draw",
        ok=False,
        code="execution_failed",
        error="e" * 1_000_000,
        hint="h" * 1_000_000,
        extras={"body": "b" * 1_000_000, "job": "j1"},
    )
    shorter = fit(failure, 1_000)
    assert measure(shorter) <= 1_000
    assert shorter.error == "e" * 305 + "… [999,695 characters cut]"
    assert shorter.hint == "h" * 305 + "… [999,695 characters cut]"
    assert (shorter.extras["job"], len(str(shorter.extras["body"]))) == ("j1", 312)


def test_a_batch_keeps_within_its_total_and_each_result_within_its_cap() -> None:
    results = [success({"text": "word " * n}) for n in (10, 1_000, 1_000, 1_000)]
    fitted = fit_all(results, caps=[5_000, 1_000, 5_000, 5_000], total=7_000)
    assert [len(result.value) for result in fitted] == [61, 1_000, 2_969, 2_970]


def answered(answer: str) -> ToolResult:
    """A result as `inspect_image` has it: the answer is in the value and in the content."""
    return success({"text": answer, "details": {"model": "openai/gpt-5.5"}}, Text(answer))


def test_an_answer_in_value_and_content_is_counted_once() -> None:
    result = answered('a "word"\n' * 4_000)
    assert (measure(result), fit(result, 40_000)) == (36_000, result)
    whole = answered("x" * 40_000)
    assert fit(whole, 40_000) is whole


def test_an_answer_that_is_too_long_is_cut_the_same_in_value_and_content() -> None:
    shorter = fit(answered("x" * 50_000), 40_000)
    text = "x" * 39_975 + "… [10,025 characters cut]"
    assert shorter.content == (Text(text),)
    assert json.loads(shorter.value) == {"text": text, "details": {"model": "openai/gpt-5.5"}}
    assert shorter.cut_chars == 10_025


def test_a_value_that_is_long_beside_the_answer_is_cut_too() -> None:
    result = success({"text": "short", "rest": "y" * 1_000, "more": "z" * 1_000}, Text("short"))
    shorter = fit(result, 500)
    assert list(json.loads(shorter.value)) == ["text", "rest", "more"]
    assert measure(shorter) <= 500
