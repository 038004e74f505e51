"""What clients of the first protocol are told: one type for each `codex/event/*`."""

from __future__ import annotations

from typing import Any, Literal, get_args

from limner.frontends.appserver.protocol.base import ContentItem, SandboxMode, Shape

METHOD = "codex/event/"


class _Event(Shape, rename=None, tag_field="type"):
    """One thing that happened. Members are in snake case, unlike everywhere else."""


class SessionConfigured(_Event, tag="session_configured"):
    """A conversation is open, and this holds for it; what was said so far is in the answer."""

    session_id: str
    forked_from_id: str | None = None
    thread_name: str | None = None
    model: str
    model_provider_id: str
    approval_policy: str
    sandbox_policy: dict[Literal["type"], SandboxMode]
    cwd: str
    reasoning_effort: str | None = None
    history_log_id: int = 0
    history_entry_count: int = 0
    initial_messages: None = None
    rollout_path: str


class TaskStarted(_Event, tag="task_started"):
    """A turn begins."""

    turn_id: str
    model_context_window: int | None = None
    collaboration_mode_kind: Literal["default"] = "default"


class UserMessageTold(_Event, tag="user_message"):
    """A user speaks: the words, the addresses of pictures, and the paths of those in files."""

    message: str
    images: tuple[str, ...] = ()
    local_images: tuple[str, ...] = ()
    text_elements: tuple[()] = ()


class AgentMessageDelta(_Event, tag="agent_message_delta"):
    """The next words of the model."""

    delta: str


class AgentMessageTold(_Event, tag="agent_message"):
    """The model has spoken."""

    message: str
    phase: str | None = None


class AgentReasoning(_Event, tag="agent_reasoning"):
    """A part of the summary of what the model thinks."""

    text: str


class AgentReasoningRawContent(_Event, tag="agent_reasoning_raw_content"):
    """A part of what the model thinks, in its own words."""

    text: str


class DynamicToolCallRequested(
    _Event, rename="camel", tag_field="type", tag="dynamic_tool_call_request"
):
    """A tool is called; a client's own is put to it as `item/tool/call` as well."""

    call_id: str
    turn_id: str
    namespace: str | None = None
    tool: str
    arguments: Any


class Duration(Shape, rename=None):
    """How long something took."""

    secs: int
    nanos: int


class DynamicToolCallResponded(_Event, tag="dynamic_tool_call_response"):
    """A tool has answered."""

    call_id: str
    turn_id: str
    namespace: str | None = None
    tool: str
    arguments: Any
    content_items: tuple[ContentItem, ...] = ()
    success: bool
    error: None = None
    duration: Duration


class ImageGenerationBegin(_Event, tag="image_generation_begin"):
    """A picture is being made."""

    call_id: str


class ImageGenerationEnd(_Event, tag="image_generation_end"):
    """A picture was made; ``result`` is its base64, empty where it is not there."""

    call_id: str
    status: str
    revised_prompt: str | None = None
    result: str
    saved_path: str | None = None


class ViewImageToolCall(_Event, tag="view_image_tool_call"):
    """A picture in a file was looked at."""

    call_id: str
    path: str


class ContextCompacted(_Event, tag="context_compacted"):
    """The conversation was summed up."""


class TokenUsage(Shape, rename=None):
    """Tokens as a model counted them."""

    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    reasoning_output_tokens: int
    total_tokens: int


class TokenUsageInfo(Shape, rename=None):
    """What a conversation took in all, and with its last request."""

    total_token_usage: TokenUsage
    last_token_usage: TokenUsage
    model_context_window: int | None = None


class TokenCount(_Event, tag="token_count"):
    """A request to the model was counted."""

    info: TokenUsageInfo | None = None
    rate_limits: None = None


class RawResponseItem(_Event, tag="raw_response_item"):
    """An item as it is kept: told to listeners that asked for it, and where it has no other word.

    In the middle of a turn its pictures are named `limner://image/<sha256>`.
    """

    item: dict[str, Any]


class WarningTold(_Event, tag="warning"):
    """Somebody should know something."""

    message: str


class StreamError(_Event, tag="stream_error"):
    """Something failed, and is tried again."""

    message: str
    codex_error_info: str | dict[str, Any] | None = None
    additional_details: str | None = None


class ErrorTold(_Event, tag="error"):
    """The turn failed; it ends with `task_complete`."""

    message: str
    codex_error_info: str | dict[str, Any] | None = None


class TaskComplete(_Event, tag="task_complete"):
    """A turn is over."""

    turn_id: str
    last_agent_message: str | None = None


class TurnAborted(_Event, tag="turn_aborted"):
    """A turn was ended before its time."""

    turn_id: str | None = None
    reason: Literal["interrupted"] = "interrupted"


EventMsg = (
    SessionConfigured
    | TaskStarted
    | UserMessageTold
    | AgentMessageDelta
    | AgentMessageTold
    | AgentReasoning
    | AgentReasoningRawContent
    | DynamicToolCallRequested
    | DynamicToolCallResponded
    | ImageGenerationBegin
    | ImageGenerationEnd
    | ViewImageToolCall
    | ContextCompacted
    | TokenCount
    | RawResponseItem
    | WarningTold
    | StreamError
    | ErrorTold
    | TaskComplete
    | TurnAborted
)

NOTIFICATIONS: dict[str, type[Shape]] = {
    f"{METHOD}{kind.__struct_config__.tag}": kind for kind in get_args(EventMsg)
}


class Event(Shape):
    """One notification: what happened, in which conversation and, as ``id``, in which turn."""

    id: str
    msg: EventMsg
    conversation_id: str

    @property
    def method(self) -> str:
        """The name it is sent under."""
        return f"{METHOD}{self.msg.__struct_config__.tag}"
