"""The types and methods of turns: start, steer, interrupt."""

from collections.abc import Mapping
from typing import Any, Literal

from limner.frontends.appserver.protocol.base import (
    AskForApproval,
    Empty,
    Method,
    Personality,
    Reviewer,
    SandboxPolicy,
    Shape,
    Summary,
    TurnToolOutput,
    UserInput,
)
from limner.frontends.appserver.protocol.items import ThreadItem

TurnStatus = Literal["completed", "interrupted", "failed", "inProgress"]
ItemsView = Literal["notLoaded", "summary", "full"]
ErrorInfo = (
    Literal[
        "contextWindowExceeded",
        "sessionBudgetExceeded",
        "usageLimitExceeded",
        "rateLimitExceeded",
        "serverOverloaded",
        "internalServerError",
        "unauthorized",
        "badRequest",
        "sandboxError",
        "other",
    ]
    | dict[str, Any]
)


class TurnError(Shape):
    """Why a turn failed, as a text and as a code that programs know."""

    message: str
    codex_error_info: ErrorInfo | None = None
    additional_details: str | None = None
    misalignment: None = None


class Turn(Shape):
    """A turn with as many of its items as ``items_view`` says; times are in seconds."""

    id: str
    root_turn_id: str | None = None
    items: tuple[ThreadItem, ...] = ()
    items_view: ItemsView = "full"
    status: TurnStatus
    error: TurnError | None = None
    started_at: int | None = None
    completed_at: int | None = None
    duration_ms: int | None = None


class TurnStartParams(Shape):
    """The input of a user. The other options are in force from this turn on."""

    thread_id: str
    input: tuple[UserInput, ...]
    tool_output: TurnToolOutput | None = None
    client_user_message_id: str | None = None
    model: str | None = None
    effort: str | None = None
    summary: Summary | None = None
    output_schema: Any = None
    cwd: str | None = None
    approval_policy: AskForApproval | None = None
    approvals_reviewer: Reviewer | None = None
    sandbox_policy: SandboxPolicy | None = None
    personality: Personality | None = None


class TurnStartResponse(Shape):
    """The turn that was started, or the running turn that got the input."""

    turn: Turn


class TurnSteerParams(Shape):
    """Adds input to the running turn."""

    thread_id: str
    expected_turn_id: str
    input: tuple[UserInput, ...]
    client_user_message_id: str | None = None


class TurnSteerResponse(Shape):
    turn_id: str


class TurnInterruptParams(Shape):
    thread_id: str
    turn_id: str


METHODS: Mapping[str, Method] = {
    "turn/start": Method(
        params=TurnStartParams,
        result=TurnStartResponse,
        handler="turn_methods:start",
        note="`file:` URLs and other URLs that are not data URLs are refused like remote URLs.",
        experimental_fields=frozenset(
            {
                "additionalContext",
                "collaborationMode",
                "cyberAccessProgram",
                "environments",
                "multiAgentMode",
                "permissions",
                "responsesapiClientMetadata",
                "responsesapiClientMetadataPatch",
                "runtimeWorkspaceRoots",
            }
        ),
    ),
    "turn/steer": Method(
        params=TurnSteerParams,
        result=TurnSteerResponse,
        handler="turn_methods:steer",
        experimental_fields=frozenset(
            {
                "additionalContext",
                "responsesapiClientMetadata",
                "responsesapiClientMetadataPatch",
            }
        ),
    ),
    "turn/interrupt": Method(
        params=TurnInterruptParams, result=Empty, handler="turn_methods:interrupt"
    ),
}
