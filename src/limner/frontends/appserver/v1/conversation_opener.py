"""`newConversation`, `resumeConversation` and `forkConversation` -> an open conversation.

The client does not subscribe to it yet: `addConversationListener` does that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.agent.session import Session
from limner.agent.stored_turns import without_copies
from limner.errors import LimnerError
from limner.frontends.appserver.dispatch import RpcCall
from limner.frontends.appserver.inline_pictures import PictureInliner
from limner.frontends.appserver.protocol.base import SandboxMode
from limner.frontends.appserver.protocol.threads import (
    Thread,
    ThreadForkParams,
    ThreadResumeParams,
    ThreadStartParams,
)
from limner.frontends.appserver.rpc_errors import invalid_request
from limner.frontends.appserver.thread_opener import (
    OpenedThread,
    fork_thread,
    resume_thread,
    start_thread,
    start_with_history,
)
from limner.frontends.appserver.thread_options import MODES, resolve_options
from limner.frontends.appserver.thread_views import opened_view
from limner.frontends.appserver.threads import ThreadTable
from limner.frontends.appserver.v1.event_translation import item_to_events
from limner.frontends.appserver.v1.events import EventMsg, SessionConfigured, WarningEvent
from limner.frontends.appserver.v1.rollout_files import RolloutFiles
from limner.frontends.appserver.v1.subscriber import send_events
from limner.frontends.appserver.v1.types import (
    ForkConversationParams,
    ForkConversationResponse,
    NewConversationParams,
    NewConversationResponse,
    ResumeConversationParams,
    ResumeConversationResponse,
)
from limner.net.jsonrpc import RpcError
from limner.wires.item_views import handle_of
from limner.wires.items import image_urls, replace_images

NOTHING_NAMED = "either path, conversation id or non empty history must be provided"
NO_PATCHES = "includeApplyPatchTool has no effect: there is no such tool here."


class _ConversationView(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as its client sees it."""

    thread: Thread
    path: str
    configured: SessionConfigured


async def new(threads: ThreadTable, call: RpcCall, params: NewConversationParams) -> None:
    """Start a conversation."""
    thread_params = ThreadStartParams(**_options(threads, params))
    opened = await start_thread(threads, call.connection, thread_params)
    view = await _view(threads, opened)
    call.answer(
        NewConversationResponse(
            conversation_id=view.thread.id,
            model=view.configured.model,
            reasoning_effort=view.thread.reasoning_effort,
            rollout_path=view.path,
        )
    )
    _send_configured(call, view, opened, params)


async def resume(threads: ThreadTable, call: RpcCall, params: ResumeConversationParams) -> None:
    """Resume a conversation: by its file, else by its id, else from a history."""
    options = _options(threads, params.overrides)
    conversation_id = await _conversation_id(threads, params)
    if conversation_id is not None:
        await _unarchive(threads, conversation_id)
        opened = await resume_thread(
            threads, ThreadResumeParams(thread_id=conversation_id, **options)
        )
    elif params.path:
        opened = await _imported(threads, params.path, options)
    elif params.history:
        resolved = resolve_options(
            threads.new_state(), ThreadStartParams(**options), lim=threads.limner
        )
        opened = await start_with_history(threads, resolved, params.history)
    else:
        raise invalid_request(NOTHING_NAMED)
    thread = opened.thread
    unfinished = await threads.unfinished_turn(thread)
    view = await _view(threads, opened)
    call.answer(ResumeConversationResponse(**await _answer(threads, opened, view)))
    _send_configured(call, view, opened, params.overrides)
    if unfinished is not None:
        await thread.resume_turn(unfinished)


async def fork(threads: ThreadTable, call: RpcCall, params: ForkConversationParams) -> None:
    """Copy a conversation: by its file, else by its id."""
    options = _options(threads, params.overrides)
    conversation_id = await _conversation_id(threads, params)
    if conversation_id is None and not params.path:
        raise invalid_request("either path or conversation id must be provided")
    thread_params = ThreadForkParams(
        thread_id=conversation_id or "",
        path=params.path if conversation_id is None else None,
        **options,
    )
    opened = await fork_thread(threads, call.connection, thread_params)
    view = await _view(threads, opened)
    call.answer(ForkConversationResponse(**await _answer(threads, opened, view)))
    _send_configured(call, view, opened, params.overrides)


