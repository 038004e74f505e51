"""A real agent -> how it is set up for limner and the scripted model, and run once."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from tests.ecosystem.environments import PATH, PROGRAMS

PROMPT = "Draw a red fox under the moon."


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """One agent.

    Attributes:
        name: its name in the table.
        package: its package on npm.
        program: its command.
        client: its name for ``limner mcp install``.
        settings: writes its settings into the home folder, for a model at an address.
        arguments: of the command.
        variables: more environment, as a function of the home and the address.
    """

    name: str
    package: str
    program: str
    client: str
    settings: Callable[[Path, str], None]
    arguments: tuple[str, ...]
    variables: Callable[[Path, str], Mapping[str, str]] = lambda home, address: {}

    def set_up(self, limner: Path, home: Path, env: Mapping[str, str], address: str) -> AgentSetup:
        """Set the agent up in a home folder."""
        env = {**env, **self.variables(home, address), "PATH": PATH}
        self.settings(home, address)
        # Some agents keep the keys of their environment from MCP servers.
        for words in (["keys", "set", "OPENAI_API_KEY"], ["mcp", "install", self.client]):
            subprocess.run(
                [str(limner), *words],
                input=env["OPENAI_API_KEY"],
                check=True,
                capture_output=True,
                cwd=home,
                env=env,
                text=True,
            )
        return AgentSetup(agent=self, home=home, env=env)


class AgentSetup(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that has a home folder and limner's server."""

    agent: Agent
    home: Path
    env: Mapping[str, str]

    def run(self) -> str:
        """Let the agent draw; returns what it printed."""
        return self._run(self.agent.arguments)

    def lists_limner(self) -> bool:
        """Whether limner is among the servers that the agent itself lists."""
        return "limner" in self._run(("mcp", "list"))

    def _run(self, arguments: tuple[str, ...]) -> str:
        done = subprocess.run(
            [str(PROGRAMS / self.agent.program), *arguments],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.home,
            env=dict(self.env),
            text=True,
        )
        return done.stdout


def _codex(model: str) -> Callable[[Path, str], None]:
    def write(home: Path, address: str) -> None:
        (home / "codex").mkdir()
        (home / "codex" / "config.toml").write_text(
            f'model = "{model}"\nmodel_provider = "scripted"\n'
            f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{address}/v1"\n'
            'wire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
        )

    return write


def _claude(home: Path, address: str) -> None:
    (home / "claude").mkdir()


def _gemini(home: Path, address: str) -> None:
    folder = home / ".gemini"
    folder.mkdir()
    auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (folder / "settings.json").write_text(json.dumps(auth))


def _opencode(home: Path, address: str) -> None:
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
    settings = {"provider": {"scripted": provider}}
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
        arguments=("-p", PROMPT, "--allowedTools", "mcp__limner"),
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
        client="opencode",
        settings=_opencode,
        arguments=("run", "-m", "scripted/m", PROMPT),
    ),
)
