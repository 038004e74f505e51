"""What can be asked of threads that are there: to be listed, read, put away, named and changed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from msgspec.structs import replace

from limner.agent.sessions import new_id
from limner.doors.appserver.dispatch import Call
from limner.doors.appserver.inputs import check_items
from limner.doors.appserver.kept import Kept
from limner.doors.appserver.protocol import notices
from limner.doors.appserver.protocol import threads as protocol
from limner.doors.appserver.protocol.notices import METHOD_OF, Notice
from limner.doors.appserver.protocol.shapes import Empty
from limner.doors.appserver.refusals import check_id, refusal, writing
from limner.doors.appserver.specs import read_specs
from limner.doors.appserver.thread_views import stored_view
from limner.doors.appserver.threads import Threads

INJECTED = "a client"


async def read(
    threads: Threads,
    call: Call,  # noqa: ARG001 - the shape of every method
    params: protocol.ThreadReadParams,
) -> protocol.ThreadReadResponse:
    """A thread, with its turns where they are wanted."""
    session, about = await threads.stored(params.thread_id)
    turns = (
        await threads.history.turns(session, threads.told(about)) if params.include_turns else ()
    )
    return protocol.ThreadReadResponse(thread=await stored_view(threads, about, turns=turns))


async def turns_list(
    threads: Threads,
    call: Call,  # noqa: ARG001 - the shape of every method
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
    threads: Threads,
    call: Call,  # noqa: ARG001 - the shape of every method
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


async def archive(threads: Threads, call: Call, params: protocol.ThreadArchiveParams) -> None:
    """Put a thread away."""
    _, about = await threads.stored(params.thread_id)
    async with _closed(threads, call, about.id) as heard:
        with writing(about.id):
            await threads.limner.sessions.archive(about.id)
        call.answer(Empty())
        heard(notices.ThreadArchivedNotification(thread_id=about.id))


async def unarchive(threads: Threads, call: Call, params: protocol.ThreadUnarchiveParams) -> None:
    """Bring a thread back."""
    session, about = await threads.stored(params.thread_id)
    if about.archived_ms is None:
        raise refusal(f"no archived rollout found for thread id {about.id}")
    with writing(about.id):
        await threads.limner.sessions.unarchive(about.id)
    view = await stored_view(threads, await session.about())
    call.answer(protocol.ThreadUnarchiveResponse(thread=view))
    _to_all(threads, call, about.id)(notices.ThreadUnarchivedNotification(thread_id=about.id))


async def delete(threads: Threads, call: Call, params: protocol.ThreadDeleteParams) -> None:
    """Forget a thread, and the pictures that only it referred to."""
    _, about = await threads.stored(params.thread_id)
    async with _closed(threads, call, about.id) as heard:
        if not Kept.read(about.settings).rest.ephemeral:  # those are gone with the closing
            with writing(about.id):
                await threads.limner.delete_session(about.id)
        call.answer(Empty())
        heard(notices.ThreadDeletedNotification(thread_id=about.id))


async def set_name(threads: Threads, call: Call, params: protocol.ThreadSetNameParams) -> None:
    """Give a thread a name."""
    _, about = await threads.stored(params.thread_id)
    name = params.name.strip()
    if not name:
        raise refusal("thread name must not be empty")
    await threads.limner.sessions.rename(about.id, name)
    call.answer(Empty())
    told = notices.ThreadNameUpdatedNotification(thread_id=about.id, thread_name=name)
    _to_all(threads, call, about.id)(told)


async def compact(threads: Threads, call: Call, params: protocol.ThreadCompactStartParams) -> None:
    """Have a thread summed up."""
    thread = threads.get(params.thread_id)
    await thread.compact(begun=lambda _: call.answer(Empty()))


async def inject_items(
    threads: Threads,
    call: Call,  # noqa: ARG001 - the shape of every method
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
    threads: Threads, call: Call, params: protocol.ThreadUnsubscribeParams
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
    threads: Threads,
    call: Call,  # noqa: ARG001 - the shape of every method
    params: protocol.ThreadLoadedListParams,
) -> protocol.ThreadLoadedListResponse:
    """The ids of the threads that are open here; a cursor is the last one that was seen."""
    ids = sorted(one for one in threads.live if params.cursor is None or one > params.cursor)
    found = ids[: params.limit or len(ids)]
    is_more = len(found) < len(ids)
    return protocol.ThreadLoadedListResponse(
        data=tuple(found), next_cursor=found[-1] if found and is_more else None
    )


async def tools_set(threads: Threads, call: Call, params: protocol.ThreadToolsSetParams) -> None:
    """Put other tools of the client in place of those that a thread has."""
    thread = threads.get(params.thread_id)
    tools = read_specs(params.dynamic_tools)
    await thread.keep(replace(thread.kept, tools=tools).but(found=()))
    call.answer(Empty())
    names = tuple(thread.told.tools)
    thread.audience.tell(notices.ThreadToolsChangedNotification(thread_id=thread.id, names=names))


def _to_all(threads: Threads, call: Call, thread_id: str) -> Callable[[Notice], None]:
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
    threads: Threads, call: Call, thread_id: str
) -> AsyncGenerator[Callable[[Notice], None]]:
    """A thread that is not open, and stays so meanwhile; tells whoever listened to it till now."""
    heard = _to_all(threads, call, thread_id)
    async with threads.closed(thread_id) as live:
        if live is None:
            yield heard
            return
        status = notices.ThreadStatusChangedNotification(
            thread_id=thread_id, status=protocol.NotLoaded()
        )
        live.audience.tell(status)
        try:
            yield heard
        finally:
            live.audience.disband()
