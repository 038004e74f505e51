"""The example of a web service, in a process of its own: every route, and its end."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.acceptance.conftest import picture
from tests.servers.appserver_side import TalkingServer, limner_side
from tests.servers.codex_process import MODEL
from tests.servers.scripted import says

from limner.testing import FakeServices
from limner.testing.servers.http_server import Gate

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
SERVE = ("-m", "uvicorn", "web_service:app", "--port", "0", "--app-dir", str(EXAMPLES))
GUARD_S = 60.0


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeServices]:
    with FakeServices(tmp_path / "limner") as services:
        yield services


@asynccontextmanager
async def served(env: Mapping[str, str], cwd: Path) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client of the running service; at its end, the service must end in good order."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *SERVE, env=env, cwd=cwd, stdout=PIPE, stderr=PIPE
    )
    try:
        async with asyncio.timeout(GUARD_S):
            address = await _address(process)
            async with httpx2.AsyncClient(base_url=address, timeout=GUARD_S) as client:
                yield client
            process.send_signal(signal.SIGTERM)
            _, said = await process.communicate()
        assert "Application shutdown complete." in said.decode(), said.decode()
        assert "Traceback" not in said.decode(), said.decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _address(process: Process) -> str:
    assert process.stderr is not None
    said = ""
    while line := await process.stderr.readline():
        said += line.decode()
        if found := re.search(r"running on (http://\S+)", said):
            return found[1]
    raise AssertionError(said)


async def chat(client: httpx2.AsyncClient, **asked: str) -> list[Any]:
    """The events of a turn."""
    answer = await client.post("/chat", json=asked)
    assert answer.headers["content-type"].startswith("text/event-stream")
    return [json.loads(one.removeprefix("data: ")) for one in answer.text.split("\n\n") if one]


async def test_every_route_answers_and_counts(fake: FakeServices, tmp_path: Path) -> None:
    async with served(fake.env, tmp_path) as client:
        drawn = (await client.post("/draw", json={"prompt": "a fox"})).json()
        shown = await client.get(drawn["picture"])
        fake.responses.reply("A red square.")
        seen = await client.post("/inspect", params={"question": "What?"}, content=picture())
        fake.responses.call_tool("image_generate", {"prompt": "a cat"})
        fake.responses.reply("Here is the cat.")
        events = await chat(client, text="Draw a cat.")
        fake.responses.reply("A cat, as I said.")
        more = await chat(client, text="What was it?", session=events[0]["session"])
        spent = (await client.get("/spend")).json()
        other = (await client.get("/spend", headers={"x-user": "other"})).json()
    assert (shown.status_code, shown.headers["content-type"]) == (200, "image/png")
    assert shown.content.startswith(b"\x89PNG")
    assert seen.json()["text"] == "A red square."
    kinds = list(dict.fromkeys(event["type"] for event in events))
    assert [kind for kind in kinds if kind != "tool_progress"] == [
        *("turn_started", "input", "item", "tool_started", "tool_finished"),
        *("usage", "text", "turn_ended"),
    ]
    (finished,) = [event for event in events if event["type"] == "tool_finished"]
    assert finished["images"][0]["path"].endswith(".png")
    assert (more[-1]["text"], more[-1]["session"]) == ("A cat, as I said.", events[0]["session"])
    assert spent["cost_usd"] == pytest.approx(fake.bill().cost_usd)
    assert (other["cost_usd"], spent["budget_usd"]) == (0, 0.5)


async def test_a_failure_has_a_fitting_status_and_its_code(
    fake: FakeServices, tmp_path: Path
) -> None:
    async with served(fake.env, tmp_path) as client:
        fake.images.refuse()
        answers = [
            await client.post("/draw", json={"prompt": "a fox"}),
            await client.post("/draw", json={"prompt": " "}),
            await client.post("/inspect", content=b"not a picture"),
            await client.get(f"/pictures/{'0' * 64}"),
            await client.get("/pictures/fox.png"),
        ]
        (lost,) = await chat(client, text="Hi.", session="no-such-session")
    assert [(one.status_code, one.json()["error"]["code"]) for one in answers] == [
        (422, "IMAGE_GEN_REJECTED"),
        (400, "INPUT_INVALID"),
        (415, "IMAGE_UNRECOGNIZED"),
        (404, "NO_SUCH_PICTURE"),
        (400, "INPUT_INVALID"),
    ]
    assert (lost["type"], lost["error"]["code"]) == ("error", "NO_SUCH_SESSION")


async def test_a_client_that_hangs_up_frees_its_session(tmp_path: Path) -> None:
    gate = Gate()
    with TalkingServer() as model:
        sayings = (says("For", " ever", gate=gate), says("Here I am."))
        model.script("ask", *(model.streamed(one, {"model": MODEL}) for one in sayings))
        side = limner_side(tmp_path, model)
        async with served(side.env, side.cwd) as client:
            async with client.stream("POST", "/chat", json={"text": "Go on."}) as answer:
                async for line in answer.aiter_lines():
                    if '"type": "text"' in line:
                        session = json.loads(line.removeprefix("data: "))["session"]
                        break
            # The service notices a moment later that the client is gone.
            events = await chat(client, text="Hello?", session=session)
            while events[0].get("error", {}).get("code") == "SESSION_IN_USE":
                events = await chat(client, text="Hello?", session=session)
            gate.open()
        assert (events[-1]["status"], events[-1]["text"]) == ("completed", "Here I am.")
