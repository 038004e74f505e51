"""`thread/list`: the threads in the store, sorted, sifted and page by page."""

from __future__ import annotations

import bisect
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from msgspec.structs import replace

from limner.agent.session import SessionAbout
from limner.agent.sessions import new_id
from limner.frontends.appserver.dispatch import RpcCall
from limner.frontends.appserver.inputs import check_items
from limner.frontends.appserver.protocol import notifications
from limner.frontends.appserver.protocol import threads as protocol
from limner.frontends.appserver.protocol.base import Empty
from limner.frontends.appserver.protocol.notifications import METHOD_OF, Notice
from limner.frontends.appserver.protocol.threads import ThreadListParams, ThreadListResponse
from limner.frontends.appserver.rpc_errors import check_id, refusal, writing
from limner.frontends.appserver.thread_state import ThreadState
from limner.frontends.appserver.thread_views import stored_view, thread_view
from limner.frontends.appserver.threads import ThreadTable
from limner.frontends.appserver.tool_specs import read_specs

INJECTED = "a client"


async def read(
    threads: ThreadTable,
    params: protocol.ThreadReadParams,
) -> protocol.ThreadReadResponse:
    """A thread, with its turns where they are wanted."""
    session, about = await threads.stored(params.thread_id)
    turns = (
        await threads.history.turns(session, threads.told(about)) if params.include_turns else ()
    )
    return protocol.ThreadReadResponse(thread=await stored_view(threads, about, turns=turns))


async def turns_list(
    threads: ThreadTable,
    params: protocol.ThreadTurnsListParams,
) -> protocol.TurnsPage:
    """Some turns of a thread."""
    session, about = await threads.stored(params.thread_id)
    return await threads.history.turns_page(
        session,
        threads.told(about),
        cursor=params.cursor,
        limit=params.limit,
        direction=params.sort_direction,
        view=params.items_view,
    )


async def items_list(
    threads: ThreadTable,
    params: protocol.ThreadItemsListParams,
) -> protocol.ThreadItemsListResponse:
    """Some items of a thread."""
    session, about = await threads.stored(params.thread_id)
    return await threads.history.items_page(
        session,
        threads.told(about),
        turn_id=params.turn_id,
        cursor=params.cursor,
        limit=params.limit,
        direction=params.sort_direction,
    )


async def archive(
    threads: ThreadTable, call: RpcCall, params: protocol.ThreadArchiveParams
) -> None:
    """Put a thread away."""
    _, about = await threads.stored(params.thread_id)
    async with _closed(threads, call, about.id) as heard:
        with writing(about.id):
            await threads.limner.sessions.archive(about.id)
        call.answer(Empty())
        heard(notifications.ThreadArchivedNotification(thread_id=about.id))


async def unarchive(
    threads: ThreadTable, call: RpcCall, params: protocol.ThreadUnarchiveParams
) -> None:
    """Bring a thread back."""
    session, about = await threads.stored(params.thread_id)
    if about.archived_ms is None:
        raise refusal(f"no archived rollout found for thread id {about.id}")
    with writing(about.id):
        await threads.limner.sessions.unarchive(about.id)
    view = await stored_view(threads, await session.about())
    call.answer(protocol.ThreadUnarchiveResponse(thread=view))
    _to_all(threads, call, about.id)(notifications.ThreadUnarchivedNotification(thread_id=about.id))


async def delete(threads: ThreadTable, call: RpcCall, params: protocol.ThreadDeleteParams) -> None:
    """Forget a thread, and the pictures that only it referred to."""
    _, about = await threads.stored(params.thread_id)
    async with _closed(threads, call, about.id) as heard:
        if not ThreadState.read(about.settings).rest.ephemeral:  # those are gone with the closing
            with writing(about.id):
                await threads.limner.delete_session(about.id)
        call.answer(Empty())
        heard(notifications.ThreadDeletedNotification(thread_id=about.id))


async def set_name(
    threads: ThreadTable, call: RpcCall, params: protocol.ThreadSetNameParams
) -> None:
    """Give a thread a name."""
    _, about = await threads.stored(params.thread_id)
    name = params.name.strip()
    if not name:
        raise refusal("thread name must not be empty")
    await threads.limner.sessions.rename(about.id, name)
    call.answer(Empty())
    told = notifications.ThreadNameUpdatedNotification(thread_id=about.id, thread_name=name)
    _to_all(threads, call, about.id)(told)


async def compact(
    threads: ThreadTable, call: RpcCall, params: protocol.ThreadCompactStartParams
) -> None:
    """Have a thread summed up."""
    thread = threads.get(params.thread_id)
    await thread.compact(begun=lambda _: call.answer(Empty()))


async def inject_items(
    threads: ThreadTable,
    params: protocol.ThreadInjectItemsParams,
) -> Empty:
    """Add items to the history as they are, their pictures taken in."""
    thread = threads.get(params.thread_id)
    if not params.items:
        raise refusal("items must not be empty")
    check_items(params.items, name="items")
    entered = await threads.limner.ingress.items(params.items, source=INJECTED)
    await thread.session.append([{"id": new_id(), **item} for item in entered.items])
    thread.warn(*entered.warnings)
    return Empty()


