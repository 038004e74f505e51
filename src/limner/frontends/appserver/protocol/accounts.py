"""The small calls around conversations: greeting, models, accounts, settings and goals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from limner.frontends.appserver.protocol.base import Count, Method, Shape

GoalStatus = Literal["active", "paused", "blocked", "usageLimited", "budgetLimited", "complete"]
Modality = Literal["text", "image", "audio"]


# --- greeting ---


class ClientInfo(Shape):
    """Who the client is."""

    name: str
    version: str
    title: str | None = None


class InitializeCapabilities(Shape):
    """What the client can take; ``opt_out_notification_methods`` are exact names."""

    experimental_api: bool = False
    opt_out_notification_methods: list[str] | None = None


class InitializeParams(Shape):
    """The first request of every connection."""

    client_info: ClientInfo
    capabilities: InitializeCapabilities | None = None


class InitializeResponse(Shape):
    """Who the server is."""

    user_agent: str
    codex_home: str
    platform_family: str
    platform_os: str


# --- models ---


class ModelListParams(Shape):
    """Some of the models that can be talked to."""

    cursor: str | None = None
    limit: Count | None = None
    include_hidden: bool | None = None


class ReasoningEffortOption(Shape):
    """How hard a model can be told to think."""

    reasoning_effort: str
    description: str


class Model(Shape):
    """A model; ``id`` is what `thread/start` takes."""

    id: str
    model: str
    upgrade: str | None = None
    upgrade_info: None = None
    availability_nux: None = None
    display_name: str
    description: str
    model_specialty: str | None = None
    hidden: bool = False
    supported_reasoning_efforts: tuple[ReasoningEffortOption, ...] = ()
    default_reasoning_effort: str = "medium"
    input_modalities: tuple[Modality, ...] = ("text", "image")
    supports_personality: bool = False
    additional_speed_tiers: tuple[str, ...] = ()
    service_tiers: tuple[str, ...] = ()
    default_service_tier: str | None = None
    available_access_programs: None = None
    multi_agent_version: None = None
    is_default: bool = False


class ModelListResponse(Shape):
    """The models."""

    data: tuple[Model, ...]
    next_cursor: str | None = None


# --- accounts: keys come from the environment, so there is nobody to log in ---


class GetAccountParams(Shape):
    """Who is logged in."""

    refresh_token: bool = False


class GetAccountResponse(Shape):
    """Nobody is, and nobody needs to be."""

    account: None = None
    requires_openai_auth: bool = False
    workspace_routing: None = None


class ApiKeyLogin(Shape, tag_field="type", tag="apiKey"):
    """By the key of a service."""

    api_key: str


class ChatgptLogin(Shape, tag_field="type", tag="chatgpt"):
    """By an account of ChatGPT, in a browser."""


class ChatgptDeviceCodeLogin(Shape, tag_field="type", tag="chatgptDeviceCode"):
    """By an account of ChatGPT, with a code."""


class ChatgptAuthTokensLogin(Shape, tag_field="type", tag="chatgptAuthTokens"):
    """By tokens that the client has."""


class AmazonBedrockLogin(Shape, tag_field="type", tag="amazonBedrock"):
    """By a key of Amazon's."""


class AmazonBedrockAccessKeysLogin(Shape, tag_field="type", tag="amazonBedrockAccessKeys"):
    """By a pair of keys of Amazon's."""


LoginAccountParams = (
    ApiKeyLogin
    | ChatgptLogin
    | ChatgptDeviceCodeLogin
    | ChatgptAuthTokensLogin
    | AmazonBedrockLogin
    | AmazonBedrockAccessKeysLogin
)


class LoginAccountResponse(Shape, tag_field="type", tag="apiKey"):
    """The key is kept."""


class CancelLoginAccountParams(Shape):
    """A login is not wanted any more."""

    login_id: str


class CancelLoginAccountResponse(Shape):
    """There was none."""

    status: Literal["canceled", "notFound"] = "notFound"


class LogoutAccountResponse(Shape):
    """The key is forgotten."""


