"""Conversations that go on: by path, by id and with a history, by either protocol."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import picture
from tests.servers.appserver_process import Client, Pipes, Stage, function, said
from tests.servers.scripted import calls, says

EVENT = "codex/event/"
PIXELS = f"data:image/png;base64,{base64.b64encode(picture(64, 48)).decode()}"
NOBODY = "01890a5d-ac96-774b-bcce-b302099a8057"

Json = dict[str, Any]


def message(role: str, words: str) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}


HISTORY = [message("user", "Remember seven."), message("assistant", "I will.")]


async def turn(client: Client, conversation_id: str, words: str) -> None:
    """Take a turn by the first protocol to its end."""
    name = await client.request("addConversationListener", conversationId=conversation_id)
    items = [{"type": "text", "data": {"text": words}}]
    await client.request("sendUserMessage", conversationId=conversation_id, items=items)
    await client.until(f"{EVENT}task_complete")
    await client.request("removeConversationListener", **name)


def words_of(resumed: Json) -> list[str]:
    """What was said so far."""
    return [one["message"] for one in resumed["initialMessages"] if "message" in one]


def rollout(path: Path, session_id: str = NOBODY) -> Path:
    """A file as Codex writes it."""
    meta = {"id": session_id, "cwd": "/", "originator": "codex_cli_rs", "cli_version": "0.98.0"}
    lines = [("session_meta", meta), *(("response_item", item) for item in HISTORY)]
    path.write_text(
        "".join(
            json.dumps({"timestamp": "2026-02-04T10:00:00.000Z", "type": kind, "payload": payload})
            + "\n"
            for kind, payload in lines
        )
    )
    return path


async def test_a_path_goes_before_an_id_and_an_id_before_a_history(stage: Stage) -> None:
    file = rollout(stage.folder / "rollout.jsonl")
    async with stage.piped() as client:
        name = (await client.request("newConversation"))["conversationId"]
        await turn(client, name, "hi")
        by_path = await client.request(
            "resumeConversation", path=str(file), conversationId=name, history=HISTORY[:1]
        )
        by_id = await client.request("resumeConversation", conversationId=name, history=HISTORY[:1])
        by_history = await client.request("resumeConversation", history=HISTORY[:1])
    assert (by_path["conversationId"], words_of(by_path)) == (
        NOBODY,
        ["Remember seven.", "I will."],
    )
    assert (by_id["conversationId"], words_of(by_id)) == (name, ["hi", "All right."])
    assert by_history["conversationId"] not in (NOBODY, name)
    assert words_of(by_history) == ["Remember seven."]


async def test_what_names_no_conversation_is_refused(stage: Stage) -> None:
    nothing = (-32600, "either path, conversation id or non empty history must be provided")
    missing = stage.folder / "missing.jsonl"
    empty = stage.folder / "empty.jsonl"
    empty.write_text("\n")
    gone = stage.home.resolve() / "rollouts" / f"rollout-2026-02-04T10-00-00-{NOBODY}.jsonl"
    async with stage.piped() as client:
        assert await client.refusal("resumeConversation") == nothing
        assert await client.refusal("resumeConversation", history=[], path="") == nothing
        for named in (NOBODY, "x"):
            refused = await client.refusal("resumeConversation", conversationId=named)
            assert refused == (-32600, f"no rollout found for conversation id {named}")
        refused = await client.refusal("resumeConversation", path=str(gone))
        assert refused == (-32600, f"no rollout found for conversation id {NOBODY}")
        for path in (missing, empty, "\0"):
            code, problem = await client.refusal("resumeConversation", path=str(path))
            assert (code, problem.startswith(f"failed to load rollout `{path}`: ")) == (
                -32600,
                True,
            )


@pytest.mark.slow
async def test_a_rollout_path_is_a_file_that_names_its_conversation_whatever_was_said_since(
    stage: Stage,
) -> None:
    async with stage.piped() as client:
        made = await client.request("newConversation")
        name, path = made["conversationId"], Path(made["rolloutPath"])
        (first,) = map(json.loads, path.read_text().splitlines())
        await turn(client, name, "one")
    async with stage.piped() as client:
        once = await client.request("resumeConversation", path=str(path))
        await turn(client, name, "two")
        path.unlink()
        twice = await client.request("resumeConversation", path=str(path))
        # The second protocol reads the file, and finds the conversation too.
        now = await client.request("thread/resume", threadId="", path=str(path))
    assert path.parent == stage.home.resolve() / "rollouts"
    assert (first["type"], first["payload"]["id"]) == ("session_meta", name)
    assert [once["conversationId"], twice["conversationId"], now["thread"]["id"]] == [name] * 3
    assert words_of(once) == ["one", "All right."]
    assert words_of(twice) == ["one", "All right.", "two", "All right."]
    assert len(now["thread"]["turns"]) == 2


@pytest.mark.slow
async def test_every_override_holds_for_what_goes_on(stage: Stage) -> None:
    folder = stage.home / "personalities" / "pirate"
    folder.mkdir(parents=True)
    (folder / "SOUL.md").write_text("You are a pirate.")
    file = rollout(stage.folder / "rollout.jsonl")
    overrides = {
        "model": "gpt-5.4",
        "modelProvider": "openai",
        "profile": "pirate",
        "cwd": str(stage.folder),
        "approvalPolicy": "on-failure",
        "sandbox": "read-only",
        "config": {"model_reasoning_effort": "low"},
        "developerInstructions": "Be brief.",
        "compactPrompt": "In one word.",
        "includeApplyPatchTool": True,
        "dynamicTools": [function("shot")],
    }
    held: list[Json] = []
    async with stage.piped() as client:
        name = (await client.request("newConversation"))["conversationId"]
        await turn(client, name, "hi")
        for way in ({"path": str(file)}, {"conversationId": name}, {"history": HISTORY}):
            resumed = await client.request("resumeConversation", **way, overrides=overrides)
            held.append((await client.until(f"{EVENT}session_configured"))["msg"])
            await turn(client, resumed["conversationId"], "go on")
            robot = {"overrides": {"baseInstructions": "You are a robot."}}
            again = {"conversationId": resumed["conversationId"], **robot}
            await client.request("resumeConversation", **again)
            await turn(client, resumed["conversationId"], "and again")
    warned = [one["msg"]["message"] for one in client.told(f"{EVENT}warning")]
    assert warned == ["includeApplyPatchTool has no effect: there is no such tool here."] * 3
    for one in held:
        assert (one["approval_policy"], one["sandbox_policy"]) == (
            "on-failure",
            {"type": "read-only"},
        )
        assert (one["cwd"], one["reasoning_effort"]) == (str(stage.folder), "low")
    for pirate, robot in zip(stage.bodies[1::2], stage.bodies[2::2], strict=True):
        assert pirate["instructions"].startswith("You are a pirate.")
        assert robot["instructions"].startswith("You are a robot.")
        for body in (pirate, robot):
            assert body["instructions"].endswith("Be brief.")
            assert body["reasoning"]["effort"] == "low"
            assert "shot" in [tool["name"] for tool in body["tools"]]


async def test_a_conversation_that_was_put_away_is_taken_out_again(stage: Stage) -> None:
    async with stage.piped() as client:
        made = await client.request("newConversation")
        name = made["conversationId"]
        for way in ({"conversationId": name}, {"path": made["rolloutPath"]}):
            await client.request("resumeConversation", **way)
            await turn(client, name, "hi")
            await client.request("archiveConversation", conversationId=name)
            assert (await client.request("listConversations"))["items"] == []
        resumed = await client.request("resumeConversation", conversationId=name)
        listed = await client.request("listConversations")
    assert words_of(resumed) == ["hi", "All right."] * 2
    assert [one["conversationId"] for one in listed["items"]] == [name]


@pytest.mark.slow
async def test_a_conversation_goes_from_one_protocol_to_the_other_and_back(stage: Stage) -> None:
    async with stage.piped() as client:
        name = (await client.request("newConversation", dynamicTools=[function("shot")]))[
            "conversationId"
        ]
        await turn(client, name, "one")
    async with stage.piped() as client:
        now = await client.request("thread/resume", threadId=name)
        stage.script(calls(("shot", "{}")), says("ok"))
        await client.say(name, "two")
        answer = said("taken")
        answer["contentItems"].append({"type": "inputImage", "imageUrl": PIXELS})
        client.answer(await client.next("item/tool/call"), answer)
        await client.until("turn/completed")
    stage.script(says("Seen."))
    async with stage.piped() as client:
        resumed = await client.request("resumeConversation", conversationId=name)
        await turn(client, name, "three")
    first = [item["type"] for item in now["thread"]["turns"][0]["items"]]
    assert first == ["userMessage", "agentMessage"]
    told = resumed["initialMessages"]
    assert words_of(resumed) == ["one", "All right.", "two", "ok"]
    outputs = [
        one["item"]["output"]
        for one in told
        if one["type"] == "raw_response_item" and one["item"]["type"] == "function_call_output"
    ]
    # The picture is there whole, not by a name that only the server knows.
    assert [part.get("image_url") for part in outputs[0]] == [None, PIXELS]
    sent = stage.outputs()[0]
    assert [part["type"] for part in sent] == ["input_text", "input_image"]


@pytest.mark.slow
async def test_a_call_that_a_dead_server_left_is_sent_to_the_next_listener(
    stage: Stage,
) -> None:
    stage.script(calls(("shot", "{}")), says("ok"))
    async with stage.process() as process:
        client = Client(Pipes(process))
        await client.greet()
        made = await client.request("newConversation", dynamicTools=[function("shot")])
        name = made["conversationId"]
        await client.request("addConversationListener", conversationId=name)
        items = [{"type": "text", "data": {"text": "go"}}]
        await client.request("sendUserMessage", conversationId=name, items=items)
        asked = await client.next("item/tool/call")
        process.kill()
    async with stage.piped() as client:
        await client.request("resumeConversation", conversationId=name)
        await client.request("addConversationListener", conversationId=name)
        again = await client.next("item/tool/call")
        client.answer(again, said("taken"))
        ended = await client.until(f"{EVENT}task_complete")
    assert again["params"] == asked["params"]
    assert ended["msg"]["last_agent_message"] == "ok"
    assert stage.outputs() == ["taken"]
