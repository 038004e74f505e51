"""The methods on models, accounts and goals."""

from __future__ import annotations

import platform
import time
import uuid
from typing import get_args

from limner.client import Limner
from limner.frontends.appserver.dispatch import RpcCall
from limner.frontends.appserver.handshake import user_agent
from limner.frontends.appserver.protocol import accounts, notifications, startup
from limner.frontends.appserver.rpc_errors import invalid_request
from limner.frontends.appserver.server import Host
from limner.frontends.appserver.thread_options import name_for_clients, resolve_model
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
    """The models that can be used; a cursor is the last id of the page before."""
    lim = threads.limner
    default = resolve_model(threads.defaults, lim=lim).name
    known = {one.name: one for one in lim.models.available() if one.name != EYES}
    found = lim.models.find(default)
    if found is not None:
        known.setdefault(default, found.model)
    names = sorted(known, key=lambda name: name != default)
    if params.cursor is not None:
        if params.cursor not in known:
            raise invalid_request(f"invalid cursor: {params.cursor[:80]}")
        names = names[names.index(params.cursor) + 1 :]
    page = names[: params.limit or len(names)]
    return accounts.ModelListResponse(
        data=tuple(_model(known[name], lim=lim, is_default=name == default) for name in page),
        next_cursor=page[-1] if page and len(page) < len(names) else None,
    )


def _model(model: KnownModel, *, lim: Limner, is_default: bool) -> accounts.Model:
    return accounts.Model(
        id=model.name,
        model=name_for_clients(model.provider, model.id, lim=lim),
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


async def account_read(threads: ThreadTable) -> accounts.GetAccountResponse:
    """The key that a client has stored counts as an account."""
    is_stored = threads.limner.keys.is_stored(KEY)
    return accounts.GetAccountResponse(account=accounts.ApiKeyAccount() if is_stored else None)


async def login_start(
    threads: ThreadTable, call: RpcCall, params: accounts.LoginAccountParams
) -> None:
    """Store an API key."""
    if not isinstance(params, accounts.ApiKeyLogin):
        raise invalid_request("only login with an API key (type apiKey) is supported")
    threads.limner.keys.set(KEY, params.api_key)
    call.answer(accounts.LoginAccountResponse())
    announce_login(threads)


def announce_login(threads: ThreadTable) -> None:
    """Notify every client that a key is stored."""
    threads.clients.notify(notifications.AccountLoginCompletedNotification(success=True))
    threads.clients.notify(notifications.AccountUpdatedNotification(auth_mode="apikey"))


async def login_cancel() -> accounts.CancelLoginAccountResponse:
    """There is never a login to cancel."""
    return accounts.CancelLoginAccountResponse()


async def logout(threads: ThreadTable, call: RpcCall) -> None:
    """Remove the key that a login has stored; a key from the environment stays."""
    threads.limner.keys.remove(KEY)
    call.answer(accounts.LogoutAccountResponse())
    threads.clients.notify(notifications.AccountUpdatedNotification())


async def auth_status(threads: ThreadTable) -> startup.GetAuthStatusResponse:
    """How the client is logged in; the key itself is never sent back."""
    is_stored = threads.limner.keys.is_stored(KEY)
    return startup.GetAuthStatusResponse(auth_method="apikey" if is_stored else None)


async def client_user_agent(call: RpcCall) -> startup.GetUserAgentResponse:
    """The name of the server on behalf of the client."""
    name, version = call.connection.client or ("", "")
    return startup.GetUserAgentResponse(user_agent=user_agent(name, version))


async def skills_list(host: Host, params: startup.SkillsListParams) -> startup.SkillsListResponse:
    """No folder has skills."""
    folders = params.cwds or [str(host.cwd)]
    return startup.SkillsListResponse(
        data=tuple(startup.SkillsListEntry(cwd=folder) for folder in folders)
    )


async def hooks_list(host: Host, params: startup.HooksListParams) -> startup.HooksListResponse:
    """No folder has hooks."""
    folders = params.cwds or [str(host.cwd)]
    return startup.HooksListResponse(
        data=tuple(startup.HooksListEntry(cwd=folder) for folder in folders)
    )


async def remote_control_status(host: Host) -> startup.RemoteControlStatusReadResponse:
    """There is no remote control; the ids name this machine and this home."""
    return startup.RemoteControlStatusReadResponse(
        server_name=platform.node() or "limner",
        installation_id=str(uuid.uuid5(uuid.NAMESPACE_URL, host.settings.home.as_uri())),
    )


async def rate_limits_read() -> accounts.GetAccountRateLimitsResponse:
    """limner knows no limits of an account."""
    return accounts.GetAccountRateLimitsResponse(rate_limits=accounts.RateLimitSnapshot())


async def goal_get(
    threads: ThreadTable,
    params: accounts.ThreadGoalGetParams,
) -> accounts.ThreadGoalGetResponse:
    """The goal of a thread."""
    return accounts.ThreadGoalGetResponse(goal=threads.get(params.thread_id).state.extras.goal)


async def goal_set(
    threads: ThreadTable, call: RpcCall, params: accounts.ThreadGoalSetParams
) -> None:
    """Set the goal of a thread, or change its state."""
    thread = threads.get(params.thread_id)
    before, now_s = thread.state.extras.goal, int(time.time())
    objective = params.objective or (None if before is None else before.objective)
    if objective is None:
        raise invalid_request(f"cannot update goal for thread {thread.id}: no goal exists")
    budget = None if before is None else before.token_budget
    goal = accounts.ThreadGoal(
        thread_id=thread.id,
        objective=objective,
        status=params.status or ("active" if before is None else before.status),
        token_budget=budget if params.token_budget is None else params.token_budget,
        created_at=now_s if before is None else before.created_at,
        updated_at=now_s,
    )
    await thread.save(thread.state.with_extras(goal=goal))
    call.answer(accounts.ThreadGoalSetResponse(goal=goal))
    thread.subscribers.notify(
        notifications.ThreadGoalUpdatedNotification(thread_id=thread.id, goal=goal)
    )


async def goal_clear(
    threads: ThreadTable, call: RpcCall, params: accounts.ThreadGoalClearParams
) -> None:
    """Remove the goal of a thread."""
    thread = threads.get(params.thread_id)
    had_one = thread.state.extras.goal is not None
    await thread.save(thread.state.with_extras(goal=None))
    call.answer(accounts.ThreadGoalClearResponse(cleared=had_one))
    thread.subscribers.notify(notifications.ThreadGoalClearedNotification(thread_id=thread.id))
