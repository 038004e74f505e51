"""Tools of clients: what the model is offered, what a client is asked, what its answers become."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.acceptance.conftest import picture
from tests.servers.appserver_process import Client, Stage, function, said
from tests.servers.scripted import calls, says

PNG = picture(64, 48)
PIXELS = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
SOUND = "data:audio/wav;base64,UklGRiQAAABXQVZF"
FAILED = {"type": "input_text", "text": "The tool says that it failed."}
REMOTE = "remote image URLs are not supported; use an inline data URL instead"
SHAPE = 'answer with {"contentItems": [{"type": "inputText", "text": "…"}], "success": true}'

Item = dict[str, Any]


def text(words: str) -> Item:
    return {"type": "input_text", "text": words}


def image(url: str = PIXELS, **more: Any) -> Item:
    return {"type": "inputImage", "imageUrl": url, **more}


def seen(detail: str = "high") -> Item:
    return {"type": "input_image", "image_url": PIXELS, "detail": detail}


def words(content: str) -> Item:
    return {"type": "inputText", "text": content}


def answer(*items: Item, success: Any = True) -> Item:
    return {"contentItems": list(items), "success": success}


def namespace(name: str, *tools: Item) -> Item:
    return {"type": "namespace", "name": name, "description": f"The {name}.", "tools": [*tools]}


# What a client answers; then the status of the item, and what the model gets.
ROWS: dict[str, tuple[Any, str, Any]] = {
    "one text is a string": (answer(words("a")), "completed", "a"),
    "two texts are an array": (
        answer(words("a"), words("b")),
        "completed",
        [text("a"), text("b")],
    ),
    "text and image": (answer(words("a"), image()), "completed", [text("a"), seen()]),
    "image alone": (answer(image()), "completed", [seen()]),
    "nothing": (answer(), "completed", []),
    "an image that does not decode": (
        answer(words("a"), image("data:image/png;base64,aGVsbG8=")),
        "completed",
        [text("a"), text("[image omitted: the first bytes match no known image format]")],
    ),
    # Upstream tells the model nothing of a failure; here the model reads that it was one.
    "failed, with words": (answer(words("no"), success=False), "failed", [FAILED, text("no")]),
    "failed, with nothing": (answer(success=False), "failed", FAILED["text"]),
    # Upstream drops what a client says about its pictures.
    "a detail": (answer(image(detail="low")), "completed", [seen("low")]),
    "a label": (answer(image(label="the door")), "completed", [text("the door"), seen()]),
    "a remote image": (answer(words("a"), image("https://x/y.png")), "failed", REMOTE),
    "a remote sound": (
        answer({"type": "inputAudio", "audioUrl": "https://x/y.wav"}),
        "failed",
        "audio URLs must use an inline data URL",
    ),
    # Upstream passes these two on to the model, and the thread is broken for good.
    "a file": (
        answer(image("file:///etc/passwd")),
        "failed",
        "image URLs must use an inline data URL; files are not read through a URL; send the "
        "picture itself as a data URL",
    ),
    "no address": (
        answer(image("not a url")),
        "failed",
        "image URLs must use an inline data URL",
    ),
}
# What is no answer at all: upstream says so in one sentence, and here that goes on to say why.
INVALID: dict[str, Any] = {
    "the first form": {"output": "a", "success": True},
    "no success": {"contentItems": []},
    "an unknown kind": answer({"type": "film"}),
    "kinds in snake case": answer({"type": "input_text", "text": "a"}),
    "null": None,
}


async def call_once(client: Client, stage: Stage, thread: str, result: Any) -> tuple[Item, Any]:
    """Let the model call the tool once: the item that became of it, and what the model got."""
    stage.script(calls(("shot", "{}")), says("ok"))
    await client.say(thread, "go")
    client.answer(await client.next("item/tool/call"), result)
    await client.until("turn/completed")
    return client.items("dynamicToolCall")[-1], stage.outputs()[-1]


@pytest.mark.slow
async def test_every_answer_of_a_client_becomes_an_item_and_an_output(stage: Stage) -> None:
    async with stage.piped() as client:
        for name, (sent, status, output) in ROWS.items():
            thread = await client.start(dynamicTools=[function("shot")])
            item, got = await call_once(client, stage, thread, sent)
            assert (name, got) == (name, output)
            shown = sent["contentItems"] if sent["success"] and status == "completed" else None
            assert (item["status"], item["success"]) == (status, status == "completed")
            assert item["contentItems"] == (shown or item["contentItems"])


@pytest.mark.invalid_answers
async def test_an_invalid_answer_fails_with_a_text_that_shows_the_right_form(stage: Stage) -> None:
    async with stage.piped() as client:
        thread = await client.start(dynamicTools=[function("shot")])
        for sent in INVALID.values():
            item, got = await call_once(client, stage, thread, sent)
            assert got.startswith("dynamic tool response was invalid: ")
            assert got.endswith(SHAPE)
            assert (item["status"], item["contentItems"]) == ("failed", [words(got)])


async def test_an_error_of_a_client_reaches_the_model_without_its_keys(stage: Stage) -> None:
    stage.script(calls(("shot", "{}")), says("ok"))
    async with stage.piped() as client:
        thread = await client.start(dynamicTools=[function("shot")])
        await client.say(thread, "go")
        client.refuse(
            await client.next("item/tool/call"), "no display; api_key=sk-0123456789abcdef"
        )
        await client.until("turn/completed")
        (item,) = client.items("dynamicToolCall")
    (got,) = stage.outputs()
    assert got.startswith("dynamic tool request failed: no display; ")
    assert "sk-0123456789abcdef" not in got
    assert (item["status"], item["success"]) == ("failed", False)


async def test_a_call_has_all_that_a_client_needs_and_its_item_all_that_it_said(
    stage: Stage,
) -> None:
    stage.script(calls(("ui__shot", '{"target": "window"}')), says("ok"))
    async with stage.piped() as client:
        thread = await client.start(dynamicTools=[namespace("ui", function("shot"))])
        turn = await client.say(thread, "go")
        asked = await client.next("item/tool/call")
        started = client.told("item/started")[-1]["item"]
        client.answer(asked, answer(words("taken")))
        await client.until("turn/completed")
        (item,) = client.items("dynamicToolCall")
    about = {"namespace": "ui", "tool": "shot", "arguments": {"target": "window"}}
    assert asked["id"] == 0
    assert asked["params"] == {"threadId": thread, "turnId": turn, "callId": "call_1", **about}
    unknown = {"contentItems": None, "success": None, "durationMs": None, "completedAtMs": None}
    expected = {"type": "dynamicToolCall", "id": "call_1", "status": "inProgress", **about}
    assert started == {**expected, **unknown, "startedAtMs": started["startedAtMs"]}
    assert item == {
        **expected,
        "status": "completed",
        "contentItems": [words("taken")],
        "success": True,
        "durationMs": item["durationMs"],
        "startedAtMs": started["startedAtMs"],
        "completedAtMs": item["completedAtMs"],
    }
    assert isinstance(item["durationMs"], int)
    assert stage.outputs() == ["taken"]


async def test_the_model_is_offered_tools_of_both_forms_and_not_the_hidden_ones(
    stage: Stage,
) -> None:
    legacy = [
        {"name": "plain", "description": "p", "inputSchema": {"type": "object"}},
        {"namespace": "ui", "name": "shown", "description": "s", "inputSchema": {}},
        {
            "namespace": "ui",
            "name": "hidden",
            "description": "h",
            "inputSchema": {},
            "exposeToContext": False,
        },
    ]
    async with stage.piped() as client:
        await client.turn(await client.start(dynamicTools=legacy), "hi")
    names = [tool["name"] for tool in stage.bodies[0]["tools"]]
    ours = [
        "image_generate",
        "image_edit",
        "image_render",
        "image_transform",
        "inspect_image",
        "image_check",
        "asset_search",
        "image_batch",
    ]
    ours.append("image_recall")
    assert names == [*ours, "plain", "ui__shown", "tool_search"]
    plain = stage.bodies[0]["tools"][len(ours)]
    assert plain == {
        "type": "function",
        "name": "plain",
        "description": "p",
        "strict": False,
        "parameters": {"type": "object", "properties": {}},
    }


@pytest.mark.slow
async def test_a_deferred_tool_is_found_called_and_remembered(stage: Stage) -> None:
    hidden = namespace("ui", function("screenshot", deferLoading=True))
    stage.script(
        calls(("tool_search", '{"query": "take a screenshot"}')),
        calls(("ui__screenshot", "{}"), start=2),
        says("ok"),
    )
    async with stage.piped() as client:
        thread = await client.start(dynamicTools=[hidden])
        await client.say(thread, "go")
        asked = await client.next("item/tool/call")
        client.answer(asked, said("taken"))
        await client.until("turn/completed")
    async with stage.piped() as client:
        await client.request("thread/resume", threadId=thread)
        await client.turn(thread, "again")
    offered = [[tool["name"] for tool in body["tools"]][9:] for body in stage.bodies]
    found = ["ui__screenshot", "tool_search"]
    assert offered == [["tool_search"], found, found, found]
    search, shot = stage.outputs()
    assert json.loads(search)["tools"][0]["name"] == "ui__screenshot"
    assert (asked["params"]["tool"], shot) == ("screenshot", "taken")


BAD_TOOLS = {
    "deferred dynamic tool must include a namespace: shot": [function("shot", deferLoading=True)],
    "dynamic tool namespace must contain at least one tool: ui": [namespace("ui")],
    "duplicate dynamic tool namespace: ui": [
        namespace("ui", function("a")),
        namespace("ui", function("b")),
    ],
    "duplicate dynamic tool name: a": [function("a"), function("a")],
    "dynamic tool name is reserved: mcp__x": [function("mcp__x")],
    "Invalid request: dynamic tools must use either canonical or legacy format consistently": [
        function("a"),
        {"name": "b", "description": "b", "inputSchema": {}},
    ],
}


async def test_tools_that_break_a_rule_begin_no_thread(stage: Stage) -> None:
    async with stage.piped() as client:
        for problem, tools in BAD_TOOLS.items():
            refused = await client.refusal("thread/start", dynamicTools=tools)
            assert refused == (-32600, problem)
        assert (await client.request("thread/loaded/list"))["data"] == []


async def test_tools_are_an_experiment_that_has_to_be_asked_for(stage: Stage) -> None:
    async with stage.piped(experimental=False) as client:
        for method, params, thing in [
            ("thread/start", {}, "thread/start.dynamicTools"),
            ("thread/resume", {"threadId": "x"}, "thread/resume.dynamicTools"),
            ("thread/tools/set", {"threadId": "x"}, "thread/tools/set"),
        ]:
            refused = await client.refusal(method, dynamicTools=[], **params)
            assert refused == (-32600, f"{thing} requires experimentalApi capability")
        granular = {"sandbox_approval": True, "rules": True, "mcp_elicitations": True}
        refused = await client.refusal("thread/start", approvalPolicy={"granular": granular})
        assert refused == (-32600, "askForApproval.granular requires experimentalApi capability")
        assert (await client.turn(await client.start(), "hi"))["status"] == "completed"


async def test_calls_run_side_by_side_and_each_answer_counts_as_it_comes(stage: Stage) -> None:
    stage.script(calls(("one", "{}"), ("two", "{}"), ("three", "{}")), says("ok"))
    async with stage.piped() as client:
        thread = await client.start(dynamicTools=[function(n) for n in ("one", "two", "three")])
        await client.say(thread, "go")
        asked = [await client.next("item/tool/call") for _ in range(3)]
        assert [one["params"]["tool"] for one in asked] == ["one", "two", "three"]
        for one in reversed(asked):
            client.answer(one, said(one["params"]["tool"].upper()))
            await client.next("item/completed")
        # Late and unknown answers are ignored.
        client.answer(asked[0], said("too late"))
        client.send({"id": 999, "result": {}})
        assert (await client.until("turn/completed"))["turn"]["status"] == "completed"
    assert [item["tool"] for item in client.items("dynamicToolCall")] == ["three", "two", "one"]
    assert stage.outputs() == ["ONE", "TWO", "THREE"]


async def test_a_call_without_an_answer_times_out_and_the_model_reads_why(stage: Stage) -> None:
    # Upstream waits for ever.
    stage.env["LIMNER_APPSERVER_TOOL_TIMEOUT_S"] = "0.2"
    stage.script(calls(("shot", "{}")), says("ok"))
    async with stage.piped() as client:
        ended = await client.turn(await client.start(dynamicTools=[function("shot")]), "go")
        (item,) = client.items("dynamicToolCall")
    assert (ended["status"], item["status"]) == ("completed", "failed")
    assert stage.outputs() == ["dynamic tool call got no answer within 0.2 seconds"]


async def test_a_call_in_an_interrupted_turn_fails_as_upstream_says(stage: Stage) -> None:
    stage.script(calls(("shot", "{}")), says("ok"))
    async with stage.piped() as client:
        thread = await client.start(dynamicTools=[function("shot")])
        turn = await client.say(thread, "go")
        asked = await client.next("item/tool/call")
        await client.request("turn/interrupt", threadId=thread, turnId=turn)
        assert (await client.until("turn/completed"))["turn"]["status"] == "interrupted"
        client.answer(asked, said("too late"))
        (item,) = client.items("dynamicToolCall")
        await client.turn(thread, "again")
    assert (item["status"], item["contentItems"], item["success"]) == ("failed", [], False)
    assert stage.outputs() == ["dynamic tool call was cancelled before receiving a response"]


@pytest.mark.slow
async def test_a_client_gets_arguments_as_the_model_wrote_them(stage: Stage) -> None:
    given: list[Any] = [[1, 2], "s", 5, None, {"target": 1}]
    stage.script(*(calls(("shot", json.dumps(one))) for one in given), says("ok"))
    async with stage.piped() as client:
        thread = await client.start(dynamicTools=[function("shot")])
        await client.say(thread, "go")
        for one in given:
            asked = await client.next("item/tool/call")
            assert asked["params"]["arguments"] == one
            client.answer(asked, said("taken"))
        await client.until("turn/completed")
        shown = (await client.request("thread/read", threadId=thread, includeTurns=True))["thread"]
    assert stage.outputs() == ["taken"] * len(given)
    assert [item["arguments"] for item in client.items("dynamicToolCall")] == given
    stored = [item for item in shown["turns"][0]["items"] if item["type"] == "dynamicToolCall"]
    assert [item["arguments"] for item in stored] == given


async def test_calls_that_cannot_be_made_have_no_item(stage: Stage) -> None:
    stage.script(calls(("nobody", "{}"), ("shot", "{broken")), says("ok"))
    async with stage.piped() as client:
        thread = await client.start(dynamicTools=[function("shot")])
        assert (await client.turn(thread, "go"))["status"] == "completed"
    assert client.items("dynamicToolCall") == []
    unknown, broken = stage.outputs()
    # Upstream says "unsupported call"; here the model learns what there is.
    assert json.loads(unknown)["error"]["message"] == "there is no tool 'nobody'"
    assert broken.startswith("failed to parse function arguments: ")


async def test_a_clients_tool_goes_before_one_of_ours_with_that_name(stage: Stage) -> None:
    stage.script(calls(("image_generate", '{"prompt": "a fox"}')), says("ok"))
    async with stage.piped() as client:
        thread = await client.start(dynamicTools=[function("image_generate")])
        await client.say(thread, "go")
        client.answer(await client.next("item/tool/call"), said("mine"))
        await client.until("turn/completed")
    assert stage.outputs() == ["mine"]


@pytest.mark.slow
async def test_tools_can_be_changed_and_ours_turned_off(stage: Stage) -> None:
    # Upstream: only with thread/start, and for good.
    off = {"tools.image_edit": False, "tools": {"image_recall": False}}
    async with stage.piped(optInNotificationMethods=["thread/tools/changed"]) as client:
        thread = await client.start(dynamicTools=[function("old")], config=off)
        await client.turn(thread, "one")
        changed = await client.request(
            "thread/tools/set", threadId=thread, dynamicTools=[function("new")]
        )
        await client.turn(thread, "two")
        told = client.told("thread/tools/changed")
    async with stage.piped() as client:
        await client.request("thread/resume", threadId=thread)
        await client.turn(thread, "three")
        await client.request("thread/resume", threadId=thread, dynamicTools=[function("newer")])
        await client.turn(thread, "four")
    ours = [
        "image_generate",
        "image_render",
        "image_transform",
        "inspect_image",
        "image_check",
        "asset_search",
        "image_batch",
    ]
    offered = [[tool["name"] for tool in body["tools"]] for body in stage.bodies]
    assert offered == [[*ours, "old"], [*ours, "new"], [*ours, "new"], [*ours, "newer"]]
    assert (changed, told) == ({}, [{"threadId": thread, "names": ["new"]}])


@pytest.mark.slow
async def test_pictures_that_are_made_and_looked_at_are_items_that_show_them(
    stage: Stage,
) -> None:
    (stage.cwd / "dot.png").write_bytes(PNG)
    stage.script(
        calls(("image_generate", '{"prompt": "a red fox"}')),
        calls(
            ("inspect_image", '{"path": "dot.png", "question": "How large is it?"}'),
            ("inspect_image", '{"path": "none.png", "question": "What is it?"}'),
            start=2,
        ),
        says("ok"),
    )
    async with stage.piped() as client:
        thread = await client.start()
        await client.turn(thread, "go")
        read = await client.request("thread/read", threadId=thread, includeTurns=True)
    started = [told["item"] for told in client.told("item/started")]
    (drawing,) = [item for item in started if item["type"] == "imageGeneration"]
    (drawn,) = client.items("imageGeneration")
    (viewed,) = client.items("imageView")
    (failed,) = client.items("dynamicToolCall")
    assert (drawing["status"], drawing["result"]) == ("in_progress", "")
    assert (drawn["status"], drawn["revisedPrompt"]) == ("completed", "a red fox")
    assert base64.b64decode(drawn["result"])[:4] == b"\x89PNG"
    assert drawn["savedPath"].startswith(str(stage.home / "generated"))
    assert viewed["path"] == str(stage.cwd / "dot.png")
    assert (failed["tool"], failed["status"]) == ("inspect_image", "failed")
    shown = read["thread"]["turns"][0]["items"]
    assert [item["type"] for item in shown] == [
        "userMessage",
        "imageGeneration",
        "imageView",
        "dynamicToolCall",
        "agentMessage",
    ]
    assert shown[1]["result"] == drawn["result"]


@pytest.mark.slow
async def test_a_sound_is_kept_and_shown_as_it_was_sent(stage: Stage) -> None:
    sound = {"type": "inputAudio", "audioUrl": SOUND}
    async with stage.piped() as client:
        thread = await client.start(dynamicTools=[function("shot")])
        item, got = await call_once(client, stage, thread, answer(words("a"), image(), sound))
        read = await client.request("thread/read", threadId=thread, includeTurns=True)
    assert item["contentItems"] == [words("a"), image(), sound]
    assert read["thread"]["turns"][0]["items"][1]["contentItems"] == item["contentItems"]
    assert got[:2] == [text("a"), seen()]