async def unsubscribe(
    threads: ThreadTable, call: RpcCall, params: protocol.ThreadUnsubscribeParams
) -> protocol.ThreadUnsubscribeResponse:
    """Hear no more of a thread."""
    live = threads.live.get(check_id(params.thread_id))
    if live is None:
        return protocol.ThreadUnsubscribeResponse(status="notLoaded")
    if call.connection not in live.audience:
        return protocol.ThreadUnsubscribeResponse(status="notSubscribed")
    threads.leave(live, call.connection)
    return protocol.ThreadUnsubscribeResponse(status="unsubscribed")


async def loaded_list(
    threads: ThreadTable,
    params: protocol.ThreadLoadedListParams,
) -> protocol.ThreadLoadedListResponse:
    """The ids of the threads that are open here; a cursor is the last one that was seen."""
    ids = sorted(one for one in threads.live if params.cursor is None or one > params.cursor)
    found = ids[: params.limit or len(ids)]
    is_more = len(found) < len(ids)
    return protocol.ThreadLoadedListResponse(
        data=tuple(found), next_cursor=found[-1] if found and is_more else None
    )


async def tools_set(
    threads: ThreadTable, call: RpcCall, params: protocol.ThreadToolsSetParams
) -> None:
    """Put other tools of the client in place of those that a thread has."""
    thread = threads.get(params.thread_id)
    tools = read_specs(params.dynamic_tools)
    await thread.keep(replace(thread.kept, tools=tools).but(found=()))
    call.answer(Empty())
    names = tuple(thread.told.tools)
    thread.audience.tell(
        notifications.ThreadToolsChangedNotification(thread_id=thread.id, names=names)
    )


def _to_all(threads: ThreadTable, call: RpcCall, thread_id: str) -> Callable[[Notice], None]:
    """Tells whoever listens to a thread, and whoever asks in any case."""
    live = threads.live.get(thread_id)

    def tell(notice: Notice) -> None:
        if live is None or call.connection not in live.audience:
            call.connection.notify(METHOD_OF[type(notice)], notice)
        if live is not None:
            live.audience.tell(notice)

    return tell


@asynccontextmanager
async def _closed(
    threads: ThreadTable, call: RpcCall, thread_id: str
) -> AsyncGenerator[Callable[[Notice], None]]:
    """A thread that is not open, and stays so meanwhile; tells whoever listened to it till now."""
    heard = _to_all(threads, call, thread_id)
    async with threads.closed(thread_id) as live:
        if live is None:
            yield heard
            return
        status = notifications.ThreadStatusChangedNotification(
            thread_id=thread_id, status=protocol.NotLoaded()
        )
        live.audience.tell(status)
        try:
            yield heard
        finally:
            live.audience.disband()


THREADS_PER_PAGE = 25
MAX_PER_PAGE = 100
_READ_AT_ONCE = 500

_Place = tuple[int, str]


async def list_threads(
    threads: ThreadTable,
    params: ThreadListParams,
) -> ThreadListResponse:
    """Some threads; the newest first, unless said otherwise. Those without an item are left out."""
    by_creation = params.sort_key in (None, "created_at")

    def place(about: SessionAbout) -> _Place:
        return (about.created_ms if by_creation else about.updated_ms), about.id

    found = sorted(await _sifted(threads, params), key=place)
    start = 0
    if params.sort_direction == "asc":
        if params.cursor is not None:
            start = bisect.bisect_right(found, _read_cursor(params.cursor), key=place)
    else:
        if params.cursor is not None:
            start = len(found) - bisect.bisect_left(found, _read_cursor(params.cursor), key=place)
        found.reverse()
    end = start + min(params.limit or THREADS_PER_PAGE, MAX_PER_PAGE)
    page = found[start:end]
    return ThreadListResponse(
        data=tuple([await stored_view(threads, about) for about in page]),
        next_cursor=_cursor(place(page[-1])) if page and end < len(found) else None,
        backwards_cursor=_cursor(place(page[0])) if page else None,
    )


async def _sifted(threads: ThreadTable, params: ThreadListParams) -> list[SessionAbout]:
    """The threads that are wanted, in the order of the store."""
    found: list[SessionAbout] = []
    after: _Place | None = None
    sessions, archived = threads.limner.sessions, params.archived or False
    unwanted = frozenset(params.excluded_thread_ids or ())
    while page := await sessions.list(archived=archived, after=after, limit=_READ_AT_ONCE):
        found += [
            about
            for about in page
            if about.id not in unwanted and _is_wanted(threads, about, params)
        ]
        after = page[-1].place
    return found


def _is_wanted(threads: ThreadTable, about: SessionAbout, params: ThreadListParams) -> bool:
    kept = ThreadState.read(about.settings)
    if not about.items or kept.rest.ephemeral:
        return False
    folders = [params.cwd] if isinstance(params.cwd, str) else params.cwd
    if folders and (kept.rest.cwd or about.cwd) not in folders:
        return False
    if params.model_providers or params.source_kinds:
        view = thread_view(about, kept, lim=threads.limner)
        if view.model_provider not in (params.model_providers or [view.model_provider]):
            return False
        if view.source not in (params.source_kinds or [view.source]):
            return False
    term = (params.search_term or "").casefold()
    return term in f"{about.name or ''}\n{about.preview or ''}".casefold()


def _cursor(place: _Place) -> str:
    at_ms, thread_id = place
    return f"{at_ms}|{thread_id}"


def _read_cursor(cursor: str) -> _Place:
    at_ms, bar, thread_id = cursor.partition("|")
    if not (bar and at_ms.isdecimal() and at_ms.isascii()):
        raise refusal(f"invalid cursor: {cursor[:80]}")
    return int(at_ms[:18]), thread_id
