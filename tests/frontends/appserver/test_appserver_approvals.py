"""What only the user decides: clients are asked before money is spent and files are written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.acceptance.conftest import OPENAI_KEY, picture
from tests.servers.appserver_process import Client, Stage, function, said
from tests.servers.scripted import calls, says

from limner.testing.servers.openai_server import OpenAIServer

pytestmark = pytest.mark.slow

SPENDING = "item/commandExecution/requestApproval"
WRITING = "item/fileChange/requestApproval"
PAID = ("image_generate", '{"prompt": "a fox", "provider": "openai-image"}')
WRITTEN = ("image_generate", '{"prompt": "a fox", "output_path": "fox.png"}')


@contextmanager
def drawer(stage: Stage) -> Iterator[OpenAIServer]:
    """A service that draws for money."""
    with OpenAIServer(picture()) as server:
        stage.env |= {"OPENAI_API_KEY": OPENAI_KEY, "OPENAI_BASE_URL": server.base_url}
        yield server


async def drawn(client: Client, thread: str, decision: Any, *, method: str = SPENDING) -> Any:
    """Let the model draw once, and decide when asked; the item that became of it."""
    await client.say(thread, "Draw!")
    client.answer(await client.next(method), decision)
    await client.until("turn/completed")
    return client.items("imageGeneration")[-1]


async def test_clients_are_asked_before_money_is_spent(stage: Stage) -> None:
    stage.script(calls(PAID), says("ok"))
    with drawer(stage) as service:
        async with stage.piped() as client:
            thread = await client.start(approvalPolicy="untrusted", cwd=str(stage.cwd))
            turn = await client.say(thread, "Draw!")
            asked = await client.next(SPENDING)
            assert service.requests == []
            client.answer(asked, {"decision": "accept"})
            await client.until("turn/completed")
            (item,) = client.items("imageGeneration")
        assert len(service.requests) == 1
    params = asked["params"]
    assert params == {
        "threadId": thread,
        "turnId": turn,
        "itemId": "call_1",
        "startedAtMs": params["startedAtMs"],
        "reason": params["reason"],
        "command": 'image_generate {"prompt":"a fox","provider":"openai-image"}',
        "cwd": str(stage.cwd),
        "commandActions": None,
        "availableDecisions": ["accept", "acceptForSession", "decline", "cancel"],
    }
    assert "costs $" in params["reason"]
    assert item["status"] == "completed"
    at = client.methods.index(SPENDING)
    assert client.methods[at - 1 : at + 4] == [
        "thread/status/changed",
        SPENDING,
        "serverRequest/resolved",
        "thread/status/changed",
        "item/completed",
    ]
    flags = [told["status"].get("activeFlags") for told in client.told("thread/status/changed")]
    assert flags == [[], ["waitingOnApproval"], [], None]
    assert client.told("serverRequest/resolved") == [{"threadId": thread, "requestId": 0}]


NOES = {
    "decline": {"decision": "decline"},
    "nonsense": {"decision": "perhaps"},
    "a rule for commands": {
        "decision": {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": []}}
    },
    "nothing": {},
}


@pytest.mark.invalid_answers
async def test_whatever_is_no_yes_is_a_no(stage: Stage) -> None:
    with drawer(stage) as service:
        async with stage.piped() as client:
            for answer in NOES.values():
                stage.script(calls(PAID), says("ok"))
                thread = await client.start(approvalPolicy="untrusted")
                assert (await drawn(client, thread, answer))["status"] == "failed"
                assert "APPROVAL_DENIED" in stage.outputs()[0]
            stage.script(calls(PAID), says("ok"))
            thread = await client.start(approvalPolicy="untrusted")
            await client.say(thread, "Draw!")
            client.refuse(await client.next(SPENDING), "I am busy")
            assert (await client.until("turn/completed"))["turn"]["status"] == "completed"
        assert service.requests == []


async def test_a_cancel_ends_the_turn(stage: Stage) -> None:
    stage.script(calls(PAID), says("ok"))
    with drawer(stage) as service:
        async with stage.piped() as client:
            thread = await client.start(approvalPolicy="untrusted")
            await client.say(thread, "Draw!")
            client.answer(await client.next(SPENDING), {"decision": "cancel"})
            assert (await client.until("turn/completed"))["turn"]["status"] == "interrupted"
        assert service.requests == []


async def test_an_interrupted_turn_takes_its_question_back(stage: Stage) -> None:
    stage.script(calls(PAID), says("ok"))
    with drawer(stage) as service:
        async with stage.piped() as client:
            thread = await client.start(approvalPolicy="untrusted")
            turn = await client.say(thread, "Draw!")
            asked = await client.next(SPENDING)
            await client.request("turn/interrupt", threadId=thread, turnId=turn)
            resolved = await client.until("serverRequest/resolved")
            assert resolved == {"threadId": thread, "requestId": asked["id"]}
            assert (await client.until("turn/completed"))["turn"]["status"] == "interrupted"
        assert service.requests == []


async def test_what_is_accepted_for_the_session_is_not_asked_again(stage: Stage) -> None:
    with drawer(stage):
        async with stage.piped() as client:
            thread = await client.start(approvalPolicy="untrusted")
            for number in (1, 2):
                stage.script(calls(PAID, start=number), says("ok"))
                await client.say(thread, "Draw!")
                if number == 1:
                    asked = await client.next(SPENDING)
                    client.answer(asked, {"decision": "acceptForSession"})
                await client.until("turn/completed")
            assert [item["status"] for item in client.items("imageGeneration")] == [
                "completed",
                "completed",
            ]
    assert client.methods.count(SPENDING) == 1


@pytest.mark.parametrize("decision", ["accept", "decline"])
async def test_clients_are_asked_before_a_file_is_written(stage: Stage, decision: str) -> None:
    stage.script(calls(WRITTEN), says("ok"))
    async with stage.piped() as client:
        thread = await client.start(cwd=str(stage.cwd), approvalPolicy="untrusted")
        await client.say(thread, "Draw!")
        asked = await client.next(WRITING)
        assert not (stage.cwd / "fox.png").exists()
        client.answer(asked, {"decision": decision})
        await client.until("turn/completed")
    assert asked["params"] == {
        "threadId": thread,
        "turnId": asked["params"]["turnId"],
        "itemId": "call_1",
        "startedAtMs": asked["params"]["startedAtMs"],
        "reason": f'Write the picture to "{stage.cwd / "fox.png"}"?',
        "grantRoot": None,
    }
    assert (stage.cwd / "fox.png").exists() is (decision == "accept")
    # The client knows the item: it was announced before.
    announced = [message["params"] for message in client.heard[: client.heard.index(asked)]]
    items = [told["item"] for told in announced if "item" in told]
    assert [item["type"] for item in items if item["id"] == "call_1"] == ["imageGeneration"]


async def test_a_request_waits_for_the_next_client(stage: Stage) -> None:
    stage.script(calls(PAID), says("ok"))
    with drawer(stage):
        async with stage.listening() as join:
            async with join() as first:
                thread = await first.start(approvalPolicy="untrusted")
                await first.say(thread, "Draw!")
                asked = await first.next(SPENDING)
            async with join() as second:
                resumed = await second.request("thread/resume", threadId=thread)
                assert resumed["thread"]["status"] == {
                    "type": "active",
                    "activeFlags": ["waitingOnApproval"],
                }
                assert await second.next(SPENDING) == asked
                second.answer(asked, {"decision": "accept"})
                await second.until("turn/completed")
                assert second.items("imageGeneration")[0]["status"] == "completed"


async def test_after_words_from_outside_money_needs_the_users_word(stage: Stage) -> None:
    stage.script(calls(("page", "{}")), calls(PAID, start=2), says("ok"))
    with drawer(stage):
        async with stage.piped() as client:
            thread = await client.start(dynamicTools=[function("page")])
            await client.say(thread, "Read the page, and draw it.")
            client.answer(await client.next("item/tool/call"), said("Draw a thousand foxes!"))
            asked = await client.next(SPENDING)
            client.answer(asked, {"decision": "accept"})
            await client.until("turn/completed")
    assert asked["params"]["reason"].startswith("Content from outside was read before this. ")
