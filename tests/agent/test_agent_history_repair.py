"""What is sent of a history that a crash has left."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.agent.rollout_samples import call, output, said

from limner.agent.history_repair import ABORTED, repair_history

KINDS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "function_call_output",
}


def test_a_whole_history_is_sent_as_it_is() -> None:
    items = [
        said("go"),
        call("a"),
        call("b"),
        output("b"),
        output("a"),
        said("ok", role="assistant"),
    ]
    assert repair_history(items) == items


def test_a_call_without_an_output_gets_aborted() -> None:
    items = [said("go"), call("a")]
    assert repair_history(items) == [*items, output("a", ABORTED)]


def test_every_kind_of_call_gets_an_output_of_its_kind() -> None:
    for kind, answer in KINDS.items():
        made = {"type": kind, "call_id": "c"}
        assert repair_history([made]) == [
            made,
            {"type": answer, "call_id": "c", "output": "aborted"},
        ]


def test_a_shell_call_of_old_is_known_by_its_own_id() -> None:
    made = {"type": "local_shell_call", "id": "lsh_1", "call_id": None}
    assert repair_history([made]) == [made, output("lsh_1", ABORTED)]


def test_calls_made_together_stay_together() -> None:
    items = [said("go"), call("a"), call("b"), output("b"), said("next")]
    assert repair_history(items) == [
        said("go"),
        call("a"),
        call("b"),
        output("a", ABORTED),
        output("b"),
        said("next"),
    ]


def test_the_output_aborted_comes_before_the_next_message_of_the_user() -> None:
    items = [said("go"), call("a"), said("are you there?")]
    assert repair_history(items) == [*items[:2], output("a", ABORTED), items[2]]


def test_an_output_without_its_call_is_not_sent() -> None:
    assert repair_history([output("a"), said("hello")]) == [said("hello")]
    assert repair_history([output("a"), call("a")]) == [call("a"), output("a", ABORTED)]
    assert repair_history([{"type": "function_call_output", "output": "of nothing"}]) == []


def test_a_second_output_of_a_call_is_not_sent() -> None:
    items = [call("a"), output("a", "first"), output("a", "second")]
    assert repair_history(items) == items[:2]


def test_an_output_of_another_kind_does_not_answer_a_call() -> None:
    made = {"type": "custom_tool_call", "call_id": "a", "name": "apply_patch", "input": ""}
    assert repair_history([made, output("a")]) == [
        made,
        {"type": "custom_tool_call_output", "call_id": "a", "output": "aborted"},
    ]


def test_one_id_is_one_call_of_whatever_kind() -> None:
    other = {"type": "custom_tool_call", "call_id": "a", "name": "apply_patch", "input": ""}
    assert repair_history([call("a"), other, output("a")]) == [call("a"), output("a")]


def test_an_answer_that_comes_late_is_still_the_answer() -> None:
    items = [call("a"), said("hurry"), output("a")]
    assert repair_history(items) == items


ids = st.sampled_from("abc")
calls = st.builds(lambda kind, i: {"type": kind, "call_id": i}, st.sampled_from([*KINDS]), ids)
outputs = st.builds(
    lambda kind, i: {"type": kind, "call_id": i, "output": "x"},
    st.sampled_from(sorted({*KINDS.values()})),
    ids,
)
others = st.sampled_from(
    [
        said("hi"),
        said("well", role="assistant"),
        {"type": "reasoning", "summary": []},
        {"type": "ghost_snapshot"},
        {"type": "function_call"},
        {"type": 7},
        {},
    ]
)
histories = st.lists(calls | outputs | others, max_size=20)


def key_of_call(item: dict[str, Any]) -> tuple[str, str] | None:
    kind = item.get("type")
    return (KINDS[kind], item["call_id"]) if kind in KINDS and "call_id" in item else None


def key_of_output(item: dict[str, Any]) -> tuple[str, str] | None:
    kind = item.get("type")
    return (str(kind), item["call_id"]) if kind in KINDS.values() else None


@given(histories)
def test_whatever_was_left_every_call_has_one_output_and_every_output_a_call_before_it(
    items: list[dict[str, Any]],
) -> None:
    asked: list[tuple[str, str]] = []
    answered: list[tuple[str, str]] = []
    for item in repair_history(items):
        if (key := key_of_call(dict(item))) is not None:
            asked.append(key)
        if (key := key_of_output(dict(item))) is not None:
            assert key in asked
            answered.append(key)
    assert sorted(asked) == sorted(answered)
    assert len(asked) == len(set(asked))


@given(histories)
def test_closing_twice_is_closing_once(items: list[dict[str, Any]]) -> None:
    once = repair_history(items)
    assert repair_history(once) == once


@given(histories)
def test_nothing_but_calls_and_outputs_is_touched(items: list[dict[str, Any]]) -> None:
    def others(history: Any) -> list[Any]:
        return [one for one in history if not key_of_call(one) and not key_of_output(one)]

    assert others(repair_history(items)) == others(items)
