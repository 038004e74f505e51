"""Rows of the tables of batches -> the values the rest of the program sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from limner.errors import NANO_PER_USD, CostSource

RowState = Literal["waiting", "running", "done", "failed"]
BatchState = Literal["loading", "open", "cancelled"]


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """A list of calls with one budget.

    ``name`` is the path of the manifest, or stands for rows that came without a file. ``rates`` are
    JSON: requests a minute by provider. ``caller`` is JSON: the folder and the reach of the calls.
    """

    id: str
    name: str
    state: BatchState
    digest: str
    load: int
    lane: str
    budget_nano: int
    rates: str
    caller: str
    created_ms: int

    @property
    def budget_usd(self) -> float:
        """The most that its rows may cost together, in dollars."""
        return self.budget_nano / NANO_PER_USD

    def key_of(self, row_key: str) -> str:
        """What the ledger calls the payment of a row."""
        return f"{self.id}/{row_key}"


class ClaimedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row that this process runs. ``interrupted``: another process began it and has ended."""

    row_key: str
    number: int
    tool: str
    arguments: str
    tries: int
    interrupted: bool = False


class RowResult(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a batch and what became of it."""

    row_key: str
    number: int
    tool: str
    state: RowState
    arguments: str = "{}"
    tries: int = 0
    cost_nano: int = 0
    cost_source: CostSource = "table"
    picture: str | None = None
    result: str | None = None
    error: str | None = None

    def as_json(self) -> dict[str, object]:
        """The row with its arguments, its result or its error, and its cost in dollars."""
        return {
            "key": self.row_key,
            "tool": self.tool,
            "arguments": msgspec.json.decode(self.arguments),
            "state": self.state,
            "tries": self.tries,
            "cost_usd": self.cost_nano / NANO_PER_USD,
            "cost_source": self.cost_source,
            "result": None if self.result is None else msgspec.json.decode(self.result),
            "error": None if self.error is None else msgspec.json.decode(self.error),
        }

    def as_columns(self) -> dict[str, object]:
        """The row for a table, without its arguments; the result is JSON text.

        The path is that of the host which ran the row.
        """
        result: Any = {} if self.result is None else msgspec.json.decode(self.result)
        error: Any = None if self.error is None else msgspec.json.decode(self.error)
        return {
            "key": self.row_key,
            "state": self.state,
            "handle": self.picture,
            "path": result.get("path"),
            "result": self.result,
            "cost_usd": self.cost_nano / NANO_PER_USD,
            "error": None if error is None else f"{error['code']}: {error['message']}",
        }


class RowOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How one try of a row ended.

    Attributes:
        result: the JSON text of the tool's answer; None if it failed.
        error: what `LimnerError.as_json` says; None if it succeeded.
        picture: the handle of the first picture of the answer.
        cost_nano: what was or may have been paid.
        cost_source: how the cost is known.
    """

    result: str | None = None
    error: Mapping[str, Any] | None = None
    picture: str | None = None
    cost_nano: int = 0
    cost_source: CostSource = "table"

    @property
    def code(self) -> str | None:
        """The code of the error."""
        return None if self.error is None else self.error["code"]


class BatchCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many rows are in which state."""

    waiting: int = 0
    running: int = 0
    done: int = 0
    failed: int = 0

    @property
    def rows(self) -> int:
        """All rows."""
        return self.waiting + self.running + self.done + self.failed

    @property
    def ended(self) -> int:
        """The rows that are done or have failed."""
        return self.done + self.failed


class RemoteBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch at a vendor: many requests under one id.

    Attributes:
        id: the tag that the vendor keeps with it.
        batch_id: our batch.
        api: the vendor's batch API.
        tool: the tool of its rows.
        provider: who is paid.
        model: the model that draws or answers.
        state: ``creating`` until the vendor's id is known, then ``running``.
        remote_id: the vendor's id.
        word: the vendor's word for its state, when it was asked last.
        requests: how many requests it has.
        done: how many succeeded by then.
        failed: how many failed by then.
        created_ms: when it was created.
    """

    id: str
    batch_id: str
    api: str
    tool: str
    provider: str
    model: str
    state: str
    remote_id: str | None
    word: str
    requests: int
    done: int
    failed: int
    created_ms: int

    def __str__(self) -> str:
        ended = f"{self.done:,} of {self.requests:,} answered"
        return f"{self.provider} {self.remote_id or self.id}: {self.word}, {ended}"


class BatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A batch now: its rows, and its money in nano-dollars.

    ``unknown_nano`` is the part of ``spent_nano`` that may not have been charged. ``stopped`` says
    why a run ended before its rows did. ``remote`` are the batches at vendors that have not ended,
    as they were when the vendors were asked last.
    """

    batch: Batch
    counts: BatchCounts
    spent_nano: int
    unknown_nano: int
    stopped: str | None = None
    remote: tuple[RemoteBatch, ...] = ()

    @property
    def state(self) -> str:
        """``done`` if every row has ended, else the state of the batch."""
        is_done = self.batch.state == "open" and self.counts.ended == self.counts.rows
        return "done" if is_done else self.batch.state

    def as_json(self) -> dict[str, object]:
        """What ``limner batch status --json`` prints, without the rows."""
        return {
            "batch": self.batch.id,
            "manifest": self.batch.name,
            "state": self.state,
            "lane": self.batch.lane,
            "rows": {"total": self.counts.rows, **msgspec.to_builtins(self.counts)},
            "budget_usd": self.batch.budget_usd,
            "spent_usd": self.spent_nano / NANO_PER_USD,
            "unknown_usd": self.unknown_nano / NANO_PER_USD,
            "stopped": self.stopped,
            "remote": [msgspec.to_builtins(remote) for remote in self.remote],
        }
