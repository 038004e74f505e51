"""Requests about conversations -> the sessions of every interface, and their items as stored.

The page shows a running conversation by the same items: the app-server sends them as it stores
them.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from limner.agent.session import SessionAbout
from limner.agent.stored_turns import is_context, without_copies
from limner.client import Limner
from limner.errors import NANO_PER_USD
from limner.frontends.appserver.thread_options import resolve_model
from limner.frontends.appserver.thread_state import ThreadState
from limner.frontends.studio.endpoints import Endpoint, StudioParts
from limner.wires.items import Item

MAX_CONVERSATIONS, MAX_ITEMS, MAX_CALLS = 100, 500, 50
_HIDDEN_ROLES = frozenset({"developer", "system"})
_LAST = 2**53
SessionId = Annotated[
    str, Meta(pattern=r"^[0-9A-Za-z-]{1,64}$", description="The id of a session.")
]


class ConversationsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which conversations to list: those before a place."""

    limit: Annotated[int, Meta(ge=1, le=MAX_CONVERSATIONS)] = 50
    after_ms: Annotated[int, Meta(ge=0, le=_LAST)] | None = None
    after_id: SessionId = "-"


class ConversationSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation. ``source`` is the client that started it; empty for `limner chat`."""

    id: str
    title: str
    updated_ms: int
    items: int
    cost_usd: float
    model: str
    source: str


class ToolSession(msgspec.Struct, frozen=True, kw_only=True):
    """The paid calls of a program without a conversation: a command, an MCP client, a script."""

    id: str
    calls: int
    cost_usd: float


class ConversationList(msgspec.Struct, frozen=True, kw_only=True):
    """The conversations, the last used one first, and on the first page the other sessions."""

    conversations: list[ConversationSummary]
    others: list[ToolSession]
    is_last: bool


class ItemsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which items of a conversation: the last ones before a number."""

    id: SessionId
    before: Annotated[int, Meta(ge=0, le=_LAST)] = _LAST
    limit: Annotated[int, Meta(ge=1, le=MAX_ITEMS)] = 200


class ConversationItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item as it is stored, its pictures named by handle, and its number."""

    seq: int
    created_ms: int
    item: dict[str, Any]


class ConversationItems(msgspec.Struct, frozen=True, kw_only=True):
    """The items of a conversation, the oldest first."""

    conversation: ConversationSummary
    items: list[ConversationItem]
    is_first: bool


async def list_conversations(studio: StudioParts, request: ConversationsQuery) -> ConversationList:
    """The conversations of every interface."""
    lim = studio.lim
    after = None if request.after_ms is None else (request.after_ms, request.after_id)
    found = await lim.sessions.list(after=after, limit=request.limit)
    return ConversationList(
        conversations=[_conversation(about, lim) for about in found if about.items],
        others=[] if after else await _others(lim),
        is_last=len(found) < request.limit,
    )


async def list_items(studio: StudioParts, request: ItemsQuery) -> ConversationItems:
    """The last items of a conversation."""
    session = await studio.lim.sessions.open(request.id)
    every = [stored async for stored in session.items()]
    shown = [
        ConversationItem(seq=one.seq, created_ms=one.created_ms, item=one.item)
        for one in without_copies(every)
        if one.seq < request.before and _is_shown(one.item)
    ]
    return ConversationItems(
        conversation=_conversation(await session.about(), studio.lim),
        items=shown[-request.limit :],
        is_first=len(shown) <= request.limit,
    )


def _conversation(about: SessionAbout, lim: Limner) -> ConversationSummary:
    state = ThreadState.from_settings(about.settings)
    return ConversationSummary(
        id=about.id,
        title=about.name or about.preview or "",
        updated_ms=about.updated_ms,
        items=about.items,
        cost_usd=about.spent_nano / NANO_PER_USD,
        model=resolve_model(state.options, lim=lim).name,
        source=state.extras.originator or "",
    )


async def _others(lim: Limner) -> list[ToolSession]:
    """The newest sessions of the ledger that are no conversation."""
    spend = await lim.spend(limit=MAX_CALLS)
    parts = [
        ToolSession(id=line.name, calls=line.calls, cost_usd=line.cost_usd)
        for line in spend.by_session
    ]
    known = await lim.sessions.known([part.id for part in parts])
    return [part for part in parts if part.id not in known]


def _is_shown(item: Item) -> bool:
    """Whether an item is for a person: programs write some messages for the model alone."""
    is_message = item.get("type", "message") == "message"
    return not (is_message and (item.get("role") in _HIDDEN_ROLES or is_context(item)))


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/conversations",
        summary="List the conversations of every interface, and the other sessions that paid.",
        request=ConversationsQuery,
        answer=ConversationList,
        handler=list_conversations,
    ),
    Endpoint(
        method="GET",
        path="/api/conversations/{id}/items",
        summary="List the last items of a conversation.",
        request=ItemsQuery,
        answer=ConversationItems,
        handler=list_items,
    ),
)
