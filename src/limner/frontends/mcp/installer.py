"""The arguments of `limner mcp install` -> one entry in a client's own configuration file.

The file is edited as text: comments, other servers and odd formatting stay byte for byte. This
module does not need the MCP SDK.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, TypeVar

from limner.errors import InputInvalid, SettingsError, UserError
from limner.frontends.cli.output import CommandResult
from limner.frontends.mcp.clients import AS_MODULE, CLIENTS, HOME, ClientSetup, McpClient, Scope
from limner.frontends.mcp.config_entry import has_ours, with_entry, without_entry
from limner.frontends.mcp.config_files import ConfigFile
from limner.frontends.remote.discovery import find_program, safe_environment
from limner.net.redaction import redact
from limner.settings.config_syntax import Malformed, look_up, read

T = TypeVar("T")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SHOWN_COLUMNS = 200
ADD_TIMEOUT_S = 60.0
CACHE_TAG = "CACHEDIR.TAG"
KEYS_HINT = (
    "The client may not pass on keys of your shell: limner keys set OPENAI_API_KEY stores one."
)


def install(args: Namespace) -> CommandResult:
    """Add limner's server to a client, or print the entry."""
    if args.print:
        return _printed(args)
    task = _Task.of(args, with_variables=True)
    text = task.file.read()
    edited = task.edited(partial(with_entry, entry=task.entry), text or "")
    changed = edited != text
    if changed and not task.dry_run:
        task.keep_backup(text)
        now = task.add_by_client(text)
        # The client does not take every key of the entry.
        whole = task.edited(partial(with_entry, entry=task.entry), now or "")
        if whole != now:
            task.file.write(whole, over=now)
    if not changed:
        summary = f"{task.client.title} has limner already: {task.file.path}"
    elif task.dry_run:
        summary = f"{task.client.title} would have limner: {task.file.path}"
    else:
        summary = f"{task.client.title} has limner now; restart it to use it: {task.file.path}"
    hints = (KEYS_HINT,) if changed else ()
    return task.answer(summary, text, edited, hints=hints)


