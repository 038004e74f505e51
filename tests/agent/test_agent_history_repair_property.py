"""Whatever ingress lets into a history, the next request can be built."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from limner.agent.history_repair import repair_history
from limner.errors import InputInvalid
from limner.wires.base import Prompt
from limner.wires.content_parts import PartSupport
from limner.wires.item_views import check
from limner.wires.turns import build_turns

ids = st.sampled_from(["a", "b", "call_0"])
words = st.sampled_from(["", "x", "{}", "[", "\ud800"])
parts = st.one_of(
    st.builds(lambda text: {"type": "input_text", "text": text}, words),
    st.builds(lambda text: {"type": "output_text", "text": text}, words),
    st.builds(lambda text: {"type": "refusal", "refusal": text}, words),
    st.sampled_from([{"type": "film"}, {"type": "input_text"}, "x", None, 7]),
)
contents = st.one_of(words, st.lists(parts, max_size=3))


def kind(tag: str, /, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Items of a kind, some of them without some of their fields."""
    whole = st.fixed_dictionaries({"type": st.just(tag), **fields})
    return st.one_of(whole, st.fixed_dictionaries({"type": st.just(tag)}, optional=fields))


items = st.one_of(
    kind("message", role=st.sampled_from(["user", "assistant", "wizard"]), content=contents),
    kind("function_call", call_id=ids, name=words, arguments=words),
    kind("function_call_output", call_id=ids, output=contents),
    kind("custom_tool_call", call_id=ids, name=words, input=words),
    kind("custom_tool_call_output", call_id=ids, output=contents),
    kind("local_shell_call", call_id=ids, status=words),
    kind("reasoning", summary=st.just([])),
    kind("film"),
)


def is_sound(item: dict[str, Any]) -> bool:
    try:
        check(item)
    except InputInvalid:
        return False
    return True


@given(st.lists(items, max_size=8))
@example(
    [
        {"type": "custom_tool_call", "call_id": "a", "name": "x", "input": ""},
        {"type": "message", "role": "user", "content": "meanwhile"},
        {"type": "custom_tool_call_output", "call_id": "a", "output": "x"},
    ]
)
def test_what_ingress_lets_in_can_be_sent(history: list[dict[str, Any]]) -> None:
    sent = repair_history(one for one in history if is_sound(one))
    told = {"type": "message", "role": "user", "content": "and now?"}
    found = build_turns(Prompt(items=[*sent, told]), PartSupport())
    assert found
