"""`thread/start`, `thread/resume` and `thread/fork`: threads begin, go on and are copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from limner.agent.loop import INTERRUPTED
from limner.agent.session import Session, SessionAbout
from limner.agent.sessions import SESSION_EXISTS, new_id
from limner.doors.appserver.agreeing import Agreed, agree
from limner.doors.appserver.dispatch import Call
from limner.doors.appserver.history import History, kept_turns
from limner.doors.appserver.inputs import check_items
from limner.doors.appserver.kept import Kept
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
from limner.doors.appserver.refusals import refusal
from limner.doors.appserver.thread import NOTHING, LiveThread
from limner.doors.appserver.thread_views import opened
from limner.doors.appserver.threads import Threads, Unfinished
from limner.errors import InputInvalid
from limner.wires.items import message, text

SOURCE = "the history of a client"


async def start(threads: Threads, call: Call, params: ThreadStartParams) -> None:
    """Begin a thread."""
    client = call.connection.client
    agreed = agree(Kept(), params, lim=threads.limner)
    kept = agreed.kept.but(
        ephemeral=params.ephemeral or False,
        originator=None if client is None else client[0],
        thread_source=params.thread_source,
    )
    thread = await threads.begin(kept)
    threads.listen(thread, call.connection)
    shown = await opened(thread, lim=threads.limner)
    call.answer(ThreadStartResponse(**shown))
    thread.audience.release(call.connection)
    thread.audience.tell(notices.ThreadStartedNotification(thread=shown["thread"]))
    thread.warn(*agreed.warnings)


async def resume(threads: Threads, call: Call, params: ThreadResumeParams) -> None:
    """Go on with a thread: from a history, a file, or by its id."""
    running = threads.live.get(params.thread_id)
    if running is not None and running.turn_id is not None:
        _check_rejoining(running, params)
    agreed = Agreed(kept=Kept())
    if params.history is not None:
        agreed = agree(Kept(), params, lim=threads.limner)
        thread = await _from_history(threads, agreed.kept, params.history)
    else:
        session, about = await _named(threads, params.thread_id, params.path)
        thread = await threads.load(session, about)
        if thread.turn_id is None:
            agreed = agree(thread.kept, params, lim=threads.limner)
            if agreed.kept != thread.kept:
                await thread.keep(agreed.kept)
    threads.listen(thread, call.connection)
    unfinished = await threads.unfinished(thread)
    call.answer(await _resumed(threads, thread, params, unfinished))
    thread.audience.release(call.connection)
    if (tokens := thread.kept.rest.tokens) is not None:
        _tell_tokens(call, thread, tokens)
    thread.warn(*agreed.warnings)
    # Somebody else may have come first.
    if unfinished is not None and thread.turn_id is None:
        await thread.go_on(unfinished.turn_id, unfinished.calls)


async def fork(threads: Threads, call: Call, params: ThreadForkParams) -> None:
    """Copy a thread, or its beginning."""
    if params.last_turn_id is not None and params.before_turn_id is not None:
        raise refusal("`beforeTurnId` cannot be combined with `lastTurnId`")
    source, about = await _named(threads, params.thread_id, params.path)
    before = await _cut(source, params)
    agreed = agree(Kept.read(about.settings), params, lim=threads.limner)
    lim, client = threads.limner, call.connection.client
    copy = await lim.sessions.fork(source.id, before=before)
    await _close_last_turn(copy)
    kept = agreed.kept.but(
        ephemeral=params.ephemeral,
        originator=None if client is None else client[0],
        thread_source=params.thread_source or agreed.kept.rest.thread_source,
        tokens=None,
    )
    await lim.sessions.configure(copy.id, kept.settings())
    thread = await threads.load(copy, await copy.about())
    threads.listen(thread, call.connection)
    turns = () if params.exclude_turns else await threads.history.turns(copy, thread.told)
    shown = await opened(thread, lim=lim, turns=turns)
    call.answer(ThreadForkResponse(**shown))
    thread.audience.release(call.connection)
    told = replace(shown["thread"], turns=())
    thread.audience.tell(notices.ThreadStartedNotification(thread=told))
    thread.warn(*agreed.warnings)


def _check_rejoining(thread: LiveThread, params: ThreadResumeParams) -> None:
    if params.history is not None:
        raise refusal(f"cannot resume thread {thread.id} with history while it is already running")
    if params.path:
        raise refusal(
            f"cannot resume running thread {thread.id} with stale path: "
            f"requested `{params.path[:400]}`, and it has none"
        )


async def _named(
    threads: Threads, thread_id: str, path: str | None
) -> tuple[Session, SessionAbout]:
    """The session that a client means; a file is imported, unless it was before."""
    if not path:
        return await threads.stored(thread_id)
    lim = threads.limner
    try:
        imported = await lim.import_session(path)
        session_id = imported.session_id or ""
    except InputInvalid as error:
        known = error.extras.get("session")
        if error.code != SESSION_EXISTS or not isinstance(known, str):
            raise
        session_id = known
    return await threads.stored(session_id)


async def _from_history(
    threads: Threads, kept: Kept, history: Sequence[dict[str, Any]]
) -> LiveThread:
    if not history:
        raise refusal("history must not be empty")
    check_items(history, name="history")
    lim = threads.limner
    entered = await lim.ingress.items(history, source=SOURCE)
    thread = await threads.begin(kept)
    # What was said elsewhere was said by whoever sends it.
    await thread.session.note_untrusted()
    await thread.session.append(entered.items)
    return thread


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


def _tell_tokens(call: Call, thread: LiveThread, total: notices.TokenUsageBreakdown) -> None:
    usage = notices.ThreadTokenUsage(total=total, last=NOTHING)
    told = notices.ThreadTokenUsageUpdatedNotification(
        thread_id=thread.id, turn_id=thread.turn_id or "", token_usage=usage
    )
    call.connection.notify(notices.METHOD_OF[type(told)], told)


async def _cut(session: Session, params: ThreadForkParams) -> int | None:
    """The number of the first item that is not copied; None where all are."""
    named = params.last_turn_id or params.before_turn_id
    if named is None:
        return None
    for turn in await kept_turns(session):
        if turn.id == named:
            return turn.last_seq + 1 if params.last_turn_id else turn.items[0].seq
    raise refusal(f"turn not found: {named[:80]}")


async def _close_last_turn(copy: Session) -> None:
    """End a turn that was under way where it was copied: in the copy nobody goes on with it."""
    turns = await kept_turns(copy)
    if turns and turns[-1].unanswered and not turns[-1].was_aborted:
        ended = {**message("user", text(INTERRUPTED)), "id": new_id(), "turn_id": turns[-1].id}
        await copy.append([ended])
