"""limner's tools inside a real Codex.

Codex comes with the package `openai-codex`, no part of the ordinary tools:
`pip install --group local`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import PRICE_NANO, Studio, data_url, picture
from tests.acceptance.hardship import kill_child, start
from tests.servers.codex_process import MODEL, Codex
from tests.servers.components import needs
from tests.servers.npm_peers import needs_npm, program

import limner
from limner.agent.events import ToolStarted
from limner.frontends.remote.approvals import ApprovalRequest
from limner.frontends.remote.events import Reconnected, TurnResult
from limner.testing.servers.http_server import Gate, Reply
from limner.testing.servers.model_server import ModelAnswer, ScriptedCall
from limner.testing.servers.openai_server import OpenAIServer
from limner.testing.servers.responses_server import ResponsesServer

pytestmark = [pytest.mark.slow, needs("codex_cli_bin")]

EXAMPLE = Path(__file__).parents[2] / "examples" / "codex_host.py"
PICTURE_URL = data_url(picture())
# The one in the package makes the calls of a turn one after the other; this one makes them at once.
NEWER_CODEX = "@openai/codex@0.166.0"


@pytest.fixture
def server() -> Iterator[ResponsesServer]:
    with ResponsesServer() as server:
        yield server


@pytest.fixture
def codex(tmp_path: Path, server: ResponsesServer) -> Codex:
    return Codex(tmp_path, server)


@pytest.fixture
def paid(studio: Studio, openai: OpenAIServer) -> Studio:
    """Where a picture costs money."""
    return studio.connect(openai)


def will_say(server: ResponsesServer, *sayings: ModelAnswer) -> None:
    """The model's next answers."""
    server.script("ask", *(server.streamed(saying, {"model": MODEL}) for saying in sayings))


def draws(call_id: str, **arguments: Any) -> ScriptedCall:
    words = json.dumps({"prompt": "a fox", **arguments})
    return ScriptedCall(name="image_generate", arguments=words, call_id=call_id)


def held_until(gate: Gate, openai: OpenAIServer) -> Reply:
    """A picture that is drawn when the gate opens."""
    drawn = openai.drawn({"model": "gpt-image-2.5-flare"})
    return Reply(hold=gate, headers=drawn.headers, pieces=drawn.pieces)


def outputs(server: ResponsesServer) -> dict[str, Any]:
    """What the tools gave back, by call, as the model's last request has it."""
    items = server.requests[-1].json()["input"]
    return {
        item["call_id"]: item["output"] for item in items if item["type"] == "function_call_output"
    }


async def test_its_model_draws_and_then_looks_and_the_spend_is_in_our_ledger(
    codex: Codex, server: ResponsesServer, paid: Studio
) -> None:
    look = {"path": "fox.png", "question": "What colours are there?"}
    will_say(
        server,
        ModelAnswer(pieces=("Drawing.",), calls=(draws("call_1", output_path="fox.png"),)),
        ModelAnswer(
            pieces=("Looking.",),
            calls=(
                ScriptedCall(name="inspect_image", arguments=json.dumps(look), call_id="call_2"),
            ),
        ),
        ModelAnswer(pieces=("Red and ", "blue.")),
    )
    flags = {"model_roles.vision": "limner/eyes"}
    async with (
        paid.open(flags=flags) as lim,
        limner.codex_thread(cwd=codex.cwd, env=codex.env, lim=lim, model=MODEL) as thread,
    ):
        result = await thread.run("Draw a fox and look at it")
        spend = await lim.money.spend()
    assert (result.status, result.text, result.error) == ("completed", "Red and blue.", None)
    drawn, looked = outputs(server)["call_1"], outputs(server)["call_2"]
    assert drawn[1] == {"type": "input_image", "image_url": PICTURE_URL, "detail": "high"}
    value = json.loads(drawn[0]["text"])
    assert (value["path"], value["cost_usd"]) == (str(codex.cwd / "fox.png"), 0.01342)
    assert (codex.cwd / "fox.png").exists()
    assert "red" in looked
    assert "blue" in looked
    assert [(line.name, line.nano) for line in spend.by_session] == [(thread.id, PRICE_NANO)]
    assert result.cost_nano == PRICE_NANO
    offered = [tool.get("name") for tool in server.requests[0].json()["tools"]]
    assert {"image_generate", "image_edit", "inspect_image", "image_recall"} <= {*offered}


