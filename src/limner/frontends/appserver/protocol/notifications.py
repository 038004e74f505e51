"""The notifications to clients: a type for each, and its method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from limner.frontends.appserver.protocol.accounts import RateLimitSnapshot, ThreadGoal
from limner.frontends.appserver.protocol.base import Shape
from limner.frontends.appserver.protocol.items import ThreadItem
from limner.frontends.appserver.protocol.threads import (
    Thread,
    ThreadReadState,
    ThreadSettings,
    ThreadStatus,
)
from limner.frontends.appserver.protocol.turns import Turn, TurnError


class Notice(Shape):
    """A notification. `METHOD_OF` has the method of each class."""


class ThreadStartedNotification(Notice):
    thread: Thread


class ThreadStatusChangedNotification(Notice):
    """A turn started or ended, or the thread was opened or closed."""

    thread_id: str
    status: ThreadStatus


class ThreadNameUpdatedNotification(Notice):
    thread_id: str
    thread_name: str | None = None


class ThreadSettingsUpdatedNotification(Notice):
    """A client has changed the options of the thread."""

    thread_id: str
    thread_settings: ThreadSettings


class ThreadRevertedNotification(Notice):
    """A client has removed the last turns of the thread."""

    thread_id: str


class ThreadArchivedNotification(Notice):
    thread_id: str


class ThreadUnarchivedNotification(Notice):
    thread_id: str


class ThreadDeletedNotification(Notice):
    thread_id: str


class ThreadClosedNotification(Notice):
    """This process closed the thread."""

    thread_id: str


class ThreadGoalUpdatedNotification(Notice):
    thread_id: str
    turn_id: str | None = None
    goal: ThreadGoal


class ThreadGoalClearedNotification(Notice):
    thread_id: str


class ThreadReadStateChangedNotification(Notice):
    """There is something new to read."""

    thread_id: str
    read_state: ThreadReadState


class TokenUsageBreakdown(Shape):
    """Token counts as the model reports them."""

    total_tokens: int
    input_tokens: int
    cached_input_tokens: int
    cache_write_input_tokens: int = 0
    output_tokens: int
    reasoning_output_tokens: int


class ThreadTokenUsage(Shape):
    """The tokens of the whole thread and of its last request."""

    total: TokenUsageBreakdown
    last: TokenUsageBreakdown
    model_context_window: int | None = None


class ThreadTokenUsageUpdatedNotification(Notice):
    """A model request has reported its tokens."""

    thread_id: str
    turn_id: str
    token_usage: ThreadTokenUsage


class AccountRateLimitsUpdatedNotification(Notice):
    """limner knows no limits; clients expect this after each model request."""

    rate_limits: RateLimitSnapshot


class AccountUpdatedNotification(Notice):
    """A client logged in or out."""

    auth_mode: Literal["apikey"] | None = None
    plan_type: None = None


class AccountLoginCompletedNotification(Notice):
    login_id: str | None = None
    success: bool
    error: str | None = None
    onboarding_entrypoint: None = None


class TurnStartedNotification(Notice):
    thread_id: str
    turn: Turn


class TurnCompletedNotification(Notice):
    """Only the last message of the model is in ``turn.items``."""

    thread_id: str
    turn: Turn


class ItemStartedNotification(Notice):
    item: ThreadItem
    thread_id: str
    turn_id: str
    started_at_ms: int


class ItemCompletedNotification(Notice):
    """The item is complete and stored."""

    item: ThreadItem
    thread_id: str
    turn_id: str
    completed_at_ms: int


class AgentMessageDeltaNotification(Notice):
    """The next part of a message of the model."""

    thread_id: str
    turn_id: str
    item_id: str
    delta: str


class ReasoningSummaryTextDeltaNotification(Notice):
    """The next part of a reasoning summary."""

    thread_id: str
    turn_id: str
    item_id: str
    delta: str
    summary_index: int


class ErrorNotification(Notice):
    """A turn failed, or a model request failed and is retried."""

    error: TurnError
    will_retry: bool
    thread_id: str
    turn_id: str


class WarningNotification(Notice):
    """A text for the user, such as an option that has no effect."""

    thread_id: str | None = None
    message: str


class ConfigWarningNotification(Notice):
    """A problem in the settings."""

    summary: str
    details: str | None = None


class DeprecationNoticeNotification(Notice):
    """The client uses something that will go away."""

    summary: str
    details: str | None = None


class ServerRequestResolvedNotification(Notice):
    """A request of the server was answered, maybe by another client."""

    thread_id: str
    request_id: int | str


class ThreadSpendUpdatedNotification(Notice):
    """The cost of the turn and of the whole thread."""

    thread_id: str
    turn_id: str
    turn_cost_usd: float
    thread_cost_usd: float


class ThreadItemStoredNotification(Notice):
    """An item of the history as it is stored: its pictures are handles.

    The last item of a model's answer has the tokens and the cost of the request in ``usage``, and
    the output of a tool has its cost in ``cost_nano``.
    """

    thread_id: str
    turn_id: str
    item: dict[str, Any]


class ThreadToolsChangedNotification(Notice):
    """The client's tools of the thread were replaced."""

    thread_id: str
    names: tuple[str, ...]


FOR_EVERYONE = (
    ThreadStartedNotification,
    ThreadStatusChangedNotification,
    ThreadNameUpdatedNotification,
    ThreadArchivedNotification,
    ThreadUnarchivedNotification,
    ThreadDeletedNotification,
    ThreadClosedNotification,
)
"""What every client hears of a thread, also one that does not subscribe to it."""

NOTIFICATIONS: Mapping[str, type[Notice]] = {
    "thread/started": ThreadStartedNotification,
    "thread/status/changed": ThreadStatusChangedNotification,
    "thread/name/updated": ThreadNameUpdatedNotification,
    "thread/settings/updated": ThreadSettingsUpdatedNotification,
    "thread/reverted": ThreadRevertedNotification,
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
    "thread/item/stored": ThreadItemStoredNotification,
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

METHOD_OF: Mapping[type[Notice], str] = {kind: name for name, kind in NOTIFICATIONS.items()}
