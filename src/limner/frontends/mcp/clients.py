"""A client's name -> the path of its configuration file, and limner's entry in it.

Source: each client's documentation, November 2026. The entry sets a timeout if the client has a
key for it: pictures take longer than the usual timeouts of 10 and 60 seconds. Then it also tells
the server to answer a little earlier, so that the client gets the picture and not a job.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from limner.frontends.mcp import config_json, config_yaml
from limner.settings import config_toml
from limner.settings.config_syntax import Keys, Syntax
from limner.storage.home import user_home

Scope = Literal["user", "project"]
HOME, ANSWER = "LIMNER_HOME", "LIMNER_MCP_ANSWER_WITHIN_S"
STARTUP_S = 60
TOOL_S = 600
ANSWER_S = TOOL_S - 30
# How Python starts limner. -P: do not import a folder named limner in the current folder.
AS_MODULE = ("-P", "-m", "limner")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSetup:
    """The machine and the folder in which a client is set up; ``system`` as ``sys.platform``."""

    system: str
    env: Mapping[str, str]
    home: Path
    cwd: Path

    @classmethod
    def here(cls) -> ClientSetup:
        """This machine, this user, this folder."""
        return cls(system=sys.platform, env=os.environ, home=user_home(), cwd=Path.cwd())

    def variable(self, name: str) -> Path | None:
        """Return the folder that a variable names, or None if it is not set."""
        value = self.env.get(name, "").strip()
        return self.cwd / Path(value).expanduser() if value else None

    @property
    def roaming(self) -> Path:
        """The folder of programs on Windows."""
        return self.variable("APPDATA") or self.home / "AppData" / "Roaming"

    @property
    def config(self) -> Path:
        """The folder in which programs of the command line keep their settings."""
        return self.variable("XDG_CONFIG_HOME") or self.home / ".config"

    @property
    def programs(self) -> Path:
        """The folder in which desktop programs keep their settings."""
        if self.system == "win32":
            return self.roaming
        if self.system == "darwin":
            return self.home / "Library" / "Application Support"
        return self.config


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a client starts the server: the words of the command, variables, and its name there.

    The client sets the variables of ``env``, and passes on those that ``passed_on`` names.
    """

    words: Sequence[str]
    env: Mapping[str, str]
    passed_on: Collection[str] = ()
    name: str = "limner"


def _usual(launch: Launch, **more: Any) -> dict[str, Any]:
    program, *arguments = launch.words
    env = {"env": dict(launch.env)} if launch.env else {}
    return {"command": program, "args": arguments, **env, **more}


def _typed(launch: Launch, **more: Any) -> dict[str, Any]:
    return {"type": "stdio", **_usual(launch, **more)}


def _codex(launch: Launch) -> dict[str, Any]:
    named = sorted(name for name in launch.passed_on if name not in launch.env)
    return {
        **_usual(launch),
        **({"env_vars": named} if named else {}),
        # Otherwise Codex starts its first turn after a second, with the tools that are there: on a
        # busy machine without ours. It means that Codex does not start if the server does not.
        "required": True,
        "startup_timeout_sec": STARTUP_S,
        "tool_timeout_sec": TOOL_S,
    }


def _opencode(launch: Launch) -> dict[str, Any]:
    return {
        "type": "local",
        "command": [*launch.words],
        "environment": dict(launch.env),
        "enabled": True,
        "timeout": TOOL_S * 1000,
    }


def _goose(launch: Launch) -> dict[str, Any]:
    program, *arguments = launch.words
    return {
        "type": "stdio",
        "name": launch.name,
        "description": "Draw, edit and look at pictures",
        "cmd": program,
        "args": arguments,
        "envs": dict(launch.env),
        "timeout": TOOL_S,
        "enabled": True,
    }


