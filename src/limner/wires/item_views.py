"""An item of a conversation -> a typed view of its JSON object, one for each kind.

The item itself stays the object that arrived. It is never rebuilt from a view, so unknown kinds and
fields survive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec

from limner.errors import InputInvalid
from limner.wires.base import HANDLE_URL

Item = Mapping[str, Any]
V = TypeVar("V")


class _View(msgspec.Struct, kw_only=True):
    """The known fields of one object."""


class Unknown(_View):
    """An object of an unknown kind."""

    kind: str


# --- the parts of a message, an output or reasoning ---


class InputText(_View):
    """Text of a user or a tool."""

    text: str


class OutputText(_View):
    """Text of a model."""

    text: str


class Refusal(_View):
    """Text of a model that refuses to answer."""

    refusal: str


class InputImage(_View):
    """A picture; ``handle`` is None if its URL is not that of a handle.

    A picture with a ``file_id`` and no URL is a file at OpenAI, which only OpenAI can read.
    """

    image_url: str | None = None
    file_id: str | None = None
    detail: str | None = None

    @property
    def handle(self) -> str | None:
        """The handle in its URL."""
        return handle_of(self.image_url or "")


class InputAudio(_View):
    """An audio clip."""

    audio_url: str | None = None


class EncryptedContent(_View):
    """A part of an output that only its service can read."""

    encrypted_content: str


class ReasoningText(_View):
    """Text of reasoning, or of its summary."""

    text: str
    type: str | None = None


ContentPart = (
    InputText | OutputText | Refusal | InputImage | InputAudio | EncryptedContent | Unknown
)

_TEXTS = {"input_text": InputText, "output_text": OutputText}
_PARTS: Mapping[str, type[_View]] = {
    **_TEXTS,
    "refusal": Refusal,
    "input_image": InputImage,
    "input_audio": InputAudio,
    "encrypted_content": EncryptedContent,
}


# --- the kinds of items ---


class Message(_View):
    """A message of any role."""

    role: str
    content: str | list[Any]
    id: str | None = None
    end_turn: bool | None = None
    phase: str | None = None

    @property
    def parts(self) -> list[ContentPart]:
        """Its parts."""
        return parts(self.content)


class Reasoning(_View):
    """Reasoning of a model.

    ``origin`` is the wire of the service that wrote it; only that service can read
    ``encrypted_content``. None is the Responses API.
    """

    summary: list[ReasoningText]
    id: str | None = None
    content: list[ReasoningText] | None = None
    encrypted_content: str | None = None
    origin: str | None = None


class ShellAction(_View):
    """A command for a shell."""

    type: str
    command: list[str]
    env: dict[str, str] | None = None
    timeout_ms: int | float | None = None
    user: str | None = None
    working_directory: str | None = None


class LocalShellCall(_View):
    """A model runs a command."""

    action: ShellAction
    status: str
    call_id: str | None = None
    id: str | None = None


class FunctionCall(_View):
    """A model calls a tool; ``arguments`` is JSON as the model wrote it."""

    call_id: str
    name: str
    arguments: str
    id: str | None = None
    namespace: str | None = None


class Payload(_View):
    """An output in the form of the protocol's schema."""

    body: str | list[Any]
    success: bool | None = None


class _Output(_View):
    call_id: str
    output: str | list[Any] | Payload
    success: bool | None = None
    name: str | None = None
    namespace: str | None = None

    @property
    def parts(self) -> list[ContentPart]:
        """Its parts."""
        output = self.output
        return parts(output.body if isinstance(output, Payload) else output)

    @property
    def succeeded(self) -> bool | None:
        """Whether the tool succeeded; None if the output does not say."""
        return self.output.success if isinstance(self.output, Payload) else self.success


class FunctionCallOutput(_Output):
    """The output of a tool."""


class CustomToolCall(_View):
    """A model calls a tool that takes free text."""

    call_id: str
    name: str
    input: str
    id: str | None = None
    status: str | None = None
    namespace: str | None = None


class CustomToolCallOutput(_Output):
    """The output of a tool that takes free text."""


class WebSearchCall(_View):
    """A model searches the web."""

    action: dict[str, Any] | None = None
    id: str | None = None
    status: str | None = None


class GhostCommit(_View):
    """A state of a repository."""

    id: str
    preexisting_untracked_dirs: list[str]
    preexisting_untracked_files: list[str]
    parent: str | None = None


class GhostSnapshot(_View):
    """A state of a repository, stored for an undo."""

    ghost_commit: GhostCommit


class Compaction(_View):
    """The start of a conversation, summed up by its service."""

    encrypted_content: str


class ContextCompaction(_View):
    """The place of a compaction, and its summary if the service keeps one."""

    encrypted_content: str | None = None


