"""The real Codex with `limner mcp` in its settings: what is drawn is in its model's next request.

Codex comes with the package `openai-codex`, no part of the ordinary tools:
`pip install --group local`.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.acceptance.conftest import Studio, picture
from tests.servers.codex_process import MODEL, Codex
from tests.servers.components import needs
from tests.servers.mcp_process import WORDS

from limner.testing.servers.http_server import Reply
from limner.testing.servers.model_server import ModelAnswer, ScriptedCall
from limner.testing.servers.openai_server import OpenAIServer
from limner.testing.servers.responses_server import ResponsesServer

pytestmark = [pytest.mark.slow, needs("codex_cli_bin")]

CALL = ScriptedCall(name="image_generate", arguments='{"prompt":"a fox"}', call_id="call_1")
FIND = ScriptedCall(name="tool_search", arguments="{}", call_id="call_0")
# Codex keeps the tools of servers back until its model has looked for them.
SEARCHING = {
    "type": "tool_search_call",
    "execution": "client",
    "arguments": {"query": "draw a picture"},
}
NAMESPACE = "mcp__limner"
APPROVED = 'default_tools_approval_mode = "approve"\n'


@pytest.fixture
def model() -> Iterator[ResponsesServer]:
    with ResponsesServer() as server:
        yield server


def set_up(codex: Codex, studio: Studio) -> None:
    """Install our server as a user does, whose shell has the keys; nobody is there to be asked."""
    codex.env |= studio.env
    words = [sys.executable, *WORDS, "install", "codex"]
    subprocess.run(words, env=codex.env, cwd=codex.cwd, check=True, capture_output=True)
    with (codex.home / "config.toml").open("a") as file:
        file.write(APPROVED)


def streamed(model: ResponsesServer, saying: ModelAnswer) -> Reply:
    """An answer with calls in the words of Codex, which has more kinds of them than others."""
    reply = model.streamed(saying, {"model": MODEL})
    whole = b"".join(piece for piece in reply.pieces if isinstance(piece, bytes)).decode()
    events = [_in_codex_words(event) for event in whole.split("\n\n")]
    return replace(reply, pieces=("\n\n".join(events).encode(),))


def _in_codex_words(event: str) -> str:
    name, found, data = event.partition("\ndata: ")
    if not found:
        return event
    told = json.loads(data)
    for item in [told.get("item"), *told.get("response", {}).get("output", [])]:
        if item is not None and item["type"] == "function_call":
            is_search = item["name"] == "tool_search"
            item.update(SEARCHING if is_search else {"namespace": NAMESPACE})
    return f"{name}{found}{json.dumps(told)}"


def pictures_in(request: Any) -> list[bytes]:
    """The pictures in what tools gave back."""
    outputs = [item["output"] for item in request["input"] if "output" in item]
    parts = [part for output in outputs if isinstance(output, list) for part in output]
    urls = [part["image_url"] for part in parts if part["type"] == "input_image"]
    return [base64.b64decode(url.partition(";base64,")[2]) for url in urls]


async def test_codex_shows_its_model_the_picture_that_it_asked_limner_for(
    tmp_path: Path, studio: Studio, openai: OpenAIServer, model: ResponsesServer
) -> None:
    studio.connect(openai)
    codex = Codex(tmp_path, model)
    set_up(codex, studio)
    sayings = (
        ModelAnswer(pieces=("Who draws?",), calls=(FIND,)),
        ModelAnswer(pieces=("Let me draw.",), calls=(CALL,)),
        ModelAnswer(pieces=("A fox.",)),
    )
    model.script("ask", *(streamed(model, saying) for saying in sayings))
    async with codex.app_server() as talk:
        started = await talk.request("thread/start", cwd=str(codex.cwd))
        # Codex does not wait for its servers: a search before ours has answered finds nothing.
        await talk.notice("mcpServer/startupStatus/updated", name="limner", status="ready")
        turn = await talk.turn(started["thread"]["id"], "Draw me a fox.")
        assert (turn["status"], turn["error"]) == ("completed", None)
    requests = [seen.json() for seen in model.requests]
    assert pictures_in(requests[2]) == [picture()]
    assert len(openai.sent("generate")) == 1
