"""A client of the first protocol from its first word to its last, against the real program."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import picture
from tests.servers.appserver_process import Client, Stage, function, staged
from tests.servers.scripted import calls, says

from limner.testing.servers.http_server import Gate

EVENT = "codex/event/"
PIXELS = f"data:image/png;base64,{base64.b64encode(picture(1280, 800)).decode()}"

Json = dict[str, Any]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path, says("All ", "right.")) as made:
        config = made.home / "config.toml"
        others = [config.read_text().replace("openai/gpt-5.4", name) for name in OTHER_MODELS]
        config.write_text("\n".join([config.read_text(), *others]))
        folder = made.home / "personalities" / "pirate"
        folder.mkdir(parents=True)
        (folder / "SOUL.md").write_text("You are a pirate.")
        yield made


OTHER_MODELS = ("openai/second", "twin/gpt-5.4")


class Conversation:
    """What a client of the first protocol does with one conversation."""

    def __init__(self, client: Client, name: str) -> None:
        self.client, self.name = client, name

    async def listen(self, **wanted: Any) -> None:
        await self.client.request("addConversationListener", conversationId=self.name, **wanted)

    async def say(self, text: str) -> None:
        items = [{"type": "text", "data": {"text": text}}]
        answer = await self.client.request("sendUserMessage", conversationId=self.name, items=items)
        assert answer == {}

    async def turn(self, text: str) -> Json:
        await self.say(text)
        return (await self.client.until(f"{EVENT}task_complete"))["msg"]


@pytest.mark.slow
async def test_a_client_of_the_first_protocol_does_all_that_it_did(stage: Stage) -> None:
    async with stage.piped(experimental=False, name="old_client") as client:
        made = await client.request("newConversation", dynamicTools=[function("shot")])
        talk = Conversation(client, made["conversationId"])
        await talk.listen()
        assert (await talk.turn("hello"))["last_agent_message"] == "All right."

        stage.script(calls(("shot", '{"target": "window"}')), says("A door."))
        await talk.say("look")
        shown = {
            "contentItems": [
                {"type": "inputText", "text": "taken"},
                {"type": "inputImage", "imageUrl": PIXELS},
            ],
            "success": True,
        }
        client.answer(await client.next("item/tool/call"), shown)
        called = (await client.until(f"{EVENT}dynamic_tool_call_response"))["msg"]
        assert (called["tool"], called["content_items"]) == ("shot", shown["contentItems"])
        seen = (await client.until(f"{EVENT}task_complete"))["msg"]
        assert seen["last_agent_message"] == "A door."
        (output,) = stage.outputs()
        assert [part["type"] for part in output] == ["input_text", "input_image"]

        stage.script(says("Well, ", gate=Gate()))
        await talk.say("tell me more")
        await client.until(f"{EVENT}agent_message_delta")
        stopped = await client.request("interruptConversation", conversationId=talk.name)
        assert stopped == {"abortReason": "interrupted"}

        put_away = {"conversationId": talk.name, "rolloutPath": made["rolloutPath"]}
        assert await client.request("archiveConversation", **put_away) == {}
        assert (await client.request("listConversations"))["items"] == []

    stage.script(says("All ", "right."))
    async with stage.piped(experimental=False) as client:
        resumed = await client.request("resumeConversation", path=made["rolloutPath"])
        talk = Conversation(client, resumed["conversationId"])
        await talk.listen()
        assert (await talk.turn("still there?"))["last_agent_message"] == "All right."
    assert talk.name == made["conversationId"]
    raw = "raw_response_item"  # an empty message, a call and its output
    assert [one["type"] for one in resumed["initialMessages"]] == [
        *("user_message", "agent_message"),
        *("user_message", raw, raw, raw, "agent_message"),
        *("user_message", "turn_aborted"),
    ]
    assert json.dumps(resumed["initialMessages"]).count(PIXELS) == 1
    assert PIXELS.partition(",")[2][:40] in json.dumps(stage.bodies[-1])


def instructions(body: Json) -> str:
    return body["instructions"]


def offered(body: Json) -> list[str]:
    return [tool["name"] for tool in body["tools"]]


# Each override, and what shows that it holds: what the client is told, and the model is sent.
OVERRIDES: dict[str, tuple[Json, Callable[[Json, Json], bool]]] = {
    "model": ({"model": "second"}, lambda told, sent: sent["model"] == "second"),
    "modelProvider": (
        {"modelProvider": "twin"},
        lambda told, sent: (told["model_provider_id"], sent["model"]) == ("twin", "gpt-5.4"),
    ),
    "profile": (
        {"profile": "pirate"},
        lambda told, sent: instructions(sent).startswith("You are a pirate."),
    ),
    "cwd": ({"cwd": "/"}, lambda told, sent: "The working folder is /." in instructions(sent)),
    "approvalPolicy": (
        {"approvalPolicy": "on-failure"},
        lambda told, sent: told["approval_policy"] == "on-failure",
    ),
    "sandbox": (
        {"sandbox": "read-only"},
        lambda told, sent: told["sandbox_policy"] == {"type": "read-only"},
    ),
    "config": (
        {"config": {"tools.image_edit": False}},
        lambda told, sent: "image_edit" not in offered(sent),
    ),
    "baseInstructions": (
        {"baseInstructions": "You are a robot."},
        lambda told, sent: instructions(sent).startswith("You are a robot."),
    ),
    "developerInstructions": (
        {"developerInstructions": "Be brief."},
        lambda told, sent: instructions(sent).endswith("Be brief."),
    ),
    "dynamicTools": (
        {"dynamicTools": [function("shot")]},
        lambda told, sent: "shot" in offered(sent),
    ),
}


@pytest.mark.slow
async def test_each_override_holds_in_each_way_to_go_on(stage: Stage) -> None:
    async with stage.piped() as client:
        for name, (override, holds) in OVERRIDES.items():
            made = await client.request("newConversation")
            talk = Conversation(client, made["conversationId"])
            await talk.listen()
            await talk.turn("hello")
            ways: list[Json] = [
                {"path": made["rolloutPath"]},
                {"conversationId": talk.name},
                {"history": stage.bodies[-1]["input"]},
            ]
            for way in ways:
                forked = await client.request("forkConversation", conversationId=talk.name)
                await client.until(f"{EVENT}session_configured")
                same = {"path": forked["rolloutPath"], "conversationId": forked["conversationId"]}
                chosen = {key: same.get(key, value) for key, value in way.items()}
                resumed = await client.request("resumeConversation", **chosen, overrides=override)
                told = (await client.until(f"{EVENT}session_configured"))["msg"]
                now = Conversation(client, resumed["conversationId"])
                await now.listen()
                await now.turn("go on")
                assert holds(told, stage.bodies[-1]), (name, way)


async def test_the_two_that_no_request_shows_hold_too(stage: Stage) -> None:
    """A prompt for summing up, and a tool that there is not."""
    wanted = {"compactPrompt": "In one word.", "includeApplyPatchTool": True}
    async with stage.piped() as client:
        made = await client.request("newConversation")
        talk = Conversation(client, made["conversationId"])
        await talk.listen()
        await talk.turn("hello")
        await client.request("resumeConversation", conversationId=talk.name, overrides=wanted)
        warning = (await client.until(f"{EVENT}warning"))["msg"]["message"]
        await client.request("thread/compact/start", threadId=talk.name)
        await client.until(f"{EVENT}context_compacted")
    assert warning == "includeApplyPatchTool has no effect: there is no such tool here."
    assert "In one word." in json.dumps(stage.bodies[-1])
