"""The types and methods of models, accounts and goals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from limner.frontends.appserver.protocol.base import Count, Method, Shape

GoalStatus = Literal["active", "paused", "blocked", "usageLimited", "budgetLimited", "complete"]
Modality = Literal["text", "image", "audio"]


# --- models ---


class ModelListParams(Shape):
    cursor: str | None = None
    limit: Count | None = None
    include_hidden: bool | None = None


class ReasoningEffortOption(Shape):
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
    data: tuple[Model, ...]
    next_cursor: str | None = None


# --- accounts: limner has none, but a stored API key counts as one ---


class GetAccountParams(Shape):
    refresh_token: bool = False


class ApiKeyAccount(Shape, tag_field="type", tag="apiKey"):
    """A client has stored a key."""


class GetAccountResponse(Shape):
    """No account is needed: keys also come from the environment."""

    account: ApiKeyAccount | None = None
    requires_openai_auth: bool = False
    workspace_routing: None = None


class ApiKeyLogin(Shape, tag_field="type", tag="apiKey"):
    api_key: str


class ChatgptLogin(Shape, tag_field="type", tag="chatgpt"):
    pass


class ChatgptDeviceCodeLogin(Shape, tag_field="type", tag="chatgptDeviceCode"):
    pass


class ChatgptAuthTokensLogin(Shape, tag_field="type", tag="chatgptAuthTokens"):
    pass


class AmazonBedrockLogin(Shape, tag_field="type", tag="amazonBedrock"):
    pass


class AmazonBedrockAccessKeysLogin(Shape, tag_field="type", tag="amazonBedrockAccessKeys"):
    pass


LoginAccountParams = (
    ApiKeyLogin
    | ChatgptLogin
    | ChatgptDeviceCodeLogin
    | ChatgptAuthTokensLogin
    | AmazonBedrockLogin
    | AmazonBedrockAccessKeysLogin
)


class LoginAccountResponse(Shape, tag_field="type", tag="apiKey"):
    """The key is stored."""


class CancelLoginAccountParams(Shape):
    login_id: str


class CancelLoginAccountResponse(Shape):
    """A login never takes time here, so there is none to cancel."""

    status: Literal["canceled", "notFound"] = "notFound"


class LogoutAccountResponse(Shape):
    """The key is removed."""


class RateLimitSnapshot(Shape):
    """The limits of an account. limner knows none."""

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
    rate_limits: RateLimitSnapshot
    rate_limits_by_limit_id: dict[str, RateLimitSnapshot] | None = None
    rate_limit_reset_credits: None = None
    rate_limit_upsell: None = None
    account_id: str | None = None
    ordinary_usage_allowed: bool | None = None


# --- goals ---


class ThreadGoal(Shape):
    """The goal of a thread. It is stored and sent to clients; it starts no turn."""

    thread_id: str
    objective: str
    status: GoalStatus = "active"
    token_budget: int | None = None
    tokens_used: int = 0
    time_used_seconds: int = 0
    created_at: int
    updated_at: int


class ThreadGoalSetParams(Shape):
    """A new goal, or a new state of the current goal."""

    thread_id: str
    objective: str | None = None
    status: GoalStatus | None = None
    token_budget: int | None = None


class ThreadGoalSetResponse(Shape):
    goal: ThreadGoal


class ThreadGoalGetParams(Shape):
    thread_id: str


class ThreadGoalGetResponse(Shape):
    goal: ThreadGoal | None = None


class ThreadGoalClearParams(Shape):
    thread_id: str


class ThreadGoalClearResponse(Shape):
    """``cleared`` says whether there was a goal."""

    cleared: bool


_KEYS = "Keys come from the environment or `limner keys set`."

METHODS: Mapping[str, Method] = {
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
