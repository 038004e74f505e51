"""The published schema of `resumeConversation`: what it accepts is accepted and comes back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from tests.fuzz import EVERY_CHECK, examples
from tests.servers.appserver_process import Refused, Stage
from tests.wires.seed_schema import KINDS, ROOT, items_of, params, restored

SENT = examples(300, 5_000)
UNKNOWN = "00000000-0000-7000-8000-000000000000"
SCHEMA = Draft7Validator(ROOT)

Json = dict[str, Any]

# What is wrong, and how it is named.
WRONG: dict[str, tuple[Json, str]] = {
    "a number for a path": (
        {"path": 3},
        "invalid type: integer `3`, expected a string, in `path`",
    ),
    "an object for a history": (
        {"history": {}},
        "invalid type: map, expected a sequence, in `history`",
    ),
    "a text for an item": (
        {"history": ["x"]},
        'invalid type: string "x", expected a map, in `history[0]`',
    ),
    "an unknown policy": (
        {"overrides": {"approvalPolicy": "always"}},
        "unknown variant `always`, expected one of `never`, `on-failure`, `on-request`, "
        "`untrusted`, in `overrides.approvalPolicy`",
    ),
    "an unknown sandbox": (
        {"overrides": {"sandbox": "open"}},
        "unknown variant `open`, expected one of `danger-full-access`, `read-only`, "
        "`workspace-write`, in `overrides.sandbox`",
    ),
    "a text for a flag": (
        {"overrides": {"includeApplyPatchTool": "yes"}},
        'invalid type: string "yes", expected a boolean, in `overrides.includeApplyPatchTool`',
    ),
    "a list for the settings": (
        {"overrides": {"config": []}},
        "invalid type: sequence, expected a map, in `overrides.config`",
    ),
}


def is_valid(given: Json) -> bool:
    """Whether the schema takes it; an output as it is on the wire is put in the schema's shape."""
    history = given.get("history")
    if isinstance(history, list):
        given = {**given, "history": [_in_shape(item) for item in history]}
    return SCHEMA.is_valid(given)


def _in_shape(item: Any) -> Any:
    is_output = isinstance(item, dict) and isinstance(item.get("output"), str | list)
    return restored({k: v for k, v in item.items() if k != "success"}) if is_output else item


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a value has others inside it."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in inside:
        yield (*path, key)
        if isinstance(one, dict | list):
            yield from places(one, (*path, key))


# What an item lacks, and how it is named.
LEFT_OUT: dict[str, Json] = {
    "message: Object missing required field `role`": {"type": "message", "content": []},
    "function_call: Object missing required field `call_id`": {
        "type": "function_call",
        "name": "x",
        "arguments": "{}",
    },
    "custom_tool_call_output: Expected `str | object | array`, got `int` - at `$.output`": {
        "type": "custom_tool_call_output",
        "call_id": "c",
        "output": 3,
    },
}
# What the published schema refuses, and the real Codex takes.
TAKEN: list[Json] = [
    {"type": "film"},
    {"type": "custom_tool_call_output", "call_id": "c", "output": []},
    {"type": "web_search_call", "action": {"type": "fly"}},
    {"type": "reasoning", "summary": []},
    {"type": "compaction_summary", "encrypted_content": "x"},
    {"type": "message", "role": "user", "content": [{"type": "film"}]},
]


@pytest.mark.parametrize("method", ["resumeConversation", "thread/resume"])
async def test_one_bad_item_never_refuses_the_rest(stage: Stage, method: str) -> None:
    asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "7"}]}
    history = [asked, *LEFT_OUT.values(), *TAKEN]
    async with stage.piped() as client:
        made = await client.request(
            method,
            history=history,
            **({"threadId": UNKNOWN} if method == "thread/resume" else {}),
        )
        name = made.get("conversationId") or made["thread"]["id"]
        await client.request("thread/resume", threadId=name)
        ended = await client.turn(name, "go")
        warned = [
            told.get("message") or told["msg"]["message"]
            for told in [*client.told("codex/event/warning"), *client.told("warning")]
        ]
    assert ended["status"] == "completed"
    assert warned == [
        *(
            f"history[{number}] was left out: {problem}"
            for number, problem in enumerate(LEFT_OUT, start=1)
        ),
        "Items of the kind 'film' stay in the history, and openai/gpt-5.4 is not sent them: its "
        "service cannot read them.",
    ]
    kinds = [item["type"] for item in stage.bodies[0]["input"]]
    assert kinds == ["message", "web_search_call", "compaction", "message", "message"]


