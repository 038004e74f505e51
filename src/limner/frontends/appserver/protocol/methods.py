"""The table of what clients can ask: the types of each request and answer, and how we differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from limner.frontends.appserver.protocol import accounts, threads, turns
from limner.frontends.appserver.protocol.base import Empty, Shape


class Method(NamedTuple):
    """One method of the protocol.

    Attributes:
        params: the type of what is sent with it; None where nothing needs to be.
        result: the type of the answer.
        note: where we differ from the Codex app-server, for the documentation.
        ours: whether only limner knows it.
    """

    params: Any
    result: type[Shape]
    note: str = ""
    ours: bool = False


_KEYS = "Keys come from the environment or `limner keys set`."
_TOOLS = "`dynamicTools` is taken here too, and replaces the tools that the thread had."
_PICTURES = (
    "Pictures come inline, the newest first, up to 32 MiB of base64 in one answer; older ones are "
    "named `limner://image/<sha256>`."
)

METHODS: Mapping[str, Method] = {
    "initialize": Method(accounts.InitializeParams, accounts.InitializeResponse),
    "thread/start": Method(threads.ThreadStartParams, threads.ThreadStartResponse),
    "thread/resume": Method(
        threads.ThreadResumeParams, threads.ThreadResumeResponse, f"{_TOOLS} {_PICTURES}"
    ),
    "thread/fork": Method(
        threads.ThreadForkParams, threads.ThreadForkResponse, f"{_TOOLS} {_PICTURES}"
    ),
    "thread/list": Method(threads.ThreadListParams, threads.ThreadListResponse),
    "thread/loaded/list": Method(threads.ThreadLoadedListParams, threads.ThreadLoadedListResponse),
    "thread/read": Method(threads.ThreadReadParams, threads.ThreadReadResponse, _PICTURES),
    "thread/turns/list": Method(
        threads.ThreadTurnsListParams, threads.ThreadTurnsListResponse, _PICTURES
    ),
    "thread/items/list": Method(
        threads.ThreadItemsListParams, threads.ThreadItemsListResponse, _PICTURES
    ),
    "thread/archive": Method(threads.ThreadArchiveParams, Empty),
    "thread/unarchive": Method(threads.ThreadUnarchiveParams, threads.ThreadUnarchiveResponse),
    "thread/delete": Method(threads.ThreadDeleteParams, Empty),
    "thread/name/set": Method(threads.ThreadSetNameParams, Empty),
    "thread/compact/start": Method(threads.ThreadCompactStartParams, Empty),
    "thread/inject_items": Method(
        threads.ThreadInjectItemsParams,
        Empty,
        "A picture that cannot be taken in becomes words that say why.",
    ),
    "thread/unsubscribe": Method(
        threads.ThreadUnsubscribeParams, threads.ThreadUnsubscribeResponse
    ),
    "thread/tools/set": Method(
        threads.ThreadToolsSetParams,
        Empty,
        "Changes the client's tools of a thread that is there.",
        ours=True,
    ),
    "thread/goal/set": Method(
        accounts.ThreadGoalSetParams,
        accounts.ThreadGoalSetResponse,
        "A goal is kept and told; it begins no turn.",
    ),
    "thread/goal/get": Method(accounts.ThreadGoalGetParams, accounts.ThreadGoalGetResponse),
    "thread/goal/clear": Method(accounts.ThreadGoalClearParams, accounts.ThreadGoalClearResponse),
    "turn/start": Method(
        turns.TurnStartParams,
        turns.TurnStartResponse,
        "`file:` addresses and what is no data URL are refused as remote addresses are.",
    ),
    "turn/steer": Method(turns.TurnSteerParams, turns.TurnSteerResponse),
    "turn/interrupt": Method(turns.TurnInterruptParams, Empty),
    "model/list": Method(
        accounts.ModelListParams,
        accounts.ModelListResponse,
        "The ids are `provider/id`, as everywhere in limner.",
    ),
    "account/read": Method(accounts.GetAccountParams, accounts.GetAccountResponse, _KEYS),
    "account/login/start": Method(
        accounts.LoginAccountParams, accounts.LoginAccountResponse, f"Only `apiKey`. {_KEYS}"
    ),
    "account/login/cancel": Method(
        accounts.CancelLoginAccountParams, accounts.CancelLoginAccountResponse
    ),
    "account/logout": Method(None, accounts.LogoutAccountResponse, _KEYS),
    "account/rateLimits/read": Method(None, accounts.GetAccountRateLimitsResponse),
    "config/read": Method(
        accounts.ConfigReadParams,
        accounts.ConfigReadResponse,
        "Only what limner has a setting for.",
    ),
}