def _with_timeout(shape: Callable[..., dict[str, Any]]) -> Callable[[Launch], dict[str, Any]]:
    return lambda launch: shape(launch, timeout=TOOL_S * 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    """A program that starts MCP servers.

    Attributes:
        title: its name for people.
        files: its configuration file, by scope.
        table: the table of servers in the file.
        syntax: the syntax of the file.
        shape: makes an entry.
        waits: the entry makes the client wait for `TOOL_S`.
        hides_variables: it passes on only the environment variables that the entry names.
        add: the command line by which it adds a server itself, if it has one.
    """

    title: str
    files: Mapping[Scope, Callable[[ClientSetup], Path]]
    table: str = "mcpServers"
    syntax: Syntax = config_json
    shape: Callable[[Launch], dict[str, Any]] = _usual
    waits: bool = False
    hides_variables: bool = False
    add: Callable[[str, Mapping[str, Any], Scope], list[str]] | None = None

    def keys(self, name: str) -> Keys:
        """Return the keys of a server's entry."""
        return (self.table, name)

    def entry(
        self,
        command: Sequence[str],
        *,
        home: Path | None = None,
        variables: Collection[str] = (),
        name: str = "limner",
    ) -> dict[str, Any]:
        """Return the entry that makes the client start limner's server.

        Args:
            command: the command line that starts limner.
            home: limner's home folder, if it is not the default.
            variables: the environment variables that the client passes on to the server.
            name: the name of the server.
        """
        env = {} if home is None else {HOME: str(home)}
        if self.waits:
            env[ANSWER] = str(ANSWER_S)
        words = [*command, "mcp"]
        return self.shape(Launch(words=words, env=env, passed_on=variables, name=name))

    def snippet(self, name: str, entry: Mapping[str, Any]) -> str:
        """Return a complete configuration that contains only this entry."""
        return self.syntax.document(self.keys(name), entry, newline="\n")


def launch_of(entry: Mapping[str, Any]) -> Launch:
    """Return how an entry of any client starts its server."""
    command: Any = entry.get("command", entry.get("cmd", ""))
    words: list[str] = [*command] if isinstance(command, list) else [command, *entry["args"]]
    env: dict[str, str] = entry.get("env") or entry.get("environment") or entry.get("envs") or {}
    return Launch(words=words, env=env, passed_on=entry.get("env_vars", ()))


def _claude_adds(name: str, entry: Mapping[str, Any], scope: Scope) -> list[str]:
    return ["claude", "mcp", "add-json", "--scope", scope, name, json.dumps(entry)]


def _codex_adds(name: str, entry: Mapping[str, Any], scope: Scope) -> list[str]:
    if scope != "user":
        return []  # it adds servers for the user alone
    launch = launch_of(entry)
    env = [word for each in launch.env.items() for word in ("--env", "=".join(each))]
    return ["codex", "mcp", "add", name, *env, "--", *launch.words]


def _claude_desktop(place: ClientSetup) -> Path:
    name = "claude_desktop_config.json"
    local = place.variable("LOCALAPPDATA")
    if place.system == "win32" and local is not None:
        # A program from the Windows store has its own copy of this folder.
        for folder in sorted(local.glob("Packages/Claude_*/LocalCache/Roaming/Claude")):
            return folder / name
    return place.programs / "Claude" / name


def _goose_file(place: ClientSetup) -> Path:
    if place.system == "win32":
        return place.roaming / "Block" / "goose" / "config" / "config.yaml"
    return place.config / "goose" / "config.yaml"


CLIENTS: Mapping[str, McpClient] = MappingProxyType(
    {
        "claude-code": McpClient(
            title="Claude Code",
            files={
                "user": lambda at: (at.variable("CLAUDE_CONFIG_DIR") or at.home) / ".claude.json",
                "project": lambda at: at.cwd / ".mcp.json",
            },
            shape=_with_timeout(_typed),
            waits=True,
            add=_claude_adds,
        ),
        "claude-desktop": McpClient(title="Claude Desktop", files={"user": _claude_desktop}),
        "codex": McpClient(
            title="Codex",
            files={
                "user": lambda at: (
                    (at.variable("CODEX_HOME") or at.home / ".codex") / "config.toml"
                ),
                "project": lambda at: at.cwd / ".codex" / "config.toml",
            },
            table="mcp_servers",
            syntax=config_toml,
            shape=_codex,
            waits=True,
            hides_variables=True,
            add=_codex_adds,
        ),
        "cursor": McpClient(
            title="Cursor",
            files={
                "user": lambda at: at.home / ".cursor" / "mcp.json",
                "project": lambda at: at.cwd / ".cursor" / "mcp.json",
            },
            shape=_typed,
        ),
        "vscode": McpClient(
            title="VS Code",
            files={
                "user": lambda at: at.programs / "Code" / "User" / "mcp.json",
                "project": lambda at: at.cwd / ".vscode" / "mcp.json",
            },
            table="servers",
            shape=_typed,
        ),
        "gemini-cli": McpClient(
            title="Gemini CLI",
            files={
                "user": lambda at: (
                    (at.variable("GEMINI_CLI_HOME") or at.home) / ".gemini" / "settings.json"
                ),
                "project": lambda at: at.cwd / ".gemini" / "settings.json",
            },
            shape=_with_timeout(_usual),
            waits=True,
        ),
        "opencode": McpClient(
            title="opencode",
            files={
                "user": lambda at: at.config / "opencode" / "opencode.json",
                "project": lambda at: at.cwd / "opencode.json",
            },
            table="mcp",
            shape=_opencode,
            waits=True,
        ),
        "goose": McpClient(
            title="goose",
            files={"user": _goose_file},
            table="extensions",
            syntax=config_yaml,
            shape=_goose,
            waits=True,
        ),
        "zed": McpClient(
            title="Zed",
            files={
                "user": lambda at: (
                    (at.roaming / "Zed" if at.system == "win32" else at.config / "zed")
                    / "settings.json"
                ),
                "project": lambda at: at.cwd / ".zed" / "settings.json",
            },
            table="context_servers",
        ),
        "windsurf": McpClient(
            title="Windsurf",
            files={"user": lambda at: at.home / ".codeium" / "windsurf" / "mcp_config.json"},
        ),
    }
)
