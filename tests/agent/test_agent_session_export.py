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
    THREAD,
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


def payloads(path: Path) -> list[dict[str, Any]]:
    lines = [json.loads(text) for text in path.read_bytes().splitlines()]
    return [one["payload"] for one in lines if one["type"] == "response_item"]


def folder(tmp_path: Path, name: str) -> Path:
    made = tmp_path / name
    made.mkdir()
    return made


async def exported(tmp_path: Path, *, inline: bool) -> tuple[Path, list[dict[str, Any]]]:
    async with program(folder(tmp_path, "here")) as lim:
        await lim.import_session(write(tmp_path, LINES))
        path = tmp_path / "talk.jsonl"
        told = await lim.export_session(THREAD[:6], path, inline=inline)
        assert (told.path, told.items, told.omitted) == (path, 8, set())
        assert told.pictures == {handle_of(PICTURE), handle_of(DRAWN)}
        return path, await stored(lim)


@pytest.mark.parametrize("inline", [False, True])
async def test_an_export_imports_as_the_same_session_elsewhere(
    tmp_path: Path, inline: bool
) -> None:
    path, items = await exported(tmp_path, inline=inline)
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


async def test_pictures_are_put_beside_the_file_once_each(tmp_path: Path) -> None:
    path, items = await exported(tmp_path, inline=False)
    assert payloads(path) == items
    beside = {file.name: file.read_bytes() for file in (tmp_path / "talk.pictures").iterdir()}
    assert beside == {f"{handle_of(PICTURE)}.png": PICTURE, f"{handle_of(DRAWN)}.jpg": DRAWN}


async def test_inline_pictures_are_as_they_came(tmp_path: Path) -> None:
    path, _ = await exported(tmp_path, inline=True)
    *_, answer, _, drawn, _ = payloads(path)
    assert answer["output"][1] == shown(data_url(PICTURE), detail="high")
    assert drawn["result"] == base64.b64encode(DRAWN).decode()
    assert not (tmp_path / "talk.pictures").exists()


async def test_a_note_replaces_a_picture_that_is_not_stored(tmp_path: Path) -> None:
    async with program(tmp_path) as lim:
        await lim.import_session(write(tmp_path, LINES))
        lim.pictures.path(await lim.pictures.recall(handle_of(PICTURE))).unlink()
        told = await lim.export_session(THREAD, tmp_path / "talk.jsonl", inline=True)
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


async def test_a_picture_file_with_the_name_of_another_picture_is_not_used(
    tmp_path: Path,
) -> None:
    forged = handle_of(PICTURE)
    beside = folder(tmp_path, "talk.pictures")
    (beside / f"{forged}.png").write_bytes(DRAWN)
    (beside / f"{'0' * 64}.png").write_bytes(b"no picture at all")
    (beside / f"{'1' * 64}.png").symlink_to(write(tmp_path, [DRAWN], "elsewhere.png"))
    (beside / "notes.txt").write_text("not a picture, and not named like one")
    lines = [line("session_meta", META), item(output("a", [shown(f"{HANDLE_URL}{forged}")]))]
    async with program(tmp_path) as lim:
        told = await lim.import_session(write(tmp_path, lines, "talk.jsonl"))
        (kept,) = await stored(lim)
    assert kept["output"][0]["text"].startswith("[image omitted: ")
    assert told.omitted == 1
    assert [warning.partition(":")[0] for warning in told.warnings[:2]] == [
        f"{'0' * 64}.png",
        f"{'1' * 64}.png",
    ]
