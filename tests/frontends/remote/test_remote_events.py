"""One function reads the events of a local agent and of a thread at an app-server."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

import limner
from limner import Agent, Limner, TextDelta, ToolFinished, ToolStarted, TurnEnded
from limner.agent.events import TurnEvent, UsageUpdated
from limner.frontends.remote.events import Reconnected, read_event

MODEL = "limner/offline"


async def follow(events: AsyncGenerator[TurnEvent]) -> dict[str, Any]:
    """What a program shows of a turn, wherever the turn runs."""
    shown: dict[str, Any] = {"text": "", "tools": []}
    async with aclosing(events):
        async for event in events:
            match event:
                case TextDelta(text=text):
                    shown["text"] += text
                case ToolStarted(call=call):
                    shown["tools"].append(f"{call.name} starts")
                case ToolFinished(call=call, result=result, duration_ms=int()):
                    is_drawn = Path(json.loads(result.value)["path"]).is_file()
                    shown["tools"].append(f"{call.name} ends: {result.ok}, {is_drawn}")
                case UsageUpdated(last=last):
                    assert last.input_tokens >= 0
                case TurnEnded(status=status, text=text, error=error, cost_nano=cost_nano):
                    shown["end"] = (status, text, error, cost_nano)
                case _:
                    pass
    return shown


@pytest.mark.slow
async def test_a_program_can_swap_an_agent_for_a_thread(tmp_path: Path, lim: Limner) -> None:
    words = "draw a fox in the snow"
    async with Agent(lim, model=MODEL, cwd=tmp_path) as agent:
        local = await follow(agent.run(words))
    env = {**os.environ, "LIMNER_HOME": str(tmp_path / "server-home"), "HOME": str(tmp_path)}
    async with limner.connect(env=env, lim=lim) as client:
        thread = await client.thread(model=MODEL, cwd=tmp_path)
        remote = await follow(thread.stream(words))
    assert local["tools"] == ["image_generate starts", "image_generate ends: True, True"]
    assert remote["tools"] == local["tools"]
    assert remote["end"][0] == local["end"][0] == "completed"
    # The texts name the files, which have different names.
    assert remote["text"] == remote["end"][1]
    assert local["text"] == local["end"][1]


def test_the_events_of_a_thread_are_json_without_the_servers_message() -> None:
    turn = {"turn": {"id": "turn1"}}
    delta = {"itemId": "m1", "delta": "Hi", "turnId": "turn1"}
    named = {"threadId": "t1", "threadName": "A fox"}
    happened = [
        read_event("turn/started", turn, is_own_tool=lambda _: False),
        read_event("item/agentMessage/delta", delta, is_own_tool=lambda _: False),
        read_event("thread/name/updated", named, is_own_tool=lambda _: False),
        Reconnected(reason="the server ended", goes_on=True),
    ]
    assert [event.as_json() for event in happened] == [
        {"type": "turn_started", "turn": "turn1"},
        {"type": "text", "item_id": "m1", "text": "Hi"},
        {"type": "notification", "method": "thread/name/updated", "params": named},
        {"type": "reconnected", "reason": "the server ended", "goes_on": True},
    ]


def test_the_tools_of_a_server_are_tool_events_and_those_of_the_client_are_not() -> None:
    item = {
        "type": "dynamicToolCall",
        "id": "call_1",
        "tool": "look",
        "arguments": {"at": "a fox"},
        "status": "failed",
        "contentItems": [{"type": "inputText", "text": "It is dark."}],
        "durationMs": 7,
    }
    event = read_event("item/completed", {"item": item}, is_own_tool=lambda _: False)
    assert isinstance(event, ToolFinished)
    assert (event.call.name, event.call.arguments, event.call.call_id) == (
        "look",
        {"at": "a fox"},
        "call_1",
    )
    assert (event.result.ok, event.result.error, event.duration_ms) == (False, "It is dark.", 7)
    own = read_event("item/completed", {"item": item}, is_own_tool=lambda name: name == "look")
    assert type(own).__name__ == "ItemAdded"
