"""The recipes of CONTRIBUTING.md, each followed in a copy of the source: the result works.

A block of a recipe names its file after the language. A `diff` block changes a file, any other
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
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image
from tests.servers.sd_webui_server import SdWebuiServer
from tests.servers.wire import Reply, Seen, WireServer, json_reply

from limner import __version__

Json = Any
ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "CONTRIBUTING.md"
GUARD_S = 120

CLIENT = {"name": "recipes", "version": "1"}
APP_SERVER_HELLO = {"clientInfo": CLIENT, "capabilities": {"experimentalApi": True}}
MCP_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}


class Block(NamedTuple):
    """One fenced block of a recipe."""

    language: str
    path: str
    text: str


def recipe(title: str) -> list[Block]:
    """The blocks under a heading."""
    section = GUIDE.read_text(encoding="utf-8").split(f"### {title}\n")[1].split("\n### ")[0]
    found = re.findall(r"^```(\w+) (\S+)\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
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

    def __init__(self, folder: Path, title: str) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
        self.blocks = recipe(title)
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
            [sys.executable, "-m", "limner", *words, "--json"],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.env | env,
            timeout=GUARD_S,
            check=False,
        )
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout)

    def ask(self, command: str, hello: Json, method: str, params: Json = None) -> Json:
        """The result of one request to a server on standard streams."""
        requests = [
            {"id": 1, "method": "initialize", "params": hello},
            {"method": "notifications/initialized" if command == "mcp" else "initialized"},
            {"id": 2, "method": method} | ({} if params is None else {"params": params}),
        ]
        with subprocess.Popen(
            [sys.executable, "-m", "limner", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.env,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for request in requests:
                process.stdin.write(json.dumps({"jsonrpc": "2.0"} | request) + "\n")
            process.stdin.flush()
            answers = (json.loads(line) for line in process.stdout)
            answer = next(one for one in answers if one.get("id") == 2 and "method" not in one)
            process.stdin.close()
        return answer["result"]


class ToyServer(WireServer):
    """The service of the recipe: one POST, one picture."""

    def answer(self, seen: Seen) -> Reply:
        file = io.BytesIO()
        Image.new("RGB", (seen.json()["width"], seen.json()["height"]), "teal").save(file, "PNG")
        return json_reply({"image": base64.b64encode(file.getvalue()).decode()})


def test_a_provider_takes_three_files_and_draws(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "Add a provider")
    with ToyServer() as server:
        drawn = copy.run(
            *("generate", "a fox", "--provider", "toy", "--size", "512x256"),
            TOY_API_KEY="toy-key-0123456789",
            TOY_BASE_URL=server.origin,
        )
    assert (drawn["provider"], drawn["model"], drawn["cost_usd"]) == ("toy", "toy-1", 0.02)
    assert drawn["dimensions"] == {"width": 512, "height": 256}
    assert copy.files == 3


def test_a_tool_takes_two_files_and_is_served(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "Add a tool")
    Image.new("RGB", (40, 30), "teal").save(tmp_path / "teal.png")
    listed = {tool["name"]: tool for tool in copy.ask("mcp", MCP_HELLO, "tools/list")["tools"]}
    assert listed["image_size"]["inputSchema"] == {
        "type": "object",
        "properties": {
            "image": {"type": "string", "description": "A file path, or the handle of a picture."}
        },
        "required": ["image"],
    }
    assert listed["image_size"]["annotations"]["readOnlyHint"] is True
    arguments = {"image": str(tmp_path / "teal.png")}
    call = {"name": "image_size", "arguments": arguments}
    answer = copy.ask("mcp", MCP_HELLO, "tools/call", call)
    assert json.loads(answer["content"][0]["text"]) == {"width": 40, "height": 30}
    assert copy.files == 2


def test_a_drawing_option_takes_a_field_and_its_provider(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "Add a drawing option")
    picture = io.BytesIO()
    Image.new("RGB", (64, 64), "teal").save(picture, "PNG")
    words = ("generate", "a fox", "--size", "64x64", "--steps")
    with SdWebuiServer(picture.getvalue()) as server:
        env = {"SD_WEBUI_BASE_URL": server.base_url}
        drawn = copy.run(*words, "33", "--provider", "sd-webui", **env)
        (sent,) = [seen.json() for seen in server.requests if seen.path.endswith("txt2img")]
    assert (drawn["provider"], sent["steps"]) == ("sd-webui", 33)
    assert copy.run(*words, "0", status=2)["error"]["message"] == "steps must be at least 1"
    refused = copy.run(*words, "33", status=2)["error"]
    assert (refused["code"], refused["message"], refused["hint"]) == (
        "PROVIDER_CANNOT",
        "illustrator/limner-illustrator does not take the option steps.",
        "sd-webui/loaded-checkpoint can.",
    )
    assert [block.path for block in copy.blocks] == [
        "src/limner/pictures/request.py",
        "src/limner/providers/sd_webui.py",
        "src/limner/catalogue/image_models/sd-webui.toml",
    ]


def test_an_app_server_method_takes_two_files_and_answers(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "Add an app-server method")
    answer = copy.ask("app-server", APP_SERVER_HELLO, "limner/version/read")
    assert answer == {"version": __version__}
    assert copy.files == 2


def test_a_setting_takes_two_files_and_works(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "Add a setting")
    for prompt in ("a fox", "a cat", "a dog"):
        copy.run("generate", prompt, "--size", "64x64")
    assert len(copy.run("spend")["recent"]) == 3
    assert len(copy.run("spend", LIMNER_BUDGET_LAST_CALLS="2")["recent"]) == 2
    refused = copy.run("spend", LIMNER_BUDGET_LAST_CALLS="many", status=2)
    assert "budget.last_calls" in refused["error"]["message"]
    assert copy.files == 2
