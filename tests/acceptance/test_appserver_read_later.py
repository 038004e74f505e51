"""What clients were told while it happened is what they read later, in this process or the next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.appserver_script import Player, Scenes
from tests.servers.appserver_side import TalkingServer, limner_side

pytestmark = [pytest.mark.slow, pytest.mark.invalid_answers]

# Live they are taken when somebody is told, later from the store.
TIMES = frozenset({"startedAtMs", "completedAtMs", "durationMs"})


@pytest.fixture
async def scenes(tmp_path: Path) -> Scenes:
    """The recorded client, played to limner alone."""
    with TalkingServer() as model:
        side = limner_side(tmp_path / "limner", model)
        async with Player(side, model) as player:
            return await player.play()


def answers(scenes: Scenes, scene: str, method: str) -> list[Any]:
    return [one["result"] for one in scenes[scene] if one.get("to") == method]


def told(scenes: Scenes, method: str, *, thread_id: str) -> Iterator[tuple[str, Any]]:
    """What was told of one kind about a thread, by scene."""
    for scene, messages in scenes.items():
        for one in messages:
            if one.get("method") == method and one["params"]["threadId"] == thread_id:
                yield scene, one["params"]


def untimed(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in TIMES}


async def test_every_item_is_read_as_it_was_notified(scenes: Scenes) -> None:
    [started] = answers(scenes, "start", "thread/start")
    [_, read] = answers(scenes, "looking things up", "thread/read")
    thread_id = started["thread"]["id"]
    order = list(scenes)
    before = set(order[: order.index("looking things up")])
    live = [
        untimed(params["item"])
        for scene, params in told(scenes, "item/completed", thread_id=thread_id)
        if scene in before
    ]
    later = [untimed(item) for turn in read["thread"]["turns"] for item in turn["items"]]
    assert {one["type"] for one in live} == {
        "userMessage",
        "agentMessage",
        "dynamicToolCall",
        "functionCallOutput",
    }
    assert sorted(later, key=lambda item: item["id"]) == sorted(live, key=lambda item: item["id"])
    [resumed] = answers(scenes, "resume in a new process", "thread/resume")
    assert resumed["thread"]["turns"] == read["thread"]["turns"]


async def test_tokens_are_counted_through_interruptions_restarts_and_forks(scenes: Scenes) -> None:
    [started] = answers(scenes, "start", "thread/start")
    [forked] = answers(scenes, "fork", "thread/fork")
    usage = list(told(scenes, "thread/tokenUsage/updated", thread_id=started["thread"]["id"]))
    totals = [params["tokenUsage"]["total"]["totalTokens"] for _, params in usage]
    each = usage[0][1]["tokenUsage"]["last"]["totalTokens"]
    at = [scene for scene, _ in usage].index("resume in a new process")
    assert usage[at][1] == usage[at - 1][1]
    del totals[at]
    assert totals == [each * (number + 1) for number in range(len(totals))]
    assert "interrupt while a call is pending" in {scene for scene, _ in usage}
    [(_, first), *_] = told(scenes, "thread/tokenUsage/updated", thread_id=forked["thread"]["id"])
    assert first["tokenUsage"] == usage[-1][1]["tokenUsage"]
