"""The events of one turn as they arrive -> the same events for the caller, and their result."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from limner.agent.events import (
    InputAdded,
    ItemAdded,
    Status,
    TextDelta,
    ToolFinished,
    TurnEnded,
    TurnStarted,
    UsageUpdated,
)
from limner.agent.turn_reader import TurnReader
from limner.errors import NANO_PER_USD, LimnerError
from limner.frontends.remote.connection import SPEND
from limner.frontends.remote.events import Params, RemoteEvent, TurnResult, read_event
from limner.json_shapes import as_list, as_object
from limner.wires.base import Usage
from limner.wires.items import Item

# The events that the caller has not fetched yet, and the items of a turn: no real turn has more.
MAX_EVENTS = 10_000
MAX_ITEMS = 10_000

_STATUSES: tuple[Status, ...] = ("completed", "interrupted", "failed")

logger = logging.getLogger("limner.frontends.remote")


class _ServerCost(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the server's model and tools cost; only limner's server reports it."""

    turn_cost_usd: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    thread_cost_usd: Annotated[float, Meta(ge=0, le=1e9)] = 0.0


def _nano(usd: float) -> int:
    return round(usd * NANO_PER_USD)


class RemoteTurn:
    """One turn, from the request that starts it to its end.

    Events wait for the caller without holding up the server. Pieces of a message that the caller
    has not fetched are joined. Beyond a limit events are left out, but never the last.

    Args:
        reader: knows whether the caller still reads the events.
        spent_nano: what the tools that ran here have cost in earlier turns.
        is_own_tool: whether this client runs the tool of that name.
    """

    def __init__(
        self,
        *,
        reader: TurnReader,
        spent_nano: int = 0,
        is_own_tool: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.id: str | None = None
        self.reader = reader
        self.starting: asyncio.Task[None] | None = None
        self.leaving = asyncio.Lock()
        self.ended = asyncio.Event()
        self.cost_nano = 0
        self._spent_before_nano, self._is_own_tool = spent_nano, is_own_tool
        self._server_cost = _ServerCost()
        self._events: deque[RemoteEvent] = deque()
        self._left_out = 0
        self._arrived = asyncio.Event()
        self._items: list[Item] = []
        self._caught_up: list[object] = []
        self._usage = Usage(input_tokens=0, output_tokens=0)

    @property
    def spent_nano(self) -> int:
        """What the tools that ran here have cost in this and earlier turns."""
        return self._spent_before_nano + self.cost_nano

    def is_about(self, params: Params) -> bool:
        """Whether a notification is about this turn, or about none in particular."""
        turn_id: object = params.get("turnId", as_object(params.get("turn")).get("id"))
        return not isinstance(turn_id, str) or self.id is None or turn_id == self.id

    def receive(self, method: str, params: Params) -> None:
        """Add the event that a notification reports; the server's cost is for the last event."""
        if method == SPEND:
            with suppress(msgspec.ValidationError):
                self._server_cost = msgspec.convert(params, _ServerCost)
            return
        self.add(read_event(method, params, is_own_tool=self._is_own_tool))

    def add(self, event: RemoteEvent) -> None:
        """Add the next event."""
        if self.ended.is_set():
            return
        match event:
            case TurnStarted():
                self.id = self.id or event.turn_id
            case UsageUpdated():
                self._usage = self._usage + event.last
                event = replace(event, spent_nano=self.spent_nano)
            case ToolFinished(raw=None):
                self.cost_nano += event.result.cost_nano
            case InputAdded() | ItemAdded() | ToolFinished():
                if event.item.get("id") in self._caught_up:
                    return
                self._keep(event.item)
            case _:
                pass
        self._put(event)

    def catch_up(self, items: Iterable[Item]) -> None:
        """Add the items that were completed while there was no connection."""
        for item in self._unknown(items):
            self.receive("item/completed", {"item": item})
            self._caught_up.append(item.get("id"))

    def complete(self, params: Params) -> None:
        """The server reports the end of the turn."""
        turn = as_object(params.get("turn"))
        # The response that names the turn may still be on its way.
        if self.id is None and isinstance(turn_id := turn.get("id"), str):
            self.id = turn_id
        status: object = turn.get("status")
        # Often these items were sent before.
        for item in self._unknown(_objects(turn.get("items"))):
            self._keep(item)
        self.end(
            status if status in _STATUSES else "failed",
            error=_read_error(turn.get("error")),
            raw=params,
        )

    def end(self, status: Status, *, error: LimnerError | None, raw: Params | None = None) -> None:
        """No more events will come."""
        if self.ended.is_set():
            return
        items = tuple(self._items)
        result = TurnResult(
            turn_id=self.id or "",
            status=status,
            text=_last_message(items),
            is_cut=False,
            items=items,
            usage=self._usage,
            cost_nano=self.cost_nano + _nano(self._server_cost.turn_cost_usd),
            spent_nano=self.spent_nano + _nano(self._server_cost.thread_cost_usd),
            error=error,
            raw=raw,
        )
        self._events.append(result)
        self.ended.set()
        self._arrived.set()

    async def events(self) -> AsyncGenerator[RemoteEvent]:
        """Every event, to the end."""
        while True:
            await self._arrived.wait()
            while self._events:
                event = self._events.popleft()
                yield event
                if isinstance(event, TurnEnded):
                    return
            self._arrived.clear()

    def _put(self, event: RemoteEvent) -> None:
        last = self._events[-1] if self._events else None
        if (
            isinstance(event, TextDelta)
            and isinstance(last, TextDelta)
            and event.item_id == last.item_id
        ):
            self._events[-1] = replace(last, text=last.text + event.text)
        elif len(self._events) < MAX_EVENTS:
            self._events.append(event)
        else:
            self._left_out += 1
            if self._left_out == 1:
                logger.warning("Events of a turn are left out, since the caller fetches none.")
        self._arrived.set()

    def _keep(self, item: Item) -> None:
        if len(self._items) < MAX_ITEMS:
            self._items.append(item)

    def _unknown(self, items: Iterable[Item]) -> list[Item]:
        known = [item.get("id") for item in self._items]
        return [item for item in items if item.get("id") not in known]


def finished_items(turn: Mapping[str, Any]) -> list[Item]:
    """The items of a running turn that are surely complete: the last of them may not be."""
    items = _objects(turn.get("items"))
    return [
        item
        for number, item in enumerate(items, 1)
        if item.get("status") in {"completed", "failed"}
        or ("status" not in item and number < len(items))
    ]


def _objects(value: object) -> list[Item]:
    return [item for one in as_list(value) if (item := as_object(one))]


def _last_message(items: Iterable[Item]) -> str:
    """The text of the final answer, else of the last message that is not commentary."""
    messages = [item for item in items if item.get("type") == "agentMessage"]
    final = [item for item in messages if item.get("phase") == "final_answer"]
    without_phase = [item for item in messages if item.get("phase") is None]
    text = next((one[-1].get("text") for one in (final, without_phase) if one), "")
    return text if isinstance(text, str) else ""


def _read_error(value: object) -> LimnerError | None:
    error = as_object(value)
    if not error:
        return None
    info = error.get("codexErrorInfo")
    return LimnerError(str(error.get("message") or ""), extras={"info": info})