class AgentMessage(_View):
    """A message of one agent to another."""

    author: str
    recipient: str
    content: list[Any]

    @property
    def parts(self) -> list[ContentPart]:
        """Its parts."""
        return parts(self.content)


class AdditionalTools(_View):
    """Tools that the model may call from here on."""

    role: str
    tools: list[Any]


class GeneratedPicture(_View):
    """A picture that a service drew by itself; ``result`` names it by its handle."""

    result: str | None = None
    revised_prompt: str | None = None
    # The text that is sent in place of the picture.
    note: str | None = None


class ToolSearchCall(_View):
    """A model searches for tools."""

    arguments: Any = None


class ToolSearchOutput(_View):
    """The tools that a model has found."""

    tools: list[dict[str, Any]] = []


class OtherItem(_View):
    """An item that its author marked as of no other kind."""


View = (
    Message
    | Reasoning
    | LocalShellCall
    | FunctionCall
    | FunctionCallOutput
    | CustomToolCall
    | CustomToolCallOutput
    | WebSearchCall
    | GhostSnapshot
    | Compaction
    | ContextCompaction
    | AgentMessage
    | AdditionalTools
    | GeneratedPicture
    | ToolSearchCall
    | ToolSearchOutput
    | OtherItem
    | Unknown
)

_KINDS: Mapping[str, type[_View]] = {
    "message": Message,
    "reasoning": Reasoning,
    "local_shell_call": LocalShellCall,
    "function_call": FunctionCall,
    "function_call_output": FunctionCallOutput,
    "custom_tool_call": CustomToolCall,
    "custom_tool_call_output": CustomToolCallOutput,
    "web_search_call": WebSearchCall,
    "ghost_snapshot": GhostSnapshot,
    "compaction": Compaction,
    "compaction_summary": Compaction,
    "context_compaction": ContextCompaction,
    "agent_message": AgentMessage,
    "additional_tools": AdditionalTools,
    "image_generation_call": GeneratedPicture,
    "tool_search_call": ToolSearchCall,
    "tool_search_output": ToolSearchOutput,
    "other": OtherItem,
}


def view(item: Item) -> View:
    """The view of an item; an item without a type is a message.

    Raises:
        InputInvalid: it is of a known kind and does not match it.
    """
    return cast("View", _tagged(item if "type" in item else {"type": "message", **item}, _KINDS))


def view_type(item: Item) -> type[_View]:
    """The type of an item's `view`, without a check of its members."""
    kind: object = item.get("type", "message")
    return _KINDS.get(kind, Unknown) if isinstance(kind, str) else Unknown


def check(item: Item) -> View:
    """The view of an item that can be sent.

    Raises:
        InputInvalid: it is of a known kind and does not match it, or a part is of a kind that
            cannot be sent. Every request with this item in it would fail.
    """
    seen = view(item)
    if isinstance(seen, Message | FunctionCallOutput | CustomToolCallOutput):
        for part in seen.parts:
            if isinstance(part, Unknown):
                raise InputInvalid(f"unknown content `{part.kind}`", field="items")
    return seen


def handle_of(url: str) -> str | None:
    """The handle in a URL, or None if it is another kind of URL."""
    return url.removeprefix(HANDLE_URL) if url.startswith(HANDLE_URL) else None


def parts(content: str | Sequence[Any]) -> list[ContentPart]:
    """The views of the parts of content; a string is one text.

    Raises:
        InputInvalid: a part is of a known kind and does not match it.
    """
    if isinstance(content, str):
        return [InputText(text=content)]
    return [_part(part) for part in content]


def _part(part: object) -> ContentPart:
    if isinstance(part, str):
        return InputText(text=part)
    if not isinstance(part, dict):
        return Unknown(kind=type(part).__name__)
    found: dict[str, Any] = part  # pyright: ignore[reportUnknownVariableType] - JSON
    kind, text = found.get("type"), found.get("text")
    # Most parts are text; a long conversation has many.
    if isinstance(kind, str) and kind in _TEXTS and isinstance(text, str):
        return _TEXTS[kind](text=text)
    return cast("ContentPart", _tagged(found, _PARTS))


def _tagged(found: Mapping[str, Any], kinds: Mapping[str, type[V]]) -> V | Unknown:
    """The view of an object, by its kind."""
    kind: object = found.get("type")
    known = kinds.get(kind) if isinstance(kind, str) else None
    if known is None:
        return Unknown(kind=str(kind)[:80])
    try:
        return msgspec.convert(found, known)
    except msgspec.ValidationError as problem:
        raise InputInvalid(f"{kind}: {problem}"[:300], field="items") from problem
