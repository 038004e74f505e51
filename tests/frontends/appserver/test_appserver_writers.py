"""A thread has one process that writes to it, as with Codex; the others may read and copy it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.frontends.cli_process import LIMNER
from tests.servers.appserver_process import Client, Pipes, Refused, Stage
from tests.servers.scripted import says


def user(words: str) -> dict[str, Any]:
    return {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": words}],
    }


@pytest.mark.slow
async def test_a_second_process_is_refused_as_codex_refuses_it(stage: Stage) -> None:
    async with stage.process() as process, stage.piped() as other:
        client = Client(Pipes(process))
        await client.greet()
        thread = await client.start()
        await client.turn(thread, "one")
        with pytest.raises(Refused) as caught:
            await other.request("thread/resume", threadId=thread)
        words = f"thread {thread} already has an active writer"
        assert (caught.value.code, caught.value.message) == (-32600, words)
        assert caught.value.data is not None
        assert (caught.value.data["code"], caught.value.data["pid"]) == (
            "SESSION_IN_USE",
            process.pid,
        )
        for method in ("thread/archive", "thread/delete"):
            assert await other.refusal(method, threadId=thread) == (-32600, words)
        assert await other.refusal(
            "turn/start", threadId=thread, input=[{"type": "text", "text": "two"}]
        ) == (-32600, f"thread not found: {thread}")
        # Whoever only reads it, or goes on in a copy, is in nobody's way.
        read = await other.request("thread/read", threadId=thread, includeTurns=True)
        assert len(read["thread"]["turns"]) == 1
        copy = (await other.request("thread/fork", threadId=thread))["thread"]["id"]
        assert (await other.turn(copy, "two"))["status"] == "completed"
        process.kill()
        await process.wait()
        resumed = await other.request("thread/resume", threadId=thread)
        assert resumed["thread"]["id"] == thread
        assert (await other.turn(thread, "three"))["status"] == "completed"


@pytest.mark.slow
async def test_the_first_protocol_refuses_a_second_process_too(stage: Stage) -> None:
    async with stage.piped() as client, stage.piped() as other:
        name = (await client.request("newConversation"))["conversationId"]
        refused = await other.refusal("resumeConversation", conversationId=name)
    assert refused == (-32600, f"thread {name} already has an active writer")


@pytest.mark.slow
async def test_a_thread_that_is_let_go_is_free_for_other_processes(stage: Stage) -> None:
    async with stage.piped() as other:
        async with stage.piped() as client:
            thread = await client.start()
            await client.turn(thread, "one")
            await client.request("thread/archive", threadId=thread)
            await other.request("thread/unarchive", threadId=thread)
            await other.request("thread/resume", threadId=thread)
            refused = await client.refusal("thread/resume", threadId=thread)
            assert refused == (-32600, f"thread {thread} already has an active writer")
        assert (await other.turn(thread, "two"))["status"] == "completed"


@pytest.mark.slow
async def test_a_chat_reads_which_process_has_its_session(stage: Stage) -> None:
    async with stage.process() as process:
        client = Client(Pipes(process))
        await client.greet()
        thread = await client.start()
        await client.turn(thread, "one")
        chat = await asyncio.create_subprocess_exec(
            *LIMNER,
            *("chat", "-p", "two", "--resume", thread),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=stage.env,
            cwd=stage.cwd,
        )
        out, told = await chat.communicate()
        assert (chat.returncode, out) == (2, b"")
        assert told.decode() == (
            f"limner: The session {thread} is in use by process {process.pid}.\n"
            f"  Close it there, or continue in a copy: limner sessions fork {thread}\n"
        )
    assert len(stage.bodies) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("item", "problem"),
    [
        (
            {"type": "function_call", "name": "x", "arguments": "{}"},
            "function_call: Object missing required field `call_id`",
        ),
        (
            {"type": "function_call_output", "call_id": "a", "output": 7},
            "function_call_output: Expected `str | object | array`, got `int` - at `$.output`",
        ),
        (
            {"type": "reasoning", "summary": "thoughts"},
            "reasoning: Expected `array`, got `str` - at `$.summary`",
        ),
        (
            {"type": "message", "role": "user", "content": [{"type": "input_text"}]},
            "input_text: Object missing required field `text`",
        ),
        (
            {"type": "function_call_output", "call_id": "a", "output": [{"type": "film"}]},
            "unknown content `film`",
        ),
    ],
)
async def test_an_item_that_would_break_every_later_request_is_refused(
    stage: Stage, item: dict[str, Any], problem: str
) -> None:
    stage.script(says("ok"))
    async with stage.piped() as client:
        thread = await client.start()
        refused = await client.refusal(
            "thread/inject_items", threadId=thread, items=[user("Remember 7."), item]
        )
        assert refused == (-32600, f"items[1] is not a valid response item: {problem}")
        refused = await client.refusal("thread/resume", threadId=thread, history=[user("7")])
        assert refused == (
            -32600,
            f"cannot resume thread {thread} with history while it is already running",
        )
        assert (await client.turn(thread, "Which number?"))["status"] == "completed"
    assert [one["content"][0]["text"] for one in stage.bodies[0]["input"]] == ["Which number?"]
