"""A stored session -> its turns and items for clients, all of them or page by page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from limner.agent.session import Session
from limner.agent.stored_turns import StoredTurn, group_turns
from limner.errors import InputInvalid
from limner.frontends.appserver.inline_pictures import PictureInliner
from limner.frontends.appserver.item_views import CallIndex, to_thread_items
from limner.frontends.appserver.protocol.base import Direction
from limner.frontends.appserver.protocol.items import (
    AgentMessage,
    ThreadItem,
    ThreadItemEntry,
    UserMessage,
)
from limner.frontends.appserver.protocol.threads import (
    ItemAnchor,
    ThreadItemsListResponse,
    TurnsPage,
)
from limner.frontends.appserver.protocol.turns import ItemsView, Turn, TurnError, TurnStatus
from limner.frontends.appserver.tool_specs import ToolSpec

TURNS_PER_PAGE = 25
ITEMS_PER_PAGE = 100

E = TypeVar("E")


class HistoryContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader of a history needs beside the items.

    Attributes:
        tools: the client's tools, by the names that the model has for them.
        cwd: the folder that paths in calls are relative to.
        running: the running turn.
        pending: the calls that clients may still answer.
        failures: why turns failed, by turn id.
    """

    tools: Mapping[str, ToolSpec] = msgspec.field(default_factory=dict[str, ToolSpec])
    cwd: str = ""
    running: str | None = None
    pending: Collection[str] = ()
    failures: Mapping[str, TurnError] = msgspec.field(default_factory=dict[str, TurnError])


class ThreadHistory(msgspec.Struct, frozen=True, kw_only=True):
    """Reads threads for clients."""

    inliner: PictureInliner

    async def turns(
        self, session: Session, context: HistoryContext, *, view: ItemsView = "full"
    ) -> tuple[Turn, ...]:
        """Every turn of a thread, the oldest first."""
        return await self._views(await read_turns(session), context, view)

    async def turns_page(
        self,
        session: Session,
        context: HistoryContext,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        direction: Direction | None = None,
        view: ItemsView | None = None,
    ) -> TurnsPage:
        """One page of turns, the newest first by default.

        Raises:
            InputInvalid: the cursor is not one of this thread.
        """
        page = _page(
            await read_turns(session),
            key=lambda turn: turn.id,
            cursor=cursor,
            limit=limit or TURNS_PER_PAGE,
            direction=direction or "desc",
        )
        turns = await self._views(sorted(page.data, key=_age), context, view or "summary")
        by_id = {turn.id: turn for turn in turns}
        data = tuple(by_id[stored.id] for stored in page.data)
        return TurnsPage(data=data, next_cursor=page.next, backwards_cursor=page.back)

    async def items_page(
        self,
        session: Session,
        context: HistoryContext,
        *,
        turn_id: str | None = None,
        cursor: str | ItemAnchor | None = None,
        limit: int | None = None,
        direction: Direction | None = None,
    ) -> ThreadItemsListResponse:
        """One page of items of a thread or of one turn, the oldest first by default.

        Raises:
            InputInvalid: there is no such turn, or the cursor is not one of this thread.
        """
        stored = [turn for turn in await read_turns(session) if turn_id in (None, turn.id)]
        if turn_id is not None and not stored:
            raise InputInvalid(f"turn not found: {turn_id[:80]}", field="turnId")
        entries = [(turn.id, item) for turn in stored for item in _items(turn, context)]
        page = _page(
            entries,
            key=_key,
            cursor=_cursor_after(cursor, entries) if isinstance(cursor, ItemAnchor) else cursor,
            limit=limit or ITEMS_PER_PAGE,
            direction=direction or "asc",
        )
        backwards = direction == "desc"
        oldest_first = list(reversed(page.data)) if backwards else list(page.data)
        items = await self.inliner.inline([item for _, item in oldest_first])
        shown = [
            ThreadItemEntry(
                item=item,
                turn_id=of,
                started_at_ms=item.started_at_ms,
                completed_at_ms=item.completed_at_ms,
            )
            for (of, _), item in zip(oldest_first, items, strict=True)
        ]
        return ThreadItemsListResponse(
            data=tuple(reversed(shown) if backwards else shown),
            next_cursor=page.next,
            backwards_cursor=page.back,
        )

    async def _views(
        self, stored: Sequence[StoredTurn], context: HistoryContext, view: ItemsView
    ) -> tuple[Turn, ...]:
        """The turns as clients see them; the input and the result have the oldest first."""
        selected = [_selected(_items(turn, context), view) for turn in stored]
        inlined = iter(await self.inliner.inline([item for items in selected for item in items]))
        return tuple(
            _turn(turn, context, view, tuple(next(inlined) for _ in items))
            for turn, items in zip(stored, selected, strict=True)
        )


