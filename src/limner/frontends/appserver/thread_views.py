"""A session and what holds for it -> the thread that clients see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from limner.agent.session import Session, SessionAbout
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
from limner.frontends.appserver.thread_options import MODES, talker
from limner.frontends.appserver.thread_state import ThreadState
from limner.frontends.appserver.threads import ThreadTable

_IMAGE, _SOUND = "[Image]", "[Audio]"
_PREVIEWS = {"input_image": _IMAGE, "input_audio": _SOUND}
_LOOKED_AT = 5


def thread_view(
    about: SessionAbout,
    kept: ThreadState,
    *,
    lim: Limner,
    status: ThreadStatus | None = None,
    preview: str = "",
    turns: Sequence[Turn] = (),
) -> Thread:
    """The thread of a session; a status of None is that it is not open."""
    who = talker(kept.terms, lim=lim)
    cwd = kept.rest.cwd or about.cwd
    place = ThreadEnvironment(environment_id="local", cwd=cwd, runtime_workspace_roots=(cwd,))
    begun_here = kept.rest.originator is not None
    return Thread(
        id=about.id,
        environments=None if status is None else (place,),
        session_id=about.id,
        forked_from_id=about.forked_from,
        preview=about.preview or preview,
        ephemeral=kept.rest.ephemeral,
        model_provider=who.provider,
        model=who.model,
        reasoning_effort=who.effort,
        created_at=about.created_ms // 1000,
        updated_at=about.updated_ms // 1000,
        recency_at=about.updated_ms // 1000,
        status=NotLoaded() if status is None else status,
        cwd=cwd,
        cli_version=PROTOCOL_VERSION,
        originator=kept.rest.originator,
        source="appServer" if begun_here else "cli",
        can_accept_direct_input=True,
        thread_source=kept.rest.thread_source,
        name=about.name,
        turns=tuple(turns),
    )


async def preview_of(session: Session, about: SessionAbout) -> str:
    """The first words of a thread; of one that begins with a picture or a sound, that."""
    if about.preview or not about.items:
        return about.preview or ""
    for stored in await session.page(limit=_LOOKED_AT):
        if stored.item.get("role") == "user" and isinstance(stored.item.get("content"), list):
            kinds = [part.get("type") for part in stored.item["content"]]
            return next((_PREVIEWS[kind] for kind in kinds if kind in _PREVIEWS), "")
    return ""


async def stored_view(
    threads: ThreadTable, about: SessionAbout, *, turns: Sequence[Turn] = ()
) -> Thread:
    """The thread of a session, whether it is open or not."""
    live, lim = threads.live.get(about.id), threads.limner
    return thread_view(
        about,
        ThreadState.read(about.settings) if live is None else live.kept,
        lim=lim,
        status=None if live is None else live.status,
        preview=await preview_of(await lim.sessions.open(about.id), about),
        turns=turns,
    )


async def opened(thread: LiveThread, *, lim: Limner, turns: Sequence[Turn] = ()) -> dict[str, Any]:
    """What is answered when a thread was begun, continued or copied: the members of the answer."""
    about = await thread.session.about()
    view = thread_view(
        about,
        thread.kept,
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
        **_held(thread.kept, lim),
    }


def _held(kept: ThreadState, lim: Limner) -> Mapping[str, Any]:
    """When the user is asked and what may be written, as the next turn will have it."""
    try:
        standing = lim.conversations.turn_configs
        who = lim.personalities.get(kept.terms.personality or standing.personality)
        policy = kept.terms.approval or who.approval or standing.approval.policy
        sandbox = kept.terms.sandbox or who.sandbox or standing.sandbox
    except LimnerError:
        policy, sandbox = lim.settings.approval.policy, lim.settings.agent.sandbox
    # Clients of this version know no `on-failure`.
    told = "on-request" if policy == "on-failure" else policy
    return {"approval_policy": told, "sandbox": MODES[sandbox]}
