"""The official Python SDK, as it is published, with either app-server behind it.

What the real Codex passes too shows that the test asks for the right thing. It comes with the
package `openai-codex`, no part of the ordinary tools: `pip install --group local`.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.client_script import DATA_URL, green
from tests.acceptance.conftest import REPLICATE_KEY
from tests.servers.appserver_side import KINDS, Side, limner_side, side_of
from tests.servers.codex_process import MODEL
from tests.servers.components import needs
from tests.servers.scripted import calls, says

from limner.testing.servers.http_server import Gate
from limner.testing.servers.model_server import ModelAnswer
from limner.testing.servers.openai_server import error_reply
from limner.testing.servers.replicate_server import ReplicateServer
from limner.testing.servers.responses_server import ResponsesServer

pytestmark = [
    pytest.mark.slow,
    needs("openai_codex", "codex_cli_bin"),
    # The SDK leaves the pipes of its process to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
]

SCREENSHOT = {
    "type": "function",
    "name": "screenshot",
    "description": "Take a picture of a part of the screen.",
    "inputSchema": {"type": "object", "properties": {"of": {"type": "string"}}},
}
ANSWER: dict[str, Any] = {
    "contentItems": [
        {"type": "inputText", "text": "The window:"},
        {"type": "inputImage", "imageUrl": DATA_URL},
    ],
    "success": True,
}
SEEN = [
    {"type": "input_text", "text": "The window:"},
    {"type": "input_image", "image_url": DATA_URL, "detail": "high"},
]


@pytest.fixture(autouse=True)
def tidy() -> Iterator[None]:
    """Collects what the SDK leaves behind before the next test can be blamed for it."""
    yield
    gc.collect()


@pytest.fixture
def model() -> Iterator[ResponsesServer]:
    with ResponsesServer() as server:
        yield server


@pytest.fixture(params=KINDS)
def side(request: pytest.FixtureRequest, tmp_path: Path, model: ResponsesServer) -> Side:
    return side_of(request.param, tmp_path, model)


def will_say(model: ResponsesServer, *sayings: ModelAnswer) -> None:
    model.script("ask", *(model.streamed(saying, {"model": MODEL}) for saying in sayings))


def config(side: Side, *overrides: str) -> Any:
    from openai_codex import CodexConfig

    return CodexConfig(
        codex_bin=str(side.program), cwd=str(side.cwd), env=side.env, config_overrides=overrides
    )


def last_input(model: ResponsesServer) -> list[dict[str, Any]]:
    """The conversation as the model was sent it last."""
    return model.sent("ask")[-1].json()["input"]


def outputs(model: ResponsesServer) -> list[Any]:
    """What the tools gave back, as the model was sent it last."""
    return [one["output"] for one in last_input(model) if one["type"] == "function_call_output"]


def texts(model: ResponsesServer) -> list[str]:
    """The words of the conversation, as the model was sent it last."""
    said = [one["content"] for one in last_input(model) if one["type"] == "message"]
    return [one if isinstance(one, str) else one[0]["text"] for one in said]


def user_parts(model: ResponsesServer) -> list[dict[str, Any]]:
    """What the user said last, as the model was sent it."""
    said = [one for one in last_input(model) if one.get("role") == "user"]
    return said[-1]["content"]


def test_a_thread_runs_a_turn_and_tells_what_it_took(side: Side, model: ResponsesServer) -> None:
    from openai_codex import Codex

    will_say(model, says("Hel", "lo."))
    with Codex(config(side)) as codex:
        result = codex.thread_start().run("Hello?")
    assert (result.status.value, result.error, result.final_response) == (
        "completed",
        None,
        "Hello.",
    )
    kinds = [item.root.type for item in result.items]
    assert kinds == ["userMessage", "agentMessage"]
    assert result.usage is not None
    assert result.usage.total.model_dump() == {
        "cache_write_input_tokens": 0,
        "cached_input_tokens": 1024,
        "input_tokens": 1200,
        "output_tokens": 45,
        "reasoning_output_tokens": 20,
        "total_tokens": 1245,
    }
    assert (result.started_at, result.completed_at, result.duration_ms) != (None, None, None)


def test_a_turn_streams_its_words_and_ends(side: Side, model: ResponsesServer) -> None:
    from openai_codex import Codex

    will_say(model, says("Hel", "lo."))
    with Codex(config(side)) as codex:
        events = list(codex.thread_start().turn("Hello?").stream())
    deltas = [one.payload.delta for one in events if one.method == "item/agentMessage/delta"]
    assert deltas == ["Hel", "lo."]
    assert events[-1].method == "turn/completed"
    assert events[-1].payload.turn.status.value == "completed"


def test_a_running_turn_is_steered(side: Side, model: ResponsesServer) -> None:
    from openai_codex import Codex

    gate = Gate()
    will_say(model, says("Once upon a time", gate=gate), says("The end."))
    with Codex(config(side)) as codex:
        turn = codex.thread_start().turn("Tell me a story")
        stream = turn.stream()
        while next(stream).method != "item/agentMessage/delta":
            pass
        assert turn.steer("Shorter").turn_id == turn.id
        gate.open()
        events = list(stream)
    said = [
        one.payload.item.root.text
        for one in events
        if one.method == "item/completed" and one.payload.item.root.type == "agentMessage"
    ]
    # Codex cuts the answer off that was being given; here it is finished first.
    assert said[-1] == "The end."
    assert user_parts(model) == [{"type": "input_text", "text": "Shorter"}]


def test_a_running_turn_is_interrupted_and_the_next_one_runs(
    side: Side, model: ResponsesServer
) -> None:
    from openai_codex import Codex

    will_say(model, says("Once upon a time", gate=Gate()), says("Yes?"))
    with Codex(config(side)) as codex:
        thread = codex.thread_start()
        turn = thread.turn("Tell me a story")
        stream = turn.stream()
        while next(stream).method != "item/agentMessage/delta":
            pass
        turn.interrupt()
        *_, last = stream
        assert last.payload.turn.status.value == "interrupted"
        assert thread.run("Hello?").final_response == "Yes?"


def test_a_thread_goes_on_in_a_new_process(side: Side, model: ResponsesServer) -> None:
    from openai_codex import Codex

    will_say(model, says("Blue."), says("You said blue."))
    with Codex(config(side)) as codex:
        thread = codex.thread_start()
        thread.run("My colour is?")
    with Codex(config(side)) as codex:
        resumed = codex.thread_resume(thread.id)
        assert resumed.id == thread.id
        [turn] = resumed.read(include_turns=True).thread.turns
        assert [item.root.type for item in turn.items] == ["userMessage", "agentMessage"]
        assert turn.items[1].root.text == "Blue."
        assert resumed.run("What did I say?").final_response == "You said blue."
    assert texts(model)[-3:] == ["My colour is?", "Blue.", "What did I say?"]


def test_threads_are_forked_named_listed_archived_and_brought_back(
    side: Side, model: ResponsesServer
) -> None:
    from openai_codex import Codex

    will_say(model, says("One."), says("Two."))
    with Codex(config(side)) as codex:
        thread = codex.thread_start()
        thread.run("Count")
        thread.set_name("Counting")
        fork = codex.thread_fork(thread.id)
        assert fork.id != thread.id
        assert fork.run("Go on").final_response == "Two."
        listed = {one.id: one for one in codex.thread_list().data}
        assert set(listed) == {thread.id, fork.id}
        assert (listed[thread.id].name, listed[thread.id].preview) == ("Counting", "Count")
        assert fork.read().thread.forked_from_id == thread.id

        codex.thread_archive(fork.id)
        assert [one.id for one in codex.thread_list().data] == [thread.id]
        assert [one.id for one in codex.thread_list(archived=True).data] == [fork.id]
        assert codex.thread_unarchive(fork.id).id == fork.id
        assert {one.id for one in codex.thread_list().data} == {thread.id, fork.id}
        assert texts(model)[-3:] == ["Count", "One.", "Go on"]


def test_models_and_the_account_can_be_read(side: Side, model: ResponsesServer) -> None:
    from openai_codex import Codex

    with Codex(config(side)) as codex:
        models = codex.models().data
        assert len(models) > 1
        assert sum(one.is_default for one in models) == 1
        account = codex.account()
        assert (account.account, account.requires_openai_auth) == (None, False)


def test_a_thread_is_compacted_and_goes_on(side: Side, model: ResponsesServer) -> None:
    from openai_codex.client import CodexClient

    will_say(model, says("One."), says("They counted."), says("Two."))
    with CodexClient(config(side)) as client:
        client.initialize()
        thread_id = client.thread_start({}).thread.id
        client.wait_for_turn_completed(client.turn_start(thread_id, "Count").turn.id)
        client.thread_compact(thread_id)
        while (news := client.next_notification()).method != "thread/status/changed" or (
            news.payload.status.root.type != "idle" or len(model.sent("ask")) < 2
        ):
            pass
        ended = client.wait_for_turn_completed(client.turn_start(thread_id, "Go on").turn.id)
        assert ended.turn.status.value == "completed"
    assert "They counted." in texts(model)[-2]
    assert texts(model)[-1] == "Go on"


def test_a_dynamic_tool_answers_with_a_picture_that_the_model_sees(
    side: Side, model: ResponsesServer
) -> None:
    from openai_codex.client import CodexClient

    asked: list[tuple[str, Mapping[str, Any]]] = []

    def on_request(method: str, params: dict[str, Any] | None) -> dict[str, Any]:
        asked.append((method, params or {}))
        return ANSWER

    will_say(model, calls(("screenshot", '{"of":"window"}'), words="Let me look."), says("Green."))
    with CodexClient(config(side), approval_handler=on_request) as client:
        client.initialize()
        thread_id = client.thread_start({"dynamicTools": [SCREENSHOT]}).thread.id
        started = client.turn_start(thread_id, "What is on my screen?")
        ended = client.wait_for_turn_completed(started.turn.id)
        assert ended.turn.status.value == "completed"
        [turn] = client.thread_read(thread_id, include_turns=True).thread.turns
    [(method, params)] = asked
    assert method == "item/tool/call"
    assert params == {
        "threadId": thread_id,
        "turnId": started.turn.id,
        "callId": "call_1",
        "namespace": None,
        "tool": "screenshot",
        "arguments": {"of": "window"},
    }
    assert outputs(model) == [SEEN]
    [call] = [item.root for item in turn.items if item.root.type == "dynamicToolCall"]
    shown = [one.model_dump(mode="json", by_alias=True) for one in call.content_items]
    assert (call.status.value, call.success, shown) == ("completed", True, ANSWER["contentItems"])


def test_the_high_level_object_answers_dynamic_tools_too(
    side: Side, model: ResponsesServer
) -> None:
    from openai_codex import Codex, Thread

    will_say(model, calls(("screenshot", '{"of":"window"}'), words="Let me look."), says("Green."))
    with Codex(config(side)) as codex:
        codex._client._approval_handler = lambda method, params: ANSWER
        started = codex._client.thread_start({"dynamicTools": [SCREENSHOT]})
        result = Thread(codex._client, started.thread.id).run("What is on my screen?")
    assert result.final_response == "Green."
    assert outputs(model) == [SEEN]


def test_pictures_are_input_by_value_and_by_path(side: Side, model: ResponsesServer) -> None:
    from openai_codex import Codex, ImageInput, LocalImageInput, TextInput

    file = side.cwd / "green.png"
    file.write_bytes(green())
    will_say(model, says("Both green."))
    with Codex(config(side)) as codex:
        thread = codex.thread_start()
        said = [TextInput("Which?"), ImageInput(DATA_URL), LocalImageInput(str(file))]
        assert thread.run(said).final_response == "Both green."
    picture = {"type": "input_image", "image_url": DATA_URL, "detail": "high"}
    tag = f'<image name=[Image #2] path="{file}">'
    assert user_parts(model) == [
        {"type": "input_text", "text": "Which?"},
        picture,
        {"type": "input_text", "text": tag},
        picture,
        {"type": "input_text", "text": "</image>"},
    ]


def test_what_another_program_says_is_no_users_words(side: Side, model: ResponsesServer) -> None:
    from openai_codex import Codex, ExternalMessage

    will_say(model, says("Noted."))
    content = [
        {"type": "input_text", "text": "You have mail."},
        {"type": "input_image", "image_url": DATA_URL},
    ]
    with Codex(config(side)) as codex:
        result = codex.thread_start().run(ExternalMessage(tool_name="mailbox", content=content))
    assert result.final_response == "Noted."
    assert [item.root.type for item in result.items] == ["functionCallOutput", "agentMessage"]
    assert result.items[0].root.name == "mailbox"
    asked = json.dumps(last_input(model))
    assert "You have mail." in asked
    assert DATA_URL in asked
    users = [one["content"] for one in last_input(model) if one.get("role") == "user"]
    assert {"type": "input_text", "text": "You have mail."} not in [
        part for content in users for part in content
    ]


def test_a_model_that_fails_is_an_error_that_names_the_cause(
    side: Side, model: ResponsesServer
) -> None:
    from openai_codex import Codex

    model.script("ask", error_reply(400, "The window is too small."))
    with Codex(config(side)) as codex, pytest.raises(RuntimeError, match="window is too small"):
        codex.thread_start().run("Hello?")


async def test_the_async_client_runs_streams_steers_and_interrupts(
    side: Side, model: ResponsesServer
) -> None:
    from openai_codex import AsyncCodex

    gate = Gate()
    will_say(
        model,
        says("Hello."),
        says("Once upon", gate=gate),
        says("The end."),
        says("On and on", gate=Gate()),
        says("In the fork."),
    )
    async with AsyncCodex(config(side)) as codex:
        thread = await codex.thread_start()
        assert (await thread.run("Hello?")).final_response == "Hello."

        turn = await thread.turn("Tell me a story")
        stream = turn.stream()
        while (await anext(stream)).method != "item/agentMessage/delta":
            pass
        await turn.steer("Shorter")
        gate.open()
        assert [one async for one in stream][-1].payload.turn.status.value == "completed"

        turn = await thread.turn("Another")
        stream = turn.stream()
        while (await anext(stream)).method != "item/agentMessage/delta":
            pass
        await turn.interrupt()
        assert [one async for one in stream][-1].payload.turn.status.value == "interrupted"

        fork = await codex.thread_fork(thread.id)
        assert (await fork.run("And you?")).final_response == "In the fork."
        assert {one.id for one in (await codex.thread_list()).data} == {thread.id, fork.id}
        await codex.thread_archive(fork.id)
        assert [one.id for one in (await codex.thread_list()).data] == [thread.id]


async def test_two_turns_of_two_threads_run_side_by_side(
    side: Side, model: ResponsesServer
) -> None:
    from openai_codex import AsyncCodex

    gate = Gate()
    will_say(model, says("Slow.", gate=gate), says("Quick."))
    async with AsyncCodex(config(side)) as codex:
        slow, quick = await codex.thread_start(), await codex.thread_start()
        running = asyncio.ensure_future(slow.run("Take your time"))
        await model.wait_until("ask")
        assert (await quick.run("Hurry")).final_response == "Quick."
        gate.open()
        assert (await running).final_response == "Slow."


class Paying:
    """limner, where a picture costs more than may be paid without asking."""

    def __init__(self, folder: Path, model: ResponsesServer, painter: ReplicateServer) -> None:
        self.side = limner_side(folder, model)
        self.side.env["REPLICATE_API_TOKEN"] = REPLICATE_KEY
        self.side.env["REPLICATE_BASE_URL"] = painter.base_url
        self.config = config(self.side, "approval.above_usd=0.001")
        self.painter = painter
        arguments = json.dumps({"prompt": "a fox", "provider": "replicate-flux"})
        will_say(model, calls(("image_generate", arguments), words="Drawing."), says("Done."))


@pytest.fixture
def paying(tmp_path: Path, model: ResponsesServer, replicate: ReplicateServer) -> Paying:
    return Paying(tmp_path, model, replicate)


def test_paying_above_the_limit_is_asked_and_the_sdk_agrees_by_itself(paying: Paying) -> None:
    from openai_codex import Codex

    with Codex(paying.config) as codex:
        result = codex.thread_start().run("Draw a fox")
    assert result.final_response == "Done."
    [drawn] = [item.root for item in result.items if item.root.type == "imageGeneration"]
    assert drawn.status == "completed"
    assert Path(drawn.saved_path.root).read_bytes().startswith(b"\x89PNG")


def test_paying_that_a_client_declines_is_not_done(paying: Paying, model: ResponsesServer) -> None:
    from openai_codex.client import CodexClient

    asked: list[tuple[str, Mapping[str, Any]]] = []

    def decline(method: str, params: dict[str, Any] | None) -> dict[str, Any]:
        asked.append((method, params or {}))
        return {"decision": "decline"}

    with CodexClient(paying.config, approval_handler=decline) as client:
        client.initialize()
        thread_id = client.thread_start({"approvalPolicy": "on-request"}).thread.id
        started = client.turn_start(thread_id, "Draw a fox")
        assert client.wait_for_turn_completed(started.turn.id).turn.status.value == "completed"
    [(method, params)] = asked
    assert method == "item/commandExecution/requestApproval"
    assert (params["threadId"], params["turnId"]) == (thread_id, started.turn.id)
    assert paying.painter.requests == []
    [output] = outputs(model)
    assert json.loads(output)["error"]["code"] == "APPROVAL_DENIED"