def uninstall(args: Namespace) -> CommandResult:
    """Remove limner's server from a client."""
    task = _Task.of(args, with_variables=False)
    text = task.file.read()
    if text is None:
        return task.answer(
            f"{task.client.title} has no configuration file: {task.file.path}", text, text
        )
    before = task.file.read_backup()
    edited = task.edited(partial(without_entry, before=before), text)
    if edited == text:
        return task.answer(f"{task.client.title} has no limner: {task.file.path}", text, text)
    if task.dry_run:
        return task.answer(
            f"{task.client.title} would no longer have limner: {task.file.path}", text, edited
        )
    if edited != before:
        task.keep_backup(text)
    task.file.write(edited, over=text)
    if edited == before:
        task.file.drop_backup()
    return task.answer(f"{task.client.title} has no limner now: {task.file.path}", text, edited)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """The client, file and entry that the command line selects."""

    client_name: str
    client: McpClient
    scope: Scope
    name: str
    file: ConfigFile
    entry: dict[str, Any]
    dry_run: bool

    @classmethod
    def of(cls, args: Namespace, *, with_variables: bool) -> _Task:
        if args.client is None:
            raise UserError(f"say which client: {', '.join(CLIENTS)}")
        if _NAME.fullmatch(args.name) is None:
            raise InputInvalid(
                f"{args.name[:80]!r} cannot be a server's name.",
                field="name",
                hint="Use letters, digits, - and _.",
            )
        client, place = CLIENTS[args.client], ClientSetup.here()
        if args.scope not in client.files:
            raise InputInvalid(
                f"{client.title} has no configuration for a project.",
                field="scope",
                hint="Leave --scope out.",
            )
        return cls(
            client_name=args.client,
            client=client,
            scope=args.scope,
            name=args.name,
            file=ConfigFile(client.files[args.scope](place)),
            entry=client.entry(
                _launcher(),
                home=place.variable(HOME),
                variables=(
                    _passed_on(place.env) if with_variables and client.hides_variables else ()
                ),
                name=args.name,
            ),
            dry_run=args.dry_run,
        )

    def edited(self, edit: Callable[..., T], text: str) -> T:
        """Edit the text.

        Raises:
            SettingsError: the file cannot be edited; the hint contains the entry.
        """
        try:
            return edit(self.client.syntax, text, self.client.keys(self.name))
        except Malformed as problem:
            snippet = self.client.snippet(self.name, self.entry)
            raise SettingsError(
                f"{str(self.file.path)!r} was not changed: {problem}.",
                hint=f"Correct it, or edit it by hand. limner's entry is:\n\n{snippet}",
                extras={"path": str(self.file.path), "snippet": snippet},
            ) from None

    def keep_backup(self, text: str | None) -> None:
        """Back up the file, unless the backup already has the state before limner was added."""
        if text is None:
            return
        table = (self.client.table,)
        known = self.file.read_backup() is not None
        if not (known and has_ours(self.client.syntax, text, table)):
            self.file.keep_backup()

    def add_by_client(self, text: str | None) -> str | None:
        """Let the client add the server, if it can; return the text of the file after it."""
        name, client = self.name, self.client
        words = [] if client.add is None else client.add(name, self.entry, self.scope)
        if not words or look_up(read(client.syntax, text or ""), client.keys(name)) is not None:
            return text
        with suppress(UserError, OSError, subprocess.SubprocessError):
            if (program := find_program(words[0])) is None:
                return text
            subprocess.run(
                [program, *words[1:]],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=safe_environment(),
                timeout=ADD_TIMEOUT_S,
                check=True,
            )
        return self.file.read()

    def answer(
        self,
        summary: str,
        before: str | None,
        after: str | None,
        *,
        hints: tuple[str, ...] = (),
    ) -> CommandResult:
        """Return the result of the command."""
        diff = _diff(before, after, self.file.path)
        backup = str(self.file.backup) if self.file.backup.is_file() else None
        kept = (f"Backup: {backup}",) if backup is not None and diff and not self.dry_run else ()
        return CommandResult(
            value={
                "client": self.client_name,
                "scope": self.scope,
                "name": self.name,
                "path": str(self.file.path),
                "changed": bool(diff) and not self.dry_run,
                "diff": diff,
                "backup": backup,
            },
            text=summary,
            notes=(*((diff,) if diff else ()), *kept, *hints),
        )


def _printed(args: Namespace) -> CommandResult:
    # Most other clients take the entry of Claude Desktop.
    client = CLIENTS[args.client or "claude-desktop"]
    place = ClientSetup.here()
    entry = client.entry(_launcher(), home=place.variable(HOME), name=args.name)
    snippet = client.snippet(args.name, entry)
    return CommandResult(value={"entry": entry, "snippet": snippet}, text=snippet.rstrip("\n"))


def _passed_on(environment: Mapping[str, str]) -> set[str]:
    # Only providers and models know their variables, and they take a while to import.
    return import_module("limner.frontends.mcp.client_env").passed_on(environment)


def _launcher() -> list[str]:
    """Return the command line that starts this installation of limner from any folder."""
    uv = os.environ.get("UV")
    if uv and any((folder / CACHE_TAG).is_file() for folder in Path(sys.prefix).parents):
        # uvx made this environment in its cache, and may delete it.
        return [str(Path(uv).with_name("uvx")), "limner"]
    try:
        files = distribution("limner").files or []
    except PackageNotFoundError:
        files = []
    for file in files:
        if file.name in ("limner", "limner.exe"):
            script = Path(os.path.normpath(file.locate()))
            if script.is_file():
                return [str(script)]
    return [sys.executable, *AS_MODULE]


def _diff(before: str | None, after: str | None, path: Path) -> str:
    """Return the changed lines without context, which may contain the keys of other servers."""
    lines = unified_diff(
        (before or "").splitlines(),
        (after or "").splitlines(),
        "/dev/null" if before is None else str(path),
        "/dev/null" if after is None else str(path),
        n=0,
        lineterm="",
    )
    return redact("\n".join(line[:_SHOWN_COLUMNS] for line in lines))
