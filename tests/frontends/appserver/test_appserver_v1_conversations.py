"""Conversations by the first protocol: what holds in them, what is told of them, who is asked."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import picture
from tests.servers.appserver_process import Client, Stage, function, said
from tests.servers.scripted import calls, says

from limner.frontends.appserver.v1.approvals import SERVER_REQUESTS
from limner.frontends.appserver.v1.events import NOTIFICATIONS
from limner.frontends.appserver.v1.types import METHODS
from limner.testing.servers.http_server import Gate
from limner.testing.servers.model_server import StreamError
from limner.testing.servers.replicate_server import ReplicateServer

pytestmark = pytest.mark.slow

EVENT = "codex/event/"
COUNTED = {
    "input_tokens": 1200,
    "cached_input_tokens": 1024,
    "output_tokens": 45,
    "reasoning_output_tokens": 20,
    "total_tokens": 1245,
}

Json = dict[str, Any]


def shown(width: int) -> str:
    """A picture as a data URL."""
    return f"data:image/png;base64,{base64.b64encode(picture(width, 8)).decode()}"


def words(text: str) -> Json:
    return {"type": "text", "data": {"text": text}}


async def begin(client: Client, **params: Any) -> str:
    """A conversation that the client listens to; its id."""
    made = (await client.request("newConversation", **params))["conversationId"]
    await client.request("addConversationListener", conversationId=made)
    return made


async def turn(client: Client, conversation_id: str, text: str = "hi") -> Json:
    """Take a turn to its end; how it ended."""
    await client.request("sendUserMessage", conversationId=conversation_id, items=[words(text)])
    return (await client.next(f"{EVENT}task_complete", f"{EVENT}turn_aborted"))["params"]["msg"]


def happened(client: Client) -> list[str]:
    """What was told, by name, without its beginning."""
    return [method.removeprefix(EVENT) for method in client.methods]


def told(client: Client, name: str) -> list[Json]:
    """What was told under a name."""
    return [params["msg"] for params in client.told(EVENT + name)]


async def configured(client: Client, times: int) -> Json:
    """What holds, as it was told for the last of so many times."""
    while len(told(client, "session_configured")) < times:
        await client.next()
    return told(client, "session_configured")[-1]


async def test_the_events_of_a_turn_come_in_the_order_of_the_first_protocol(
    stage: Stage,
) -> None:
    async with stage.piped(experimental=False) as client:
        made = await client.request("newConversation")
        name = made["conversationId"]
        listening = await client.request("addConversationListener", conversationId=name)
        items = [words("hi")]
        assert await client.request("sendUserMessage", conversationId=name, items=items) == {}
        ended = await client.until(f"{EVENT}task_complete")
        await client.request("removeConversationListener", **listening)
        await client.request("sendUserMessage", conversationId=name, items=[words("again")])
    turn_id = ended["id"]
    assert made == {
        "conversationId": name,
        "model": "gpt-5.4",
        "reasoningEffort": None,
        "rolloutPath": made["rolloutPath"],
    }
    configured = {
        "type": "session_configured",
        "session_id": name,
        "forked_from_id": None,
        "thread_name": None,
        "model": "gpt-5.4",
        "model_provider_id": "openai",
        "approval_policy": "on-request",
        "sandbox_policy": {"type": "workspace-write"},
        "cwd": str(stage.cwd),
        "reasoning_effort": None,
        "history_log_id": 0,
        "history_entry_count": 0,
        "initial_messages": None,
        "rollout_path": made["rolloutPath"],
    }
    user = {"message": "hi", "images": [], "local_images": [], "text_elements": []}
    usage = {
        "total_token_usage": COUNTED,
        "last_token_usage": COUNTED,
        "model_context_window": told(client, "token_count")[0]["info"]["model_context_window"],
    }
    expected: list[tuple[str, Json]] = [
        ("", configured),
        (
            turn_id,
            {
                "type": "task_started",
                "turn_id": turn_id,
                "model_context_window": None,
                "collaboration_mode_kind": "default",
            },
        ),
        (turn_id, {"type": "user_message", **user}),
        (turn_id, {"type": "agent_message_delta", "delta": "All "}),
        (turn_id, {"type": "agent_message_delta", "delta": "right."}),
        (turn_id, {"type": "agent_message", "message": "All right.", "phase": None}),
        (turn_id, {"type": "token_count", "info": usage, "rate_limits": None}),
        (
            turn_id,
            {"type": "task_complete", "turn_id": turn_id, "last_agent_message": "All right."},
        ),
    ]
    # Nothing after the listener was removed, and not a word of the second protocol.
    assert [(one["method"], one["params"]) for one in client.heard] == [
        (f"{EVENT}{msg['type']}", {"id": at, "msg": msg, "conversationId": name})
        for at, msg in expected
    ]


async def test_a_client_that_asks_for_raw_items_gets_each_as_it_is_stored(stage: Stage) -> None:
    stage.script(calls(("shot", "{}")), says("ok"))
    async with stage.piped() as client:
        made = await client.request("newConversation", dynamicTools=[function("shot")])
        name = made["conversationId"]
        await client.request(
            "addConversationListener", conversationId=name, experimentalRawEvents=True
        )
        await client.request("sendUserMessage", conversationId=name, items=[words("go")])
        client.answer(await client.next("item/tool/call"), said("taken"))
        await client.until(f"{EVENT}task_complete")
    kinds = [one["item"]["type"] for one in told(client, "raw_response_item")]
    assert kinds == ["message", "message", "function_call", "function_call_output", "message"]
    output = told(client, "raw_response_item")[3]["item"]
    assert (output["call_id"], output["output"]) == ("call_1", "taken")


async def test_every_wish_for_a_new_conversation_has_its_effect(stage: Stage) -> None:
    folder = stage.home / "personalities" / "pirate"
    folder.mkdir(parents=True)
    (folder / "SOUL.md").write_text("You are a pirate.")
    (folder / "config.toml").write_text('sandbox = "read-only"')
    elsewhere = stage.folder / "elsewhere"
    elsewhere.mkdir()
    async with stage.piped() as client:
        await turn(client, await begin(client, profile="pirate", developerInstructions="Be brief."))
        await turn(
            client,
            await begin(
                client,
                model="gpt-5.4",
                modelProvider="openai",
                cwd=str(elsewhere),
                approvalPolicy="on-failure",
                sandbox="danger-full-access",
                config={
                    "model_reasoning_effort": "high",
                    "tools": {"image_edit": False},
                    "hide_agent_reasoning": True,
                },
                baseInstructions="You are a robot.",
                compactPrompt="In one word.",
                includeApplyPatchTool=True,
            ),
        )
        warned = [one["message"] for one in told(client, "warning")]
    pirate, robot = stage.bodies
    assert pirate["instructions"].startswith("You are a pirate.")
    assert pirate["instructions"].endswith("Be brief.")
    assert robot["instructions"].startswith("You are a robot.")
    assert str(elsewhere) in robot["instructions"]
    assert (robot["model"], robot["reasoning"]["effort"]) == ("gpt-5.4", "high")
    offered = {tool["name"] for tool in pirate["tools"]}
    assert offered - {tool["name"] for tool in robot["tools"]} == {"image_edit"}
    held = [
        (one["approval_policy"], one["sandbox_policy"]["type"], one["cwd"])
        for one in told(client, "session_configured")
    ]
    assert held == [
        ("on-request", "read-only", str(stage.cwd)),
        ("on-failure", "danger-full-access", str(elsewhere)),
    ]
    assert warned == [
        "config.hide_agent_reasoning is not known here and is ignored for this thread.",
        "includeApplyPatchTool has no effect: there is no such tool here.",
    ]


async def test_a_compact_prompt_is_what_sums_the_conversation_up(stage: Stage) -> None:
    async with stage.piped() as client:
        name = await begin(client, compactPrompt="In one word.")
        await turn(client, name)
        await client.request("thread/compact/start", threadId=name)
        await client.until(f"{EVENT}task_complete")
        resumed = await client.request("resumeConversation", conversationId=name)
    assert "In one word." in json.dumps(stage.bodies[-1])
    assert happened(client).count("context_compacted") == 1
    kinds = [one["type"] for one in resumed["initialMessages"]]
    assert kinds == ["user_message", "agent_message", "context_compacted"]


async def test_a_turn_may_change_what_holds_from_then_on(stage: Stage) -> None:
    elsewhere = stage.folder / "elsewhere"
    elsewhere.mkdir()
    png = elsewhere / "dot.png"
    png.write_bytes(picture(8, 8))
    items = [
        words("look"),
        {"type": "image", "data": {"image_url": shown(4)}},
        {"type": "image", "data": {"imageUrl": shown(5)}},
        {"type": "localImage", "data": {"path": str(png)}},
    ]
    schema = {"type": "object", "properties": {"seen": {"type": "string"}}}
    async with stage.piped() as client:
        name = await begin(client)
        sent = await client.request(
            "sendUserTurn",
            conversationId=name,
            items=items,
            cwd=str(elsewhere),
            approvalPolicy="never",
            sandboxPolicy={"type": "read-only"},
            model="gpt-5.4",
            effort="low",
            summary="auto",
            outputSchema=schema,
        )
        await client.until(f"{EVENT}task_complete")
        await turn(client, name)
        await client.request("resumeConversation", conversationId=name)
        held = await configured(client, 2)
    assert sent == {}
    first, second = stage.bodies
    kinds = [part["type"] for part in first["input"][-1]["content"]]
    assert kinds.count("input_image") == 3
    assert first["text"]["format"]["schema"]["properties"] == schema["properties"]
    assert "format" not in second.get("text", {})
    assert [body["reasoning"]["effort"] for body in stage.bodies] == ["low", "low"]
    user = told(client, "user_message")[0]
    assert (user["message"], user["local_images"]) == ("look", [str(png)])
    assert user["images"] == [shown(4), shown(5)]
    assert held["sandbox_policy"] == {"type": "read-only"}
    assert (held["approval_policy"], held["cwd"]) == ("never", str(elsewhere))
    assert held["reasoning_effort"] == "low"


async def test_a_turn_that_fails_is_an_error_and_then_complete(stage: Stage) -> None:
    stage.script(says("Al", error=StreamError(code="server_error", message="It broke.")))
    async with stage.piped() as client:
        ended = await turn(client, await begin(client))
        (error,) = told(client, "error")
    assert (ended["type"], ended["last_agent_message"]) == ("task_complete", None)
    assert error["codex_error_info"] == "internal_server_error"
    assert happened(client)[-2:] == ["error", "task_complete"]


async def test_an_interruption_is_notified_before_its_response(stage: Stage) -> None:
    stage.script(says("Al", gate=Gate()))
    async with stage.piped() as client:
        name = await begin(client)
        await client.request("sendUserMessage", conversationId=name, items=[words("hi")])
        await client.until(f"{EVENT}agent_message_delta")
        answer = await client.request("interruptConversation", conversationId=name)
        aborted = told(client, "turn_aborted")
        idle = await client.refusal("interruptConversation", conversationId=name)
        resumed = await client.request("resumeConversation", conversationId=name)
    assert answer == {"abortReason": "interrupted"}
    assert [one["reason"] for one in aborted] == ["interrupted"]
    assert idle == (-32600, "no active turn to interrupt")
    assert resumed["initialMessages"][-1] == aborted[0]


async def test_conversations_are_listed_page_by_page_and_put_away(stage: Stage) -> None:
    async with stage.piped() as client:
        made = [await client.request("newConversation") for _ in range(3)]
        names = [one["conversationId"] for one in made]
        for number, name in enumerate(names):
            await client.request("addConversationListener", conversationId=name)
            await turn(client, name, f"hello {number}")
        first = await client.request("listConversations", pageSize=2)
        rest = await client.request("listConversations", cursor=first["nextCursor"])
        nobody = await client.request("listConversations", modelProviders=["anthropic"])
        mismatch = await client.refusal(
            "archiveConversation", conversationId=names[0], rolloutPath=made[1]["rolloutPath"]
        )
        assert await client.request("archiveConversation", **_named(made[0])) == {}
        left = await client.request("listConversations")
    listed = [*first["items"], *rest["items"]]
    assert [one["conversationId"] for one in listed] == names[::-1]
    assert [one["preview"] for one in listed] == ["hello 2", "hello 1", "hello 0"]
    assert [one["path"] for one in listed] == [one["rolloutPath"] for one in made[::-1]]
    assert {key: listed[0][key] for key in ("modelProvider", "cwd", "source", "gitInfo")} == {
        "modelProvider": "openai",
        "cwd": str(stage.cwd),
        "source": "mcp",
        "gitInfo": None,
    }
    assert (rest["nextCursor"], nobody["items"]) == (None, [])
    assert mismatch[1].endswith(f"does not match conversation id {names[0]}")
    assert [one["conversationId"] for one in left["items"]] == names[:0:-1]


def _named(made: Json) -> Json:
    return {"conversationId": made["conversationId"], "rolloutPath": made["rolloutPath"]}


async def test_a_copy_goes_its_own_way(stage: Stage) -> None:
    async with stage.piped() as client:
        name = await begin(client)
        await turn(client, name)
        forked = await client.request(
            "forkConversation", conversationId=name, overrides={"sandbox": "read-only"}
        )
        held = await configured(client, 2)
        neither = await client.refusal("forkConversation")
    assert forked["conversationId"] not in (name, "")
    assert [one["type"] for one in forked["initialMessages"]] == ["user_message", "agent_message"]
    assert (held["forked_from_id"], held["sandbox_policy"]["type"]) == (name, "read-only")
    assert neither == (-32600, "either path or conversation id must be provided")


async def test_a_conversation_that_is_not_open_is_refused(stage: Stage) -> None:
    nobody = "01890a5d-ac96-774b-bcce-b302099a8057"
    async with stage.piped() as client:
        for method in ("addConversationListener", "interruptConversation"):
            refused = await client.refusal(method, conversationId=nobody)
            assert refused == (-32600, f"thread not found: {nobody}")
        assert await client.refusal("newConversation", profile="nobody") == (
            -32600,
            "invalid profile: There is no personality 'nobody'.",
        )
        odd = {"type": "image", "data": {}}
        code, problem = await client.refusal("sendUserMessage", conversationId=nobody, items=[odd])
        assert (code, "image_url" in problem) == (-32600, True)


@pytest.fixture
def painter(stage: Stage) -> Iterator[ReplicateServer]:
    """A painter whose pictures cost more than may be paid without asking."""
    with ReplicateServer(picture(64, 64)) as made:
        stage.env |= {
            "REPLICATE_API_TOKEN": "r8_0123456789abcdef",
            "REPLICATE_BASE_URL": made.base_url,
            "LIMNER_APPROVAL_ABOVE_USD": "0.001",
        }
        yield made


ARGUMENTS = '{"prompt":"a fox","provider":"replicate-flux"}'


@pytest.mark.invalid_answers
async def test_paying_is_asked_in_the_old_words_and_answered_in_them(
    stage: Stage, painter: ReplicateServer
) -> None:
    decisions = ["approved", "approved_for_session", "denied", "abort", "maybe"]
    paid: list[int] = []
    endings: list[str] = []
    async with stage.piped() as client:
        for decision in decisions:
            stage.script(calls(("image_generate", ARGUMENTS)), says("ok"))
            name = await begin(client)
            await client.request("sendUserMessage", conversationId=name, items=[words("draw")])
            asked = await client.next("execCommandApproval")
            params = asked["params"]
            assert params == {
                "conversationId": name,
                "callId": "call_1",
                "approvalId": None,
                "command": ["image_generate", ARGUMENTS],
                "cwd": str(stage.cwd),
                "reason": params["reason"],
                "parsedCmd": [{"type": "unknown", "cmd": f"image_generate {ARGUMENTS}"}],
            }
            assert "$0.003" in params["reason"]
            client.answer(asked, {"decision": decision})
            ended = await client.next(f"{EVENT}task_complete", f"{EVENT}turn_aborted")
            paid.append(len(painter.sent("create")))
            endings.append(ended["params"]["msg"]["type"])
    assert paid == [1, 2, 2, 2, 2]
    assert endings == [*["task_complete"] * 3, "turn_aborted", "task_complete"]
    drawn = [one["saved_path"] for one in told(client, "image_generation_end")]
    assert [Path(path).is_file() for path in drawn if path] == [True, True]


async def test_writing_outside_is_asked_in_the_old_words(stage: Stage) -> None:
    target = stage.folder / "outside.png"
    arguments = json.dumps({"prompt": "a fox", "output_path": str(target)})
    stage.script(calls(("image_generate", arguments)), says("ok"))
    async with stage.piped() as client:
        name = await begin(client)
        await client.request("sendUserMessage", conversationId=name, items=[words("draw")])
        asked = await client.next("applyPatchApproval")
        client.answer(asked, {"decision": "approved"})
        await client.until(f"{EVENT}task_complete")
    assert asked["params"] == {
        "conversationId": name,
        "callId": "call_1",
        "fileChanges": {},
        "reason": asked["params"]["reason"],
        "grantRoot": None,
    }
    assert str(target) in asked["params"]["reason"]
    assert target.is_file()


async def test_clients_of_both_protocols_are_asked_each_in_its_words_and_one_answers(
    stage: Stage, painter: ReplicateServer
) -> None:
    stage.script(calls(("image_generate", ARGUMENTS)), says("ok"))
    async with stage.listening() as come, come() as old, come() as new:
        name = await begin(old)
        await new.request("thread/resume", threadId=name)
        await old.request("sendUserMessage", conversationId=name, items=[words("draw")])
        asked = await old.next("execCommandApproval")
        same = await new.next("item/commandExecution/requestApproval")
        assert asked["id"] == same["id"]
        old.answer(asked, {"decision": "approved"})
        assert (await new.until("turn/completed"))["turn"]["status"] == "completed"
        await old.until(f"{EVENT}task_complete")
    assert len(painter.sent("create")) == 1
    assert not [method for method in new.methods if method.startswith(EVENT)]
    assert {method for method in old.methods if not method.startswith(EVENT)} == {
        "execCommandApproval"
    }


async def test_a_new_listener_gets_the_pending_requests(stage: Stage) -> None:
    stage.script(calls(("shot", "{}")), says("ok"))
    async with stage.listening() as come:
        async with come() as first:
            made = await first.request("newConversation", dynamicTools=[function("shot")])
            name = made["conversationId"]
            await first.request("addConversationListener", conversationId=name)
            await first.request("sendUserMessage", conversationId=name, items=[words("go")])
            asked = await first.next("item/tool/call")
        async with come() as second:
            await second.request("addConversationListener", conversationId=name)
            again = await second.next("item/tool/call")
            second.answer(again, said("taken"))
            await second.until(f"{EVENT}task_complete")
    assert (again["id"], again["params"]) == (asked["id"], asked["params"])
    assert stage.outputs() == ["taken"]


def test_every_method_event_and_question_is_on_the_reference_page() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "app-server.md"
    text = page.read_text(encoding="utf-8")
    named = [*METHODS, *NOTIFICATIONS, *SERVER_REQUESTS]
    assert [name for name in named if f"| `{name}` |" not in text] == []


async def test_the_rest_of_the_first_protocol_is_served(stage: Stage) -> None:
    del stage.env["LIMNER_MODEL_ROLES_DEFAULT"]
    async with stage.piped() as client:
        empty = (await client.request("getUserSavedConfig"))["config"]
        assert await client.request("loginApiKey", apiKey="sk-0123456789") == {}
        logged_in = await client.request("getAuthStatus")
        await client.request("setDefaultModel", model="gpt-5.5", reasoningEffort="low")
        saved = (await client.request("getUserSavedConfig"))["config"]
        made = await client.request("newConversation")
        name, path = made["conversationId"], made["rolloutPath"]
        by_id = await client.request("getConversationSummary", conversationId=name)
        by_path = await client.request("getConversationSummary", rolloutPath=path)
        nowhere = await client.refusal("getConversationSummary", rolloutPath="/x.jsonl")
        await client.request("setDefaultModel")
        removed = (await client.request("getUserSavedConfig"))["config"]
        assert await client.request("logoutChatGpt") == {}
        logged_out = await client.request("getAuthStatus")
    assert (empty["model"], empty["profiles"]) == (None, {})
    assert (logged_in["authMethod"], logged_out["authMethod"]) == ("apikey", None)
    assert saved == {**empty, "model": "gpt-5.5", "modelReasoningEffort": "low"}
    assert (made["model"], removed) == ("gpt-5.5", empty)
    assert (by_id["summary"]["conversationId"], by_id["summary"]["path"]) == (name, path)
    assert by_path == by_id
    assert nowhere == (-32600, "no conversation found at '/x.jsonl'")
