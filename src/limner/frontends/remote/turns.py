"""The events of one turn as they come in -> the same for whoever listens, and what it came to."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from limner.frontends.remote.events import (
    Event,
    Item,
    ItemCompleted,
    Raw,
    RemoteTokenUsage,
    Status,
    TextDelta,
    ToolAnswered,
    TurnCompleted,
    TurnError,
    TurnResult,
    TurnStarted,
    UsageUpdated,
)
from limner.json_shapes import as_list, as_object

# Of what nobody has fetched yet, and of what a turn makes: far beyond any that means well.
MAX_EVENTS = 10_000
MAX_ITEMS = 10_000

_STATUSES: tuple[Status, ...] = ("completed", "interrupted", "failed")

logger = logging.getLogger("limner")


class RemoteTurn:
    """One turn, from the request for it to its end.

    Events wait for the listener without holding up the server: pieces of a message that nobody has
    fetched become one, and beyond a limit single events are left out, but never the last.
    """

    def __init__(self) -> None:
        self.id: str | None = None
        self.ended = asyncio.Event()
        self._events: deque[Event] = deque()
        self._left_out = 0
        self._arrived = asyncio.Event()
        self._items: list[Item] = []
        self._caught_up: list[object] = []
        self._usage = RemoteTokenUsage()
        self._cost_nano = 0

    def is_about(self, params: Raw) -> bool:
        """Whether a notice is about this turn, or about none in particular."""
        named: object = params.get("turnId", as_object(params.get("turn")).get("id"))
        return not isinstance(named, str) or self.id is None or named == self.id

    def tell(self, event: Event) -> None:
        """Take the next event."""
        if self.ended.is_set():
            return
        match event:
            case TurnStarted():
                self.id = self.id or event.turn_id
            case ItemCompleted():
                if event.item.get("id") in self._caught_up:
                    return
                self._keep(event.item)
            case UsageUpdated():
                self._usage += event.last
            case ToolAnswered():
                self._cost_nano += event.result.cost_nano
            case _:
                pass
        self._put(event)

    def catch_up(self, items: Iterable[Item]) -> None:
        """Tell of items that were made while nobody could hear it."""
        for item in self._unknown(items):
            self.tell(ItemCompleted(item=item, raw={"item": item}))
            self._caught_up.append(item.get("id"))

    def complete(self, params: Raw) -> None:
        """The server says that the turn is over."""
        turn = as_object(params.get("turn"))
        # The answer that names the turn may still be on its way to whoever asked for it.
        if self.id is None and isinstance(named := turn.get("id"), str):
            self.id = named
        said: object = turn.get("status")
        status = said if said in _STATUSES else "failed"
        # Often a summary of what was told before.
        for item in self._unknown(_objects(turn.get("items"))):
            self._keep(item)
        self.end(status, error=_error(turn.get("error")), raw=params)

    def end(self, status: Status, *, error: TurnError | None, raw: Raw | None = None) -> None:
        """Nothing more will come."""
        if self.ended.is_set():
            return
        items = tuple(self._items)
        result = TurnResult(
            turn_id=self.id,
            status=status,
            text=_last_words(items),
            items=items,
            usage=self._usage,
            cost_nano=self._cost_nano,
            error=error,
        )
        self._events.append(TurnCompleted(result=result, raw=raw or {}))
        self.ended.set()
        self._arrived.set()

    async def events(self) -> AsyncGenerator[Event]:
        """Everything that is told, to its end."""
        while True:
            await self._arrived.wait()
            while self._events:
                event = self._events.popleft()
                yield event
                if isinstance(event, TurnCompleted):
                    return
            self._arrived.clear()

    def _put(self, event: Event) -> None:
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
                logger.warning("Events of a turn are left out, since nobody fetches them.")
        self._arrived.set()

    def _keep(self, item: Item) -> None:
        if len(self._items) < MAX_ITEMS:
            self._items.append(item)

    def _unknown(self, items: Iterable[Item]) -> list[Item]:
        known = [item.get("id") for item in self._items]
        return [item for item in items if item.get("id") not in known]


def finished_items(turn: Mapping[str, Any]) -> list[Item]:
    """The items of a running turn that are surely whole: the last of them may not be."""
    items = _objects(turn.get("items"))
    return [
        item
        for number, item in enumerate(items, 1)
        if item.get("status") in {"completed", "failed"}
        or ("status" not in item and number < len(items))
    ]


def _objects(value: object) -> list[Item]:
    return [item for one in as_list(value) if (item := as_object(one))]


def _last_words(items: Iterable[Item]) -> str:
    """The text of the final answer, else of the last message that is no aside."""
    said = [item for item in items if item.get("type") == "agentMessage"]
    final = [item for item in said if item.get("phase") == "final_answer"]
    open_ended = [item for item in said if item.get("phase") is None]
    text = next((one[-1].get("text") for one in (final, open_ended) if one), "")
    return text if isinstance(text, str) else ""


def _error(value: object) -> TurnError | None:
    told = as_object(value)
    if not told:
        return None
    return TurnError(message=str(told.get("message") or ""), info=told.get("codexErrorInfo"))
