"""A history that a client of the first protocol sends -> the same, once every item is one.

The types are those of the published schema and nothing is read from them: what they accept is
kept as it came, what they refuse is refused by the name of the member.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from limner.frontends.appserver.protocol.base import Shape
from limner.frontends.appserver.protocol.params import read_params
from limner.wires.items import Item, flatten_output

Status = Literal["completed", "in_progress", "incomplete"]
Milliseconds = Annotated[int, msgspec.Meta(ge=0)]


class _Kind(Shape, rename=None, tag_field="type"):
    """An object that says of what kind it is."""


class InputText(_Kind, tag="input_text"):
    """Words of a user or a tool."""

    text: str


class InputImage(_Kind, tag="input_image"):
    """A picture."""

    image_url: str


class OutputText(_Kind, tag="output_text"):
    """Words of a model."""

    text: str


class Message(_Kind, tag="message"):
    """Somebody speaks."""

    role: str
    content: list[InputText | InputImage | OutputText]
    id: str | None = None
    end_turn: bool | None = None
    phase: Literal["commentary", "final_answer"] | None = None


class SummaryText(_Kind, tag="summary_text"):
    """A part of the summary of a thought."""

    text: str


class ReasoningText(_Kind, tag="reasoning_text"):
    """A part of a thought."""

    text: str


class ThoughtText(_Kind, tag="text"):
    """A part of a thought."""

    text: str


class Reasoning(_Kind, tag="reasoning"):
    """A model thinks."""

    id: str
    summary: list[SummaryText]
    content: list[ReasoningText | ThoughtText] | None = None
    encrypted_content: str | None = None


class Exec(_Kind, tag="exec"):
    """A command is run."""

    command: list[str]
    env: dict[str, str] | None = None
    timeout_ms: Milliseconds | None = None
    user: str | None = None
    working_directory: str | None = None


class LocalShellCall(_Kind, tag="local_shell_call"):
    """A model runs a command."""

    action: Exec
    status: Status
    call_id: str | None = None
    id: str | None = None


class FunctionCall(_Kind, tag="function_call"):
    """A model calls a tool."""

    arguments: str
    call_id: str
    name: str
    id: str | None = None


Output = str | list[InputText | InputImage]


class Payload(Shape, rename=None):
    """An output in the shape that only the schema shows."""

    body: Output
    success: bool | None = None


class FunctionCallOutput(_Kind, tag="function_call_output"):
    """A tool answers: a text or parts, as they are on the wire, or a payload."""

    call_id: str
    output: Output | Payload


class CustomToolCall(_Kind, tag="custom_tool_call"):
    """A model calls a tool with a text."""

    call_id: str
    input: str
    name: str
    id: str | None = None
    status: str | None = None


class CustomToolCallOutput(_Kind, tag="custom_tool_call_output"):
    """Such a tool answers."""

    call_id: str
    output: str


class Search(_Kind, tag="search"):
    """Something is searched for."""

    query: str | None = None
    queries: list[str] | None = None


class OpenPage(_Kind, tag="open_page"):
    """A page is opened."""

    url: str | None = None


class FindInPage(_Kind, tag="find_in_page"):
    """Something is looked for in a page."""

    pattern: str | None = None
    url: str | None = None


class OtherAction(_Kind, tag="other"):
    """Something else is done."""


class WebSearchCall(_Kind, tag="web_search_call"):
    """A service searches by itself."""

    action: Search | OpenPage | FindInPage | OtherAction | None = None
    id: str | None = None
    status: str | None = None


class GhostCommit(Shape, rename=None):
    """The state of a repository."""

    id: str
    preexisting_untracked_dirs: list[str]
    preexisting_untracked_files: list[str]
    parent: str | None = None


class GhostSnapshot(_Kind, tag="ghost_snapshot"):
    """The state of a repository was noted."""

    ghost_commit: GhostCommit


class Compaction(_Kind, tag="compaction"):
    """What came before was summed up by a service."""

    encrypted_content: str


class Other(_Kind, tag="other"):
    """Something else."""


ResponseItem = (
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
    | Other
)


class History(Shape):
    """The member of a request that holds the items."""

    history: list[ResponseItem]


def read_history(history: Sequence[Item]) -> list[dict[str, Any]]:
    """The items as they are kept, each as it came but for an output's payload.

    Raises:
        InputInvalid: one is not of the schema; the message names the member.
    """
    read_params(History, {"history": list(history)})
    return [flatten_output(item) for item in history]
