"""What happens in a turn, as values: everything a door shows of a conversation is one of these."""

from __future__ import annotations

from typing import Literal

import msgspec

from limner.errors import LimnerError
from limner.pictures.request import Progress
from limner.tools.base import ToolCall, ToolResult
from limner.wires.base import Usage
from limner.wires.items import Item

Status = Literal["completed", "interrupted", "failed"]


class TurnStarted(msgspec.Struct, frozen=True, kw_only=True):
    """A turn begins."""

    turn_id: str


class InputAdded(msgspec.Struct, frozen=True, kw_only=True):
    """What the user said is in the history, at the start or in the middle of a turn."""

    item: Item


class TextDelta(msgspec.Struct, frozen=True, kw_only=True):
    """The model speaks: the next piece of the message with that id."""

    item_id: str
    text: str


class ItemAdded(msgspec.Struct, frozen=True, kw_only=True):
    """Something the model made is whole and in the history: a message, a thought, a call.

    A message whose pieces were told has their id.
    """

    item: Item


class ToolStarted(msgspec.Struct, frozen=True, kw_only=True):
    """A tool is called."""

    call: ToolCall


class ToolProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that runs says how far it is."""

    call: ToolCall
    progress: Progress


class ToolFinished(msgspec.Struct, frozen=True, kw_only=True):
    """A tool has answered, and ``item``, its output, is in the history."""

    call: ToolCall
    result: ToolResult
    item: Item
    duration_ms: int


class UsageUpdated(msgspec.Struct, frozen=True, kw_only=True):
    """One request to the model was counted and paid for.

    ``total`` is what the turns of this object have counted so far; ``context_tokens`` how much the
    model can hold, where that is known; ``spent_nano`` what the whole session has cost.
    """

    last: Usage
    total: Usage
    context_tokens: int | None
    spent_nano: int


class Retrying(msgspec.Struct, frozen=True, kw_only=True):
    """A request failed without being paid for, and is made again in another form."""

    error: LimnerError


class Compacting(msgspec.Struct, frozen=True, kw_only=True):
    """The conversation is too long for the model, or somebody asked: it is being summed up."""

    item_id: str


class Compacted(msgspec.Struct, frozen=True, kw_only=True):
    """The conversation was summed up; ``dropped`` pictures are named in the summary only."""

    item_id: str
    summary: str
    dropped: tuple[str, ...]


class TurnEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A turn is over.

    Attributes:
        turn_id: the turn.
        status: how it ended.
        text: the last words of the model, empty where it said none.
        is_cut: they end where an answer may not be any longer.
        error: why it failed.
        cost_nano: what the turn cost, tools and model together.
        spent_nano: what the whole session has cost.
    """

    turn_id: str
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
