"""Sessions become files, and the files become the same sessions elsewhere."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.agent.agent_pictures import data_url, encoded, handle_of, program
from tests.agent.rollout_samples import (
    META,
    STARTED_MS,
    THREAD,
    call,
    item,
    line,
    output,
    said,
    screenshot_session,
    shown,
    write,
)

from limner.client import Limner
from limner.errors import InputInvalid, OutputExists
from limner.wires.base import HANDLE_URL

PICTURE, DRAWN = encoded(1), encoded(2, kind="JPEG")
LINES = [
    *screenshot_session(PICTURE),
    item(
        {"type": "image_generation_call", "id": "ig_1", "result": base64.b64encode(DRAWN).decode()}
    ),
    item({"type": "of_tomorrow", "n": 2**80, "half": "\ud800", "nested": {"a": [None, 1.5]}}),
]


async def stored(lim: Limner) -> list[dict[str, Any]]:
    session = await lim.sessions.open(THREAD)
    return [one.item async for one in session.items()]


def payloads(path: Path, kind: str = "response_item") -> list[dict[str, Any]]:
    lines = [json.loads(text) for text in path.read_bytes().splitlines()]
    return [one["payload"] for one in lines if one["type"] == kind]


def folder(tmp_path: Path, name: str) -> Path:
    made = tmp_path / name
    made.mkdir()
    return made


async def exported(tmp_path: Path) -> tuple[Path, list[dict[str, Any]]]:
    async with program(folder(tmp_path, "here")) as lim:
        await lim.import_session(write(tmp_path, LINES))
        path = tmp_path / "talk.jsonl"
        told = await lim.export_session(THREAD[:6], path)
        assert (told.path, told.items, told.omitted) == (path, 8, set())
        assert told.pictures == {handle_of(PICTURE), handle_of(DRAWN)}
        return path, await stored(lim)


async def test_an_export_imports_as_the_same_session_elsewhere(tmp_path: Path) -> None:
    path, items = await exported(tmp_path)
    async with program(folder(tmp_path, "there")) as lim:
        told = await lim.import_session(path)
        assert (told.items, told.omitted, told.bad_lines) == (8, 0, 0)
        assert json.dumps(await stored(lim)) == json.dumps(items)
        for data in (PICTURE, DRAWN):
            picture = await lim.pictures.recall(handle_of(data))
            assert await lim.pictures.original(picture) == data
        about = await (await lim.sessions.open(THREAD)).about()
        assert about.settings["model"] == "gpt-5.5"
        assert about.settings["imported"]["originator"] == "limner"


async def test_pictures_are_in_the_file_as_they_came(tmp_path: Path) -> None:
    path, _ = await exported(tmp_path)
    *_, answer, _, drawn, _ = payloads(path)
    assert answer["output"][1] == shown(data_url(PICTURE), detail="high")
    assert drawn["result"] == base64.b64encode(DRAWN).decode()
    assert HANDLE_URL not in path.read_text()


async def test_events_show_the_turns_with_their_messages_and_pictures(tmp_path: Path) -> None:
    drawn = base64.b64encode(DRAWN).decode()
    asked = {**said("Draw a fox."), "turn_id": "t1"}
    asked["content"].append(shown(data_url(PICTURE)))
    value = '{"path": "/w/fox.png", "prompt_used": "a red fox"}'
    made = [{"type": "input_text", "text": value}, shown(data_url(DRAWN, "image/jpeg"))]
    items = [
        asked,
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Hm."}]},
        call("c", "image_generate"),
        {**output("c", made), "success": True},
        {"type": "web_search_call", "id": "w", "action": {"type": "search", "query": "foxes"}},
        said("Done.", role="assistant"),
        said("And a bear."),
        said("<turn_aborted>\nStopped.\n</turn_aborted>"),
    ]
    async with program(tmp_path) as lim:
        lines = [line("session_meta", META), *(item(one, at) for at, one in enumerate(items))]
        await lim.import_session(write(tmp_path, lines))
        told = await lim.export_session(THREAD, tmp_path / "talk.jsonl")
    started = STARTED_MS // 1000
    words = {"local_images": [], "text_elements": []}
    assert payloads(told.path, "event_msg") == [
        {
            "type": "task_started",
            "turn_id": "t1",
            "started_at": started,
            "model_context_window": None,
        },
        {
            "type": "user_message",
            "message": "Draw a fox.",
            "images": [data_url(PICTURE)],
            **words,
        },
        {"type": "agent_reasoning", "text": "Hm."},
        {
            "type": "image_generation_end",
            "call_id": "c",
            "status": "completed",
            "revised_prompt": "a red fox",
            "result": drawn,
            "saved_path": "/w/fox.png",
        },
        {
            "type": "web_search_end",
            "call_id": "w",
            "query": "foxes",
            "action": {"type": "search", "query": "foxes"},
        },
        {"type": "agent_message", "message": "Done.", "phase": None},
        {
            "type": "task_complete",
            "turn_id": "t1",
            "last_agent_message": "Done.",
            "started_at": started,
            "completed_at": started + 5,
            "duration_ms": 5_000,
        },
        {
            "type": "task_started",
            "turn_id": "turn-6",
            "started_at": started + 6,
            "model_context_window": None,
        },
        {"type": "user_message", "message": "And a bear.", "images": [], **words},
        {
            "type": "turn_aborted",
            "turn_id": "turn-6",
            "reason": "interrupted",
            "started_at": started + 6,
            "completed_at": started + 7,
            "duration_ms": 1_000,
        },
    ]


async def test_a_note_replaces_a_picture_that_is_not_stored(tmp_path: Path) -> None:
    async with program(tmp_path) as lim:
        await lim.import_session(write(tmp_path, LINES))
        lim.pictures.local_path(await lim.pictures.recall(handle_of(PICTURE))).unlink()
        told = await lim.export_session(THREAD, tmp_path / "talk.jsonl")
    assert told.omitted == {handle_of(PICTURE)}
    assert payloads(told.path)[4]["output"][1]["text"].startswith("[image omitted: ")


async def test_a_compaction_survives_the_journey(tmp_path: Path) -> None:
    async with program(folder(tmp_path, "here")) as lim:
        session = await lim.sessions.create(cwd="/w", session_id=THREAD, name="Trip")
        await session.append([said("long")])
        await session.compact([said("short")])
        await session.append([said("next")])
        told = await lim.export_session(THREAD, tmp_path / "talk.jsonl")
    async with program(folder(tmp_path, "there")) as lim:
        await lim.import_session(told.path)
        again = await lim.sessions.open(THREAD)
        assert await again.history() == [said("short"), said("next")]
        about = await again.about()
        assert (about.name, about.cwd, about.items) == ("Trip", "/w", 3)


async def test_a_file_is_not_replaced_unless_asked(tmp_path: Path) -> None:
    async with program(tmp_path) as lim:
        await lim.import_session(write(tmp_path, LINES))
        path = write(tmp_path, [b"mine"], "talk.jsonl")
        with pytest.raises(OutputExists):
            await lim.export_session(THREAD, path)
        assert path.read_bytes() == b"mine"
        await lim.export_session(THREAD, path, overwrite=True)
        assert len(payloads(path)) == 8


async def test_a_session_that_is_not_there_writes_no_file(tmp_path: Path) -> None:
    async with program(tmp_path) as lim:
        with pytest.raises(InputInvalid):
            await lim.export_session("nobody", tmp_path / "talk.jsonl")
    assert not (tmp_path / "talk.jsonl").exists()
