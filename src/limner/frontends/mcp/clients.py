"""A client's name -> the path of its configuration file, and limner's entry in it.

Source: each client's documentation, November 2026. The entry sets a timeout if the client has a
key for it: pictures take longer than the usual timeouts of 10 and 60 seconds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from limner.frontends.mcp import config_json
from limner.settings import config_toml
from limner.settings.config_syntax import Keys, Syntax
from limner.storage.home import user_home

Scope = Literal["user", "project"]
HOME = "LIMNER_HOME"
STARTUP_S = 60
TOOL_S = 600
# How Python starts limner. -P: do not import a folder named limner in the current folder.
AS_MODULE = ("-P", "-m", "limner")
_STDIO: Mapping[str, Any] = MappingProxyType({"type": "stdio"})
_TIMEOUT_MS: Mapping[str, Any] = MappingProxyType({"timeout": TOOL_S * 1000})


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
    def programs(self) -> Path:
        """The folder in which desktop programs keep their settings."""
        if self.system == "win32":
            return self.variable("APPDATA") or self.home / "AppData" / "Roaming"
        if self.system == "darwin":
            return self.home / "Library" / "Application Support"
        return self.variable("XDG_CONFIG_HOME") or self.home / ".config"


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    """A program that starts MCP servers: its files by scope, and the form of an entry.

    One that ``hides_variables`` passes on only the environment variables that the entry names.
    """

    title: str
    files: Mapping[Scope, Callable[[ClientSetup], Path]]
    table: str = "mcpServers"
    syntax: Syntax = config_json
    kind: Mapping[str, Any] = field(default_factory=dict[str, Any])
    limits: Mapping[str, Any] = field(default_factory=dict[str, Any])
    hides_variables: bool = False

    def keys(self, name: str) -> Keys:
        """Return the keys of a server's entry."""
        return (self.table, name)

    def entry(
        self,
        command: Sequence[str],
        *,
        home: Path | None = None,
        variables: Collection[str] = (),
    ) -> dict[str, Any]:
        """Return the entry that makes the client start limner's server.

        Args:
            command: the command line that starts limner.
            home: limner's home folder, if it is not the default.
            variables: the environment variables that the client passes on to the server.
        """
        program, *arguments = command
        entry = {**self.kind, "command": program, "args": [*arguments, "mcp"]}
        if home is not None:
            entry["env"] = {HOME: str(home)}
        named = sorted(name for name in variables if name not in entry.get("env", {}))
        if named:
            entry["env_vars"] = named
        return {**entry, **self.limits}

    def snippet(self, name: str, entry: Mapping[str, Any]) -> str:
        """Return a complete configuration that contains only this entry."""
        return self.syntax.document(self.keys(name), entry, newline="\n")


def _claude_desktop(place: ClientSetup) -> Path:
    name = "claude_desktop_config.json"
    local = place.variable("LOCALAPPDATA")
    if place.system == "win32" and local is not None:
        # A program from the Windows store has its own copy of this folder.
        for folder in sorted(local.glob("Packages/Claude_*/LocalCache/Roaming/Claude")):
            return folder / name
    return place.programs / "Claude" / name


CLIENTS: Mapping[str, McpClient] = MappingProxyType(
    {
        "claude-code": McpClient(
            title="Claude Code",
            files={
                "user": lambda at: (at.variable("CLAUDE_CONFIG_DIR") or at.home) / ".claude.json",
                "project": lambda at: at.cwd / ".mcp.json",
            },
            kind=_STDIO,
            limits=_TIMEOUT_MS,
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
            limits={"startup_timeout_sec": STARTUP_S, "tool_timeout_sec": TOOL_S},
            hides_variables=True,
        ),
        "cursor": McpClient(
            title="Cursor",
            files={
                "user": lambda at: at.home / ".cursor" / "mcp.json",
                "project": lambda at: at.cwd / ".cursor" / "mcp.json",
            },
            kind=_STDIO,
        ),
        "vscode": McpClient(
            title="VS Code",
            files={
                "user": lambda at: at.programs / "Code" / "User" / "mcp.json",
                "project": lambda at: at.cwd / ".vscode" / "mcp.json",
            },
            table="servers",
            kind=_STDIO,
        ),
        "gemini-cli": McpClient(
            title="Gemini CLI",
            files={
                "user": lambda at: (
                    (at.variable("GEMINI_CLI_HOME") or at.home) / ".gemini" / "settings.json"
                ),
                "project": lambda at: at.cwd / ".gemini" / "settings.json",
            },
            limits=_TIMEOUT_MS,
        ),
    }
)