async def initial_messages(session: Session, inliner: PictureInliner) -> tuple[EventMsg, ...]:
    """The history of a conversation as events, with as many pictures inline as fit."""
    stored = list(without_copies([one async for one in session.items()]))
    urls = [url for one in stored for url in image_urls(one.item) if handle_of(url) is not None]
    loaded = await inliner.load(urls)
    swaps = {url: {"type": "input_image", "image_url": data} for url, data in loaded.items()}
    return tuple(
        event
        for one in stored
        for event in item_to_events(replace(one, item=replace_images(one.item, swaps)))
    )


def _options(threads: ThreadTable, params: NewConversationParams | None) -> dict[str, Any]:
    """The options of a request, as members of the params of protocol v2.

    Raises:
        RpcError: there is no such profile.
    """
    if params is None:
        return {}
    more = {"profile": params.profile, "compact_prompt": params.compact_prompt}
    asked = {key: value for key, value in more.items() if value is not None}
    config = {key: value for key, value in (params.config or {}).items() if key not in asked}
    if params.profile is not None:
        try:
            threads.limner.personalities.get(params.profile)
        except LimnerError as error:
            raise invalid_request(f"invalid profile: {error.message}") from error
    return {
        "model": params.model,
        "model_provider": params.model_provider,
        "cwd": params.cwd,
        "approval_policy": params.approval_policy,
        "sandbox": params.sandbox,
        "config": {**config, **asked},
        "base_instructions": params.base_instructions,
        "developer_instructions": params.developer_instructions,
        "dynamic_tools": params.dynamic_tools,
    }


async def _conversation_id(
    threads: ThreadTable, params: ResumeConversationParams | ForkConversationParams
) -> str | None:
    """The id of the conversation; None if the client names a file from elsewhere, or nothing.

    An empty path names nothing, as in protocol v2.
    """
    files = RolloutFiles(home=threads.limner.home.folder)
    named = params.conversation_id
    if params.path:
        named = files.conversation_at(threads.limner.cwd / params.path)
    if named is None:
        return None
    try:
        _, about = await threads.stored(named)
    except RpcError:
        raise invalid_request(f"no rollout found for conversation id {named[:80]}") from None
    return about.id


async def _unarchive(threads: ThreadTable, conversation_id: str) -> None:
    """Unarchive a conversation if it is archived: this protocol has no method for it."""
    _, about = await threads.stored(conversation_id)
    if about.archived_ms is not None:
        await threads.limner.sessions.unarchive(conversation_id)


async def _imported(threads: ThreadTable, path: str, options: Mapping[str, Any]) -> OpenedThread:
    try:
        return await resume_thread(threads, ThreadResumeParams(thread_id="", path=path, **options))
    except LimnerError as error:
        raise invalid_request(f"failed to load rollout `{path[:400]}`: {error.message}") from error


async def _view(threads: ThreadTable, opened: OpenedThread) -> _ConversationView:
    members = await opened_view(opened.thread, lim=threads.limner)
    thread: Thread = members["thread"]
    sandbox: SandboxMode = next(m for m, policy in MODES.items() if policy == members["sandbox"])
    path = await RolloutFiles(home=threads.limner.home.folder).write(thread)
    configured = SessionConfigured(
        session_id=thread.id,
        forked_from_id=thread.forked_from_id,
        thread_name=thread.name,
        model=members["model"],
        model_provider_id=thread.model_provider,
        # Clients of this protocol know `on-failure`.
        approval_policy=opened.thread.state.options.approval or members["approval_policy"],
        sandbox_policy={"type": sandbox},
        cwd=thread.cwd,
        reasoning_effort=thread.reasoning_effort,
        rollout_path=path,
    )
    return _ConversationView(thread=thread, path=path, configured=configured)


async def _answer(
    threads: ThreadTable, opened: OpenedThread, view: _ConversationView
) -> dict[str, Any]:
    messages = await initial_messages(opened.thread.session, threads.history.inliner)
    return {
        "conversation_id": view.thread.id,
        "model": view.configured.model,
        "initial_messages": messages,
        "rollout_path": view.path,
    }


def _send_configured(
    call: RpcCall,
    view: _ConversationView,
    opened: OpenedThread,
    params: NewConversationParams | None,
) -> None:
    """Send the options in force, and a warning for each option that has no effect."""
    warnings = list(opened.warnings)
    if params is not None and params.include_apply_patch_tool:
        warnings.append(NO_PATCHES)
    events = [WarningEvent(message=warning) for warning in warnings]
    send_events(call.connection, view.thread.id, view.configured, *events)
