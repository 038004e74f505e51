"""`thread/start`, `thread/resume` and `thread/fork`: threads begin, go on and are copied."""

from __future__ import annotations

from msgspec.structs import replace

from limner.doors.appserver.dispatch import Call
from limner.doors.appserver.history import History
from limner.doors.appserver.opening import begun, continued, copied
from limner.doors.appserver.protocol import notices
from limner.doors.appserver.protocol.threads import (
    Active,
    ThreadForkParams,
    ThreadForkResponse,
    ThreadResumeParams,
    ThreadResumeResponse,
    ThreadStartParams,
    ThreadStartResponse,
    TurnsPage,
)
from limner.doors.appserver.protocol.turns import Turn
from limner.doors.appserver.thread import NOTHING, LiveThread, Unfinished
from limner.doors.appserver.thread_views import opened
from limner.doors.appserver.threads import Threads


async def start(threads: Threads, call: Call, params: ThreadStartParams) -> None:
    """Begin a thread."""
    thread, warnings = await begun(threads, call.connection, params)
    with threads.showing(thread, call.connection):
        shown = await opened(thread, lim=threads.limner)
        call.answer(ThreadStartResponse(**shown))
    thread.audience.tell(notices.ThreadStartedNotification(thread=shown["thread"]))
    thread.warn(*warnings)


async def resume(threads: Threads, call: Call, params: ThreadResumeParams) -> None:
    """Go on with a thread: from a history, a file, or by its id."""
    was_open = params.thread_id in threads.live
    thread, warnings = await continued(threads, params)
    with threads.showing(thread, call.connection):
        unfinished = await threads.unfinished(thread)
        call.answer(await _resumed(threads, thread, params, unfinished))
    if not was_open and unfinished is None:
        idle = notices.ThreadStatusChangedNotification(thread_id=thread.id, status=thread.status)
        thread.audience.tell(idle)
    _tell_tokens(call, thread)
    thread.warn(*warnings)
    if unfinished is not None:
        await thread.go_on(unfinished)


async def fork(threads: Threads, call: Call, params: ThreadForkParams) -> None:
    """Copy a thread, or its beginning."""
    thread, warnings = await copied(threads, call.connection, params)
    with threads.showing(thread, call.connection):
        history = threads.history
        turns = () if params.exclude_turns else await history.turns(thread.session, thread.told)
        shown = await opened(thread, lim=threads.limner, turns=turns)
        call.answer(ThreadForkResponse(**shown))
    _tell_tokens(call, thread)
    told = replace(shown["thread"], turns=())
    thread.audience.tell(notices.ThreadStartedNotification(thread=told))
    thread.warn(*warnings)


async def _resumed(
    threads: Threads,
    thread: LiveThread,
    params: ThreadResumeParams,
    unfinished: Unfinished | None,
) -> ThreadResumeResponse:
    told = thread.told
    if unfinished is not None:
        pending = [str(one.get("call_id")) for one in unfinished.calls]
        told = replace(told, running=unfinished.turn_id, pending=pending)
    history, session = threads.history, thread.session
    wants_all = not params.exclude_turns and params.history is None
    turns: tuple[Turn, ...] = await history.turns(session, told) if wants_all else ()
    shown = await opened(thread, lim=threads.limner, turns=turns)
    if unfinished is not None:
        shown["thread"] = replace(shown["thread"], status=Active())
    page = await _first_page(history, thread, params)
    return ThreadResumeResponse(**shown, initial_turns_page=page)


async def _first_page(
    history: History, thread: LiveThread, params: ThreadResumeParams
) -> TurnsPage | None:
    wanted = params.initial_turns_page
    if wanted is None:
        return None
    return await history.turns_page(
        thread.session,
        thread.told,
        limit=wanted.limit,
        direction=wanted.sort_direction,
        view=wanted.items_view,
    )


def _tell_tokens(call: Call, thread: LiveThread) -> None:
    rest = thread.kept.rest
    if rest.tokens is None:
        return
    usage = notices.ThreadTokenUsage(total=rest.tokens, last=rest.last_tokens or NOTHING)
    told = notices.ThreadTokenUsageUpdatedNotification(
        thread_id=thread.id, turn_id=rest.last_turn or thread.turn_id or "", token_usage=usage
    )
    call.connection.notify(notices.METHOD_OF[type(told)], told)
