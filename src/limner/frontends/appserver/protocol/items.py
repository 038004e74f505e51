"""The items of a thread, as clients see them."""

from typing import Any, Literal

from limner.frontends.appserver.protocol.base import ContentItem, Shape, UserInput

Phase = Literal["commentary", "partial_answer", "final_answer"]
CallStatus = Literal["inProgress", "completed", "failed"]


class _Item(Shape, tag_field="type"):
    id: str
    started_at_ms: int | None = None
    completed_at_ms: int | None = None


class UserMessage(_Item, tag="userMessage"):
    """A message of the user; ``client_id`` is the client's own id for it."""

    content: tuple[UserInput, ...]
    client_id: str | None = None


class AgentMessage(_Item, tag="agentMessage"):
    """A message of the model."""

    text: str
    phase: Phase | None = None
    memory_citation: None = None
    delivery: None = None
    questions: None = None


class Reasoning(_Item, tag="reasoning"):
    """The reasoning of the model."""

    summary: tuple[str, ...] = ()
    content: tuple[str, ...] = ()


class DynamicToolCall(_Item, tag="dynamicToolCall"):
    """A tool call. The id of the item is the id of the call."""

    tool: str
    arguments: Any
    status: CallStatus
    namespace: str | None = None
    content_items: tuple[ContentItem, ...] | None = None
    success: bool | None = None
    duration_ms: int | None = None


class FunctionCallOutput(_Item, tag="functionCallOutput"):
    """The output of a tool that the model did not call."""

    name: str
    output: str | list[dict[str, Any]]
    namespace: str | None = None


class ImageView(_Item, tag="imageView"):
    """The model looked at a picture in a file."""

    path: str


class ImageGenerationInputImage(Shape):
    path: str
    sha256: str


class ImageGeneration(_Item, tag="imageGeneration"):
    """A generated picture. ``result`` is its base64; it is empty if there is none or no room."""

    status: str
    result: str
    revised_prompt: str | None = None
    saved_path: str | None = None
    transparent_background: bool | None = None
    failure: None = None
    generation_id: None = None
    input_images: tuple[ImageGenerationInputImage, ...] = ()


class ContextCompaction(_Item, tag="contextCompaction"):
    """The history was replaced by a summary."""


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
    item: ThreadItem
    turn_id: str
    started_at_ms: int | None = None
    completed_at_ms: int | None = None
