"""What clients are told unasked: a type for each notification, and the name it is sent under."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from limner.frontends.appserver.protocol.accounts import RateLimitSnapshot, ThreadGoal
from limner.frontends.appserver.protocol.base import Shape
from limner.frontends.appserver.protocol.items import ThreadItem
from limner.frontends.appserver.protocol.threads import Thread, ThreadStatus
from limner.frontends.appserver.protocol.turns import Turn, TurnError


class Notice(Shape):
    """A notification; its method is its class's."""


class ThreadStartedNotification(Notice):
    """There is a new thread."""

    thread: Thread


class ThreadStatusChangedNotification(Notice):
    """A thread begins or ceases to do something."""

    thread_id: str
    status: ThreadStatus


class ThreadNameUpdatedNotification(Notice):
    """A thread is called something else."""

    thread_id: str
    thread_name: str | None = None


class ThreadArchivedNotification(Notice):
    """A thread was put away."""

    thread_id: str


class ThreadUnarchivedNotification(Notice):
    """A thread is back."""

    thread_id: str


class ThreadDeletedNotification(Notice):
    """A thread was forgotten."""

    thread_id: str


class ThreadClosedNotification(Notice):
    """A thread is open in this process no longer."""

    thread_id: str


class ThreadGoalUpdatedNotification(Notice):
    """A thread has a goal, or another one."""

    thread_id: str
    turn_id: str | None = None
    goal: ThreadGoal


class ThreadGoalClearedNotification(Notice):
    """A thread has no goal any more."""

    thread_id: str


class TurnPosition(Shape, tag_field="type", tag="turn"):
    """The beginning of a turn."""

    turn_id: str


class ThreadReadState(Shape):
    """How far a user has read; a new ``revision`` stands for new things to read."""

    first_unread: TurnPosition | None = None
    revision: str


class ThreadReadStateChangedNotification(Notice):
    """There is something to read."""

    thread_id: str
    read_state: ThreadReadState


class TokenUsageBreakdown(Shape):
    """Tokens as a model counted them."""

    total_tokens: int
    input_tokens: int
    cached_input_tokens: int
    cache_write_input_tokens: int = 0
    output_tokens: int
    reasoning_output_tokens: int


class ThreadTokenUsage(Shape):
    """What a thread took in all, and with its last request."""

    total: TokenUsageBreakdown
    last: TokenUsageBreakdown
    model_context_window: int | None = None


class ThreadTokenUsageUpdatedNotification(Notice):
    """A request to the model was counted."""

    thread_id: str
    turn_id: str
    token_usage: ThreadTokenUsage


class AccountRateLimitsUpdatedNotification(Notice):
    """What an account may still use."""

    rate_limits: RateLimitSnapshot


class AccountUpdatedNotification(Notice):
    """Somebody logged in or out."""

    auth_mode: Literal["apikey"] | None = None
    plan_type: None = None


class AccountLoginCompletedNotification(Notice):
    """A login came to its end."""

    login_id: str | None = None
    success: bool
    error: str | None = None
    onboarding_entrypoint: None = None


class TurnStartedNotification(Notice):
    """A turn begins."""

    thread_id: str
    turn: Turn


class TurnCompletedNotification(Notice):
    """A turn is over; only the last words of the model are with it."""

    thread_id: str
    turn: Turn


class ItemStartedNotification(Notice):
    """An item begins."""

    item: ThreadItem
    thread_id: str
    turn_id: str
    started_at_ms: int


class ItemCompletedNotification(Notice):
    """An item is whole."""

    item: ThreadItem
    thread_id: str
    turn_id: str
    completed_at_ms: int


class AgentMessageDeltaNotification(Notice):
    """The next words of a model."""

    thread_id: str
    turn_id: str
    item_id: str
    delta: str


class ReasoningSummaryTextDeltaNotification(Notice):
    """The next words of the summary of a thought."""

    thread_id: str
    turn_id: str
    item_id: str
    delta: str
    summary_index: int


class ErrorNotification(Notice):
    """Something failed in a turn."""

    error: TurnError
    will_retry: bool
    thread_id: str
    turn_id: str


class WarningNotification(Notice):
    """Somebody should know something."""

    thread_id: str | None = None
    message: str


class ConfigWarningNotification(Notice):
    """Something in the settings is odd."""

    summary: str
    details: str | None = None


class DeprecationNoticeNotification(Notice):
    """There is a better way to do what was done."""

    summary: str
    details: str | None = None


class ServerRequestResolvedNotification(Notice):
    """A question of the server was answered, maybe by another client."""

    thread_id: str
    request_id: int | str


class ThreadSpendUpdatedNotification(Notice):
    """What a turn cost, and the whole thread; limner alone tells this."""

    thread_id: str
    turn_id: str
    turn_cost_usd: float
    thread_cost_usd: float


class ThreadToolsChangedNotification(Notice):
    """A thread has other tools of its client; limner alone tells this."""

    thread_id: str
    names: tuple[str, ...]


NOTIFICATIONS: Mapping[str, type[Notice]] = {
    "thread/started": ThreadStartedNotification,
    "thread/status/changed": ThreadStatusChangedNotification,
    "thread/name/updated": ThreadNameUpdatedNotification,
    "thread/archived": ThreadArchivedNotification,
    "thread/unarchived": ThreadUnarchivedNotification,
    "thread/deleted": ThreadDeletedNotification,
    "thread/closed": ThreadClosedNotification,
    "thread/goal/updated": ThreadGoalUpdatedNotification,
    "thread/goal/cleared": ThreadGoalClearedNotification,
    "thread/readState/changed": ThreadReadStateChangedNotification,
    "thread/tokenUsage/updated": ThreadTokenUsageUpdatedNotification,
    "thread/spend/updated": ThreadSpendUpdatedNotification,
    "thread/tools/changed": ThreadToolsChangedNotification,
    "account/rateLimits/updated": AccountRateLimitsUpdatedNotification,
    "account/updated": AccountUpdatedNotification,
    "account/login/completed": AccountLoginCompletedNotification,
    "turn/started": TurnStartedNotification,
    "turn/completed": TurnCompletedNotification,
    "item/started": ItemStartedNotification,
    "item/completed": ItemCompletedNotification,
    "item/agentMessage/delta": AgentMessageDeltaNotification,
    "item/reasoning/summaryTextDelta": ReasoningSummaryTextDeltaNotification,
    "error": ErrorNotification,
    "warning": WarningNotification,
    "configWarning": ConfigWarningNotification,
    "deprecationNotice": DeprecationNoticeNotification,
    "serverRequest/resolved": ServerRequestResolvedNotification,
}

OUR_NOTIFICATIONS = frozenset({"thread/spend/updated", "thread/tools/changed"})
"""Those among them that only limner knows."""

METHOD_OF: Mapping[type[Notice], str] = {kind: name for name, kind in NOTIFICATIONS.items()}
