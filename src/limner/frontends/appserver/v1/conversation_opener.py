"""`newConversation`, `resumeConversation` and `forkConversation`: conversations are opened.

Nobody listens to one yet: that is `addConversationListener`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.agent.session import Session
from limner.errors import LimnerError
from limner.frontends.appserver.dispatch import RpcCall
from limner.frontends.appserver.inline_pictures import PictureInliner
from limner.frontends.appserver.protocol.threads import (
    Thread,
    ThreadForkParams,
    ThreadResumeParams,
    ThreadStartParams,
)
from limner.frontends.appserver.rpc_errors import refusal
from limner.frontends.appserver.stored_turns import each_once
from limner.frontends.appserver.thread_opener import Opened, begun, continued, copied, with_history
from limner.frontends.appserver.thread_options import MODES, agree
from limner.frontends.appserver.thread_state import ThreadState
from limner.frontends.appserver.thread_views import opened
from limner.frontends.appserver.threads import ThreadTable
from limner.frontends.appserver.v1.event_translation import replayed
from limner.frontends.appserver.v1.events import EventMsg, SessionConfigured, WarningEvent
from limner.frontends.appserver.v1.history import read_history
from limner.frontends.appserver.v1.rollout_files import RolloutFiles
from limner.frontends.appserver.v1.subscriber import tell
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


class _Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as its client is told of it."""

    thread: Thread
    path: str
    configured: SessionConfigured


async def new(threads: ThreadTable, call: RpcCall, params: NewConversationParams) -> None:
    """Begin a conversation."""
    wanted = ThreadStartParams(**_wishes(threads, params))
    made = await begun(threads, call.connection, wanted)
    shown = await _shown(threads, made)
    call.answer(
        NewConversationResponse(
            conversation_id=shown.thread.id,
            model=shown.configured.model,
            reasoning_effort=shown.thread.reasoning_effort,
            rollout_path=shown.path,
        )
    )
    _tell_opened(call, shown, made, params)


async def resume(threads: ThreadTable, call: RpcCall, params: ResumeConversationParams) -> None:
    """Go on with a conversation: of a file, else of an id, else with a history."""
    wishes = _wishes(threads, params.overrides)
    history = None if params.history is None else read_history(params.history)
    conversation_id = await _conversation_id(threads, params)
    if conversation_id is not None:
        await _bring_back(threads, conversation_id)
        made = await continued(threads, ThreadResumeParams(thread_id=conversation_id, **wishes))
    elif params.path:
        made = await _imported(threads, params.path, wishes)
    elif history:
        agreed = agree(ThreadState(), ThreadStartParams(**wishes), lim=threads.limner)
        made = await with_history(threads, agreed.kept, history), agreed.warnings
    else:
        raise refusal(NOTHING_NAMED)
    thread = made[0]
    unfinished = await threads.unfinished(thread)
    shown = await _shown(threads, made)
    call.answer(ResumeConversationResponse(**await _answer(threads, made, shown)))
    _tell_opened(call, shown, made, params.overrides)
    if unfinished is not None:
        await thread.go_on(unfinished)


async def fork(threads: ThreadTable, call: RpcCall, params: ForkConversationParams) -> None:
    """Copy a conversation: of a file, else of an id."""
    wishes = _wishes(threads, params.overrides)
    conversation_id = await _conversation_id(threads, params)
    if conversation_id is None and not params.path:
        raise refusal("either path or conversation id must be provided")
    wanted = ThreadForkParams(
        thread_id=conversation_id or "",
        path=params.path if conversation_id is None else None,
        **wishes,
    )
    made = await copied(threads, call.connection, wanted)
    shown = await _shown(threads, made)
    call.answer(ForkConversationResponse(**await _answer(threads, made, shown)))
    _tell_opened(call, shown, made, params.overrides)


async def initial_messages(session: Session, inlining: PictureInliner) -> tuple[EventMsg, ...]:
    """What was said in a conversation so far, with as many pictures as there is room for."""
    stored = list(each_once([one async for one in session.items()]))
    urls = [url for one in stored for url in image_urls(one.item) if handle_of(url) is not None]
    loaded = await inlining.loaded(urls)
    swaps = {url: {"type": "input_image", "image_url": data} for url, data in loaded.items()}
    return tuple(
        event
        for one in stored
        for event in replayed(replace(one, item=replace_images(one.item, swaps)))
    )


def _wishes(threads: ThreadTable, params: NewConversationParams | None) -> dict[str, Any]:
    """What is wanted, as the second protocol has it.

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
            raise refusal(f"invalid profile: {error.message}") from error
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
    """The id of the conversation that is meant; None where it is a file from elsewhere, or none.

    A path that is empty names nothing, as in the second protocol.
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
        raise refusal(f"no rollout found for conversation id {named[:80]}") from None
    return about.id


async def _bring_back(threads: ThreadTable, conversation_id: str) -> None:
    """Take a conversation that was put away out again: this protocol has no other word for it."""
    _, about = await threads.stored(conversation_id)
    if about.archived_ms is not None:
        await threads.limner.sessions.unarchive(conversation_id)


async def _imported(threads: ThreadTable, path: str, wishes: Mapping[str, Any]) -> Opened:
    try:
        return await continued(threads, ThreadResumeParams(thread_id="", path=path, **wishes))
    except LimnerError as error:
        raise refusal(f"failed to load rollout `{path[:400]}`: {error.message}") from error


async def _shown(threads: ThreadTable, made: Opened) -> _Shown:
    thread = made[0]
    told = await opened(thread, lim=threads.limner)
    view: Thread = told["thread"]
    path = await RolloutFiles(home=threads.limner.home.folder).write(view)
    configured = SessionConfigured(
        session_id=view.id,
        forked_from_id=view.forked_from_id,
        thread_name=view.name,
        model=told["model"],
        model_provider_id=view.model_provider,
        # Clients of this protocol know `on-failure`.
        approval_policy=thread.kept.terms.approval or told["approval_policy"],
        sandbox_policy={"type": next(m for m, now in MODES.items() if now == told["sandbox"])},
        cwd=view.cwd,
        reasoning_effort=view.reasoning_effort,
        rollout_path=path,
    )
    return _Shown(thread=view, path=path, configured=configured)


async def _answer(threads: ThreadTable, made: Opened, shown: _Shown) -> dict[str, Any]:
    messages = await initial_messages(made[0].session, threads.history.inlining)
    return {
        "conversation_id": shown.thread.id,
        "model": shown.configured.model,
        "initial_messages": messages,
        "rollout_path": shown.path,
    }


def _tell_opened(
    call: RpcCall, shown: _Shown, made: Opened, wanted: NewConversationParams | None
) -> None:
    """Tell whoever asked what holds now, and what of their wishes does not."""
    warnings = list(made[1])
    if wanted is not None and wanted.include_apply_patch_tool:
        warnings.append(NO_PATCHES)
    told = [WarningEvent(message=warning) for warning in warnings]
    tell(call.connection, shown.thread.id, shown.configured, *told)
