"""Threads that go on: for another client, in another process, after a crash, from elsewhere."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import signal
from typing import Any

import pytest
from tests.acceptance.conftest import picture
from tests.servers.appserver_process import Client, Pipes, Stage, function, said
from tests.servers.scripted import calls, says

from limner.testing.servers.http_server import Gate

PNG = picture(64, 48)
PIXELS = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
UNKNOWN = "01a1dcb7-7dea-7d33-8136-def2e2c6b1c2"


def kinds(turn: Any) -> list[str]:
    return [item["type"] for item in turn["items"]]


def user(*parts: Any) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": list(parts)}


def text(words: str) -> dict[str, Any]:
    return {"type": "input_text", "text": words}


@pytest.mark.slow
async def test_a_thread_goes_on_in_another_process_with_its_tools_and_pictures(
    stage: Stage,
) -> None:
    stage.script(calls(("shot", "{}")), says("One"), calls(("shot", "{}"), start=2), says("Two"))
    tools = [function("shot")]
    async with stage.piped() as client:
        thread = await client.start(dynamicTools=tools, developerInstructions="Be brief.")
        await client.say(thread, "first")
        items = [{"type": "inputImage", "imageUrl": PIXELS}]
        asked = await client.next("item/tool/call")
        client.answer(asked, {"contentItems": items, "success": True})
        await client.until("turn/completed")
    async with stage.piped() as client:
        assert (await client.request("thread/loaded/list"))["data"] == []
        refused = await client.refusal("turn/start", threadId=thread, input=[])
        assert refused == (-32600, f"thread not found: {thread}")
        resumed = await client.request("thread/resume", threadId=thread)
        usage = await client.until("thread/tokenUsage/updated")
        await client.say(thread, "second")
        client.answer(await client.next("item/tool/call"), said("again"))
        await client.until("turn/completed")
    (turn,) = resumed["thread"]["turns"]
    assert (turn["status"], kinds(turn)) == (
        "completed",
        ["userMessage", "dynamicToolCall", "agentMessage"],
    )
    assert turn["items"][1]["contentItems"] == items
    assert resumed["thread"]["status"] == {"type": "idle"}
    assert usage["tokenUsage"]["total"]["totalTokens"] == 2490
    body = stage.bodies[-1]
    assert "Be brief." in body["instructions"]
    assert [len(output) for output in stage.outputs()] == [1, len("again")]


@pytest.mark.slow
async def test_a_client_that_leaves_finds_its_thread_running_and_the_call_waiting(
    stage: Stage,
) -> None:
    stage.script(calls(("shot", "{}")), says("One"))
    async with stage.listening() as join:
        async with join() as first:
            thread = await first.start(dynamicTools=[function("shot")])
            turn = await first.say(thread, "go")
            asked = await first.next("item/tool/call")
        async with join() as second, join() as third:
            for client in (second, third):
                resumed = await client.request("thread/resume", threadId=thread)
                again = await client.next("item/tool/call")
                assert again == asked
                assert resumed["thread"]["status"] == {"type": "active", "activeFlags": []}
                (shown,) = resumed["thread"]["turns"]
                assert (shown["id"], shown["status"]) == (turn, "inProgress")
                assert (shown["items"][1]["id"], shown["items"][1]["status"]) == (
                    "call_1",
                    "inProgress",
                )
            history = [user(text("x"))]
            refused = await second.refusal("thread/resume", threadId=thread, history=history)
            assert refused == (
                -32600,
                f"cannot resume thread {thread} with history while it is already running",
            )
            code, _ = await second.refusal("thread/resume", threadId=thread, path="/x.jsonl")
            assert code == -32600
            # The first answer counts.
            third.answer(asked, said("third"))
            await third.next("item/completed")
            second.answer(asked, said("second"))
            assert (await second.until("turn/completed"))["turn"]["id"] == turn
            assert (await third.until("turn/completed"))["turn"]["id"] == turn
            assert second.methods[-6:] == third.methods[-6:]
    assert stage.outputs() == ["third"]


@pytest.mark.slow
async def test_after_a_crash_the_calls_of_clients_are_asked_again_and_the_turn_goes_on(
    stage: Stage,
) -> None:
    # Upstream tells the model that such calls were aborted.
    made = [("one", "{}"), ("two", "{}"), ("image_generate", '{"prompt": "x", "size": "1x1"}')]
    stage.script(calls(*made), says("Done"))
    async with stage.process() as process:
        client = Client(Pipes(process))
        await client.greet()
        thread = await client.start(dynamicTools=[function("one"), function("two")])
        turn = await client.say(thread, "go")
        asked = [await client.next("item/tool/call") for _ in range(2)]
        client.answer(asked[0], said("ONE"))
        while not any(item["tool"] == "one" for item in client.items("dynamicToolCall")):
            await client.next("item/completed")
        process.send_signal(signal.SIGKILL)
        await process.wait()
    async with stage.piped() as client:
        listed = await client.request("thread/list")
        resumed = await client.request("thread/resume", threadId=thread)
        again = await client.next("item/tool/call")
        client.answer(again, said("TWO"))
        ended = await client.until("turn/completed")
    assert [one["id"] for one in listed["data"]] == [thread]
    (shown,) = resumed["thread"]["turns"]
    assert (shown["id"], shown["status"]) == (turn, "inProgress")
    calls_shown = [(item["id"], item["status"]) for item in shown["items"][1:3]]
    assert calls_shown == [("call_1", "completed"), ("call_2", "inProgress")]
    assert again["params"] == asked[1]["params"]
    assert (ended["turn"]["id"], ended["turn"]["status"]) == (turn, "completed")
    assert stage.outputs()[:2] == ["ONE", "TWO"]


@pytest.mark.slow
async def test_what_may_have_been_paid_for_is_never_done_again(stage: Stage) -> None:
    gate = Gate()
    stage.script(calls(("image_generate", '{"prompt": "a fox"}')), says("Done", gate=gate))
    async with stage.process() as process:
        client = Client(Pipes(process))
        await client.greet()
        thread = await client.start()
        await client.say(thread, "go")
        await client.next("item/started")
        process.send_signal(signal.SIGKILL)
        await process.wait()
    gate.open()
    stage.script(says("Again"))
    async with stage.piped() as client:
        resumed = await client.request("thread/resume", threadId=thread)
        assert (await client.turn(thread, "go on"))["status"] == "completed"
    (shown,) = resumed["thread"]["turns"]
    assert shown["status"] == "interrupted"
    assert client.items("imageGeneration") == []


@pytest.mark.slow
async def test_the_end_of_the_input_ends_a_turn_in_good_order(stage: Stage) -> None:
    stage.script(calls(("shot", "{}")), says("ok"))
    async with stage.piped() as client:
        thread = await client.start(dynamicTools=[function("shot")])
        await client.say(thread, "go")
        await client.next("item/tool/call")
    async with stage.piped() as client:
        read = await client.request("thread/read", threadId=thread, includeTurns=True)
        await client.request("thread/resume", threadId=thread)
        await client.turn(thread, "again")
    (turn,) = read["thread"]["turns"]
    assert (turn["status"], kinds(turn)) == ("interrupted", ["userMessage", "dynamicToolCall"])
    assert turn["items"][1]["status"] == "failed"
    assert stage.outputs() == ["dynamic tool call was cancelled before receiving a response"]
    assert client.told("item/tool/call") == []


@pytest.mark.slow
async def test_a_signal_ends_a_server_in_good_order(stage: Stage) -> None:
    gate = Gate()
    stage.script(says("One", gate=gate), says("Two"))
    async with stage.process() as process:
        client = Client(Pipes(process))
        await client.greet()
        thread = await client.start()
        await client.say(thread, "go")
        await client.next("item/agentMessage/delta")
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    gate.open()
    async with stage.piped() as client:
        read = await client.request("thread/read", threadId=thread, includeTurns=True)
    assert [turn["status"] for turn in read["thread"]["turns"]] == ["interrupted"]


@pytest.mark.slow
async def test_a_history_from_elsewhere_becomes_a_thread_with_the_tools_it_is_given(
    stage: Stage,
) -> None:
    # Upstream takes no tools with a history.
    stage.script(calls(("shot", "{}")), says("ok"))
    shown = {"type": "input_image", "image_url": PIXELS}
    history = [
        user(text("Remember 7."), shown),
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "I do."}],
        },
    ]
    async with stage.piped() as client:
        resumed = await client.request(
            "thread/resume",
            threadId=UNKNOWN,
            path="/nowhere",
            history=history,
            dynamicTools=[function("shot")],
            model="gpt-5.4",
        )
        thread = resumed["thread"]["id"]
        assert (thread != UNKNOWN, resumed["thread"]["turns"]) == (True, [])
        await client.say(thread, "Which number?")
        client.answer(await client.next("item/tool/call"), said("taken"))
        await client.until("turn/completed")
        for bad, words in [
            ([], "history must not be empty"),
        ]:
            refused = await client.refusal("thread/resume", threadId=UNKNOWN, history=bad)
            assert refused == (-32600, words)
    sent = stage.bodies[0]["input"]
    assert [item["role"] for item in sent] == ["user", "assistant", "user"]
    assert sent[0]["content"][1]["image_url"] == PIXELS


@pytest.mark.slow
async def test_a_codex_rollout_becomes_a_thread_and_stays_the_same_one(stage: Stage) -> None:
    meta = {
        "id": UNKNOWN,
        "cwd": str(stage.cwd),
        "originator": "codex",
        "cli_version": "0.166.0",
        "dynamic_tools": [function("shot")],
        "model_provider": "openai",
    }
    lines: list[dict[str, Any]] = [
        {"timestamp": "2026-11-01T10:00:00.000Z", "type": "session_meta", "payload": meta},
        {
            "timestamp": "2026-11-01T10:00:01.000Z",
            "type": "response_item",
            "payload": user(text("What is this?"), {"type": "input_image", "image_url": PIXELS}),
        },
    ]
    path = stage.folder / "rollout.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    async with stage.piped() as client:
        for _ in range(2):
            resumed = await client.request("thread/resume", threadId="", path=str(path))
            assert resumed["thread"]["id"] == UNKNOWN
            (item, *_) = resumed["thread"]["turns"][0]["items"]
            assert item["content"][1]["url"] == PIXELS
            await client.turn(UNKNOWN, "Well?")
        code, words = await client.refusal("thread/resume", threadId=UNKNOWN, path="/nowhere.jsonl")
    assert code == -32600
    assert "/nowhere.jsonl" in words
    assert "shot" in [tool["name"] for tool in stage.bodies[0]["tools"]]


async def test_threads_that_cannot_go_on_are_refused_in_upstreams_words(stage: Stage) -> None:
    async with stage.piped() as client:
        gone = (-32600, f"no rollout found for thread id {UNKNOWN}")
        assert await client.refusal("thread/resume", threadId=UNKNOWN) == gone
        assert await client.refusal("thread/resume", threadId=UNKNOWN, path="") == gone
        code, words = await client.refusal("thread/resume", threadId="nope")
        assert (code, words.startswith("invalid thread id: ")) == (-32600, True)
        thread = await client.start()
        await client.turn(thread, "hi")
        # Part of an id is no id here, whatever other commands make of it.
        part, _ = await client.refusal("thread/resume", threadId=thread[:8])
        assert part == -32600
        await client.request("thread/archive", threadId=thread)
        refused = await client.refusal("thread/resume", threadId=thread)
        assert refused == (-32600, f"session {thread} is archived. Unarchive it first.")


async def test_a_resume_can_leave_the_turns_out_or_bring_a_page_of_them(stage: Stage) -> None:
    async with stage.piped() as client:
        thread = await client.start()
        for words in ("one", "two", "three"):
            await client.turn(thread, words)
        bare = await client.request("thread/resume", threadId=thread, excludeTurns=True)
        paged = await client.request(
            "thread/resume",
            threadId=thread,
            excludeTurns=True,
            initialTurnsPage={"limit": 2, "itemsView": "full"},
        )
    assert (bare["thread"]["turns"], bare["initialTurnsPage"]) == ([], None)
    shown = [turn["items"][0]["content"][0]["text"] for turn in paged["initialTurnsPage"]["data"]]
    assert shown == ["three", "two"]


@pytest.mark.slow
async def test_a_server_that_dies_in_the_middle_of_tool_turns_loses_nothing(stage: Stage) -> None:
    def line(seen: Any) -> Any:
        items = json.loads(seen.body)["input"]
        number = sum(item["type"] == "function_call" for item in items) + 1
        last = items[-1]["type"] == "message"
        return (
            calls(("shot", json.dumps({"target": str(number)})), start=number)
            if last
            else says("ok")
        )

    stage.script(line)
    thread, answered = "", list[str]()
    for round_number in range(12):
        async with stage.process() as process:
            client = Client(Pipes(process))
            await client.greet()
            if not thread:
                thread = await client.start(dynamicTools=[function("shot")])
                await client.say(thread, "go")
            else:
                await client.request("thread/resume", threadId=thread)
                if not any(one["method"] == "item/tool/call" for one in client.heard):
                    with contextlib.suppress(Exception):
                        async with asyncio.timeout(0.2):
                            await client.next("item/tool/call")
                    if "item/tool/call" not in client.methods:
                        await client.say(thread, f"round {round_number}")
            while not client.told("item/tool/call"):
                await client.next()
            asked = [one for one in client.heard if one["method"] == "item/tool/call"][-1]
            if round_number % 3:
                client.answer(asked, said(f"answer {round_number}"))
                await client.next("item/completed")
                answered.append(f"answer {round_number}")
            process.send_signal(signal.SIGKILL)
            await process.wait()
    async with stage.piped() as client:
        resumed = await client.request("thread/resume", threadId=thread, excludeTurns=True)
        assert resumed["thread"]["id"] == thread
        read = await client.request("thread/read", threadId=thread, includeTurns=True)
    items = [item for turn in read["thread"]["turns"] for item in turn["items"]]
    got = [item["contentItems"][0]["text"] for item in items if item.get("contentItems")]
    assert [one for one in got if one.startswith("answer")] == answered
