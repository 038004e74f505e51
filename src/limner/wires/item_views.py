"""Typed views of a conversation's items: what the JSON object of each kind says.

An item itself is kept as the object it arrived as and is never rebuilt from a view, so kinds and
fields that are unknown here survive.
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
    """What one object says, as far as it is known."""


class Unknown(_View):
    """An object of a kind that is not known here."""

    kind: str


# --- what a message, an output or a thought consists of ---


class InputText(_View):
    """Words of a user or a tool."""

    text: str


class OutputText(_View):
    """Words of a model."""

    text: str


class Refusal(_View):
    """Words of a model that will not answer."""

    refusal: str


class InputImage(_View):
    """A picture; ``handle`` is None where its address is not a handle's."""

    image_url: str | None = None
    detail: str | None = None

    @property
    def handle(self) -> str | None:
        """The handle that it is named by."""
        return handle_of(self.image_url or "")


class InputAudio(_View):
    """A sound."""

    audio_url: str | None = None


class ThoughtText(_View):
    """Words of a thought, or of the summary of one."""

    text: str


ContentPart = InputText | OutputText | Refusal | InputImage | InputAudio | Unknown

_PARTS: Mapping[str, type[_View]] = {
    "input_text": InputText,
    "output_text": OutputText,
    "refusal": Refusal,
    "input_image": InputImage,
    "input_audio": InputAudio,
}


# --- the kinds of items ---


class Message(_View):
    """Somebody speaks."""

    role: str
    content: str | list[Any]
    id: str | None = None
    end_turn: bool | None = None
    phase: str | None = None

    @property
    def parts(self) -> list[ContentPart]:
        """What is said, part by part."""
        return parts(self.content)


class Reasoning(_View):
    """A model thinks.

    ``origin`` is the wire whose service wrote it, which alone can read ``encrypted_content``;
    None is the Responses API.
    """

    summary: list[ThoughtText]
    id: str | None = None
    content: list[ThoughtText] | None = None
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


class Payload(_View):
    """An output as the schema of the protocol shows it."""

    body: str | list[Any]
    success: bool | None = None


class _Output(_View):
    call_id: str
    output: str | list[Any] | Payload
    success: bool | None = None

    @property
    def parts(self) -> list[ContentPart]:
        """What came back, part by part."""
        output = self.output
        return parts(output.body if isinstance(output, Payload) else output)

    @property
    def succeeded(self) -> bool | None:
        """Whether the tool did what it was asked for; None where nobody says."""
        return self.output.success if isinstance(self.output, Payload) else self.success


class FunctionCallOutput(_Output):
    """What a tool gave back."""


class CustomToolCall(_View):
    """A model calls a tool that takes free text."""

    call_id: str
    name: str
    input: str
    id: str | None = None
    status: str | None = None


class CustomToolCallOutput(_Output):
    """What a tool that takes free text gave back."""


class Search(_View):
    """A question to a search engine."""

    query: str | None = None
    queries: list[str] | None = None


class OpenPage(_View):
    """A page opened."""

    url: str | None = None


class FindInPage(_View):
    """A page searched."""

    url: str | None = None
    pattern: str | None = None


class OtherAction(_View):
    """Something else done on the web."""


SearchAction = Search | OpenPage | FindInPage | OtherAction | Unknown

_ACTIONS: Mapping[str, type[_View]] = {
    "search": Search,
    "open_page": OpenPage,
    "find_in_page": FindInPage,
    "other": OtherAction,
}


class WebSearchCall(_View):
    """A model looks something up."""

    action: dict[str, Any] | None = None
    id: str | None = None
    status: str | None = None

    @property
    def act(self) -> SearchAction | None:
        """What it does there."""
        return None if self.action is None else cast("SearchAction", _tagged(self.action, _ACTIONS))


class GhostCommit(_View):
    """A state of a repository."""

    id: str
    preexisting_untracked_dirs: list[str]
    preexisting_untracked_files: list[str]
    parent: str | None = None


class GhostSnapshot(_View):
    """A state of a repository, kept so that one can go back."""

    ghost_commit: GhostCommit


class Compaction(_View):
    """A conversation's beginning, made short by its service."""

    encrypted_content: str


class OtherItem(_View):
    """Something that the one who wrote it had no kind for."""


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
    "other": OtherItem,
}


def view(item: Item) -> View:
    """What an item says; an item without a type is a message.

    Raises:
        InputInvalid: it is of a known kind and not of that kind's shape.
    """
    return cast("View", _tagged({"type": "message", **item}, _KINDS))


def check(item: Item) -> View:
    """As `view`, and insist that there are words for every part of it.

    Raises:
        InputInvalid: it is of a known kind and not of that kind's shape, or a part is of a kind
            that cannot be sent: every request with this item in it would fail.
    """
    seen = view(item)
    if isinstance(seen, Message | FunctionCallOutput | CustomToolCallOutput):
        for part in seen.parts:
            if isinstance(part, Unknown):
                raise InputInvalid(f"unknown content `{part.kind}`", field="items")
    return seen


def handle_of(url: str) -> str | None:
    """The handle in an address, or None where it is another kind of address."""
    return url.removeprefix(HANDLE_URL) if url.startswith(HANDLE_URL) else None


def parts(content: str | Sequence[Any]) -> list[ContentPart]:
    """What content consists of; a string is one text.

    Raises:
        InputInvalid: a part is of a known kind and not of that kind's shape.
    """
    if isinstance(content, str):
        return [InputText(text=content)]
    return [_part(part) for part in content]


def _part(part: object) -> ContentPart:
    if isinstance(part, str):
        return InputText(text=part)
    if not isinstance(part, dict):
        return Unknown(kind=type(part).__name__)
    return cast("ContentPart", _tagged(cast("dict[str, Any]", part), _PARTS))


def _tagged(found: Mapping[str, Any], kinds: Mapping[str, type[V]]) -> V | Unknown:
    """The object as the view of its kind."""
    kind: object = found.get("type")
    known = kinds.get(kind) if isinstance(kind, str) else None
    if known is None:
        return Unknown(kind=str(kind)[:80])
    try:
        return msgspec.convert(found, known)
    except msgspec.ValidationError as problem:
        raise InputInvalid(f"{kind}: {problem}"[:300], field="items") from problem
