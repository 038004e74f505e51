"""The items of a thread, as clients see them."""

from __future__ import annotations

from typing import Any, Literal

from limner.frontends.appserver.protocol.base import ContentItem, Shape, UserInput

Phase = Literal["commentary", "partial_answer", "final_answer"]
CallStatus = Literal["inProgress", "completed", "failed"]


class _Item(Shape, tag_field="type"):
    id: str
    started_at_ms: int | None = None
    completed_at_ms: int | None = None


class UserMessage(_Item, tag="userMessage"):
    """A user speaks; ``client_id`` is what the client calls the message."""

    content: tuple[UserInput, ...]
    client_id: str | None = None


class AgentMessage(_Item, tag="agentMessage"):
    """A model speaks."""

    text: str
    phase: Phase | None = None
    memory_citation: None = None
    delivery: None = None
    questions: None = None


class Reasoning(_Item, tag="reasoning"):
    """A model thinks."""

    summary: tuple[str, ...] = ()
    content: tuple[str, ...] = ()


class DynamicToolCall(_Item, tag="dynamicToolCall"):
    """A tool is called; its id is the call's."""

    tool: str
    arguments: Any
    status: CallStatus
    namespace: str | None = None
    content_items: tuple[ContentItem, ...] | None = None
    success: bool | None = None
    duration_ms: int | None = None


class FunctionCallOutput(_Item, tag="functionCallOutput"):
    """A tool that nobody called has something to say."""

    name: str
    output: str | list[dict[str, Any]]
    namespace: str | None = None


class ImageView(_Item, tag="imageView"):
    """A picture in a file was looked at."""

    path: str


class ImageGeneration(_Item, tag="imageGeneration"):
    """A picture is made; ``result`` is its base64, empty where it is not there or too much."""

    status: str
    result: str
    revised_prompt: str | None = None
    saved_path: str | None = None
    transparent_background: bool | None = None
    failure: None = None


class ContextCompaction(_Item, tag="contextCompaction"):
    """The conversation so far was summed up."""


ThreadItem = (
    UserMessage
    | AgentMessage
    | Reasoning
    | DynamicToolCall
    | FunctionCallOutput
    | ImageView
    | ImageGeneration
    | ContextCompaction
)


class ThreadItemEntry(Shape):
    """An item and the turn that it belongs to."""

    item: ThreadItem
    turn_id: str
    started_at_ms: int | None = None
    completed_at_ms: int | None = None
