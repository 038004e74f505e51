"""Threads: started, listed, read, copied, archived and deleted; and the small calls beside them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.servers.appserver_process import Client, Stage, function, said
from tests.servers.scripted import calls, says

from limner.testing.servers.http_server import Gate

UNKNOWN = "01a1dcb7-7dea-7d33-8136-def2e2c6b1c2"


def user(words: str) -> dict[str, Any]:
    return {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": words}],
    }


def asked_in(thread: Any) -> list[str]:
    """What the user said first in each turn of a thread."""
    return [turn["items"][0]["content"][0]["text"] for turn in thread["turns"]]


async def talked(client: Client, *words: str, **params: Any) -> str:
    """A thread in which these words were said, one after the other."""
    thread = await client.start(**params)
    for one in words:
        await client.turn(thread, one)
    return thread


async def test_a_new_thread_has_every_field_that_upstreams_has(stage: Stage) -> None:
    async with stage.piped(name="probe") as client:
        answer = await client.request(
            "thread/start",
            cwd=str(stage.cwd),
            approvalPolicy="on-failure",
            sandbox="read-only",
            ephemeral=False,
            threadSource="user",
        )
        told = await client.until("thread/started")
    thread, cwd = answer["thread"], str(stage.cwd)
    assert told == {"thread": thread}
    place = {"environmentId": "local", "cwd": cwd, "runtimeWorkspaceRoots": [cwd]}
    nothing = [
        *("extra", "forkedFromId", "parentThreadId", "section", "sectionEnteredAt", "projectId"),
        *("reasoningEffort", "path", "agentNickname", "agentRole", "gitInfo", "name"),
        "daybreakEnabled",
    ]
    assert thread == {
        **dict.fromkeys(nothing),
        "id": thread["id"],
        "environments": [place],
        "sessionId": thread["id"],
        "preview": "",
        "ephemeral": False,
        "historyMode": "paginated",
        "modelProvider": "openai",
        "model": "gpt-5.4",
        "createdAt": thread["createdAt"],
        "updatedAt": thread["createdAt"],
        "recencyAt": thread["createdAt"],
        "status": {"type": "idle"},
        "cwd": cwd,
        "cliVersion": "0.166.0",
        "originator": "probe",
        "source": "appServer",
        "canAcceptDirectInput": True,
        "threadSource": "user",
        "turns": [],
    }
    assert thread["id"][14] == "7"
    assert {name: answer[name] for name in answer if name != "thread"} == {
        "model": "gpt-5.4",
        "modelProvider": "openai",
        "serviceTier": None,
        "disabledPluginIds": [],
        "cwd": cwd,
        "runtimeWorkspaceRoots": [cwd],
        "instructionSources": [],
        # Clients of this version know no "on-failure".
        "approvalPolicy": "on-request",
        "approvalsReviewer": "user",
        "sandbox": {"type": "readOnly", "networkAccess": False},
        "activePermissionProfile": None,
        "reasoningEffort": None,
        "multiAgentMode": "explicitRequestOnly",
    }


async def test_a_model_may_be_named_in_every_way_that_clients_have(stage: Stage) -> None:
    ways: dict[str, dict[str, Any]] = {
        "openai/gpt-5.5": {"model": "gpt-5.5", "modelProvider": "openai"},
        "openai/gpt-5.4": {"model": "openai/gpt-5.4"},
        "openai/gpt-5.4:high": {"config": {"model_reasoning_effort": "high"}},
        "anthropic/claude-opus-4-8": {"model": "claude-opus-4-8"},
        "limner/offline": {"config": {"model": "offline", "model_provider": "limner"}},
    }
    async with stage.piped() as client:
        for name, wanted in ways.items():
            answer = await client.request("thread/start", **wanted)
            effort = answer["reasoningEffort"]
            told = f"{answer['modelProvider']}/{answer['model']}" + (f":{effort}" if effort else "")
            assert told == name
        unknown = await client.refusal("thread/start", modelProvider="nobody")
        listed = (await client.request("model/list"))["data"]
        code, words = await client.refusal(
            "thread/start", config={"model_reasoning_effort": "gigantic"}
        )
    assert unknown == (-32600, "Model provider `nobody` not found")
    assert [(one["id"], one["model"]) for one in listed if one["isDefault"]] == [
        ("openai/gpt-5.4", "gpt-5.4")
    ]
    assert (code, words.startswith("unknown reasoning effort `gigantic`")) == (-32600, True)


async def test_config_applies_to_one_thread_and_unsupported_keys_cause_a_warning(
    stage: Stage,
) -> None:
    config = {
        "budget": {"session_usd": 0.000001},
        "images.fit": "fast",
        "web_search": "live",
        "mcp_servers": {"docs": {"command": "docs-server"}},
        "experimental_resume": "later",
    }
    async with stage.piped() as client:
        poor = await client.start(config=config)
        assert (await client.turn(poor, "hi"))["error"]["codexErrorInfo"] == "usageLimitExceeded"
        assert (await client.turn(await client.start(), "hi"))["status"] == "completed"
        code, words = await client.refusal("thread/start", config={"budget.session_usd": "much"})
    assert [told["message"] for told in client.told("warning")] == [
        "config.images.fit applies to the whole server and is ignored for this thread.",
        "config.web_search is not known here and is ignored for this thread.",
        "config.mcp_servers.docs.command is not known here and is ignored for this thread.",
        "config.experimental_resume is not known here and is ignored for this thread.",
    ]
    assert (code, words.startswith("invalid config.budget.session_usd: ")) == (-32600, True)


async def test_a_mistyped_key_of_config_is_refused_with_the_nearest_key(stage: Stage) -> None:
    none = "there is no such key"
    options = (
        "agent.personality, agent.sandbox, approval.policy, approval_policy, base_instructions, "
        "budget.session_usd, compact_prompt, developer_instructions, model, model_provider, "
        "model_reasoning_effort, model_roles.default, profile, sandbox_mode"
    )
    refusals = {
        "budget.sesion_usd": f"{none}; did you mean budget.session_usd?",
        "sandbox_mod": f"{none}; did you mean sandbox_mode?",
        "image.fit": f"{none}; did you mean images.fit?",
        "websearch": f"{none}; did you mean web_search?",
        "no.such": f"{none}; a thread has {options}",
    }
    async with stage.piped() as client:
        for key, words in refusals.items():
            refused = await client.refusal("thread/start", config={key: 1})
            assert refused == (-32600, f"invalid config.{key}: {words}")
        assert (await client.request("thread/loaded/list"))["data"] == []


@pytest.mark.slow
async def test_config_that_can_never_hold_begins_no_thread(stage: Stage) -> None:
    wide = {str(number): 0 for number in range(20_000)}
    async with stage.piped() as client:
        told = [
            await client.refusal("thread/start", config=config)
            for config in (
                {"budget.session_usd": "NaN"},
                {"budget.session_usd": -1},
                {"a": wide},
                # A short message, and two gigabytes of names.
                {"a" * 100_000: wide},
            )
        ]
        assert (await client.request("thread/loaded/list"))["data"] == []
    assert [words.partition(": ")[0] for _, words in told] == [
        "invalid config.budget.session_usd",
        "invalid config.budget.session_usd",
        "config has more than 1,000 keys",
        "config has a key of more than 200 characters",
    ]


@pytest.mark.slow
async def test_threads_are_listed_sorted_sifted_and_page_by_page(stage: Stage) -> None:
    (stage.cwd / "below").mkdir()
    async with stage.piped() as client:
        first = await talked(client, "a red fox")
        second = await talked(client, "a blue cat", cwd=str(stage.cwd / "below"))
        third = await talked(client, "a red dog")
        await client.start()  # nothing was said in it, so that it is not listed
        await talked(client, "whisper", ephemeral=True)
        await client.turn(first, "more")

        async def listed(**params: Any) -> list[str]:
            return [one["id"] for one in (await client.request("thread/list", **params))["data"]]

        assert await listed() == [third, second, first]
        assert await listed(sortKey="updated_at") == [first, third, second]
        assert await listed(sortDirection="asc") == [first, second, third]
        assert await listed(searchTerm="RED") == [third, first]
        assert await listed(cwd=str(stage.cwd / "below")) == [second]
        assert await listed(modelProviders=["anthropic"]) == []
        assert await listed(archived=True) == []
        for direction, order in (("desc", [third, second, first]), ("asc", [first, second, third])):
            cursor, seen = None, list[str]()
            while len(seen) < 3:
                page = await client.request(
                    "thread/list", limit=2, cursor=cursor, sortDirection=direction
                )
                seen += [one["id"] for one in page["data"]]
                cursor = page["nextCursor"]
            assert (seen, cursor) == (order, None)
        refused = await client.refusal("thread/list", cursor="bad")
        assert refused == (-32600, "invalid cursor: bad")


@pytest.mark.slow
async def test_a_thread_is_read_without_being_opened_and_its_parts_page_by_page(
    stage: Stage,
) -> None:
    async with stage.piped() as client:
        thread = await talked(client, "one", "two", "three")
    async with stage.piped() as client:
        bare = (await client.request("thread/read", threadId=thread))["thread"]
        whole = (await client.request("thread/read", threadId=thread, includeTurns=True))["thread"]
        assert (bare["status"], bare["turns"], bare["preview"]) == (
            {"type": "notLoaded"},
            [],
            "one",
        )
        assert asked_in(whole) == ["one", "two", "three"]
        page = await client.request(
            "thread/turns/list", threadId=thread, limit=2, itemsView="full", sortDirection="asc"
        )
        rest = await client.request(
            "thread/turns/list",
            threadId=thread,
            cursor=page["nextCursor"],
            itemsView="full",
            sortDirection="asc",
        )
        assert [*page["data"], *rest["data"]] == whole["turns"]
        turn = whole["turns"][1]
        items = await client.request(
            "thread/items/list", threadId=thread, turnId=turn["id"], sortDirection="asc"
        )
        assert [entry["item"] for entry in items["data"]] == turn["items"]
        assert (await client.request("thread/loaded/list"))["data"] == []
        for method in ("thread/read", "thread/turns/list", "thread/items/list"):
            code, _ = await client.refusal(method, threadId=UNKNOWN)
            assert code == -32600


async def test_a_thread_is_copied_whole_or_up_to_a_turn_and_goes_its_own_way(stage: Stage) -> None:
    # Upstream takes no tools with a fork.
    tools = [function("shot")]
    async with stage.piped() as client:
        thread = await talked(client, "one", "two", "three")
        turns = (await client.request("thread/read", threadId=thread, includeTurns=True))["thread"][
            "turns"
        ]
        whole = await client.request("thread/fork", threadId=thread, dynamicTools=tools)
        started = await client.until("thread/started")
        until = await client.request("thread/fork", threadId=thread, lastTurnId=turns[1]["id"])
        before = await client.request(
            "thread/fork", threadId=thread, beforeTurnId=turns[1]["id"], excludeTurns=True
        )
        await client.turn(until["thread"]["id"], "four")
        again = await client.request("thread/read", threadId=thread, includeTurns=True)
        assert await client.refusal("thread/fork", threadId=thread, lastTurnId="zzz") == (
            -32600,
            "turn not found: zzz",
        )
        assert await client.refusal(
            "thread/fork", threadId=thread, lastTurnId="a", beforeTurnId="b"
        ) == (-32600, "`beforeTurnId` cannot be combined with `lastTurnId`")
        assert await client.refusal("thread/fork", threadId=UNKNOWN) == (
            -32600,
            f"no rollout found for thread id {UNKNOWN}",
        )
    assert asked_in(whole["thread"]) == ["one", "two", "three"]
    assert whole["thread"]["forkedFromId"] == thread
    assert started["thread"] == {**whole["thread"], "turns": []}
    assert asked_in(until["thread"]) == ["one", "two"]
    assert (before["thread"]["turns"], asked_in(again["thread"])) == ([], ["one", "two", "three"])
    sent = [item for item in stage.bodies[-1]["input"] if item.get("role") == "user"]
    assert [item["content"][0]["text"] for item in sent] == ["one", "two", "four"]


async def test_a_copy_of_a_running_thread_ends_the_turn_it_was_in(stage: Stage) -> None:
    stage.script(calls(("shot", "{}")), says("One"), says("Two"))
    async with stage.piped() as client:
        thread = await client.start(dynamicTools=[function("shot")])
        await client.say(thread, "go")
        asked = await client.next("item/tool/call")
        copy = (await client.request("thread/fork", threadId=thread))["thread"]
        client.answer(asked, said("taken"))
        assert (await client.until("turn/completed"))["threadId"] == thread
        resumed = await client.request("thread/resume", threadId=copy["id"])
        await client.turn(copy["id"], "and now?")
    assert [turn["status"] for turn in copy["turns"]] == ["interrupted"]
    assert resumed["thread"]["status"] == {"type": "idle"}
    assert stage.outputs() == ["aborted"]


async def test_a_thread_is_put_away_brought_back_and_forgotten(stage: Stage) -> None:
    async with stage.piped() as client:
        thread = await talked(client, "one")
        about = {"threadId": thread}
        await client.request("thread/archive", **about)
        await client.next("thread/archived")
        order = client.methods[-2:]
        assert order == ["thread/status/changed", "thread/archived"]
        assert client.told("thread/status/changed")[-1]["status"] == {"type": "notLoaded"}
        archived = await client.request("thread/list", archived=True)
        assert [one["id"] for one in archived["data"]] == [thread]
        assert (await client.request("thread/list"))["data"] == []
        assert (await client.request("thread/loaded/list"))["data"] == []
        back = await client.request("thread/unarchive", **about)
        assert (back["thread"]["id"], await client.until("thread/unarchived")) == (thread, about)
        refused = await client.refusal("thread/unarchive", **about)
        assert refused == (-32600, f"no archived rollout found for thread id {thread}")
        await client.request("thread/delete", **about)
        assert await client.until("thread/deleted") == about
        gone = (-32600, f"no rollout found for thread id {thread}")
        for method in ("thread/archive", "thread/unarchive", "thread/delete", "thread/resume"):
            assert await client.refusal(method, **about) == gone


async def test_a_thread_gets_a_name(stage: Stage) -> None:
    async with stage.piped() as client:
        thread = await talked(client, "one")
        await client.request("thread/name/set", threadId=thread, name="  The fox ")
        told = await client.until("thread/name/updated")
        assert told == {"threadId": thread, "threadName": "The fox"}
        read = await client.request("thread/read", threadId=thread)
        assert read["thread"]["name"] == "The fox"
        refused = await client.refusal("thread/name/set", threadId=thread, name=" ")
        assert refused == (-32600, "thread name must not be empty")


async def test_items_are_added_to_the_history_as_they_are(stage: Stage) -> None:
    output = {"type": "function_call_output", "call_id": "stray", "output": "nobody called"}
    async with stage.piped() as client:
        thread = await client.start()
        about = {"threadId": thread}
        assert (
            await client.request(
                "thread/inject_items", **about, items=[user("Remember 7."), output]
            )
            == {}
        )
        await client.turn(thread, "Which number?")
        remote = user("x")
        remote["content"].append({"type": "input_image", "image_url": "https://x/y.png"})
        for items, words in [
            ([], "items must not be empty"),
            (
                [remote],
                "remote image URLs are not supported; use an inline data URL instead",
            ),
            (
                [{"type": "message", "role": "wizard", "content": []}],
                "items[0] is not a valid response item: unknown role `wizard`",
            ),
        ]:
            refused = await client.refusal("thread/inject_items", **about, items=items)
            assert refused == (-32600, words)
    sent = [item["content"][0]["text"] for item in stage.bodies[0]["input"]]
    assert sent == ["Remember 7.", "Which number?"]


async def test_a_client_that_unsubscribes_gets_no_notifications_and_the_thread_runs_on(
    stage: Stage,
) -> None:
    gate = Gate()
    stage.script(says("One", gate=gate))
    async with stage.piped() as client:
        assert await client.request("thread/unsubscribe", threadId=UNKNOWN) == {
            "status": "notLoaded"
        }
        thread = await client.start()
        await client.say(thread, "go")
        await client.next("item/agentMessage/delta")
        about = {"threadId": thread}
        assert await client.request("thread/unsubscribe", **about) == {"status": "unsubscribed"}
        assert await client.request("thread/unsubscribe", **about) == {"status": "notSubscribed"}
        heard = len(client.heard)
        assert (await client.request("thread/loaded/list"))["data"] == [thread]
        gate.open()
        status = None
        while status != "completed":
            read = await client.request("thread/read", **about, includeTurns=True)
            status = read["thread"]["turns"][0]["status"]
        # Every client hears of the status of every thread, for its list of threads.
        assert {told["method"] for told in client.heard[heard:]} == {"thread/status/changed"}


@pytest.mark.slow
async def test_an_ephemeral_thread_is_gone_with_the_server(stage: Stage) -> None:
    async with stage.piped() as client:
        thread = await talked(client, "one", ephemeral=True)
        read = await client.request("thread/read", threadId=thread)
        assert read["thread"]["ephemeral"] is True
    async with stage.piped() as client:
        code, _ = await client.refusal("thread/read", threadId=thread)
        assert code == -32600


async def test_threads_that_are_not_open_are_refused_in_upstreams_words(stage: Stage) -> None:
    needing: dict[str, dict[str, Any]] = {
        "turn/start": {"input": []},
        "turn/steer": {"expectedTurnId": "a", "input": []},
        "turn/interrupt": {"turnId": "a"},
        "thread/compact/start": {},
        "thread/inject_items": {"items": []},
        "thread/tools/set": {"dynamicTools": []},
        "thread/goal/get": {},
        "thread/goal/set": {"objective": "x"},
    }
    async with stage.piped() as client:
        for method, params in needing.items():
            refused = await client.refusal(method, threadId=UNKNOWN, **params)
            assert refused == (-32600, f"thread not found: {UNKNOWN}")


async def test_the_small_calls_of_clients_are_answered(stage: Stage) -> None:
    async with stage.piped() as client:
        models = await client.request("model/list")
        (default,) = [model for model in models["data"] if model["isDefault"]]
        assert default["id"] == "openai/gpt-5.4"
        page = await client.request("model/list", limit=1)
        assert page["data"] == models["data"][:1]
        assert await client.request("account/read") == {
            "account": None,
            "requiresOpenaiAuth": False,
            "workspaceRouting": None,
        }
        login = await client.request("account/login/start", type="apiKey", apiKey="sk-0123456789")
        assert login == {"type": "apiKey"}
        code, _ = await client.refusal("account/login/start", type="chatgpt")
        assert code == -32600
        assert await client.request("account/login/cancel", loginId="x") == {"status": "notFound"}
        assert await client.request("account/logout") == {}
        config = (await client.request("config/read"))["config"]
        assert (config["model"], config["model_provider"]) == ("gpt-5.4", "openai")
        thread = await client.start()
        goal = (await client.request("thread/goal/set", threadId=thread, objective="draw"))["goal"]
        assert (goal["objective"], goal["status"]) == ("draw", "active")
        assert (await client.request("thread/goal/get", threadId=thread))["goal"] == goal
        assert await client.request("thread/goal/clear", threadId=thread) == {"cleared": True}
