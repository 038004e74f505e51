"""What a client wants to open -> the thread, begun, continued or copied; nobody is told yet."""

from __future__ import annotations

from collections.abc import Sequence

from limner.agent.loop import INTERRUPTED
from limner.agent.session import Session, SessionAbout
from limner.agent.sessions import SESSION_EXISTS, new_id
from limner.doors.appserver.agreeing import Agreed, agree
from limner.doors.appserver.connection import Connection
from limner.doors.appserver.history import kept_turns
from limner.doors.appserver.inputs import check_items
from limner.doors.appserver.kept import Kept
from limner.doors.appserver.protocol.threads import (
    ThreadForkParams,
    ThreadResumeParams,
    ThreadStartParams,
)
from limner.doors.appserver.refusals import refusal
from limner.doors.appserver.thread import LiveThread
from limner.doors.appserver.threads import Threads
from limner.errors import InputInvalid
from limner.wires.items import Item, message, text

SOURCE = "the history of a client"

Opened = tuple[LiveThread, tuple[str, ...]]
"""The thread, and one sentence for each wish that nobody here can do."""


async def begun(threads: Threads, client: Connection, params: ThreadStartParams) -> Opened:
    """A new thread.

    Raises:
        RpcError: something wanted is not of the right shape.
        LimnerError: a tool breaks a rule, or the thread cannot be kept.
    """
    agreed = agree(Kept(), params, lim=threads.limner)
    kept = agreed.kept.but(
        ephemeral=params.ephemeral or False,
        originator=_name_of(client),
        thread_source=params.thread_source,
    )
    return await threads.begin(kept), agreed.warnings


async def continued(threads: Threads, params: ThreadResumeParams) -> Opened:
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
        agreed = agree(Kept(), params, lim=threads.limner)
        return await with_history(threads, agreed.kept, params.history), agreed.warnings
    session, _ = await named(threads, params.thread_id, params.path)
    thread = await threads.load(session)
    agreed = Agreed(kept=thread.kept)
    if thread.turn_id is None:
        agreed = agree(thread.kept, params, lim=threads.limner)
        if agreed.kept != thread.kept:
            await thread.keep(agreed.kept)
    return thread, agreed.warnings


async def copied(threads: Threads, client: Connection, params: ThreadForkParams) -> Opened:
    """A copy of a thread, or of its beginning.

    Raises:
        RpcError: there is no such thread or turn.
        LimnerError: the file is no rollout, or a tool breaks a rule.
    """
    if params.last_turn_id is not None and params.before_turn_id is not None:
        raise refusal("`beforeTurnId` cannot be combined with `lastTurnId`")
    source, about = await named(threads, params.thread_id, params.path)
    before = await _cut(source, params)
    agreed = agree(Kept.read(about.settings), params, lim=threads.limner)
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


async def with_history(threads: Threads, kept: Kept, history: Sequence[Item]) -> LiveThread:
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


async def named(threads: Threads, thread_id: str, path: str | None) -> tuple[Session, SessionAbout]:
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
        ended = {**message("user", text(INTERRUPTED)), "id": new_id(), "turn_id": turns[-1].id}
        await copy.append([ended])


def _name_of(client: Connection) -> str | None:
    return None if client.client is None else client.client[0]
