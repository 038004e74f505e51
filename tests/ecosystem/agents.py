"""A real agent -> how it is installed, told of limner and of the scripted model, and run once."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

PROMPT = "Draw a red fox under the moon."
TOOLS = ("image_generate", "image_edit", "inspect_image", "image_job")


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """One agent.

    Attributes:
        name: its name in the table.
        package: its package on npm.
        program: its command.
        client: the name for ``limner mcp install``; None if the settings below do it.
        settings: writes its settings into the home folder, for a model at an address.
        arguments: of the command.
        variables: more environment, as a function of the home and the address.
    """

    name: str
    package: str
    program: str
    client: str | None
    settings: Callable[[Path, str, Path], None]
    arguments: tuple[str, ...]
    variables: Callable[[Path, str], Mapping[str, str]] = lambda home, address: {}

    def run(self, programs: Path, limner: Path, home: Path, env: Mapping[str, str], address: str):
        """Set the agent up in a home folder and run it."""
        env = {**env, **self.variables(home, address), "PATH": f"{programs}:{os.environ['PATH']}"}
        self.settings(home, address, limner)
        shared = {"cwd": home, "env": env, "text": True}
        # Some agents keep the keys of their environment from MCP servers.
        key = [str(limner), "keys", "set", "OPENAI_API_KEY"]
        subprocess.run(key, input=env["OPENAI_API_KEY"], check=True, capture_output=True, **shared)
        shared["stdin"] = subprocess.DEVNULL
        if self.client is not None:
            install = [str(limner), "mcp", "install", self.client]
            subprocess.run(install, check=True, capture_output=True, **shared)
        command = [str(programs / self.program), *self.arguments]
        return subprocess.run(
            command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **shared
        )


def _codex(model: str) -> Callable[[Path, str, Path], None]:
    def write(home: Path, address: str, limner: Path) -> None:
        (home / "codex").mkdir()
        (home / "codex" / "config.toml").write_text(
            f'model = "{model}"\nmodel_provider = "scripted"\n'
            f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{address}/v1"\n'
            'wire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
        )

    return write


def _claude(home: Path, address: str, limner: Path) -> None:
    (home / "claude").mkdir()


def _gemini(home: Path, address: str, limner: Path) -> None:
    folder = home / ".gemini"
    folder.mkdir()
    auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (folder / "settings.json").write_text(json.dumps(auth))


def _opencode(home: Path, address: str, limner: Path) -> None:
    model = {
        "attachment": True,
        "modalities": {"input": ["text", "image"], "output": ["text"]},
        "limit": {"context": 200_000, "output": 8_000},
    }
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{address}/v1", "apiKey": "x"},
        "models": {"m": model},
    }
    server = {"type": "local", "command": [str(limner), "mcp"], "enabled": True}
    settings = {"provider": {"scripted": provider}, "mcp": {"limner": server}}
    (home / "opencode.json").write_text(json.dumps(settings))


_CODEX_ARGUMENTS = (
    *("exec", "--dangerously-bypass-approvals-and-sandbox"),
    *("--skip-git-repo-check", PROMPT),
)
AGENTS = (
    Agent(
        name="Codex",
        package="@openai/codex",
        program="codex",
        client="codex",
        settings=_codex("gpt-5.4"),
        arguments=_CODEX_ARGUMENTS,
        variables=lambda home, address: {"CODEX_HOME": str(home / "codex")},
    ),
    Agent(
        name="Codex, code mode",
        package="@openai/codex",
        program="codex",
        client="codex",
        settings=_codex("gpt-6.1-sol"),
        arguments=_CODEX_ARGUMENTS,
        variables=lambda home, address: {"CODEX_HOME": str(home / "codex")},
    ),
    Agent(
        name="Claude Code",
        package="@anthropic-ai/claude-code",
        program="claude",
        client="claude-code",
        settings=_claude,
        arguments=("-p", PROMPT, "--allowedTools", " ".join(f"mcp__limner__{t}" for t in TOOLS)),
        variables=lambda home, address: {"CLAUDE_CONFIG_DIR": str(home / "claude")},
    ),
    Agent(
        name="Gemini CLI",
        package="@google/gemini-cli",
        program="gemini",
        client="gemini-cli",
        settings=_gemini,
        arguments=("-m", "gemini-2.5-pro", "-y", "-p", PROMPT),
        variables=lambda home, address: {
            "GEMINI_CLI_HOME": str(home),
            "GEMINI_API_KEY": "scripted-0123456789",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
    ),
    Agent(
        name="opencode",
        package="opencode-ai",
        program="opencode",
        client=None,
        settings=_opencode,
        arguments=("run", "-m", "scripted/m", PROMPT),
    ),
)
