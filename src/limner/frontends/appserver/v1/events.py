"""The notifications of the first protocol: one type for each `codex/event/*`."""

from __future__ import annotations

from typing import Any, Literal, get_args

from limner.frontends.appserver.protocol.base import ContentItem, SandboxMode, Shape

METHOD = "codex/event/"


class _Event(Shape, rename=None, tag_field="type"):
    """The members of events are in snake case, unlike everywhere else."""


class SessionConfigured(_Event, tag="session_configured"):
    """A conversation was opened with these options. Its history is in the response."""

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
    """A turn started."""

    turn_id: str
    model_context_window: int | None = None
    collaboration_mode_kind: Literal["default"] = "default"


class UserMessageEvent(_Event, tag="user_message"):
    """A message of the user: its text, the URLs of pictures and the paths of picture files."""

    message: str
    images: tuple[str, ...] = ()
    local_images: tuple[str, ...] = ()
    text_elements: tuple[()] = ()


class AgentMessageDelta(_Event, tag="agent_message_delta"):
    """The next part of a message of the model."""

    delta: str


class AgentMessageEvent(_Event, tag="agent_message"):
    """A message of the model."""

    message: str
    phase: str | None = None


class AgentReasoning(_Event, tag="agent_reasoning"):
    """A part of the reasoning summary."""

    text: str


class AgentReasoningRawContent(_Event, tag="agent_reasoning_raw_content"):
    """A part of the reasoning itself."""

    text: str


class DynamicToolCallRequest(
    _Event, rename="camel", tag_field="type", tag="dynamic_tool_call_request"
):
    """A tool call. A client's own tool is also called by `item/tool/call`."""

    call_id: str
    turn_id: str
    namespace: str | None = None
    tool: str
    arguments: Any


class Duration(Shape, rename=None):
    secs: int
    nanos: int


class DynamicToolCallResponseEvent(_Event, tag="dynamic_tool_call_response"):
    """The output of a tool."""

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
    call_id: str


class ImageGenerationEnd(_Event, tag="image_generation_end"):
    """``result`` is the base64 of the picture; it is empty if there is none."""

    call_id: str
    status: str
    revised_prompt: str | None = None
    result: str
    saved_path: str | None = None


class ViewImageToolCall(_Event, tag="view_image_tool_call"):
    """The model looked at a picture in a file."""

    call_id: str
    path: str


class ContextCompacted(_Event, tag="context_compacted"):
    """The history was replaced by a summary."""


class TokenUsage(Shape, rename=None):
    """Token counts as the model reports them."""

    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    reasoning_output_tokens: int
    total_tokens: int


class TokenUsageInfo(Shape, rename=None):
    """The tokens of the whole conversation and of its last request."""

    total_token_usage: TokenUsage
    last_token_usage: TokenUsage
    model_context_window: int | None = None


class TokenCount(_Event, tag="token_count"):
    """A model request has reported its tokens."""

    info: TokenUsageInfo | None = None
    rate_limits: None = None


class RawResponseItem(_Event, tag="raw_response_item"):
    """A stored item, for listeners that asked for them and for items that no other event has.

    During a turn its pictures are named `limner://image/<sha256>`.
    """

    item: dict[str, Any]


class WarningEvent(_Event, tag="warning"):
    """A text for the user, such as an option that has no effect."""

    message: str


class StreamError(_Event, tag="stream_error"):
    """A model request failed and is retried."""

    message: str
    codex_error_info: str | dict[str, Any] | None = None
    additional_details: str | None = None


class ErrorEvent(_Event, tag="error"):
    """The turn failed. `task_complete` follows."""

    message: str
    codex_error_info: str | dict[str, Any] | None = None


class TaskComplete(_Event, tag="task_complete"):
    """A turn ended."""

    turn_id: str
    last_agent_message: str | None = None


class TurnAborted(_Event, tag="turn_aborted"):
    """The user interrupted a turn."""

    turn_id: str | None = None
    reason: Literal["interrupted"] = "interrupted"


EventMsg = (
    SessionConfigured
    | TaskStarted
    | UserMessageEvent
    | AgentMessageDelta
    | AgentMessageEvent
    | AgentReasoning
    | AgentReasoningRawContent
    | DynamicToolCallRequest
    | DynamicToolCallResponseEvent
    | ImageGenerationBegin
    | ImageGenerationEnd
    | ViewImageToolCall
    | ContextCompacted
    | TokenCount
    | RawResponseItem
    | WarningEvent
    | StreamError
    | ErrorEvent
    | TaskComplete
    | TurnAborted
)

NOTIFICATIONS: dict[str, type[Shape]] = {
    f"{METHOD}{kind.__struct_config__.tag}": kind for kind in get_args(EventMsg)
}


class Event(Shape):
    """A notification: the event, its conversation and, as ``id``, its turn."""

    id: str
    msg: EventMsg
    conversation_id: str

    @property
    def method(self) -> str:
        """The name it is sent under."""
        return f"{METHOD}{self.msg.__struct_config__.tag}"
