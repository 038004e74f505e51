"""A conversation <-> the rollout path that clients of the first protocol know it by.

The file at that path only names the conversation. Its items and pictures are in the store;
`limner sessions export` writes all of them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from limner import __version__
from limner.agent.rollout import encode_line
from limner.agent.session_import import ORIGINATOR
from limner.errors import OutputExists
from limner.frontends.appserver.protocol.threads import Thread
from limner.storage.files import write_new

FOLDER = "rollouts"
_NAME = re.compile(r"rollout-[\dT-]{19}-(?P<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl")


class RolloutFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one limner home."""

    home: Path

    async def write(self, thread: Thread) -> str:
        """The path of a conversation; the file is written if it is missing.

        Raises:
            StorageError: the disk is full.
        """
        created = datetime.fromtimestamp(thread.created_at, UTC)
        path = self._folder / f"rollout-{created:%Y-%m-%dT%H-%M-%S}-{thread.id}.jsonl"
        if not await asyncio.to_thread(path.is_file):
            first = encode_line(
                "session_meta", _meta(thread, created), at_ms=thread.created_at * 1000
            )
            with suppress(OutputExists):  # another process was faster
                await asyncio.to_thread(write_new, path, first, mode=0o600)
        return str(path)

    def conversation_at(self, path: Path) -> str | None:
        """The id of the conversation of a path; the file itself need not exist."""
        found = _NAME.fullmatch(path.name)
        return None if found is None or path.parent != self._folder else found["id"]

    @property
    def _folder(self) -> Path:
        # The home may be a symlink; the paths of files that are written must not contain one.
        return self.home.resolve() / FOLDER


def _meta(thread: Thread, created: datetime) -> Mapping[str, Any]:
    return {
        "id": thread.id,
        "timestamp": created.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "cwd": thread.cwd,
        "originator": ORIGINATOR,
        "cli_version": __version__,
        "note": f"limner stores the conversation: limner sessions export {thread.id}",
    }
