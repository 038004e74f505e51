"""A stored session -> the turns and items of it that a client asks for, page by page or all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from limner.agent.session import Session
from limner.errors import InputInvalid
from limner.frontends.appserver.inline_pictures import PictureInliner
from limner.frontends.appserver.item_views import CallIndex, items_of
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
from limner.frontends.appserver.stored_turns import StoredTurn, turns_of
from limner.frontends.appserver.tool_specs import ToolSpec

TURNS_PER_PAGE = 25
ITEMS_PER_PAGE = 100

E = TypeVar("E")


class HistoryContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a thread's items alone do not say.

    Attributes:
        tools: the client's tools, by the names that the model has for them.
        cwd: what paths in calls are relative to.
        running: the turn that is under way.
        pending: the calls that may still be answered.
        failures: why turns failed, by their ids.
    """

    tools: Mapping[str, ToolSpec] = msgspec.field(default_factory=dict[str, ToolSpec])
    cwd: str = ""
    running: str | None = None
    pending: Collection[str] = ()
    failures: Mapping[str, TurnError] = msgspec.field(default_factory=dict[str, TurnError])


class ThreadHistory(msgspec.Struct, frozen=True, kw_only=True):
    """Reads threads for clients."""

    inlining: PictureInliner

    async def turns(
        self, session: Session, told: HistoryContext, *, view: ItemsView = "full"
    ) -> tuple[Turn, ...]:
        """Every turn of a thread, the oldest first."""
        return await self._shown(await kept_turns(session), told, view)

    async def turns_page(
        self,
        session: Session,
        told: HistoryContext,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        direction: Direction | None = None,
        view: ItemsView | None = None,
    ) -> TurnsPage:
        """Some turns of a thread; the newest first, unless said otherwise.

        Raises:
            InputInvalid: the cursor is none of this thread's.
        """
        page = _page(
            await kept_turns(session),
            key=lambda turn: turn.id,
            cursor=cursor,
            limit=limit or TURNS_PER_PAGE,
            direction=direction or "desc",
        )
        turns = await self._shown(sorted(page.data, key=_age), told, view or "summary")
        by_id = {turn.id: turn for turn in turns}
        data = tuple(by_id[kept.id] for kept in page.data)
        return TurnsPage(data=data, next_cursor=page.next, backwards_cursor=page.back)

    async def items_page(
        self,
        session: Session,
        told: HistoryContext,
        *,
        turn_id: str | None = None,
        cursor: str | ItemAnchor | None = None,
        limit: int | None = None,
        direction: Direction | None = None,
    ) -> ThreadItemsListResponse:
        """Some items of a thread, or of one of its turns; the newest first, unless said otherwise.

        Raises:
            InputInvalid: there is no such turn, or the cursor is none of this thread's.
        """
        kept = [turn for turn in await kept_turns(session) if turn_id in (None, turn.id)]
        if turn_id is not None and not kept:
            raise InputInvalid(f"turn not found: {turn_id[:80]}", field="turnId")
        entries = [(turn.id, item) for turn in kept for item in _items(turn, told)]
        page = _page(
            entries,
            key=_place,
            cursor=_found(cursor, entries) if isinstance(cursor, ItemAnchor) else cursor,
            limit=limit or ITEMS_PER_PAGE,
            direction=direction or "desc",
        )
        backwards = direction != "asc"
        oldest_first = list(reversed(page.data)) if backwards else list(page.data)
        items = await self.inlining.items([item for _, item in oldest_first])
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

    async def _shown(
        self, kept: Sequence[StoredTurn], told: HistoryContext, view: ItemsView
    ) -> tuple[Turn, ...]:
        """The turns, given with the oldest first."""
        chosen = [_chosen(_items(turn, told), view) for turn in kept]
        inlined = iter(await self.inlining.items([item for items in chosen for item in items]))
        return tuple(
            _turn(turn, told, view, tuple(next(inlined) for _ in items))
            for turn, items in zip(kept, chosen, strict=True)
        )


async def kept_turns(session: Session) -> list[StoredTurn]:
    """The turns of a session, the oldest first, with the numbers of their items."""
    return turns_of([stored async for stored in session.items()])


def _items(turn: StoredTurn, told: HistoryContext) -> list[ThreadItem]:
    is_running = turn.id == told.running
    open_calls = turn.unanswered if is_running else told.pending
    return items_of(turn.items, CallIndex(tools=told.tools, open_calls=open_calls, cwd=told.cwd))


def _chosen(items: Sequence[ThreadItem], view: ItemsView) -> Sequence[ThreadItem]:
    """As much as a client wants to see of a turn; in short, what was asked and the last words."""
    if view == "full":
        return items
    if view == "notLoaded":
        return ()
    asked = next((item for item in items if isinstance(item, UserMessage)), None)
    spoken = [item for item in items if isinstance(item, AgentMessage)]
    return [item for item in (asked, *spoken[-1:]) if item is not None]


def _turn(
    turn: StoredTurn, told: HistoryContext, view: ItemsView, items: tuple[ThreadItem, ...]
) -> Turn:
    status = _status(turn, told)
    first_ms, last_ms = turn.items[0].created_ms, turn.items[-1].created_ms
    is_over = status != "inProgress"
    return Turn(
        id=turn.id,
        root_turn_id=turn.id,
        items=items,
        items_view=view,
        status=status,
        error=told.failures.get(turn.id),
        started_at=first_ms // 1000,
        completed_at=last_ms // 1000 if is_over else None,
        duration_ms=max(0, last_ms - first_ms) if is_over else None,
    )


def _status(turn: StoredTurn, told: HistoryContext) -> TurnStatus:
    if turn.id == told.running or turn.unanswered & set(told.pending):
        return "inProgress"
    if turn.id in told.failures:
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
    """Some of the entries. A cursor names one, and whether it is itself still to be sent."""
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


def _place(entry: tuple[str, ThreadItem]) -> str:
    """What an item is found again by: calls in different turns may have one id."""
    turn_id, item = entry
    return f"{turn_id}/{item.id}"


def _found(anchor: ItemAnchor, entries: Sequence[tuple[str, ThreadItem]]) -> str:
    """The cursor past an item."""
    of_id = (entry for entry in entries if entry[1].id == anchor.item_id)
    return _past(next(map(_place, of_id), anchor.item_id))
