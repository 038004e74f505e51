"""Changes of stored threads, and what clients ask for when they start."""

from __future__ import annotations

import pytest
from tests.servers.appserver_process import Stage
from tests.servers.scripted import says

pytestmark = pytest.mark.slow

UNKNOWN = "00000000-0000-7000-8000-000000000000"


async def test_what_clients_ask_for_at_their_start_is_answered(stage: Stage) -> None:
    async with stage.piped() as client:
        answers = {
            method: await client.request(method)
            for method in (
                "configRequirements/read",
                "modelProvider/capabilities/read",
                "collaborationMode/list",
                "skills/list",
                "hooks/list",
                "mcpServerStatus/list",
                "app/list",
                "plugin/list",
                "plugin/installed",
                "project/list",
                "threadSection/list",
                "experimentalFeature/list",
                "getAuthStatus",
                "getUserAgent",
                "userInfo",
            )
        }
        status = await client.request("remoteControl/status/read")
        profiles = await client.request("permissionProfile/list")
        thread = await client.start()
        await client.next("thread/started")
    page = {"data": [], "nextCursor": None}
    agent = answers.pop("getUserAgent")["userAgent"]
    mode = {"name": "Default", "mode": "default", "model": None, "reasoning_effort": None}
    folder = str(stage.cwd)
    assert answers == {
        "configRequirements/read": {"requirements": None},
        "modelProvider/capabilities/read": {"imageGeneration": True, "webSearch": False},
        "collaborationMode/list": {"data": [mode]},
        "skills/list": {"data": [{"cwd": folder, "skills": [], "errors": []}]},
        "hooks/list": {"data": [{"cwd": folder, "hooks": [], "warnings": [], "errors": []}]},
        "mcpServerStatus/list": page,
        "app/list": page,
        "plugin/list": {"marketplaces": [], "marketplaceLoadErrors": [], "featuredPluginIds": []},
        "plugin/installed": {"marketplaces": [], "marketplaceLoadErrors": []},
        "project/list": page,
        "threadSection/list": page,
        "experimentalFeature/list": page,
        "getAuthStatus": {"authMethod": None, "authToken": None, "requiresOpenaiAuth": False},
        "userInfo": {"allegedUserEmail": None},
    }
    assert (agent.startswith("tests/"), status["status"]) == (True, "disabled")
    assert [one["id"] for one in profiles["data"]] == [
        ":read-only",
        ":workspace",
        ":danger-full-access",
    ]
    assert thread


async def test_a_thread_is_found_by_what_was_said_in_it(stage: Stage) -> None:
    stage.script(says("A heron stands in the reeds."))
    async with stage.piped() as client:
        one, two = await client.start(), await client.start()
        await client.turn(one, "birds, please")
        await client.turn(two, "say 100% of it")
        found = await client.request("thread/search", searchTerm="PLEASE")
        said = await client.request("thread/search", searchTerm="heron")
        exact = await client.request("thread/search", searchTerm="100%")
        none = await client.request("thread/search", searchTerm="input_text")
        refused = await client.refusal("thread/search", searchTerm=" ")
    assert [(hit["thread"]["id"], hit["snippet"]) for hit in found["data"]] == [
        (one, "birds, please")
    ]
    assert {hit["thread"]["id"] for hit in said["data"]} == {one, two}
    assert [hit["thread"]["id"] for hit in exact["data"]] == [two]
    assert none["data"] == []
    assert refused == (-32600, "search term must not be empty")


async def test_the_options_of_an_open_thread_can_be_changed(stage: Stage) -> None:
    async with stage.piped() as client:
        thread = await client.start()
        changed = await client.request(
            "thread/settings/update",
            threadId=thread,
            effort="high",
            approvalPolicy="never",
            sandboxPolicy={"type": "readOnly"},
        )
        told = (await client.until("thread/settings/updated"))["threadSettings"]
        await client.turn(thread, "go")
    assert changed == {}
    assert (told["model"], told["effort"], told["approvalPolicy"], told["sandboxPolicy"]) == (
        "gpt-5.4",
        "high",
        "never",
        {"type": "readOnly", "networkAccess": False},
    )
    assert stage.bodies[0]["reasoning"] == {"effort": "high"}


async def test_what_a_user_has_read_is_stored(stage: Stage) -> None:
    async with stage.piped() as client:
        thread = await client.start()
        turn = await client.turn(thread, "go")
        about = {"threadId": thread}
        told = (await client.request("thread/read", **about))["readState"]
        stale = await client.refusal(
            "thread/readState/update", **about, expectedRevision="x", operation={"type": "read"}
        )
        read = await client.request(
            "thread/readState/update",
            **about,
            expectedRevision=told["revision"],
            operation={"type": "read"},
        )
        listed = (await client.request("thread/list"))["readStates"]
    assert told["firstUnread"] == {"type": "turn", "turnId": turn["id"]}
    assert stale == (-32600, "read state revision is stale")
    assert read["readState"]["firstUnread"] is None
    assert listed == {thread: read["readState"]}


async def test_items_are_read_by_their_ids_and_metadata_is_stored(stage: Stage) -> None:
    async with stage.piped() as client:
        thread = await client.start()
        turn = await client.turn(thread, "go")
        about = {"threadId": thread}
        all_of_it = (await client.request("thread/items/list", **about))["data"]
        wanted = all_of_it[-1]["item"]["id"]
        some = await client.request(
            "thread/items/read", **about, turnId=turn["id"], itemIds=[wanted, "nothing"]
        )
        git = {"sha": "abc", "branch": "main"}
        first = await client.request("thread/metadata/update", **about, gitInfo=git)
        second = await client.request("thread/metadata/update", **about, gitInfo={"sha": None})
    assert some["data"] == all_of_it[-1:]
    assert first["thread"]["gitInfo"] == {**git, "originUrl": None}
    assert second["thread"]["gitInfo"] == {"sha": None, "branch": "main", "originUrl": None}


async def test_the_last_turns_can_be_removed(stage: Stage) -> None:
    async with stage.piped() as client:
        thread = await client.start()
        await client.turn(thread, "one")
        second = await client.turn(thread, "two")
        await client.turn(thread, "three")
        about = {"threadId": thread}
        reverted = await client.request("thread/revert", **about, beforeTurnId=second["id"])
        await client.until("thread/reverted")
        await client.turn(thread, "other")
        read = await client.request("thread/read", **about, includeTurns=True)
        unknown = await client.refusal("thread/revert", **about, beforeTurnId="x")
    assert (reverted["thread"]["id"], reverted["thread"]["turns"]) == (thread, [])
    words = [turn["items"][0]["content"][0]["text"] for turn in read["thread"]["turns"]]
    assert words == ["one", "other"]
    asked = [item for item in stage.bodies[-1]["input"] if item.get("role") == "user"]
    assert [item["content"][0]["text"] for item in asked] == ["one", "other"]
    assert unknown == (-32600, "turn not found: x")
