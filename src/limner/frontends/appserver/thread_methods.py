"""The methods on threads: list, read, archive, delete, name, compact and so on."""

from __future__ import annotations

import bisect
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from msgspec.structs import replace

from limner.agent.session import SessionAbout
from limner.agent.sessions import new_id
from limner.errors import InputInvalid
from limner.frontends.appserver.dispatch import RpcCall
from limner.frontends.appserver.inputs import check_items
from limner.frontends.appserver.protocol import notifications
from limner.frontends.appserver.protocol import threads as protocol
from limner.frontends.appserver.protocol.base import Empty
from limner.frontends.appserver.protocol.notifications import Notice
from limner.frontends.appserver.protocol.threads import ThreadListParams, ThreadListResponse
from limner.frontends.appserver.rpc_errors import check_id, invalid_request, single_writer
from limner.frontends.appserver.thread_state import ThreadState
from limner.frontends.appserver.thread_views import stored_view, thread_view
from limner.frontends.appserver.threads import ThreadTable
from limner.frontends.appserver.tool_specs import read_specs

INJECTED = "a client"


async def read(
    threads: ThreadTable,
    params: protocol.ThreadReadParams,
) -> protocol.ThreadReadResponse:
    """Read a thread, with its turns if the client wants them."""
    session, about = await threads.stored(params.thread_id)
    turns = (
        await threads.history.turns(session, threads.history_context(about))
        if params.include_turns
        else ()
    )
    return protocol.ThreadReadResponse(
        thread=await stored_view(threads, about, turns=turns),
        read_state=threads.state_of(about).extras.read_state,
    )


async def turns_list(
    threads: ThreadTable,
    params: protocol.ThreadTurnsListParams,
) -> protocol.TurnsPage:
    """One page of the turns of a thread."""
    session, about = await threads.stored(params.thread_id)
    return await threads.history.turns_page(
        session,
        threads.history_context(about),
        cursor=params.cursor,
        limit=params.limit,
        direction=params.sort_direction,
        view=params.items_view,
    )


async def items_list(
    threads: ThreadTable,
    params: protocol.ThreadItemsListParams,
) -> protocol.ThreadItemsListResponse:
    """One page of the items of a thread."""
    session, about = await threads.stored(params.thread_id)
    return await threads.history.items_page(
        session,
        threads.history_context(about),
        turn_id=params.turn_id,
        cursor=params.cursor,
        limit=params.limit,
        direction=params.sort_direction,
    )


async def items_read(
    threads: ThreadTable, params: protocol.ThreadItemsReadParams
) -> protocol.ThreadItemsReadResponse:
    """Some items of a turn, in the order of the turn."""
    session, about = await threads.stored(params.thread_id)
    page = await threads.history.items_page(
        session, threads.history_context(about), turn_id=params.turn_id, limit=MAX_ITEMS_READ
    )
    wanted = frozenset(params.item_ids)
    return protocol.ThreadItemsReadResponse(
        data=tuple(entry for entry in page.data if entry.item.id in wanted)
    )


async def search(
    threads: ThreadTable, params: protocol.ThreadSearchParams
) -> protocol.ThreadSearchResponse:
    """One page of the threads whose name, preview or items have a text."""
    term = params.search_term.strip()
    if not term:
        raise invalid_request("search term must not be empty")
    snippets = await threads.limner.sessions.search(term)
    wanted = ThreadListParams(
        cursor=params.cursor,
        limit=params.limit,
        sort_key=params.sort_key,
        sort_direction=params.sort_direction,
        source_kinds=params.source_kinds,
        archived=params.archived,
    )
    found = [
        about
        for about in await _matching(threads, wanted)
        if about.id in snippets or _has_term(about, term)
    ]
    page = await _thread_page(threads, wanted, found)
    return protocol.ThreadSearchResponse(
        data=tuple(
            protocol.ThreadSearchResult(
                thread=thread, snippet=snippets.get(thread.id) or thread.name or thread.preview
            )
            for thread in page.data
        ),
        next_cursor=page.next_cursor,
        backwards_cursor=page.backwards_cursor,
    )