class RateLimitSnapshot(Shape):
    """What an account may still use; here nothing is known of that."""

    limit_id: str | None = None
    limit_name: str | None = None
    normal_model_slug: str | None = None
    primary: None = None
    secondary: None = None
    credits: None = None
    individual_limit: None = None
    spend_control_reached: bool | None = None
    plan_type: None = None
    rate_limit_reached_type: None = None


class GetAccountRateLimitsResponse(Shape):
    """What an account may still use."""

    rate_limits: RateLimitSnapshot
    rate_limits_by_limit_id: dict[str, RateLimitSnapshot] | None = None
    rate_limit_reset_credits: None = None
    rate_limit_upsell: None = None
    account_id: str | None = None
    ordinary_usage_allowed: bool | None = None


# --- settings ---


class ConfigReadParams(Shape):
    """What holds in a folder."""

    cwd: str | None = None
    include_layers: bool = False


class ConfigReadResponse(Shape):
    """The settings in Codex's words, as far as it has words for them."""

    config: dict[str, Any]
    origins: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    layers: None = None


# --- goals ---


class ThreadGoal(Shape):
    """What a thread is to reach; it is kept and told, and nobody works towards it unasked."""

    thread_id: str
    objective: str
    status: GoalStatus = "active"
    token_budget: int | None = None
    tokens_used: int = 0
    time_used_seconds: int = 0
    created_at: int
    updated_at: int


class ThreadGoalSetParams(Shape):
    """A goal, or another state of it."""

    thread_id: str
    objective: str | None = None
    status: GoalStatus | None = None
    token_budget: int | None = None


class ThreadGoalSetResponse(Shape):
    """The goal."""

    goal: ThreadGoal


class ThreadGoalGetParams(Shape):
    """Whether a thread has a goal."""

    thread_id: str


class ThreadGoalGetResponse(Shape):
    """The goal, if there is one."""

    goal: ThreadGoal | None = None


class ThreadGoalClearParams(Shape):
    """A thread is to have no goal."""

    thread_id: str


class ThreadGoalClearResponse(Shape):
    """Whether it had one."""

    cleared: bool


_KEYS = "Keys come from the environment or `limner keys set`."

METHODS: Mapping[str, Method] = {
    "initialize": Method(
        params=InitializeParams,
        result=InitializeResponse,
        handler="handshake:initialize",
        needs_initialize=False,
    ),
    "model/list": Method(
        params=ModelListParams,
        result=ModelListResponse,
        handler="account_methods:model_list",
        note="The ids are `provider/id`, as everywhere in limner.",
    ),
    "account/read": Method(
        params=GetAccountParams,
        result=GetAccountResponse,
        handler="account_methods:account_read",
        note=_KEYS,
    ),
    "account/login/start": Method(
        params=LoginAccountParams,
        result=LoginAccountResponse,
        handler="account_methods:login_start",
        note=f"Only `apiKey`. {_KEYS}",
    ),
    "account/login/cancel": Method(
        params=CancelLoginAccountParams,
        result=CancelLoginAccountResponse,
        handler="account_methods:login_cancel",
    ),
    "account/logout": Method(
        params=None,
        result=LogoutAccountResponse,
        handler="account_methods:logout",
        note=_KEYS,
    ),
    "account/rateLimits/read": Method(
        params=None,
        result=GetAccountRateLimitsResponse,
        handler="account_methods:rate_limits_read",
    ),
    "config/read": Method(
        params=ConfigReadParams,
        result=ConfigReadResponse,
        handler="account_methods:config_read",
        note="Only what limner has a setting for.",
    ),
    "thread/goal/set": Method(
        params=ThreadGoalSetParams,
        result=ThreadGoalSetResponse,
        handler="account_methods:goal_set",
        note="The goal is stored and sent to clients. It starts no turn.",
    ),
    "thread/goal/get": Method(
        params=ThreadGoalGetParams,
        result=ThreadGoalGetResponse,
        handler="account_methods:goal_get",
    ),
    "thread/goal/clear": Method(
        params=ThreadGoalClearParams,
        result=ThreadGoalClearResponse,
        handler="account_methods:goal_clear",
    ),
}
