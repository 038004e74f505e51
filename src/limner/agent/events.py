"""What happens in a turn, as values: everything a door shows of a conversation is one of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from limner.errors import LimnerError
from limner.pictures.order import Progress
from limner.tools.base import ToolCall, ToolResult
from limner.wires.base import Usage
from limner.wires.items import Item

Status = Literal["completed", "interrupted", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    """A turn begins."""

    turn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAdded:
    """What the user said is in the history, at the start or in the middle of a turn."""

    item: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """The model speaks: the next piece of the message with that id."""

    item_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAdded:
    """Something the model made is whole and in the history: a message, a thought, a call.

    A message whose pieces were told has their id.
    """

    item: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted:
    """A tool is called."""

    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress:
    """A tool that runs says how far it is."""

    call: ToolCall
    progress: Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished:
    """A tool has answered, and ``item``, its output, is in the history."""

    call: ToolCall
    result: ToolResult
    item: Item
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """One request to the model was counted and paid for.

    ``total`` is what the turns of this object have counted so far; ``context_tokens`` how much the
    model can hold, where that is known; ``spent_nano`` what the whole session has cost.
    """

    last: Usage
    total: Usage
    context_tokens: int | None
    spent_nano: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrying:
    """A request failed without being paid for, and is made again in another form."""

    error: LimnerError


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacting:
    """The conversation is too long for the model, or somebody asked: it is being summed up."""

    item_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """The conversation was summed up; ``dropped`` pictures are named in the summary only."""

    item_id: str
    summary: str
    dropped: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded:
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
    | Counted
    | Retrying
    | Compacting
    | Compacted
    | TurnEnded
)