@needs_npm(NEWER_CODEX)
async def test_two_calls_at_once_really_run_at_once(
    codex: Codex, server: ResponsesServer, paid: Studio, openai: OpenAIServer
) -> None:
    gate = Gate()
    openai.script("generate", *[held_until(gate, openai)] * 2)
    both = ModelAnswer(pieces=("Two foxes.",), calls=(draws("call_1"), draws("call_2")))
    will_say(server, both, ModelAnswer(pieces=("Done.",)))
    newer = program(NEWER_CODEX, "codex")
    async with (
        paid.open() as lim,
        limner.codex_thread(codex=newer, cwd=codex.cwd, env=codex.env, lim=lim) as thread,
    ):
        running = asyncio.create_task(thread.run("Draw two foxes"))
        # Both are at the service before either is answered.
        await openai.wait_until("generate", count=2)
        gate.open()
        result = await running
        spent = await lim.money.spent(session_id=thread.id)
    assert (result.status, result.text) == ("completed", "Done.")
    assert result.cost_nano == spent == 2 * PRICE_NANO
    assert {call_id: output[1]["image_url"] for call_id, output in outputs(server).items()} == {
        "call_1": PICTURE_URL,
        "call_2": PICTURE_URL,
    }


async def test_the_calls_of_two_threads_run_at_once(
    codex: Codex, server: ResponsesServer, paid: Studio, openai: OpenAIServer
) -> None:
    gate = Gate()
    openai.script("generate", *[held_until(gate, openai)] * 2)
    drawing = ModelAnswer(pieces=("A fox.",), calls=(draws("call_1"),))
    will_say(
        server, drawing, drawing, ModelAnswer(pieces=("Done.",)), ModelAnswer(pieces=("Done.",))
    )
    async with (
        paid.open() as lim,
        limner.connect(codex="codex", env=codex.env, lim=lim) as client,
    ):
        threads = [await client.thread(tools=lim.tools(), cwd=codex.cwd) for _ in range(2)]
        running = [asyncio.create_task(thread.run("Draw a fox")) for thread in threads]
        await openai.wait_until("generate", count=2)
        gate.open()
        results = await asyncio.gather(*running)
        spend = await lim.money.spend()
    assert [(one.text, one.cost_nano) for one in results] == [("Done.", PRICE_NANO)] * 2
    assert {line.name: line.nano for line in spend.by_session} == {
        thread.id: PRICE_NANO for thread in threads
    }
    assert [seen.body.decode().count(PICTURE_URL) for seen in server.requests] == [0, 0, 1, 1]


async def test_a_budget_holds_and_the_model_is_told(
    codex: Codex, server: ResponsesServer, paid: Studio
) -> None:
    calls = tuple(draws(f"call_{number}") for number in range(4))
    will_say(server, ModelAnswer(pieces=("Four.",), calls=calls), ModelAnswer(pieces=("Some.",)))
    async with (
        paid.open() as lim,
        limner.codex_thread(cwd=codex.cwd, env=codex.env, lim=lim, budget_usd="0.03") as thread,
    ):
        result = await thread.run("Draw four foxes")
        spent = await lim.money.spent(session_id=thread.id)
    assert 0 < spent <= 30_000_000
    assert result.cost_nano == spent
    refused = [output for output in outputs(server).values() if isinstance(output, str)]
    assert {json.loads(output)["error"]["code"] for output in refused} == {"BUDGET_EXCEEDED"}
    assert len(refused) == 4 - spent // PRICE_NANO


@pytest.mark.parametrize("agrees", [True, False])
async def test_the_user_is_asked_before_money_is_spent(
    codex: Codex, server: ResponsesServer, paid: Studio, agrees: bool
) -> None:
    asked: list[ApprovalRequest] = []

    async def approve(approval: ApprovalRequest) -> bool:
        asked.append(approval)
        return agrees

    will_say(
        server,
        ModelAnswer(pieces=("A fox.",), calls=(draws("call_1"),)),
        ModelAnswer(pieces=("Done.",)),
    )
    async with (
        paid.open(flags={"approval.policy": "untrusted"}) as lim,
        limner.codex_thread(cwd=codex.cwd, env=codex.env, lim=lim, approve=approve) as thread,
    ):
        result = await thread.run("Draw a fox")
    (approval,) = asked
    assert (approval.kind, approval.thread_id) == ("tool", thread.id)
    assert approval.amount_nano is not None
    assert approval.amount_nano > 0
    assert result.cost_nano == (PRICE_NANO if agrees else 0)
    if not agrees:
        assert json.loads(outputs(server)["call_1"])["error"]["code"] == "APPROVAL_DENIED"


