"""A session and the state of its thread -> the thread that clients see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from limner.agent.session import Session, SessionAbout
from limner.agent.session_options import SessionOptions
from limner.client import Limner
from limner.errors import LimnerError
from limner.frontends.appserver.protocol.base import PROTOCOL_VERSION
from limner.frontends.appserver.protocol.threads import (
    NotLoaded,
    Thread,
    ThreadEnvironment,
    ThreadStatus,
)
from limner.frontends.appserver.protocol.turns import Turn
from limner.frontends.appserver.thread import LiveThread
from limner.frontends.appserver.thread_options import MODES, resolve_model, shown_policy
from limner.frontends.appserver.thread_state import ThreadState
from limner.frontends.appserver.threads import ThreadTable

_PREVIEWS = {"input_image": "[Image]", "input_audio": "[Audio]"}
_PREVIEW_ITEMS = 5


def thread_view(
    about: SessionAbout,
    state: ThreadState,
    *,
    lim: Limner,
    status: ThreadStatus | None = None,
    preview: str = "",
    turns: Sequence[Turn] = (),
) -> Thread:
    """The thread of a session; a status of None means that it is not open."""
    model = resolve_model(state.options, lim=lim)
    extras = state.extras
    cwd = extras.cwd or about.cwd
    place = ThreadEnvironment(environment_id="local", cwd=cwd, runtime_workspace_roots=(cwd,))
    return Thread(
        id=about.id,
        environments=None if status is None else (place,),
        session_id=about.id,
        forked_from_id=about.forked_from,
        preview=about.preview or preview,
        ephemeral=extras.ephemeral,
        model_provider=model.provider,
        model=model.model,
        reasoning_effort=model.effort,
        created_at=about.created_ms // 1000,
        updated_at=about.updated_ms // 1000,
        recency_at=about.updated_ms // 1000,
        status=NotLoaded() if status is None else status,
        cwd=cwd,
        cli_version=PROTOCOL_VERSION,
        originator=extras.originator,
        # Only threads that a client started have an originator.
        source="cli" if extras.originator is None else "appServer",
        can_accept_direct_input=True,
        thread_source=extras.thread_source,
        git_info=extras.git_info,
        name=about.name,
        turns=tuple(turns),
    )


async def preview_of(session: Session, about: SessionAbout) -> str:
    """The first words of a thread, or a label if it starts with a picture or a sound."""
    if about.preview or not about.items:
        return about.preview or ""
    for stored in await session.page(limit=_PREVIEW_ITEMS):
        if stored.item.get("role") == "user" and isinstance(stored.item.get("content"), list):
            kinds = [part.get("type") for part in stored.item["content"]]
            return next((_PREVIEWS[kind] for kind in kinds if kind in _PREVIEWS), "")
    return ""


async def stored_view(
    threads: ThreadTable, about: SessionAbout, *, turns: Sequence[Turn] = ()
) -> Thread:
    """The thread of a session, open or not."""
    live, lim = threads.live.get(about.id), threads.limner
    return thread_view(
        about,
        ThreadState.from_settings(about.settings) if live is None else live.state,
        lim=lim,
        status=None if live is None else live.status,
        preview=await preview_of(await lim.sessions.open(about.id), about),
        turns=turns,
    )


async def opened_view(
    thread: LiveThread, *, lim: Limner, turns: Sequence[Turn] = ()
) -> dict[str, Any]:
    """The members of the response that starts, resumes or forks a thread."""
    about = await thread.session.about()
    view = thread_view(
        about,
        thread.state,
        lim=lim,
        status=thread.status,
        preview=await preview_of(thread.session, about),
        turns=turns,
    )
    return {
        "thread": view,
        "model": view.model,
        "model_provider": view.model_provider,
        "reasoning_effort": view.reasoning_effort,
        "cwd": view.cwd,
        "runtime_workspace_roots": (view.cwd,),
        **_policies(thread.state.options, lim),
    }


def _policies(options: SessionOptions, lim: Limner) -> Mapping[str, Any]:
    """The approval policy and the sandbox of the next turn."""
    policy, sandbox = lim.settings.approval.policy, lim.settings.agent.sandbox
    with suppress(LimnerError):
        personality = lim.personalities.get(options.personality or lim.settings.agent.personality)
        policy = options.approval or personality.approval or policy
        sandbox = options.sandbox or personality.sandbox or sandbox
    return {"approval_policy": shown_policy(policy), "sandbox": MODES[sandbox]}
