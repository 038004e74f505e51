"""`thread/start`, `thread/resume` and `thread/fork` -> an open thread that the client sees.

What reads histories is imported by the functions that read one: the first `thread/start` of a
server does not wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from limner.agent.session import Session, SessionAbout
from limner.agent.sessions import SESSION_EXISTS, new_id
from limner.errors import InputInvalid
from limner.frontends.appserver.connection import ClientConnection
from limner.frontends.appserver.dispatch import RpcCall
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
from limner.frontends.appserver.rpc_errors import invalid_request
from limner.frontends.appserver.thread import NO_TOKENS, LiveThread, UnfinishedTurn
from limner.frontends.appserver.thread_options import ResolvedOptions, resolve_options
from limner.frontends.appserver.thread_state import ThreadState
from limner.frontends.appserver.thread_views import opened_view
from limner.frontends.appserver.threads import ThreadTable
from limner.wires.items import Item, message, text_part

if TYPE_CHECKING:
    from limner.frontends.appserver.thread_history import ThreadHistory

SOURCE = "the history of a client"


class OpenedThread(NamedTuple):
    """A thread, and a warning for each option that has no effect."""

    thread: LiveThread
    warnings: tuple[str, ...]


# --- the methods ---


async def start(threads: ThreadTable, call: RpcCall, params: ThreadStartParams) -> None:
    """Start a thread."""
    thread, warnings = await start_thread(threads, call.connection, params)
    with threads.subscribing(thread, call.connection):
        view = await opened_view(thread, lim=threads.limner)
        call.answer(ThreadStartResponse(**view))
    thread.subscribers.notify(notifications.ThreadStartedNotification(thread=view["thread"]))
    thread.warn(*warnings)


async def resume(threads: ThreadTable, call: RpcCall, params: ThreadResumeParams) -> None:
    """Open a thread: from a history, from a file, or by its id."""
    was_open = params.thread_id in threads.live
    thread, warnings = await resume_thread(threads, params)
    with threads.subscribing(thread, call.connection):
        unfinished = await threads.unfinished_turn(thread)
        call.answer(await _resume_response(threads, thread, params, unfinished))
    if not was_open and unfinished is None:
        thread.subscribers.notify(
            notifications.ThreadStatusChangedNotification(thread_id=thread.id, status=thread.status)
        )
    _send_tokens(call, thread)
    thread.warn(*warnings)
    if unfinished is not None:
        await thread.resume_turn(unfinished)


async def fork(threads: ThreadTable, call: RpcCall, params: ThreadForkParams) -> None:
    """Copy a thread, or the first turns of it."""
    thread, warnings = await fork_thread(threads, call.connection, params)
    with threads.subscribing(thread, call.connection):
        context = thread.history_context
        wants_turns = not params.exclude_turns
        turns = await threads.history.turns(thread.session, context) if wants_turns else ()
        view = await opened_view(thread, lim=threads.limner, turns=turns)
        call.answer(ThreadForkResponse(**view))
    _send_tokens(call, thread)
    without_turns = replace(view["thread"], turns=())
    thread.subscribers.notify(notifications.ThreadStartedNotification(thread=without_turns))
    thread.warn(*warnings)


async def _resume_response(
    threads: ThreadTable,
    thread: LiveThread,
    params: ThreadResumeParams,
    unfinished: UnfinishedTurn | None,
) -> ThreadResumeResponse:
    context = thread.history_context
    if unfinished is not None:
        pending = [str(call.get("call_id")) for call in unfinished.calls]
        context = replace(context, running=unfinished.turn_id, pending=pending)
    history, session = threads.history, thread.session
    wants_turns = not params.exclude_turns and params.history is None
    turns: tuple[Turn, ...] = await history.turns(session, context) if wants_turns else ()
    view = await opened_view(thread, lim=threads.limner, turns=turns)
    if unfinished is not None:
        view["thread"] = replace(view["thread"], status=Active())
    page = await _first_page(history, thread, params)
    return ThreadResumeResponse(**view, initial_turns_page=page)


async def _first_page(
    history: ThreadHistory, thread: LiveThread, params: ThreadResumeParams
) -> TurnsPage | None:
    wanted = params.initial_turns_page
    if wanted is None:
        return None
    return await history.turns_page(
        thread.session,
        thread.history_context,
        limit=wanted.limit,
        direction=wanted.sort_direction,
        view=wanted.items_view,
    )


def _send_tokens(call: RpcCall, thread: LiveThread) -> None:
    """Send the client the stored token counts of a thread."""
    extras = thread.state.extras
    if extras.tokens is None:
        return
    usage = notifications.ThreadTokenUsage(
        total=extras.tokens, last=extras.last_tokens or NO_TOKENS
    )
    notice = notifications.ThreadTokenUsageUpdatedNotification(
        thread_id=thread.id, turn_id=extras.last_turn or thread.turn_id or "", token_usage=usage
    )
    call.connection.notify(notifications.METHOD_OF[type(notice)], notice)


# --- opening, without a response: the first protocol uses this too ---


async def start_thread(
    threads: ThreadTable, client: ClientConnection, params: ThreadStartParams
) -> OpenedThread:
    """Create a thread.

    Raises:
        RpcError: an option is invalid.
        LimnerError: a tool breaks a rule, or the thread cannot be stored.
    """
    resolved = resolve_options(threads.new_state(), params, lim=threads.limner)
    state = resolved.state.with_extras(
        ephemeral=params.ephemeral or False,
        originator=_name_of(client),
        thread_source=params.thread_source,
    )
    return OpenedThread(await threads.create(state), resolved.warnings)


async def resume_thread(threads: ThreadTable, params: ThreadResumeParams) -> OpenedThread:
    """Open a thread: from a history, from a file, or by its id.

    Raises:
        RpcError: there is no such thread, or it cannot be resumed in this way.
        LimnerError: the file is not a rollout, or a tool breaks a rule.
    """
    running = threads.live.get(params.thread_id)
    if running is not None:
        _check_running(running, params)
    if params.history is not None:
        if not params.history:
            raise invalid_request("history must not be empty")
        resolved = resolve_options(threads.new_state(), params, lim=threads.limner)
        return await start_with_history(threads, resolved, params.history)
    session, _ = await find_session(threads, params.thread_id, params.path)
    thread = await threads.load(session)
    resolved = ResolvedOptions(state=thread.state)
    if thread.turn_id is None:
        resolved = resolve_options(thread.state, params, lim=threads.limner)
        if resolved.state != thread.state:
            await thread.save(resolved.state)
    return OpenedThread(thread, resolved.warnings)


async def fork_thread(
    threads: ThreadTable, client: ClientConnection, params: ThreadForkParams
) -> OpenedThread:
    """Copy a thread, or the first turns of it.

    Raises:
        RpcError: there is no such thread or turn.
        LimnerError: the file is not a rollout, or a tool breaks a rule.
    """
    if params.last_turn_id is not None and params.before_turn_id is not None:
        raise invalid_request("`beforeTurnId` cannot be combined with `lastTurnId`")
    source, about = await find_session(threads, params.thread_id, params.path)
    end = await _fork_end(source, params)
    stored = ThreadState.from_settings(about.settings)
    resolved = resolve_options(stored, params, lim=threads.limner)
    sessions = threads.limner.sessions
    copy = await sessions.fork(source.id, before=end)
    await _close_last_turn(copy)
    state = resolved.state.with_extras(
        ephemeral=params.ephemeral,
        originator=_name_of(client),
        thread_source=params.thread_source or resolved.state.extras.thread_source,
    )
    await sessions.configure(copy.id, state.to_settings())
    return OpenedThread(await threads.load(copy), resolved.warnings)


async def start_with_history(
    threads: ThreadTable, resolved: ResolvedOptions, history: Sequence[Item]
) -> OpenedThread:
    """Create a thread with items that the client sends; their pictures are stored.

    An item or a picture that is not valid is left out with a warning: it never refuses the rest.

    Raises:
        LimnerError: an item or a picture cannot be stored.
    """
    from limner.frontends.appserver.inputs import sift_history  # noqa: PLC0415 - see above

    kept, problems = sift_history(history)
    entered = await threads.limner.ingress.items(kept, source=SOURCE)
    thread = await threads.create(resolved.state)
    # The client may have written anything in the name of the user or the model.
    await thread.session.note_untrusted()
    await thread.session.append(entered.items)
    return OpenedThread(thread, (*resolved.warnings, *problems, *entered.warnings))


async def find_session(
    threads: ThreadTable, thread_id: str, path: str | None
) -> tuple[Session, SessionAbout]:
    """The session of a thread id or of a file; a file is imported at its first use.

    Raises:
        RpcError: there is no such thread.
        LimnerError: the file is not a rollout, or cannot be read.
    """
    if not path:
        return await threads.stored(thread_id)
    try:
        imported = await threads.limner.import_session(path)
        session_id = imported.session_id or ""
    except InputInvalid as error:
        known = error.extras.get("session")
        if error.code != SESSION_EXISTS or not isinstance(known, str):
            raise
        session_id = known
    return await threads.stored(session_id)


def _check_running(thread: LiveThread, params: ThreadResumeParams) -> None:
    if params.history is not None:
        raise invalid_request(
            f"cannot resume thread {thread.id} with history while it is already running"
        )
    if params.path:
        raise invalid_request(
            f"cannot resume running thread {thread.id} with stale path: "
            f"requested `{params.path[:400]}`, and it has none"
        )


async def _fork_end(session: Session, params: ThreadForkParams) -> int | None:
    """The number of the first item that is not copied; None if all are."""
    from limner.frontends.appserver.thread_history import read_turns  # noqa: PLC0415 - see above

    turn_id = params.last_turn_id or params.before_turn_id
    if turn_id is None:
        return None
    for turn in await read_turns(session):
        if turn.id == turn_id:
            return turn.last_seq + 1 if params.last_turn_id else turn.items[0].seq
    raise invalid_request(f"turn not found: {turn_id[:80]}")


async def _close_last_turn(copy: Session) -> None:
    """Mark a turn as interrupted if it was running when it was copied: the copy does not run it."""
    from limner.agent.loop import INTERRUPTED  # noqa: PLC0415 - see above
    from limner.frontends.appserver.thread_history import read_turns  # noqa: PLC0415 - see above

    turns = await read_turns(copy)
    if turns and turns[-1].unanswered and not turns[-1].was_aborted:
        end = {**message("user", text_part(INTERRUPTED)), "id": new_id(), "turn_id": turns[-1].id}
        await copy.append([end])


def _name_of(client: ClientConnection) -> str | None:
    return None if client.client is None else client.client[0]
