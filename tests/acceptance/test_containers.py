"""Two containers on one home, both drawing and talking: no live call ends, no session is stolen.

A container is a PID namespace here: the boot is the same, and the process ids mean nothing outside.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.hardship import LIMNER, held_back
from tests.agent.talking import Talk, talk
from tests.servers.namespaces import ANOTHER_CONTAINER, needs_namespaces
from tests.servers.scripted import says

from limner.testing.servers.http_server import Gate

pytestmark = [pytest.mark.slow, needs_namespaces()]


@pytest.fixture
def openai(tmp_path: Path) -> Iterator[Talk]:
    with talk("openai/gpt-5.4", tmp_path) as made:
        made.script(says("Hello."))
        yield made


async def started(at: Talk, *words: str) -> Process:
    """A command in a container of its own."""
    return await asyncio.create_subprocess_exec(
        *ANOTHER_CONTAINER, LIMNER, *words, "--json", env=at.env, cwd=at.cwd, stdout=PIPE
    )


async def ended(process: Process) -> tuple[int | None, Any]:
    out, _ = await process.communicate()
    return process.returncode, json.loads(out)


def states(at: Talk) -> list[tuple[str, str, str | None]]:
    with closing(sqlite3.connect(at.home / "limner.db")) as database:
        return database.execute("SELECT tool, state, error_code FROM ledger ORDER BY id").fetchall()


async def test_a_picture_that_one_container_draws_is_left_alone_by_the_other(
    openai: Talk,
) -> None:
    gate = Gate()
    openai.drawer.script("generate", held_back(openai.drawer, gate))
    drawing = await started(openai, "generate", "a fox", "--provider", "openai-dalle")
    await openai.drawer.wait_until("generate")
    for command in (["spend"], ["jobs", "recover"], ["gc"]):
        assert (await ended(await started(openai, *command)))[0] == 0
    status, other = await ended(await started(openai, "generate", "an owl"))
    assert (status, Path(other["path"]).is_file()) == (0, True)
    assert states(openai)[0] == ("image_generate", "sent", None)
    gate.open()
    status, drawn = await ended(drawing)
    assert (status, Path(drawn["path"]).is_file()) == (0, True)
    assert states(openai) == [("image_generate", "settled", None)] * 2


async def test_a_session_that_one_container_talks_in_is_not_taken_by_the_other(
    openai: Talk,
) -> None:
    model = ["--model", openai.name]
    _, first = await ended(await started(openai, "chat", "-p", "Hello.", *model))
    session, gate = first["session"], Gate()
    resume = ["chat", "--resume", session, *model, "-p"]
    openai.script(says("Hello again.", gate=gate))
    talking = await started(openai, *resume, "First.")
    await openai.model.wait_until("ask", count=2)
    status, refused = await ended(await started(openai, *resume, "Second."))
    assert (status, refused["error"]["code"]) == (2, "SESSION_IN_USE")
    assert states(openai)[-1] == ("conversation", "sent", None)
    gate.open()
    status, said = await ended(talking)
    assert (status, said["text"]) == (0, "Hello again.")
    assert states(openai) == [("conversation", "settled", None)] * 2
    status, said = await ended(await started(openai, *resume, "Second."))
    assert (status, said["text"]) == (0, "Hello again.")
