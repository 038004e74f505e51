"""What a client wants to open -> the thread, begun, continued or copied; nobody is told yet."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from limner.agent.loop import INTERRUPTED
from limner.agent.session import Session, SessionAbout
from limner.agent.sessions import SESSION_EXISTS, new_id
from limner.errors import InputInvalid
from limner.frontends.appserver.connection import ClientConnection
from limner.frontends.appserver.dispatch import RpcCall
from limner.frontends.appserver.inputs import check_items
from limner.frontends.appserver.protocol import notifications
from limner.frontends.appserver.protocol.threads import (
    Active,
    ThreadForkParams,
    ThreadForkResponse,
    ThreadResumeParams,
    ThreadResumeResponse,
    ThreadStartParams,
    ThreadStartResponse,
    TurnsPage,
)
from limner.frontends.appserver.protocol.turns import Turn
from limner.frontends.appserver.rpc_errors import refusal
from limner.frontends.appserver.thread import NOTHING, LiveThread, Unfinished
from limner.frontends.appserver.thread_history import ThreadHistory, kept_turns
from limner.frontends.appserver.thread_options import ThreadOptions, agree
from limner.frontends.appserver.thread_state import ThreadState
from limner.frontends.appserver.thread_views import opened
from limner.frontends.appserver.threads import ThreadTable
from limner.wires.items import Item, message, text_part

SOURCE = "the history of a client"

Opened = tuple[LiveThread, tuple[str, ...]]
"""The thread, and one sentence for each wish that nobody here can do."""


async def begun(
    threads: ThreadTable, client: ClientConnection, params: ThreadStartParams
) -> Opened:
    """A new thread.

    Raises:
        RpcError: something wanted is not of the right shape.
        LimnerError: a tool breaks a rule, or the thread cannot be kept.
    """
    agreed = agree(ThreadState(), params, lim=threads.limner)
    kept = agreed.kept.but(
        ephemeral=params.ephemeral or False,
        originator=_name_of(client),
        thread_source=params.thread_source,
    )
    return await threads.begin(kept), agreed.warnings


async def continued(threads: ThreadTable, params: ThreadResumeParams) -> Opened:
    """A thread that goes on: from a history, a file, or by its id.

    Raises:
        RpcError: there is no such thread, or it cannot go on like that.
        LimnerError: the file is no rollout, or a tool breaks a rule.
    """
    running = threads.live.get(params.thread_id)
    if running is not None and running.turn_id is not None:
        _check_rejoining(running, params)
    if params.history is not None:
        if not params.history:
            raise refusal("history must not be empty")
        check_items(params.history, name="history")
        agreed = agree(ThreadState(), params, lim=threads.limner)
        return await with_history(threads, agreed.kept, params.history), agreed.warnings
    session, _ = await named(threads, params.thread_id, params.path)
    thread = await threads.load(session)
    agreed = ThreadOptions(kept=thread.kept)
    if thread.turn_id is None:
        agreed = agree(thread.kept, params, lim=threads.limner)
        if agreed.kept != thread.kept:
            await thread.keep(agreed.kept)
    return thread, agreed.warnings


async def copied(
    threads: ThreadTable, client: ClientConnection, params: ThreadForkParams
) -> Opened:
    """A copy of a thread, or of its beginning.

    Raises:
        RpcError: there is no such thread or turn.
        LimnerError: the file is no rollout, or a tool breaks a rule.
    """
    if params.last_turn_id is not None and params.before_turn_id is not None:
        raise refusal("`beforeTurnId` cannot be combined with `lastTurnId`")
    source, about = await named(threads, params.thread_id, params.path)
    before = await _cut(source, params)
    agreed = agree(ThreadState.read(about.settings), params, lim=threads.limner)
    sessions = threads.limner.sessions
    copy = await sessions.fork(source.id, before=before)
    await _close_last_turn(copy)
    kept = agreed.kept.but(
        ephemeral=params.ephemeral,
        originator=_name_of(client),
        thread_source=params.thread_source or agreed.kept.rest.thread_source,
    )
    await sessions.configure(copy.id, kept.settings())
    return await threads.load(copy), agreed.warnings


async def with_history(
    threads: ThreadTable, kept: ThreadState, history: Sequence[Item]
) -> LiveThread:
    """A new thread that begins with items from elsewhere, their pictures taken in.

    Raises:
        LimnerError: an item or a picture cannot be kept.
    """
    entered = await threads.limner.ingress.items(history, source=SOURCE)
    thread = await threads.begin(kept)
    # What was said elsewhere was said by whoever sends it.
    await thread.session.note_untrusted()
    await thread.session.append(entered.items)
    return thread


async def named(
    threads: ThreadTable, thread_id: str, path: str | None
) -> tuple[Session, SessionAbout]:
    """The session that a client means; a file is imported, unless it was before.

    Raises:
        RpcError: there is none.
        LimnerError: the file is no rollout, or cannot be read.
    """
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


def _check_rejoining(thread: LiveThread, params: ThreadResumeParams) -> None:
    if params.history is not None:
        raise refusal(f"cannot resume thread {thread.id} with history while it is already running")
    if params.path:
        raise refusal(
            f"cannot resume running thread {thread.id} with stale path: "
            f"requested `{params.path[:400]}`, and it has none"
        )


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
        ended = {**message("user", text_part(INTERRUPTED)), "id": new_id(), "turn_id": turns[-1].id}
        await copy.append([ended])


def _name_of(client: ClientConnection) -> str | None:
    return None if client.client is None else client.client[0]


async def start(threads: ThreadTable, call: RpcCall, params: ThreadStartParams) -> None:
    """Begin a thread."""
    thread, warnings = await begun(threads, call.connection, params)
    with threads.showing(thread, call.connection):
        shown = await opened(thread, lim=threads.limner)
        call.answer(ThreadStartResponse(**shown))
    thread.audience.tell(notifications.ThreadStartedNotification(thread=shown["thread"]))
    thread.warn(*warnings)


async def resume(threads: ThreadTable, call: RpcCall, params: ThreadResumeParams) -> None:
    """Go on with a thread: from a history, a file, or by its id."""
    was_open = params.thread_id in threads.live
    thread, warnings = await continued(threads, params)
    with threads.showing(thread, call.connection):
        unfinished = await threads.unfinished(thread)
        call.answer(await _resumed(threads, thread, params, unfinished))
    if not was_open and unfinished is None:
        idle = notifications.ThreadStatusChangedNotification(
            thread_id=thread.id, status=thread.status
        )
        thread.audience.tell(idle)
    _tell_tokens(call, thread)
    thread.warn(*warnings)
    if unfinished is not None:
        await thread.go_on(unfinished)


async def fork(threads: ThreadTable, call: RpcCall, params: ThreadForkParams) -> None:
    """Copy a thread, or its beginning."""
    thread, warnings = await copied(threads, call.connection, params)
    with threads.showing(thread, call.connection):
        history = threads.history
        turns = () if params.exclude_turns else await history.turns(thread.session, thread.told)
        shown = await opened(thread, lim=threads.limner, turns=turns)
        call.answer(ThreadForkResponse(**shown))
    _tell_tokens(call, thread)
    told = replace(shown["thread"], turns=())
    thread.audience.tell(notifications.ThreadStartedNotification(thread=told))
    thread.warn(*warnings)


async def _resumed(
    threads: ThreadTable,
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
    history: ThreadHistory, thread: LiveThread, params: ThreadResumeParams
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


def _tell_tokens(call: RpcCall, thread: LiveThread) -> None:
    rest = thread.kept.rest
    if rest.tokens is None:
        return
    usage = notifications.ThreadTokenUsage(total=rest.tokens, last=rest.last_tokens or NOTHING)
    told = notifications.ThreadTokenUsageUpdatedNotification(
        thread_id=thread.id, turn_id=rest.last_turn or thread.turn_id or "", token_usage=usage
    )
    call.connection.notify(notifications.METHOD_OF[type(told)], told)
