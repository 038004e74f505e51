"""The record of calls in the store: a call's id -> what it paid for, even after a crash."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from limner.errors import CostSource
from limner.money.records import State
from limner.storage.store import Store

# A client that timed out repeats its call within minutes. A user who wants another picture may send
# the same prompt tomorrow.
SAME_CALL_S = 1800.0


class CallRow(msgspec.Struct, frozen=True, kw_only=True):
    """One reservation of a call; without ``ledger_id`` the call had not reserved money yet."""

    tool: str
    created_ms: int
    ledger_id: int | None
    state: State | None
    provider: str | None
    model: str | None
    quoted_nano: int | None
    cost_nano: int | None
    cost_source: CostSource | None
    error_code: str | None
    picture: str | None
    path: str | None
    job_id: str | None


def digest_of(tool: str, arguments: Mapping[str, Any], *, cwd: Path) -> str:
    """Return a digest that a call shares with its repetitions; the order of arguments is ignored.

    The folder is part of it: the same relative paths name other files in another folder.
    """
    given = {name: value for name, value in arguments.items() if value not in (None, "")}
    encoded = msgspec.json.encode([tool, str(cwd), given], order="deterministic")
    return hashlib.sha256(encoded).hexdigest()


class CallStore(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one home."""

    store: Store
    clock: Callable[[], datetime]

    async def note(self, call_id: str, *, tool: str, digest: str, ledger_id: int | None) -> None:
        """Record that a ledger row belongs to the call, or that the client has the call's id."""
        await self.store.write(
            lambda tx: tx.run(
                "call_note",
                call_id=call_id,
                ledger_id=ledger_id,
                tool=tool,
                digest=digest,
                now_ms=self._now_ms(),
            ),
            shared=True,
        )

    async def delivered(self, call_id: str) -> None:
        """Record that a client received the result, unless its picture can still be fetched."""
        await self.store.write(
            lambda tx: tx.run("call_delivered", call_id=call_id, now_ms=self._now_ms()),
            shared=True,
        )

    async def rows(self, call_id: str) -> list[CallRow]:
        """Return the reservations of the call; nothing if there was no such call."""
        rows = await self.store.read(lambda tx: tx.all("call_rows", call_id=call_id))
        return [CallRow(**row) for row in rows]

    async def undelivered(self, digest: str, *, but: str) -> str | None:
        """Return an earlier call with this digest that was paid for and never delivered."""
        row = await self.store.read(
            lambda tx: tx.one(
                "call_undelivered",
                digest=digest,
                but=but,
                since_ms=self._now_ms() - int(SAME_CALL_S * 1000),
            )
        )
        return None if row is None else row["call_id"]

    def _now_ms(self) -> int:
        return int(self.clock().timestamp() * 1000)
