"""The pages of docs/extend, each followed in a copy of the source: the result works.

A block of a page names its file after the language. A `diff` block changes a file, any other
block is a new file.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PIL import Image
from tests.servers.codex_messages import LIMNER
from tests.servers.sd_webui_server import SdWebuiServer

from limner import __version__
from limner.testing.servers.http_server import (
    LocalServer,
    ReceivedRequest,
    Reply,
    bytes_reply,
    json_reply,
)
from limner.testing.servers.responses_server import ResponsesServer

pytestmark = pytest.mark.slow

Json = Any
ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "extend"
GUARD_S = 120

CLIENT = {"name": "recipes", "version": "1"}
APP_SERVER_HELLO = {"clientInfo": CLIENT, "capabilities": {"experimentalApi": True}}
MCP_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}


class Block(NamedTuple):
    """One fenced block of a recipe."""

    language: str
    path: str
    text: str


def recipe(page: str) -> list[Block]:
    """The blocks of a page."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    found = re.findall(r"^```(\w+) (\S+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [Block(*one) for one in found]


def apply_diff(text: str, diff: str) -> str:
    """A text with the lines of a diff changed; each hunk must fit in exactly one place."""
    for hunk in re.split(r"^@@.*\n", diff, flags=re.MULTILINE):
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        new = "".join(line[1:] for line in lines if line[0] in " +")
        assert text.count(old) == 1, f"this hunk does not fit:\n{hunk}"
        text = text.replace(old, new)
    return text


class Copy:
    """The source with a recipe applied, and the commands of that source."""

    def __init__(self, folder: Path, page: str) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
        self.blocks = recipe(page)
        for block in self.blocks:
            path = folder / block.path
            if block.language == "diff":
                path.write_text(apply_diff(path.read_text("utf-8"), block.text), encoding="utf-8")
            else:
                assert not path.exists()
                path.write_text(block.text, encoding="utf-8")

    @property
    def files(self) -> int:
        """How many files the recipe touches."""
        return len({block.path for block in self.blocks})

    @property
    def env(self) -> dict[str, str]:
        return {
            "HOME": str(self.folder),
            "LIMNER_HOME": str(self.folder / "home"),
            "PATH": os.defpath,
            "PYTHONPATH": str(self.folder / "src"),
        }

    def run(self, *words: str, status: int = 0, **env: str) -> Any:
        """What a command prints as JSON."""
        done = subprocess.run(
            [*LIMNER, *words, "--json"],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.env | env,
            timeout=GUARD_S,
            check=False,
        )
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout)

    @contextmanager
    def serving(self, command: str, hello: Json, **env: str) -> Iterator[Conversation]:
        """A server on standard streams, after the handshake."""
        with subprocess.Popen(
            [*LIMNER, command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.env | env,
        ) as process:
            talk = Conversation(process)
            talk.ask("initialize", hello)
            talk.send({"method": f"{'notifications/' if command == 'mcp' else ''}initialized"})
            yield talk
            assert process.stdin is not None
            process.stdin.close()


class Conversation:
    """Requests and messages of one server."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._sent = 0

    def send(self, message: Json) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
        self._process.stdin.flush()

    def receive(self) -> Json:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def ask(self, method: str, params: Json = None) -> Json:
        """The result of a request; messages before it are left out."""
        self._sent += 1
        rest = {} if params is None else {"params": params}
        self.send({"id": self._sent, "method": method} | rest)
        while True:
            message = self.receive()
            if message.get("id") == self._sent and "method" not in message:
                return message["result"]


class ToyServer(LocalServer):
    """The service of the recipe: one POST, one picture."""

    def answer(self, seen: ReceivedRequest) -> Reply:
        file = io.BytesIO()
        Image.new("RGB", (seen.json()["width"], seen.json()["height"]), "teal").save(file, "PNG")
        return json_reply({"image": base64.b64encode(file.getvalue()).decode()})


def test_a_provider_takes_three_files_and_draws(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "provider")
    with ToyServer() as server:
        drawn = copy.run(
            *("generate", "a fox", "--provider", "toy", "--size", "512x256"),
            TOY_API_KEY="toy-key-0123456789",
            TOY_BASE_URL=server.origin,
        )
    assert (drawn["provider"], drawn["model"], drawn["cost_usd"]) == ("toy", "toy-1", 0.02)
    assert drawn["dimensions"] == {"width": 512, "height": 256}
    assert copy.files == 3


def test_an_app_server_method_takes_two_files_and_answers(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "app-server-method")
    with copy.serving("app-server", APP_SERVER_HELLO) as server:
        assert server.ask("limner/version/read") == {"version": __version__}
    assert copy.files == 2


def test_a_setting_takes_two_files_and_works(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "setting")
    for prompt in ("a fox", "a cat", "a dog"):
        copy.run("generate", prompt, "--size", "64x64")
    assert len(copy.run("spend")["recent"]) == 3
    assert len(copy.run("spend", LIMNER_BUDGET_LAST_CALLS="2")["recent"]) == 2
    refused = copy.run("spend", LIMNER_BUDGET_LAST_CALLS="many", status=2)
    assert "budget.last_calls" in refused["error"]["message"]
    assert copy.files == 2


def test_a_drawing_option_takes_two_files_and_reaches_the_service(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "drawing-option")
    picture = io.BytesIO()
    Image.new("RGB", (64, 64), "teal").save(picture, "PNG")
    words = ("generate", "a fox", "--size", "64x64", "--steps")
    with SdWebuiServer(picture.getvalue()) as server:
        named = (*words, "33", "--provider", "sd-webui")
        drawn = copy.run(*named, SD_WEBUI_BASE_URL=server.base_url)
        (sent,) = [seen.json() for seen in server.requests if seen.path.endswith("txt2img")]
    assert (drawn["provider"], sent["steps"]) == ("sd-webui", 33)
    assert copy.run(*words, "0", status=2)["error"]["message"] == "steps must be at least 1"
    refused = copy.run(*words, "33", status=2)["error"]
    assert (refused["code"], refused["message"], refused["hint"]) == (
        "PROVIDER_CANNOT",
        "illustrator/limner-illustrator does not take the option steps.",
        "sd-webui/loaded-checkpoint can.",
    )
    assert copy.files == 2


def test_a_tool_takes_one_file_and_is_served_over_mcp(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "tool")
    drawn = copy.run("generate", "a fox", "--size", "64x64")
    with copy.serving("mcp", MCP_HELLO) as server:
        listed = server.ask("tools/list", {})["tools"]
        (row,) = [tool for tool in listed if tool["name"] == "image_path"]
        assert row["inputSchema"]["required"] == ["handle"]
        call = {"name": "image_path", "arguments": {"handle": drawn["image"]}}
        answer = server.ask("tools/call", call)
    assert Path(json.loads(answer["content"][0]["text"])["path"]).is_file()
    assert copy.files == 1


def test_a_tool_of_one_file_is_offered_to_models_in_the_app_server(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "tool")
    key = {"OPENAI_API_KEY": "key-0123456789abcdef"}
    with (
        ResponsesServer() as model,
        copy.serving(
            "app-server", APP_SERVER_HELLO, **key, OPENAI_BASE_URL=model.base_url
        ) as server,
    ):
        thread = server.ask("thread/start", {})["thread"]["id"]
        server.ask("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "hi"}]})
        while server.receive().get("method") != "turn/completed":
            pass
        (sent,) = [seen.json() for seen in model.requests]
    assert "image_path" in [tool["name"] for tool in sent["tools"]]


class TalkServer(LocalServer):
    """The service of the page about wires: it streams two words."""

    def answer(self, seen: ReceivedRequest) -> Reply:
        events = [{"text": "A "}, {"text": "fox."}, {"tokens_in": 90, "tokens_out": 3}]
        body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
        return bytes_reply(body.encode(), headers={"Content-Type": "text/event-stream"})


def test_a_wire_takes_three_files_and_shows_a_picture_to_the_model(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "wire")
    drawn = copy.run("generate", "a fox", "--size", "64x64")
    with TalkServer() as server:
        seen = copy.run(
            *("inspect", drawn["path"], "What is it?", "--model", "toy-talk/one"),
            TOY_TALK_BASE_URL=server.origin,
        )
        (sent,) = [request.json() for request in server.requests]
    assert (seen["text"], sent["model"]) == ("A fox.", "one")
    picture, question = sent["turns"][-1]["parts"]
    assert picture["picture"].startswith("data:image/png;base64,")
    assert "What is it?" in question["text"]
    assert copy.files == 3


WORKBENCH = """
from typing import Any, NamedTuple
class BenchTool(NamedTuple):
    name: str
    description: str
    schema: dict[str, Any]
    run: Any
"""
AGENT = """
import asyncio, json
from limner.integrations.workbench import limner_tools
tools = {tool.name: tool for tool in limner_tools(budget_usd=1)}
drawn = asyncio.run(tools["image_generate"].run(prompt="a fox", size="64x64"))
refused = asyncio.run(tools["image_generate"].run(prompt="a fox", size="no"))
required = tools["image_generate"].schema["required"]
print(json.dumps([required, drawn, refused]))
"""


def test_an_integration_takes_one_file_and_gives_pictures_as_pictures(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "integration")
    (tmp_path / "src" / "workbench.py").write_text(WORKBENCH, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", AGENT],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=copy.env,
        timeout=GUARD_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    required, (words, picture), (error,) = json.loads(done.stdout)
    assert (required, words["facts"]["ok"], words["facts"]["cost_usd"]) == (["prompt"], True, 0.0)
    assert picture["picture"].startswith("data:image/png;base64,")
    assert (error["facts"]["ok"], json.loads(error["text"])["error"]["code"]) == (
        False,
        "INPUT_INVALID",
    )
    assert copy.files == 1
