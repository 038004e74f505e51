"""The methods of the first protocol, except for those that open a conversation."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from limner.agent.sessions import new_id
from limner.frontends.appserver.account_methods import KEY, announce_login
from limner.frontends.appserver.config_methods import read_config, write_settings
from limner.frontends.appserver.dispatch import RpcCall
from limner.frontends.appserver.protocol.base import Empty
from limner.frontends.appserver.protocol.config import ConfigEdit, ConfigReadParams, UserLayer
from limner.frontends.appserver.protocol.threads import (
    Thread,
    ThreadArchiveParams,
    ThreadListParams,
    ThreadReadParams,
)
from limner.frontends.appserver.protocol.turns import TurnStartParams
from limner.frontends.appserver.rpc_errors import invalid_request
from limner.frontends.appserver.server import Host
from limner.frontends.appserver.thread_methods import archive as archive_thread
from limner.frontends.appserver.thread_methods import list_threads
from limner.frontends.appserver.thread_methods import read as read_thread
from limner.frontends.appserver.threads import ThreadTable
from limner.frontends.appserver.turn_methods import start_turn
from limner.frontends.appserver.v1 import types
from limner.frontends.appserver.v1.rollout_files import RolloutFiles
from limner.frontends.appserver.v1.subscriber import V1Subscriber

# The first protocol has another word for a thread that an app-server started.
_SOURCES = {"appServer": "mcp"}


async def list_conversations(
    threads: ThreadTable, params: types.ListConversationsParams
) -> types.ListConversationsResponse:
    """One page of conversations, the newest first; those without an item are left out."""
    wanted = ThreadListParams(
        cursor=params.cursor, limit=params.page_size, model_providers=params.model_providers
    )
    found = await list_threads(threads, wanted)
    files = RolloutFiles(home=threads.limner.home.folder)
    return types.ListConversationsResponse(
        items=tuple([await _summary(thread, files) for thread in found.data]),
        next_cursor=found.next_cursor,
    )


async def archive(
    threads: ThreadTable, call: RpcCall, params: types.ArchiveConversationParams
) -> None:
    """Archive a conversation; a path that comes with it has to be its own."""
    named, path = params.conversation_id, params.rollout_path
    if path is not None and not Path(path).name.endswith(f"{named}.jsonl"):
        raise invalid_request(
            f"rollout path `{path[:400]}` does not match conversation id {named[:80]}"
        )
    await archive_thread(threads, call, ThreadArchiveParams(thread_id=named))


async def send_message(
    threads: ThreadTable, call: RpcCall, params: types.SendUserMessageParams
) -> None:
    """Start a turn with the current options, or add the input to the running turn."""
    wanted = TurnStartParams(thread_id=params.conversation_id, input=_inputs(params.items))
    await start_turn(threads, wanted, on_started=lambda _: call.answer(Empty()))


async def send_turn(threads: ThreadTable, call: RpcCall, params: types.SendUserTurnParams) -> None:
    """Start a turn with new options, or add the input to the running turn."""
    wanted = TurnStartParams(
        thread_id=params.conversation_id,
        input=_inputs(params.items),
        cwd=params.cwd,
        approval_policy=params.approval_policy,
        sandbox_policy=None if params.sandbox_policy is None else params.sandbox_policy.to_v2(),
        model=params.model,
        effort=params.effort,
        summary=params.summary,
        output_schema=params.output_schema,
    )
    await start_turn(threads, wanted, on_started=lambda _: call.answer(Empty()))


async def interrupt(
    threads: ThreadTable,
    params: types.InterruptConversationParams,
) -> types.InterruptConversationResponse:
    """Interrupt the running turn, and respond when it has ended."""
    thread = threads.get(params.conversation_id)
    if thread.turn_id is None:
        raise invalid_request("no active turn to interrupt")
    thread.interrupt()
    await thread.ended()
    return types.InterruptConversationResponse()


async def add_listener(
    threads: ThreadTable, call: RpcCall, params: types.AddConversationListenerParams
) -> None:
    """Subscribe a connection to a conversation."""
    thread, client, name = threads.get(params.conversation_id), call.connection, new_id()
    listener = V1Subscriber(client, thread.id, wants_items=params.experimental_raw_events)

    def remove() -> None:
        _remove_listener(threads, name)

    call.answer(types.AddConversationSubscriptionResponse(subscription_id=name))
    thread.subscribers.add_foreign(name, listener)
    client.on_close(remove)


async def remove_listener(
    threads: ThreadTable,
    params: types.RemoveConversationListenerParams,
) -> Empty:
    """Unsubscribe a connection from a conversation."""
    if not _remove_listener(threads, params.subscription_id):
        raise invalid_request(f"subscription not found: {params.subscription_id[:80]}")
    return Empty()


async def conversation_summary(
    threads: ThreadTable, params: types.GetConversationSummaryParams
) -> types.GetConversationSummaryResponse:
    """What a list of conversations says about one of them."""
    files = RolloutFiles(home=threads.limner.home.folder)
    named = params.conversation_id
    if params.rollout_path is not None:
        named = files.conversation_at(Path(params.rollout_path))
    if named is None:
        raise invalid_request(f"no conversation found at {str(params.rollout_path)[:400]!r}")
    read = await read_thread(threads, ThreadReadParams(thread_id=named))
    return types.GetConversationSummaryResponse(summary=await _summary(read.thread, files))


async def saved_config(host: Host, threads: ThreadTable) -> types.GetUserSavedConfigResponse:
    """The settings in the user's own file."""
    read = await read_config(host, threads, ConfigReadParams())
    saved = {
        key: read.config[key]
        for key in ("approval_policy", "sandbox_mode", "model", "model_reasoning_effort")
        if key in read.origins and isinstance(read.origins[key].name, UserLayer)
    }
    return types.GetUserSavedConfigResponse(config=types.UserSavedConfig(**saved))


async def set_default_model(
    host: Host, threads: ThreadTable, params: types.SetDefaultModelParams
) -> Empty:
    """Write the model and its effort into the user's file; null removes them."""
    edits = [
        ConfigEdit(key_path=key, value=value, merge_strategy="replace")
        for key, value in (
            ("model", params.model),
            ("model_reasoning_effort", params.reasoning_effort),
        )
    ]
    await write_settings(host, threads, edits)
    return Empty()


async def login_api_key(
    threads: ThreadTable, call: RpcCall, params: types.LoginApiKeyParams
) -> None:
    """Store an API key."""
    threads.limner.keys.set(KEY, params.api_key)
    call.answer(Empty())
    announce_login(threads)


def _remove_listener(threads: ThreadTable, name: str) -> bool:
    for thread in threads.live.values():
        if thread.subscribers.remove_foreign(name):
            threads.unload_later(thread)
            return True
    return False


def _inputs(items: tuple[types.InputItem, ...]) -> tuple[Any, ...]:
    return tuple(item.to_v2() for item in items)


async def _summary(thread: Thread, files: RolloutFiles) -> types.ConversationSummary:
    return types.ConversationSummary(
        conversation_id=thread.id,
        path=await files.write(thread),
        preview=thread.preview,
        timestamp=_moment(thread.created_at),
        updated_at=_moment(thread.updated_at),
        model_provider=thread.model_provider,
        cwd=thread.cwd,
        cli_version=thread.cli_version,
        source=_SOURCES.get(str(thread.source), str(thread.source)),
    )


def _moment(at_s: int) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat().replace("+00:00", "Z")
