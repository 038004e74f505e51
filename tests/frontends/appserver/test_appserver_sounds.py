"""Sounds on the app-server: from clients and their tools to a model that hears."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.acceptance.conftest import Studio, picture
from tests.frontends.appserver.appserver_hall import Hall
from tests.servers.appserver_process import MODEL, Stage, function
from tests.servers.scripted import calls, says

from limner.frontends.appserver.inline_pictures import LEFT_OUT, PictureInliner
from limner.frontends.appserver.protocol.base import AudioInput, TextInput
from limner.frontends.appserver.protocol.items import UserMessage
from limner.frontends.appserver.thread_history import HistoryContext, ThreadHistory
from limner.frontends.appserver.thread_state import ThreadState
from limner.testing.servers.openai_server import error_reply

pytestmark = pytest.mark.slow

PIXELS = f"data:image/png;base64,{base64.b64encode(picture(64, 48)).decode()}"
WAV = b"RIFF\x04\0\0\0WAVE"
SOUND = f"data:audio/wav;base64,{base64.b64encode(WAV).decode()}"
HEARD = {"type": "input_audio", "audio_url": SOUND}


@pytest.fixture
def hearing(stage: Stage) -> Stage:
    with (stage.home / "config.toml").open("a") as config:
        config.write('input = ["text", "image", "audio"]\n')
    return stage


def text(words: str) -> dict[str, Any]:
    return {"type": "input_text", "text": words}


def said_to(stage: Stage, at: int = -1) -> list[Any]:
    """What the user said last in one request that the model got."""
    said = [item for item in stage.bodies[at]["input"] if item.get("role") == "user"]
    return said[-1]["content"]


async def test_text_picture_and_sound_of_a_tool_reach_the_model_and_stay_as_sent(
    hearing: Stage,
) -> None:
    sent = [
        {"type": "inputText", "text": "a"},
        {"type": "inputImage", "imageUrl": PIXELS},
        {"type": "inputAudio", "audioUrl": SOUND},
    ]
    hearing.script(calls(("shot", "{}")), says("ok"))
    async with hearing.piped() as client:
        thread = await client.start(dynamicTools=[function("shot")])
        await client.say(thread, "go")
        client.answer(await client.next("item/tool/call"), {"contentItems": sent, "success": True})
        await client.until("turn/completed")
        (item,) = client.items("dynamicToolCall")
        read = await client.request("thread/read", threadId=thread, includeTurns=True)
    assert (item["status"], item["contentItems"]) == ("completed", sent)
    assert read["thread"]["turns"][0]["items"][1]["contentItems"] == sent
    (output,) = [one for one in hearing.bodies[-1]["input"] if "output" in one]
    assert output == {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": [
            text("a"),
            {"type": "input_image", "image_url": PIXELS, "detail": "high"},
            HEARD,
        ],
    }


async def test_sounds_of_a_user_are_passed_on_those_in_files_too(hearing: Stage) -> None:
    (hearing.cwd / "bell.wav").write_bytes(WAV)
    (hearing.cwd / "notes.wav").write_bytes(b"no sound")
    hearing.script(says("ok"))
    given = [
        {"type": "audio", "url": SOUND},
        {"type": "localAudio", "path": "bell.wav"},
        {"type": "localAudio", "path": "notes.wav"},
        {"type": "localAudio", "path": "missing.wav"},
        {"type": "audio", "url": "data:audio/wav;base64,?"},
    ]
    async with hearing.piped() as client:
        thread = await client.start()
        await client.turn(thread, input=given)
        (shown,) = client.items("userMessage")
        read = await client.request("thread/read", threadId=thread, includeTurns=True)
    assert said_to(hearing)[:3] == [
        HEARD,
        HEARD,
        text(
            f"limner could not read the local audio at `{hearing.cwd}/notes.wav`: "
            "its first bytes match no known audio format"
        ),
    ]
    missing, broken = said_to(hearing)[3:]
    assert missing["text"].startswith("limner could not read the local audio at `")
    assert broken == text("[audio omitted: its data is not base64]")
    assert shown["content"] == given
    again = read["thread"]["turns"][0]["items"][0]["content"]
    assert again[:2] == [{"type": "audio", "url": SOUND}] * 2


async def test_a_model_without_audio_reads_a_text_and_the_history_keeps_the_sound(
    stage: Stage,
) -> None:
    stage.script(says("ok"))
    async with stage.piped() as client:
        thread = await client.start()
        await client.turn(thread, input=[{"type": "audio", "url": SOUND}])
        read = await client.request("thread/read", threadId=thread, includeTurns=True)
    assert said_to(stage) == [text("[audio is not sent: this model takes none]")]
    assert read["thread"]["turns"][0]["items"][0]["content"] == [{"type": "audio", "url": SOUND}]


async def test_a_sound_that_a_service_refuses_does_not_end_the_conversation(
    hearing: Stage,
) -> None:
    hearing.script(
        lambda seen: error_reply(400, "Bad.") if b"input_audio" in seen.body else says("ok")
    )
    async with hearing.piped() as client:
        thread = await client.start()
        ended = await client.turn(thread, input=[{"type": "audio", "url": SOUND}])
    assert ended["status"] == "completed"
    assert [b"input_audio" in json.dumps(body).encode() for body in hearing.bodies] == [True, False]


async def test_the_list_of_models_says_which_hear(hearing: Stage) -> None:
    async with hearing.piped() as client:
        listed = await client.request("model/list")
    assert {one["id"]: one["inputModalities"] for one in listed["data"]}[MODEL] == [
        "text",
        "image",
        "audio",
    ]


async def test_of_many_sounds_an_answer_has_the_newest_and_a_page_the_others(
    studio: Studio,
) -> None:
    hall = Hall(studio)
    thread = await hall.threads.create(ThreadState())
    for turn in ("t1", "t2"):
        sounding = {"type": "message", "role": "user", "content": [HEARD], "id": turn}
        await thread.session.append([{**sounding, "turn_id": turn}])
    history = ThreadHistory(
        inliner=PictureInliner(pictures=hall.lim.pictures, max_chars=len(SOUND))
    )
    turns = await history.turns(thread.session, HistoryContext())
    page = await history.items_page(thread.session, HistoryContext(), turn_id="t1")
    told, heard = TextInput(text=LEFT_OUT), AudioInput(url=SOUND)
    shown = [item.content for turn in turns for item in turn.items if isinstance(item, UserMessage)]
    assert shown == [(told,), (heard,)]
    (entry,) = page.data
    assert isinstance(entry.item, UserMessage)
    assert entry.item.content == (heard,)
    await hall.aclose()