async def test_a_codex_that_is_killed_is_started_again_and_the_thread_goes_on(
    codex: Codex, server: ResponsesServer, paid: Studio, openai: OpenAIServer
) -> None:
    gate = Gate()
    openai.script("generate", Reply(hold=gate))
    will_say(
        server,
        ModelAnswer(pieces=("Hello.",)),
        ModelAnswer(pieces=("A fox.",), calls=(draws("call_1"),)),
        ModelAnswer(pieces=("Back again.",)),
    )
    async with (
        paid.open() as lim,
        limner.codex_thread(cwd=codex.cwd, env=codex.env, lim=lim) as thread,
    ):
        assert (await thread.run("Hello")).text == "Hello."
        told: list[Any] = []
        async for event in thread.stream("Draw a fox"):
            told.append(event)
            if isinstance(event, ToolStarted):
                await openai.wait_until("generate")
                kill_child("app-server")
        reconnected = next(event for event in told if isinstance(event, Reconnected))
        assert (reconnected.goes_on, "status -9" in reconnected.reason) == (False, True)
        last = told[-1]
        assert isinstance(last, TurnResult)
        assert last.status == "interrupted"
        assert last.error is not None
        again = await thread.run("Are you there?")
        assert (again.status, again.text) == ("completed", "Back again.")
        gate.open()
    said = [item for item in server.requests[-1].json()["input"] if item["type"] == "message"]
    words = [part["text"] for item in said for part in item["content"]]
    assert words.index("Hello") < words.index("Draw a fox") < words.index("Are you there?")
    assert "image_generate" in [tool.get("name") for tool in server.requests[-1].json()["tools"]]


async def test_another_process_takes_the_thread_up_with_its_spend_and_its_pictures(
    codex: Codex, server: ResponsesServer, paid: Studio
) -> None:
    will_say(
        server,
        ModelAnswer(pieces=("A fox.",), calls=(draws("call_1"),)),
        ModelAnswer(pieces=("Done.",)),
    )
    async with (
        paid.open() as lim,
        limner.codex_thread(cwd=codex.cwd, env=codex.env, lim=lim) as thread,
    ):
        await thread.run("Draw a fox")
    handle = json.loads(outputs(server)["call_1"][0]["text"])["image"]
    recall = ScriptedCall(
        name="image_recall", arguments=json.dumps({"handle": handle}), call_id="call_2"
    )
    will_say(
        server, ModelAnswer(pieces=("Again.",), calls=(recall,)), ModelAnswer(pieces=("Seen.",))
    )
    async with (
        paid.open() as lim,
        limner.codex_thread(cwd=codex.cwd, env=codex.env, lim=lim, resume=thread.id) as resumed,
    ):
        assert resumed.id == thread.id
        assert (await resumed.run("Show it to me again")).text == "Seen."
        assert await lim.money.spent(session_id=resumed.id) == PRICE_NANO
    assert outputs(server)["call_2"][1]["image_url"] == PICTURE_URL


async def test_the_users_own_codex_reaches_limner_for_one_run(
    codex: Codex, server: ResponsesServer, studio: Studio
) -> None:
    before = (codex.home / "config.toml").read_bytes()
    listing = ScriptedCall(
        name="list_mcp_resource_templates", arguments='{"server":"limner"}', call_id="call_1"
    )
    will_say(
        server,
        ModelAnswer(pieces=("Let me see.",), calls=(listing,)),
        ModelAnswer(pieces=("Done.",)),
    )
    # A setting of the user's own, at the place where Codex forgets those that came before.
    words = ["exec", "--skip-git-repo-check", "-c", 'model_reasoning_summary="none"', "Who draws?"]
    done = await start("codex", "--", *words, env={**studio.env, **codex.env}, cwd=codex.cwd)
    out, err = await done.communicate()
    assert (done.returncode, out) == (0, b"Done.\n"), err.decode()
    found = json.loads(outputs(server)["call_1"])
    assert found["resourceTemplates"][0]["uriTemplate"] == "limner://image/{handle}"
    assert (codex.home / "config.toml").read_bytes() == before


async def test_the_example_draws_and_looks_with_the_codex_of_the_package(
    codex: Codex, server: ResponsesServer, paid: Studio
) -> None:
    look = {"path": "woodcut.png", "question": "What differs?"}
    will_say(
        server,
        ModelAnswer(pieces=("Drawing.",), calls=(draws("call_1", output_path="woodcut.png"),)),
        ModelAnswer(
            pieces=("Looking.",),
            calls=(
                ScriptedCall(name="inspect_image", arguments=json.dumps(look), call_id="call_2"),
            ),
        ),
        ModelAnswer(pieces=("The colours.",)),
    )
    env = {**codex.env, **paid.env, "LIMNER_MODEL_ROLES_VISION": "limner/eyes", "PATH": ""}
    done = await asyncio.create_subprocess_exec(
        sys.executable, EXAMPLE, env=env, cwd=codex.cwd, stdout=PIPE, stderr=PIPE
    )
    out, err = await done.communicate()
    assert (done.returncode, err.decode()) == (0, "")
    sketch, *said = out.decode().splitlines()
    assert Path(sketch).read_bytes().startswith(b"\x89PNG")
    assert said[:-1] == [
        "Drawing.[image_generate: $0.01342]",
        "Looking.[inspect_image: $0.0]",
        "The colours.",
    ]
    assert said[-1].startswith("completed, $0.01342 in all, thread ")
    # The sketch is among the user's words, and the woodcut among the outputs.
    assert [seen.body.decode().count("data:image/png") for seen in server.requests] == [1, 2, 2]
