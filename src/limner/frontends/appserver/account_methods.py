"""The small calls around conversations: models, accounts, settings and goals."""

from __future__ import annotations

import time
from typing import Any, get_args

from limner.agent.session_options import SessionOptions
from limner.frontends.appserver.dispatch import RpcCall
from limner.frontends.appserver.protocol import accounts, notifications
from limner.frontends.appserver.protocol.notifications import METHOD_OF, Notice
from limner.frontends.appserver.rpc_errors import refusal
from limner.frontends.appserver.thread_options import talker
from limner.frontends.appserver.threads import ThreadTable
from limner.models.registry import EYES, KnownModel
from limner.wires.base import Effort

KEY = "OPENAI_API_KEY"
_EFFORTS = tuple(
    accounts.ReasoningEffortOption(reasoning_effort=word, description=f"thinks: {word}")
    for word in get_args(Effort)
)


async def model_list(
    threads: ThreadTable,
    params: accounts.ModelListParams,
) -> accounts.ModelListResponse:
    """The models that can be talked to; a cursor is the last one that was seen."""
    lim = threads.limner
    first = talker(SessionOptions(), lim=lim)
    default = f"{first.provider}/{first.model}"
    known = {one.name: one for one in lim.models.available() if one.name != EYES}
    found = lim.models.find(default)
    if found is not None:
        known.setdefault(default, found.model)
    names = sorted(known, key=lambda name: name != default)
    if params.cursor is not None:
        if params.cursor not in known:
            raise refusal(f"invalid cursor: {params.cursor[:80]}")
        names = names[names.index(params.cursor) + 1 :]
    page = names[: params.limit or len(names)]
    return accounts.ModelListResponse(
        data=tuple(_model(known[name], is_default=name == default) for name in page),
        next_cursor=page[-1] if page and len(page) < len(names) else None,
    )


def _model(model: KnownModel, *, is_default: bool) -> accounts.Model:
    return accounts.Model(
        id=model.name,
        model=model.name,
        display_name=model.facts.title,
        description=f"{model.facts.title}, {model.title}",
        supported_reasoning_efforts=_EFFORTS,
        input_modalities=_modalities(model),
        is_default=is_default,
    )


def _modalities(model: KnownModel) -> tuple[accounts.Modality, ...]:
    taken: dict[accounts.Modality, bool] = {
        "text": True,
        "image": model.takes_images,
        "audio": model.takes_audio,
    }
    return tuple(modality for modality, is_taken in taken.items() if is_taken)


async def account_read() -> accounts.GetAccountResponse:
    """Nobody is logged in, and nobody needs to be."""
    return accounts.GetAccountResponse()


async def login_start(
    threads: ThreadTable, call: RpcCall, params: accounts.LoginAccountParams
) -> None:
    """Keep the key of a service."""
    if not isinstance(params, accounts.ApiKeyLogin):
        raise refusal("only login by apiKey is supported: keys come from the environment")
    threads.limner.keys.set(KEY, params.api_key)
    call.answer(accounts.LoginAccountResponse())
    _tell(call, notifications.AccountLoginCompletedNotification(success=True))
    _tell(call, notifications.AccountUpdatedNotification(auth_mode="apikey"))


async def login_cancel() -> accounts.CancelLoginAccountResponse:
    """There is no login that takes its time."""
    return accounts.CancelLoginAccountResponse()


async def logout(threads: ThreadTable, call: RpcCall) -> None:
    """Forget the key that a login has kept; one from the environment stays."""
    threads.limner.keys.remove(KEY)
    call.answer(accounts.LogoutAccountResponse())
    _tell(call, notifications.AccountUpdatedNotification())


async def rate_limits_read() -> accounts.GetAccountRateLimitsResponse:
    """Nothing is known of an account's limits."""
    return accounts.GetAccountRateLimitsResponse(rate_limits=accounts.RateLimitSnapshot())


async def config_read(
    threads: ThreadTable,
) -> accounts.ConfigReadResponse:
    """The settings that Codex has words for."""
    lim = threads.limner
    who = talker(SessionOptions(), lim=lim)
    config: dict[str, Any] = {
        "model": who.model,
        "model_provider": who.provider,
        "model_reasoning_effort": who.effort,
        "approval_policy": lim.settings.approval.policy,
        "sandbox_mode": lim.settings.agent.sandbox,
    }
    return accounts.ConfigReadResponse(config=config)


async def goal_get(
    threads: ThreadTable,
    params: accounts.ThreadGoalGetParams,
) -> accounts.ThreadGoalGetResponse:
    """What a thread is to reach."""
    return accounts.ThreadGoalGetResponse(goal=threads.get(params.thread_id).kept.rest.goal)


async def goal_set(
    threads: ThreadTable, call: RpcCall, params: accounts.ThreadGoalSetParams
) -> None:
    """Give a thread something to reach, or say how far it is."""
    thread = threads.get(params.thread_id)
    before, now_s = thread.kept.rest.goal, int(time.time())
    objective = params.objective or (None if before is None else before.objective)
    if objective is None:
        raise refusal(f"cannot update goal for thread {thread.id}: no goal exists")
    budget = None if before is None else before.token_budget
    goal = accounts.ThreadGoal(
        thread_id=thread.id,
        objective=objective,
        status=params.status or ("active" if before is None else before.status),
        token_budget=budget if params.token_budget is None else params.token_budget,
        created_at=now_s if before is None else before.created_at,
        updated_at=now_s,
    )
    await thread.keep(thread.kept.but(goal=goal))
    call.answer(accounts.ThreadGoalSetResponse(goal=goal))
    thread.audience.tell(
        notifications.ThreadGoalUpdatedNotification(thread_id=thread.id, goal=goal)
    )


async def goal_clear(
    threads: ThreadTable, call: RpcCall, params: accounts.ThreadGoalClearParams
) -> None:
    """Let a thread have nothing to reach."""
    thread = threads.get(params.thread_id)
    had_one = thread.kept.rest.goal is not None
    await thread.keep(thread.kept.but(goal=None))
    call.answer(accounts.ThreadGoalClearResponse(cleared=had_one))
    thread.audience.tell(notifications.ThreadGoalClearedNotification(thread_id=thread.id))


def _tell(call: RpcCall, notice: Notice) -> None:
    call.connection.notify(METHOD_OF[type(notice)], notice)
