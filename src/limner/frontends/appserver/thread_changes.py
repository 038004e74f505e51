"""The methods that change a stored thread: options, metadata, what was read, the last turns."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from limner.agent.sessions import new_id
from limner.frontends.appserver.dispatch import RpcCall
from limner.frontends.appserver.protocol import notifications
from limner.frontends.appserver.protocol import threads as protocol
from limner.frontends.appserver.protocol.base import Empty
from limner.frontends.appserver.protocol.threads import GitInfo, ThreadReadState
from limner.frontends.appserver.protocol.turns import TurnStartParams
from limner.frontends.appserver.rpc_errors import invalid_request
from limner.frontends.appserver.thread_history import read_turns
from limner.frontends.appserver.thread_options import resolve_turn_options
from limner.frontends.appserver.thread_views import opened_view, stored_view
from limner.frontends.appserver.threads import ThreadTable


async def update_settings(
    threads: ThreadTable, call: RpcCall, params: protocol.ThreadSettingsUpdateParams
) -> None:
    """Change the options of an open thread, from the next turn on."""
    thread = threads.get(params.thread_id)
    wanted = TurnStartParams(input=(), **msgspec.structs.asdict(params))
    state = resolve_turn_options(thread.state, wanted, lim=threads.limner)
    if state != thread.state:
        await thread.save(state)
    view = await opened_view(thread, lim=threads.limner)
    call.answer(Empty())
    settings = protocol.CollaborationSettings(
        model=view["model"], reasoning_effort=view["reasoning_effort"]
    )
    notice = notifications.ThreadSettingsUpdatedNotification(
        thread_id=thread.id,
        thread_settings=protocol.ThreadSettings(
            model=view["model"],
            model_provider=view["model_provider"],
            effort=view["reasoning_effort"],
            cwd=view["cwd"],
            approval_policy=view["approval_policy"],
            sandbox_policy=view["sandbox"],
            collaboration_mode=protocol.CollaborationMode(settings=settings),
        ),
    )
    thread.subscribers.notify(notice)


async def update_metadata(
    threads: ThreadTable, params: protocol.ThreadMetadataUpdateParams
) -> protocol.ThreadMetadataUpdateResponse:
    """Store what a client knows about the thread."""
    session, about = await threads.stored(params.thread_id)
    state = threads.state_of(about)
    if params.git_info is not None:
        given = msgspec.structs.asdict(params.git_info)
        changes = {name: value for name, value in given.items() if value is not msgspec.UNSET}
        info = replace(state.extras.git_info or GitInfo(), **changes)
        await threads.save_state(about, state.with_extras(git_info=info))
    thread = await stored_view(threads, await session.about())
    return protocol.ThreadMetadataUpdateResponse(thread=thread)


async def update_read_state(
    threads: ThreadTable, call: RpcCall, params: protocol.ThreadReadStateUpdateParams
) -> None:
    """Note that the user has read a thread, or wants to read its last turn again."""
    session, about = await threads.stored(params.thread_id)
    is_unread = isinstance(params.operation, protocol.UnreadOperation)
    turns = await read_turns(session) if is_unread else []
    # From here to the change nothing is awaited: a turn that ends meanwhile stores a new state.
    state = threads.state_of(about)
    before = state.extras.read_state
    if before is None or before.revision != params.expected_revision:
        raise invalid_request("read state revision is stale")
    first = None
    if is_unread:
        last = protocol.TurnPosition(turn_id=turns[-1].id) if turns else None
        first = before.first_unread or last or protocol.ThreadStart()
    after = ThreadReadState(first_unread=first, revision=new_id())
    await threads.save_state(about, state.with_extras(read_state=after))
    call.answer(protocol.ThreadReadStateUpdateResponse(read_state=after))
    threads.clients.notify(
        notifications.ThreadReadStateChangedNotification(thread_id=about.id, read_state=after)
    )


async def revert(threads: ThreadTable, call: RpcCall, params: protocol.ThreadRevertParams) -> None:
    """Remove a turn and everything after it, so that the user can say something else."""
    thread = threads.get(params.thread_id)
    async with thread.holding_turns():
        if thread.turn_id is not None:
            raise invalid_request(f"cannot revert thread {thread.id} while a turn is running")
        turns = {turn.id: turn for turn in await read_turns(thread.session)}
        if params.before_turn_id not in turns:
            raise invalid_request(f"turn not found: {params.before_turn_id[:80]}")
        first = min(stored.seq for stored in turns[params.before_turn_id].items)
        await thread.session.cut(first)
    view = await opened_view(thread, lim=threads.limner)
    call.answer(protocol.ThreadRevertResponse(thread=view["thread"]))
    thread.subscribers.notify(notifications.ThreadRevertedNotification(thread_id=thread.id))