async def archive(
    threads: ThreadTable, call: RpcCall, params: protocol.ThreadArchiveParams
) -> None:
    """Archive a thread."""
    _, about = await threads.stored(params.thread_id)
    async with _closed_thread(threads, about.id) as notify:
        with single_writer(about.id):
            await threads.limner.sessions.archive(about.id)
        call.answer(Empty())
        notify(notifications.ThreadArchivedNotification(thread_id=about.id))


async def unarchive(
    threads: ThreadTable, call: RpcCall, params: protocol.ThreadUnarchiveParams
) -> None:
    """Unarchive a thread."""
    session, about = await threads.stored(params.thread_id)
    if about.archived_ms is None:
        raise invalid_request(f"no archived rollout found for thread id {about.id}")
    with single_writer(about.id):
        await threads.limner.sessions.unarchive(about.id)
    view = await stored_view(threads, await session.about())
    call.answer(protocol.ThreadUnarchiveResponse(thread=view))
    _notifier(threads, about.id)(notifications.ThreadUnarchivedNotification(thread_id=about.id))


async def delete(threads: ThreadTable, call: RpcCall, params: protocol.ThreadDeleteParams) -> None:
    """Delete a thread, and the pictures that no other thread uses."""
    _, about = await threads.stored(params.thread_id)
    async with _closed_thread(threads, about.id) as notify:
        # Closing it has deleted an ephemeral thread. One that a crashed server left is still there.
        with single_writer(about.id), suppress(InputInvalid):
            await threads.limner.delete_session(about.id)
        call.answer(Empty())
        notify(notifications.ThreadDeletedNotification(thread_id=about.id))


async def set_name(
    threads: ThreadTable, call: RpcCall, params: protocol.ThreadSetNameParams
) -> None:
    """Give a thread a name."""
    _, about = await threads.stored(params.thread_id)
    name = params.name.strip()
    if not name:
        raise invalid_request("thread name must not be empty")
    await threads.limner.sessions.rename(about.id, name)
    call.answer(Empty())
    renamed = notifications.ThreadNameUpdatedNotification(thread_id=about.id, thread_name=name)
    _notifier(threads, about.id)(renamed)


async def compact(
    threads: ThreadTable, call: RpcCall, params: protocol.ThreadCompactStartParams
) -> None:
    """Replace the history of a thread by a summary."""
    thread = threads.get(params.thread_id)
    await thread.compact(on_started=lambda _: call.answer(Empty()))


async def inject_items(
    threads: ThreadTable,
    params: protocol.ThreadInjectItemsParams,
) -> Empty:
    """Add items to the history without a turn; their pictures are stored."""
    thread = threads.get(params.thread_id)
    if not params.items:
        raise invalid_request("items must not be empty")
    check_items(params.items, name="items")
    entered = await threads.limner.ingress.items(params.items, source=INJECTED)
    await thread.session.append([{"id": new_id(), **item} for item in entered.items])
    thread.warn(*entered.warnings)
    return Empty()


async def unsubscribe(
    threads: ThreadTable, call: RpcCall, params: protocol.ThreadUnsubscribeParams
) -> protocol.ThreadUnsubscribeResponse:
    """Send this client no more notifications of a thread."""
    live = threads.live.get(check_id(params.thread_id))
    if live is None:
        return protocol.ThreadUnsubscribeResponse(status="notLoaded")
    if call.connection not in live.subscribers:
        return protocol.ThreadUnsubscribeResponse(status="notSubscribed")
    threads.unsubscribe(live, call.connection)
    return protocol.ThreadUnsubscribeResponse(status="unsubscribed")


async def loaded_list(
    threads: ThreadTable,
    params: protocol.ThreadLoadedListParams,
) -> protocol.ThreadLoadedListResponse:
    """The ids of the open threads; a cursor is the last id of the page before."""
    ids = sorted(one for one in threads.live if params.cursor is None or one > params.cursor)
    found = ids[: params.limit or len(ids)]
    is_more = len(found) < len(ids)
    return protocol.ThreadLoadedListResponse(
        data=tuple(found), next_cursor=found[-1] if found and is_more else None
    )