async def read_turns(session: Session) -> list[StoredTurn]:
    """The turns of a session, the oldest first, with the numbers of their items."""
    return group_turns([stored async for stored in session.items()])


def _items(turn: StoredTurn, context: HistoryContext) -> list[ThreadItem]:
    is_running = turn.id == context.running
    open_calls = turn.unanswered if is_running else context.pending
    return to_thread_items(
        turn.items, CallIndex(tools=context.tools, open_calls=open_calls, cwd=context.cwd)
    )


def _selected(items: Sequence[ThreadItem], view: ItemsView) -> Sequence[ThreadItem]:
    """The items for a view; a summary has the first user message and the last agent message."""
    if view == "full":
        return items
    if view == "notLoaded":
        return ()
    asked = next((item for item in items if isinstance(item, UserMessage)), None)
    spoken = [item for item in items if isinstance(item, AgentMessage)]
    return [item for item in (asked, *spoken[-1:]) if item is not None]


def _turn(
    turn: StoredTurn, context: HistoryContext, view: ItemsView, items: tuple[ThreadItem, ...]
) -> Turn:
    status = _status(turn, context)
    first_ms, last_ms = turn.items[0].created_ms, turn.items[-1].created_ms
    is_over = status != "inProgress"
    return Turn(
        id=turn.id,
        root_turn_id=turn.id,
        items=items,
        items_view=view,
        status=status,
        error=context.failures.get(turn.id),
        started_at=first_ms // 1000,
        completed_at=last_ms // 1000 if is_over else None,
        duration_ms=max(0, last_ms - first_ms) if is_over else None,
    )


def _status(turn: StoredTurn, context: HistoryContext) -> TurnStatus:
    if turn.id == context.running or turn.unanswered & set(context.pending):
        return "inProgress"
    if turn.id in context.failures:
        return "failed"
    is_broken = turn.was_aborted or turn.unanswered or turn.broke_off
    return "interrupted" if is_broken else "completed"


def _age(turn: StoredTurn) -> int:
    return turn.last_seq


class _Page(msgspec.Struct, Generic[E], frozen=True):
    data: Sequence[E]
    next: str | None
    back: str | None


def _page(
    oldest_first: Sequence[E],
    *,
    key: Callable[[E], str],
    cursor: str | None,
    limit: int,
    direction: Direction,
) -> _Page[E]:
    """One page of entries. A cursor names an entry: ``=`` starts with it, ``>`` after it."""
    ordered = list(oldest_first) if direction == "asc" else list(reversed(oldest_first))
    start = 0
    if cursor is not None:
        at = next((n for n, one in enumerate(ordered) if key(one) == cursor[1:]), None)
        if at is None or cursor[:1] not in ("=", ">"):
            raise InputInvalid(f"invalid cursor: {cursor[:80]}", field="cursor")
        start = at if cursor[0] == "=" else at + 1
    found = ordered[start : start + limit]
    is_more = start + limit < len(ordered)
    return _Page(
        found,
        _past(key(found[-1])) if found and is_more else None,
        f"={key(found[0])}" if found else None,
    )


def _past(key: str) -> str:
    return f">{key}"


def _key(entry: tuple[str, ThreadItem]) -> str:
    """The key of an item: calls in different turns may have the same id."""
    turn_id, item = entry
    return f"{turn_id}/{item.id}"


def _cursor_after(anchor: ItemAnchor, entries: Sequence[tuple[str, ThreadItem]]) -> str:
    """The cursor that starts after an item."""
    of_id = (entry for entry in entries if entry[1].id == anchor.item_id)
    return _past(next(map(_key, of_id), anchor.item_id))