async def test_what_the_schema_refuses_is_refused_by_the_name_of_the_member(
    stage: Stage,
) -> None:
    async with stage.piped() as client:
        for name, (given, problem) in WRONG.items():
            assert not is_valid(given), name
            refused = await client.refusal("resumeConversation", **given)
            assert refused == (-32600, f"Invalid request: {problem}")


def made(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """So many values of a strategy."""
    found: list[Any] = []

    @settings(
        max_examples=count,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=EVERY_CHECK,
    )
    @given(strategy)
    def collect(one: Any) -> None:
        found.append(one)

    collect()
    return found


def assert_all_there(history: list[Json], told: list[Json]) -> None:
    """Every item of a history is among what was told, in its order, none twice."""
    rest = list(told)
    for item in history:
        event = rest.pop(0)
        if event["type"] == "raw_response_item":
            assert event["item"]["type"] == item["type"]
            continue
        if item["type"] == "message":
            assert event["type"] == {"user": "user_message"}.get(item["role"], "agent_message")
            continue
        assert item["type"] == "reasoning"
        texts = [part["text"] for part in [*item["summary"], *(item.get("content") or [])]]
        assert [event["text"], *(rest.pop(0)["text"] for _ in texts[1:])] == texts
    assert rest == []


@pytest.mark.timeout(600)
@pytest.mark.slow
async def test_property_whatever_the_schema_allows_is_answered_and_all_of_it_comes_back(
    stage: Stage,
) -> None:
    codes: list[int] = []
    async with stage.piped() as client:
        sent = made(params(), SENT)
        for given in sent:
            history = given.get("history")
            try:
                result = await client.request("resumeConversation", **given)
            except Refused as refusal:
                codes.append(refusal.code)
                if not history:
                    continue
                # There was a path, an id or a profile that nobody has: the history alone is fine.
                result = await client.request("resumeConversation", history=history)
            assert_all_there(history or [], result["initialMessages"])
    assert set(codes) == {-32600}
    assert 0 < len(codes) < len(sent)


@pytest.mark.slow
async def test_every_kind_of_item_comes_back(stage: Stage) -> None:
    async with stage.piped() as client:
        for kind in KINDS:
            history = made(items_of(kind), 10)
            result = await client.request("resumeConversation", history=history)
            assert_all_there(history, result["initialMessages"])


async def test_a_history_comes_back_word_for_word(stage: Stage) -> None:
    def text(words: str, kind: str = "input_text") -> Json:
        return {"type": kind, "text": words}

    call = {"type": "function_call", "call_id": "c", "name": "shot", "arguments": "{}"}
    history = [
        {"type": "message", "role": "developer", "content": [text("Be brief.")]},
        {"type": "message", "role": "user", "content": [text("Look "), text("here.")]},
        {
            "type": "reasoning",
            "id": "r",
            "summary": [{"type": "summary_text", "text": "Looking."}],
            "content": [{"type": "reasoning_text", "text": "A door?"}],
        },
        {"type": "reasoning", "id": "s", "summary": [], "encrypted_content": "b64"},
        call,
        {
            "type": "function_call_output",
            "call_id": "c",
            "output": {"body": [text("seen")], "success": False},
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [text("A door.", "output_text")],
            "phase": "final_answer",
        },
        {
            "type": "ghost_snapshot",
            "ghost_commit": {
                "id": "5d0c",
                "parent": "1f2e",
                "preexisting_untracked_dirs": ["/d"],
                "preexisting_untracked_files": ["/f"],
            },
        },
    ]
    async with stage.piped() as client:
        result = await client.request("resumeConversation", history=history)
    output = {"type": "function_call_output", "call_id": "c", "output": [text("seen")]}
    assert result["initialMessages"] == [
        {"type": "raw_response_item", "item": history[0]},
        {
            "type": "user_message",
            "message": "Look here.",
            "images": [],
            "local_images": [],
            "text_elements": [],
        },
        {"type": "agent_reasoning", "text": "Looking."},
        {"type": "agent_reasoning_raw_content", "text": "A door?"},
        {"type": "raw_response_item", "item": history[3]},
        {"type": "raw_response_item", "item": call},
        {"type": "raw_response_item", "item": {**output, "success": False}},
        {"type": "agent_message", "message": "A door.", "phase": "final_answer"},
        {"type": "raw_response_item", "item": history[-1]},
    ]