async def tools_set(
    threads: ThreadTable, call: RpcCall, params: protocol.ThreadToolsSetParams
) -> None:
    """Replace the client's tools of a thread."""
    thread = threads.get(params.thread_id)
    tools = read_specs(params.dynamic_tools)
    await thread.save(replace(thread.state, tools=tools).with_extras(found=()))
    call.answer(Empty())
    names = tuple(thread.history_context.tools)
    thread.subscribers.notify(
        notifications.ThreadToolsChangedNotification(thread_id=thread.id, names=names)
    )


def _notifier(threads: ThreadTable, thread_id: str) -> Callable[[Notice], None]:
    """Notifies every client, and the subscribers of the other protocol if the thread is open."""
    live = threads.live.get(thread_id)
    return threads.clients.notify if live is None else live.subscribers.notify


@asynccontextmanager
async def _closed_thread(
    threads: ThreadTable, thread_id: str
) -> AsyncGenerator[Callable[[Notice], None]]:
    """Keep a thread closed meanwhile; notifies those who were subscribed to it until now."""
    notify = _notifier(threads, thread_id)
    async with threads.closed(thread_id) as live:
        if live is None:
            yield notify
            return
        status = notifications.ThreadStatusChangedNotification(
            thread_id=thread_id, status=protocol.NotLoaded()
        )
        live.subscribers.notify(status)
        try:
            yield notify
        finally:
            live.subscribers.leave_all()


THREADS_PER_PAGE = 25
MAX_PER_PAGE = 100
MAX_ITEMS_READ = 10_000
_READ_AT_ONCE = 500

_Place = tuple[int, str]


async def list_threads(
    threads: ThreadTable,
    params: ThreadListParams,
) -> ThreadListResponse:
    """One page of threads; the newest first by default. Threads without an item are left out."""
    return await _thread_page(threads, params, await _matching(threads, params))


async def _thread_page(
    threads: ThreadTable, params: ThreadListParams, matching: Sequence[SessionAbout]
) -> ThreadListResponse:
    by_creation = params.sort_key in (None, "created_at")

    def place(about: SessionAbout) -> _Place:
        return (about.created_ms if by_creation else about.updated_ms), about.id

    found = sorted(matching, key=place)
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
        read_states={
            about.id: read_state
            for about in page
            if (read_state := threads.state_of(about).extras.read_state) is not None
        },
    )


async def _matching(threads: ThreadTable, params: ThreadListParams) -> list[SessionAbout]:
    """The threads that match the params, in the order of the store."""
    found: list[SessionAbout] = []
    after: _Place | None = None
    sessions, archived = threads.limner.sessions, params.archived or False
    excluded = frozenset(params.excluded_thread_ids or ())
    while page := await sessions.list(archived=archived, after=after, limit=_READ_AT_ONCE):
        found += [
            about for about in page if about.id not in excluded and _matches(threads, about, params)
        ]
        after = page[-1].place
    return found


def _matches(threads: ThreadTable, about: SessionAbout, params: ThreadListParams) -> bool:
    state = ThreadState.from_settings(about.settings)
    if not about.items or state.extras.ephemeral:
        return False
    folders = [params.cwd] if isinstance(params.cwd, str) else params.cwd
    if folders and (state.extras.cwd or about.cwd) not in folders:
        return False
    if params.model_providers or params.source_kinds:
        view = thread_view(about, state, lim=threads.limner)
        if view.model_provider not in (params.model_providers or [view.model_provider]):
            return False
        if view.source not in (params.source_kinds or [view.source]):
            return False
    return _has_term(about, params.search_term or "")


def _has_term(about: SessionAbout, term: str) -> bool:
    return term.casefold() in f"{about.name or ''}\n{about.preview or ''}".casefold()


def _cursor(place: _Place) -> str:
    at_ms, thread_id = place
    return f"{at_ms}|{thread_id}"


def _read_cursor(cursor: str) -> _Place:
    at_ms, bar, thread_id = cursor.partition("|")
    if not (bar and at_ms.isdecimal() and at_ms.isascii()):
        raise invalid_request(f"invalid cursor: {cursor[:80]}")
    return int(at_ms[:18]), thread_id
