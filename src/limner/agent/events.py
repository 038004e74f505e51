"""What happens in a turn -> one event each, for a local agent and for a thread at an app-server.

The tag and the field names of an event are its public JSON: more may be added, none changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from limner.content import Discreet
from limner.errors import LimnerError
from limner.pictures.request import Progress
from limner.tools.base import ToolCall, ToolResult
from limner.wires.base import Usage
from limner.wires.items import Item

Status = Literal["completed", "interrupted", "failed"]


class TurnEvent(Discreet, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """Something happened in a turn.

    ``raw`` is the params of the server's message if the event came from an app-server.
    """

    unshown = ("raw",)

    raw: Mapping[str, Any] | None = None


class TurnStarted(TurnEvent, frozen=True, kw_only=True, tag="turn_started"):
    """A turn begins."""

    turn_id: str = msgspec.field(name="turn")


class InputAdded(TurnEvent, frozen=True, kw_only=True, tag="input"):
    """The user's message is in the history, at the start or in the middle of a turn.

    ``item`` is as the session stores it; an app-server sends its own form.
    """

    item: Item


class TextDelta(TurnEvent, frozen=True, kw_only=True, tag="text"):
    """The next piece of the model's message with that id."""

    item_id: str
    text: str


class ItemAdded(TurnEvent, frozen=True, kw_only=True, tag="item"):
    """An item of the model is complete and in the history: a message, reasoning, a call.

    A message has the id of its `TextDelta` events. ``item`` is as the session stores it; an
    app-server sends its own form.
    """

    item: Item


class ToolStarted(TurnEvent, frozen=True, kw_only=True, tag="tool_started"):
    """A tool is called."""

    call: ToolCall


class ToolProgress(TurnEvent, frozen=True, kw_only=True, tag="tool_progress"):
    """A running tool reports its progress."""

    call: ToolCall
    progress: Progress


class ToolFinished(TurnEvent, frozen=True, kw_only=True, tag="tool_finished"):
    """A tool has returned; ``item`` is its output in the history."""

    call: ToolCall
    result: ToolResult
    item: Item
    duration_ms: int


class UsageUpdated(TurnEvent, frozen=True, kw_only=True, tag="usage"):
    """The tokens of one request to the model were counted.

    ``total`` is the sum of this conversation's turns; ``context_tokens`` how many tokens the model
    can hold, if that is known; ``spent_nano`` what the whole session has cost, as far as this
    process knows.
    """

    last: Usage
    total: Usage
    context_tokens: int | None
    spent_nano: int


class Retrying(TurnEvent, frozen=True, kw_only=True, tag="retrying"):
    """A request failed, was not billed, and is sent again in another form."""

    error: LimnerError


class Compacting(TurnEvent, frozen=True, kw_only=True, tag="compacting"):
    """The conversation is being summarized: it is too long for the model, or the user asked."""

    item_id: str


class Compacted(TurnEvent, frozen=True, kw_only=True, tag="compacted"):
    """The conversation was summarized; ``dropped`` pictures are only named in the summary."""

    item_id: str
    summary: str
    dropped: tuple[str, ...]


class TurnEnded(TurnEvent, frozen=True, kw_only=True, tag="turn_ended"):
    """The last event of a turn.

    Attributes:
        turn_id: the turn.
        status: how it ended.
        text: the model's last message, empty if there is none.
        is_cut: that message ends early because it reached the longest length.
        error: why the turn failed.
        cost_nano: what the turn cost, tools and model together.
        spent_nano: what the whole session has cost, as far as this process knows.
    """

    turn_id: str = msgspec.field(name="turn")
    status: Status
    text: str
    is_cut: bool
    error: LimnerError | None
    cost_nano: int
    spent_nano: int


Event = (
    TurnStarted
    | InputAdded
    | TextDelta
    | ItemAdded
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | UsageUpdated
    | Retrying
    | Compacting
    | Compacted
    | TurnEnded
)
